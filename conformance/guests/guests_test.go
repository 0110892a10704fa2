//go:build !race

// Under the race detector compiling and interpreting these programs takes
// minutes; there is nothing concurrent here.

package guests_test

import (
	"context"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host"
	"github.com/writrun/writ/host/hosttest"
	"github.com/writrun/writ/host/prepare"
	"github.com/writrun/writ/host/trace"
	"github.com/writrun/writ/host/wazero"
)

// engines are all engines there are.
func engines(t *testing.T) []host.Engine {
	t.Helper()
	var all []host.Engine
	for _, open := range []func(context.Context) (host.Engine, error){
		func(ctx context.Context) (host.Engine, error) { return wazero.New(ctx, wazero.Config{}) },
		func(ctx context.Context) (host.Engine, error) {
			return wazero.New(ctx, wazero.Config{Interpreter: true})
		},
		newSecondEngine,
	} {
		e, err := open(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if e == nil {
			t.Log("NOT COMPARED: wasmtime is not built in (it needs cgo, and no tag writ_nowasmtime)")
			continue
		}
		t.Cleanup(func() {
			if err := e.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
		all = append(all, e)
	}
	return all
}

// left is all that an invocation leaves, memory included.
type left struct {
	Outcome host.Outcome
	Memory  abi.Digest
	Calls   []trace.Call
}

// remembering digests the memory of an instance when it is closed.
type remembering struct {
	host.Compiled
	memory *abi.Digest
}

func (r remembering) Instantiate(ctx context.Context, c *host.Calls) (host.Instance, error) {
	i, err := r.Compiled.Instantiate(ctx, c)
	return rememberingInstance{i, r.memory}, err
}

type rememberingInstance struct {
	host.Instance
	memory *abi.Digest
}

func (i rememberingInstance) Close(ctx context.Context) error {
	m := i.Instance.Memory()
	bytes, ok := m.Read(0, m.Size())
	if !ok {
		return fmt.Errorf("memory of %d bytes cannot be read", m.Size())
	}
	*i.memory = abi.DigestOf(bytes)
	return i.Instance.Close(ctx)
}

func invoke(t *testing.T, m host.Compiled, seed byte) left {
	t.Helper()
	sink := &hosttest.Sink{Lane: "guest"}
	datasets := []host.Dataset{folder("words", map[string]string{"a.txt": "one\n", "b/c.txt": "two", "b/d.txt": ""}, "a.txt", "b/c.txt", "b/d.txt")}
	request, err := abi.EncodeMessage(abi.ExecuteRequest{ABI: 1, FlowID: "flow", Step: abi.ExecuteStep{ID: "guest", Role: "retrieval", Config: []byte("{}")},
		Inputs: map[abi.ID]abi.StepOutput{}, Datasets: []abi.DatasetHandle{datasets[0].Handle}})
	if err != nil {
		t.Fatal(err)
	}
	var l left
	l.Outcome, err = host.Invoke(t.Context(), remembering{m, &l.Memory}, host.Invocation{Lane: "guest", Entry: abi.ExportExecute,
		Input: request, Seed: [32]byte{seed}, ClockStartNanos: 1_700_000_000_000_000_000, ClockStepNanos: 1_000_000,
		Datasets: datasets, Artifacts: hosttest.Artifacts{}, Boundary: host.NewRecorder(sink, nil)})
	if err != nil {
		t.Fatal(err)
	}
	l.Calls = sink.Calls(t)
	return l
}

// folder is a dataset of files, whose paths are given in order.
func folder(id abi.ID, texts map[string]string, paths ...string) host.Dataset {
	d := host.Dataset{Handle: abi.DatasetHandle{ID: id, Folder: true}}
	contents := map[abi.Digest]string{}
	for _, p := range paths {
		file := abi.DatasetFile{Path: p, Size: int64(len(texts[p])), Digest: abi.DigestOf([]byte(texts[p]))}
		contents[file.Digest] = texts[p]
		d.Handle.Size += file.Size
		d.Listing.Files = append(d.Listing.Files, file)
	}
	d.ListingBytes, d.Handle.Digest = listing(d.Listing)
	d.Open = func(digest abi.Digest) (io.ReaderAt, int64, error) {
		return strings.NewReader(contents[digest]), int64(len(contents[digest])), nil
	}
	return d
}

func listing(l abi.DatasetListing) ([]byte, abi.Digest) {
	b, err := abi.EncodeMessage(l)
	if err != nil {
		panic(err) // of names this package gives
	}
	return b, abi.DigestOf(b)
}

// TestGuestsLeaveTheSame runs each program on every engine.
func TestGuestsLeaveTheSame(t *testing.T) {
	for _, guest := range []struct {
		language string
		build    func(*testing.T) []byte
		says     []string // patterns of what it must have seen
		calls    []string // host calls it must have made
	}{
		{"Go", buildGo, []string{
			`"goroutines":"\d:\d`, `"selects":"[ab]{64} context deadline exceeded"`, `"map_order":"k\d+ k\d+`, `[1-9]\d* collections`,
			`"0/0":"7ff8000000000000"`, `"-payload":"fff4000000000123"`, `"float32":"7fc00000"`, `"stack":400`, `"2 ticks"`,
			`"words/b/d.txt \\"\\"","words/b/c.txt \\"two\\"","words/a.txt \\"one\\\\n\\""`, `assignment to entry in nil map`,
		}, []string{"clock_time_get", "random_get", "poll_oneoff", "fd_write", "fd_readdir", "path_open", "fd_read", "clock_now", "log", "artifact_put"}},
		{"C", buildC, []string{
			`constructed [1-7], depth 300`, `nan 0 7ff8000000000000\\nnan 1 [7f]ff8000000000000\\n`, `nan 8 7ff4000000000123\\n`, `nan float 7fc00000`,
			`heap [0-9a-f]{16}`, `now 2023-11-14T22:13:2\d`, `random [0-9a-f]{96}\\n`, `file //words/b/c.txt inode \d+: two\\n`, `write Read-only file system`,
		}, []string{"clock_time_get", "random_get", "poll_oneoff", "fd_write", "fd_readdir", "path_open", "fd_read", "clock_now", "random_fill", "log"}},
		{"Rust", buildRust, []string{
			`map \[`, `hash [0-9a-f]{16}`, `nan 0 7ff8000000000000\\nnan 1 [7f]ff8000000000000\\n`, `nan 7 7ff4000000000123\\n`, `slept 2\.5`,
			`random 0 \[`, `file /words/b/c.txt Ok\(\\"two\\"\)`, `write Err`, `heap [0-9a-f]{16}`, `thread refused`,
		}, []string{"clock_time_get", "random_get", "poll_oneoff", "fd_write", "fd_readdir", "path_open", "fd_read", "clock_now", "random_fill", "log"}},
	} {
		t.Run(guest.language, func(t *testing.T) {
			p, err := prepare.Prepare(guest.build(t), prepare.Options{})
			if err != nil {
				t.Fatal(err)
			}
			first := everywhere(t, p, 1)
			for _, pattern := range guest.says {
				if !regexp.MustCompile(pattern).Match(first.Outcome.Output) {
					t.Errorf("the output does not have %s", pattern)
				}
			}
			made := calls(first.Calls)
			for _, name := range guest.calls {
				if made[name] == 0 {
					t.Errorf("no call of %s is in the record: %v", name, made)
				}
			}
			if t.Failed() {
				t.Logf("output: %s", first.Outcome.Output)
			}
		})
	}
}

// everywhere invokes a guest on every engine and returns what all of them left.
func everywhere(t *testing.T, p *prepare.Prepared, seed byte) left {
	t.Helper()
	var first left
	for i, e := range engines(t) {
		m := hosttest.Compile(t, e, p)
		got := invoke(t, m, seed)
		switch {
		case got.Outcome.Stop != nil:
			t.Fatalf("%s: stopped: %+v", e.Name(), got.Outcome.Stop)
		case i == 0:
			first = got
			if other := invoke(t, m, seed+1); string(other.Outcome.Output) == string(got.Outcome.Output) || other.Memory == got.Memory {
				t.Errorf("%s: the output does not depend on the seed", e.Name())
			}
		case !reflect.DeepEqual(first, got):
			t.Errorf("%s leaves something else than wazero (-wazero +%s):\n%s", e.Name(), e.Name(), cmp.Diff(first, got))
		}
	}
	return first
}

// calls counts recorded calls by name.
func calls(record []trace.Call) map[string]int {
	names := map[uint16]string{}
	for _, c := range abi.HostCalls {
		names[c.Number] = c.Name
	}
	made := map[string]int{}
	for _, c := range record {
		made[names[c.Fn]]++
	}
	return made
}
