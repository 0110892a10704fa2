package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host/trace"
)

// world is an invocation without a guest: the test makes the host calls itself.
type world struct {
	t       *testing.T
	calls   *Calls
	memory  fakeMemory
	next    uint32 // where the next text is put
	record  []string
	effects func(EffectCall) (EffectReply, error)
	names   map[string]Function
}

type fakeMemory []byte

func (m fakeMemory) Read(offset, size uint32) ([]byte, bool) {
	end := uint64(offset) + uint64(size)
	if end > uint64(len(m)) {
		return nil, false
	}
	return m[offset:end:end], true
}

func (m fakeMemory) Size() uint32 { return uint32(len(m)) }

type fakeGlobal struct{ v uint64 }

func (g *fakeGlobal) Get() uint64  { return g.v }
func (g *fakeGlobal) Set(v uint64) { g.v = v }

// HostCall keeps a call as "name request result".
func (w *world) HostCall(c *trace.Call) error {
	if err := trace.CheckPayload(trace.AppendCall(nil, c)); err != nil {
		w.t.Errorf("call %d has a malformed record: %v", c.Fn, err)
	}
	request, err := json.Marshal(c.Request)
	if err != nil {
		w.t.Error(err)
	}
	name := "refill"
	for _, h := range abi.HostCalls {
		if h.Number == c.Fn {
			name = h.Name
		}
	}
	w.record = append(w.record, fmt.Sprintf("%s %s %d", name, request, c.Result))
	return nil
}

func (w *world) Effect(_ context.Context, c EffectCall) (EffectReply, error) { return w.effects(c) }

func (w *world) Flush() error { return nil }

const (
	testStart = int64(1_000_000_000)
	testStep  = int64(1_000)
	testBytes = 64 << 20 // of memory; untouched pages cost nothing
)

// fileDigest is the digest under which content is found in the world.
func fileOf(path, content string) abi.DatasetFile {
	return abi.DatasetFile{Path: path, Size: int64(len(content)), Digest: abi.DigestOf([]byte(content))}
}

// testDatasets is one folder, "docs", and one single file, "list".
func testDatasets() []Dataset {
	contents := map[abi.Digest]string{}
	files := []abi.DatasetFile{}
	for _, f := range [][2]string{{"a.txt", "alpha"}, {"sub-x", "minus"}, {"sub/b.txt", "beta beta"}, {"sub/c/d", "deep"}, {"sub0", ""}} {
		files = append(files, fileOf(f[0], f[1]))
		contents[abi.DigestOf([]byte(f[1]))] = f[1]
	}
	contents[abi.DigestOf([]byte("1\n2\n"))] = "1\n2\n"
	open := func(d abi.Digest) (io.ReaderAt, int64, error) {
		text, ok := contents[d]
		if !ok {
			return nil, 0, errors.New("no such content")
		}
		return strings.NewReader(text), int64(len(text)), nil
	}
	listing := []byte(`{"files":[]}`) // what it says does not matter here
	return []Dataset{
		{Handle: abi.DatasetHandle{ID: "docs", Size: 23, Digest: abi.DigestOf(listing), Folder: true},
			Listing: abi.DatasetListing{Files: files}, ListingBytes: listing, Open: open},
		{Handle: abi.DatasetHandle{ID: "list", Size: 4, Digest: abi.DigestOf([]byte("1\n2\n"))},
			Listing: abi.DatasetListing{Files: []abi.DatasetFile{fileOf("", "1\n2\n")}}, Open: open},
	}
}

func newWorld(t *testing.T, change func(*Invocation)) *world {
	t.Helper()
	return newWorldOf(t, make(fakeMemory, testBytes), change)
}

func newWorldOf(t *testing.T, memory fakeMemory, change func(*Invocation)) *world {
	t.Helper()
	w := &world{t: t, memory: memory, next: 4096, names: map[string]Function{}}
	for _, f := range Functions() {
		w.names[f.Name] = f
	}
	inv := Invocation{Lane: "inventory", Entry: abi.ExportExecute, Boundary: w, Datasets: testDatasets(),
		ClockStartNanos: testStart, ClockStepNanos: testStep}
	if change != nil {
		change(&inv)
	}
	c, err := newCalls(t.Context(), &inv)
	if err != nil {
		t.Fatal(err)
	}
	c.memory, c.fuel, c.phase, c.export = w.memory, &fakeGlobal{}, PhaseExecute, inv.Entry
	w.calls = c
	return w
}

// text puts s into memory and returns its address and length as arguments.
func (w *world) text(s string) []any {
	at := w.next
	copy(w.memory[at:], s)
	w.next += uint32(len(s)+15) &^ 15
	return []any{at, len(s)}
}

// do makes one host call. Arguments are numbers, or slices of them.
func (w *world) do(name string, args ...any) (int64, bool) {
	w.t.Helper()
	f, ok := w.names[name]
	if !ok {
		w.t.Fatalf("there is no host call %s", name)
	}
	stack := flatten(nil, args)
	if len(stack) != len(f.Params) {
		w.t.Fatalf("%s takes %d arguments, not %d", name, len(f.Params), len(stack))
	}
	// What is above an i32 is garbage with some engines.
	for i, p := range f.Params {
		if p == abi.I32 {
			stack[i] = uint64(uint32(stack[i])) | 0xdead<<32
		}
	}
	stack = append(stack, 0)
	ok = f.Call(w.calls, stack)
	if ok && len(f.Results) == 1 && f.Results[0] == abi.I32 {
		if stack[0]>>32 != 0 {
			w.t.Errorf("%s: result %#x is not zero-extended", name, stack[0])
		}
		return int64(int32(stack[0])), ok
	}
	return int64(stack[0]), ok
}

func flatten(stack []uint64, args []any) []uint64 {
	for _, a := range args {
		switch a := a.(type) {
		case int:
			stack = append(stack, uint64(a))
		case int64:
			stack = append(stack, uint64(a))
		case uint32:
			stack = append(stack, uint64(a))
		case []any:
			stack = flatten(stack, a)
		}
	}
	return stack
}

// want makes a call that must be answered with result and leave record.
func (w *world) want(result int64, record, name string, args ...any) {
	w.t.Helper()
	w.record = nil
	got, ok := w.do(name, args...)
	if !ok {
		w.t.Fatalf("%s ended the guest: %+v %v", name, w.calls.stop, w.calls.fault)
	}
	if got != result {
		w.t.Errorf("%s = %d, want %d", name, got, result)
	}
	if diff := cmp.Diff(record, strings.Join(w.record, "\n")); diff != "" {
		w.t.Errorf("%s: record (-want +got):\n%s", name, diff)
	}
}

// wantStop makes a call that must end the guest and leave no record.
func (w *world) wantStop(cause StopCause, name string, args ...any) {
	w.t.Helper()
	w.record = nil
	if _, ok := w.do(name, args...); ok || w.calls.stop == nil {
		w.t.Fatalf("%s did not end the guest (fault %v)", name, w.calls.fault)
	}
	if w.calls.stop.Cause != string(cause) || w.calls.stop.Function != name || w.calls.stop.Phase != string(PhaseExecute) {
		w.t.Errorf("%s: stop %+v, want cause %s", name, *w.calls.stop, cause)
	}
	if len(w.record) > 0 {
		w.t.Errorf("%s: a call that was not answered is recorded: %q", name, w.record)
	}
	w.calls.stop, w.calls.current = nil, 0
}

func (w *world) at(ptr, size int) string { return string(w.memory[ptr:][:size]) }

// wantMemory compares what is in memory.
func (w *world) wantMemory(ptr int, want string) {
	w.t.Helper()
	if got := w.at(ptr, len(want)); got != want {
		w.t.Errorf("memory at %d is %q, want %q", ptr, got, want)
	}
}

type artifacts map[abi.Digest][]byte

func (a artifacts) Put(content []byte) (abi.Digest, error) {
	if string(content) == "forbidden" {
		return "", abi.NotGranted
	}
	d := abi.DigestOf(content)
	a[d] = bytes.Clone(content)
	return d, nil
}

func (a artifacts) Get(d abi.Digest) ([]byte, bool, error) {
	content, ok := a[d]
	return content, ok, nil
}

const (
	outside = testBytes - 4 // eight bytes from here are not in memory
	out     = 1024          // where results go
	big     = 64 << 20
)
