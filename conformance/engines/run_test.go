package engines_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"reflect"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host"
	"github.com/writrun/writ/host/hosttest"
	"github.com/writrun/writ/host/prepare"
	"github.com/writrun/writ/host/trace"
	"github.com/writrun/writ/host/wazero"
)

// The engines that are compared, by the names the child processes know them by.
const (
	compiler    = "wazero"
	interpreter = "wazero-interpreter"
	second      = "wasmtime"
)

// newEngine makes an engine by its name. It returns nil for the second engine
// where that is not built in.
func newEngine(ctx context.Context, name string) (host.Engine, error) {
	switch name {
	case compiler, interpreter:
		return wazero.New(ctx, wazero.Config{Interpreter: name == interpreter})
	case second:
		return newSecondEngine(ctx)
	}
	return nil, fmt.Errorf("no engine is named %q", name)
}

func engineNames() []string {
	if secondEngineBuiltIn {
		return []string{compiler, interpreter, second}
	}
	return []string{compiler, interpreter}
}

// enginesOf are all engines there are, closed with the test.
func enginesOf(t testing.TB) []host.Engine {
	t.Helper()
	if !secondEngineBuiltIn {
		t.Log("NOT COMPARED: wasmtime is not built in (it needs cgo, and no tag writ_nowasmtime)")
	}
	var all []host.Engine
	for _, name := range engineNames() {
		e, err := newEngine(context.Background(), name)
		if err != nil {
			t.Fatal(err)
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

// ended is all that an invocation leaves: how it ended, and its record.
type ended struct {
	Outcome host.Outcome
	Err     string
	Calls   []trace.Call
}

// cause is why a guest was stopped, or "".
func (e *ended) cause() string {
	if e.Outcome.Stop == nil {
		return ""
	}
	return e.Outcome.Stop.Cause
}

// invocation is what the tests of this package ask of guests.
func invocation(input []byte, limits abi.Limits) host.Invocation {
	return host.Invocation{Lane: "test", Entry: abi.ExportExecute, Input: input, Limits: limits,
		ClockStartNanos: 1_000_000_000, ClockStepNanos: 1_000, Artifacts: hosttest.Artifacts{}}
}

func invoke(t testing.TB, m host.Compiled, inv host.Invocation) ended {
	t.Helper()
	sink := &hosttest.Sink{Lane: inv.Lane}
	inv.Boundary = host.NewRecorder(sink, nil)
	out, err := host.Invoke(context.Background(), m, inv)
	e := ended{Outcome: out, Calls: sink.Calls(t)}
	if err != nil {
		e.Err = err.Error()
	}
	return e
}

// subject is a module compiled on every engine.
type subject struct {
	names []string
	codes []host.Compiled
}

func compile(t testing.TB, on []host.Engine, p *prepare.Prepared) subject {
	t.Helper()
	var s subject
	for _, e := range on {
		s.names = append(s.names, e.Name())
		m, err := e.Compile(context.Background(), p)
		if err != nil {
			s.close(t)
			t.Fatalf("%s: %v", e.Name(), err)
		}
		s.codes = append(s.codes, m)
	}
	return s
}

func (s subject) close(t testing.TB) {
	for _, m := range s.codes {
		if err := m.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

// invoke runs one invocation on every engine and returns what the first left.
// Every other must leave the same; different says where not, or is empty.
func (s subject) invoke(t testing.TB, inv host.Invocation) (first ended, different string) {
	t.Helper()
	for i, m := range s.codes {
		inv.Artifacts = hosttest.Artifacts{}
		got := invoke(t, m, inv)
		if i == 0 {
			first = got
		} else if d := difference(first, got); d != "" && different == "" {
			different = fmt.Sprintf("%s and %s differ: %s", s.names[0], s.names[i], d)
		}
	}
	return first, different
}

// difference tells two ends apart in a few lines, or returns "".
func difference(a, b ended) string {
	if reflect.DeepEqual(a, b) {
		return ""
	}
	if at := firstDifference(a.Outcome.Output, b.Outcome.Output); at >= 0 && a.Outcome.Output != nil && b.Outcome.Output != nil {
		return fmt.Sprintf("outputs of %d and %d bytes from byte %#x on: %x, %x", len(a.Outcome.Output), len(b.Outcome.Output),
			at, around(a.Outcome.Output, at), around(b.Outcome.Output, at))
	}
	a.Outcome.Output, b.Outcome.Output = nil, nil
	return cmp.Diff(a, b)
}

func firstDifference(a, b []byte) int {
	if bytes.Equal(a, b) {
		return -1
	}
	at := 0
	for at < len(a) && at < len(b) && a[at] == b[at] {
		at++
	}
	return at
}

// around is the 16 aligned bytes about a place.
func around(b []byte, at int) []byte {
	at &^= 15
	return b[min(at, len(b)):min(at+16, len(b))]
}

func long() bool { return os.Getenv("WRIT_LONG") != "" }

// seeds are those of the modules to make: as many as the tier asks for, or the
// one of WRIT_SEED.
func seeds(t testing.TB) []uint64 {
	t.Helper()
	if only := os.Getenv("WRIT_SEED"); only != "" {
		seed, err := strconv.ParseUint(only, 10, 64)
		if err != nil {
			t.Fatalf("WRIT_SEED: %v", err)
		}
		return []uint64{seed}
	}
	count := 500
	if long() {
		count = 10_000
	}
	all := make([]uint64, count)
	for i := range all {
		all[i] = uint64(i)
	}
	return all
}
