//go:build cgo && !writ_nowasmtime

package wasmtime_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host"
	"github.com/writrun/writ/host/hosttest"
	"github.com/writrun/writ/host/prepare"
	"github.com/writrun/writ/host/wasmtime"
)

func newEngine(t testing.TB, cfg wasmtime.Config) *wasmtime.Engine {
	t.Helper()
	e, err := wasmtime.New(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return e
}

func invocation(b host.Boundary) host.Invocation {
	return host.Invocation{Lane: "test", Entry: abi.ExportExecute, Input: []byte("{}"), Boundary: b,
		ClockStartNanos: 1_000_000_000, ClockStepNanos: 1_000}
}

func invoke(t testing.TB, m host.Compiled) host.Outcome {
	t.Helper()
	out, err := host.Invoke(context.Background(), m, invocation(host.NewRecorder(&hosttest.Discard{}, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestVersionIsTheOneOfGoMod(t *testing.T) {
	root, err := hosttest.Root()
	if err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "github.com/bytecodealliance/wasmtime-go/v39 " + wasmtime.Version; !strings.Contains(string(mod), want) {
		t.Errorf("go.mod does not have %q", want)
	}
	if e := newEngine(t, wasmtime.Config{}); e.Name() != "wasmtime" || e.Version() != wasmtime.Version || !wasmtime.Available {
		t.Errorf("engine is %s %s, available: %v", e.Name(), e.Version(), wasmtime.Available)
	}
}

func TestCompilationsAreShared(t *testing.T) {
	e := newEngine(t, wasmtime.Config{})
	p := hosttest.Prepared(t, hosttest.Echo())
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			m, err := e.Compile(context.Background(), p)
			if err != nil {
				t.Error(err)
				return
			}
			if out := invoke(t, m); string(out.Output) != "{}" {
				t.Errorf("output %q", out.Output)
			}
			for range 2 { // a second Close changes nothing
				if err := m.Close(context.Background()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

func TestUnusedModulesAreClosedInTheEnd(t *testing.T) {
	e := newEngine(t, wasmtime.Config{})
	for round := range 2 {
		for i := range 40 {
			m, err := e.Compile(context.Background(), hosttest.Prepared(t, hosttest.Returning("", "", fmt.Sprint(i))))
			if err != nil {
				t.Fatal(err)
			}
			if out := invoke(t, m); string(out.Output) != fmt.Sprint(i) {
				t.Errorf("round %d, module %d: output %q", round, i, out.Output)
			}
			if err := m.Close(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestCompileRefusals(t *testing.T) {
	e, err := wasmtime.New(context.Background(), wasmtime.Config{})
	if err != nil {
		t.Fatal(err)
	}
	p := hosttest.Prepared(t, hosttest.Echo())
	if _, err := e.Compile(t.Context(), &prepare.Prepared{Wasm: []byte("\x00asm\x01\x00\x00\x00\xff"), Digest: "broken", Original: "broken"}); err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("a broken module: %v, want an error of one line", err)
	}
	unprepared := &prepare.Prepared{Wasm: hosttest.Wat(t, hosttest.Echo()), Digest: "unprepared"}
	m, err := e.Compile(t.Context(), unprepared)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := host.Invoke(t.Context(), m, invocation(host.NewRecorder(&hosttest.Discard{}, nil))); err == nil || !strings.Contains(err.Error(), "prepared") {
		t.Errorf("a module without a fuel counter: %v", err)
	}
	foreign := &prepare.Prepared{Wasm: hosttest.Wat(t, `(module (import "wasi_snapshot_preview1" "no_such" (func)))`), Digest: "foreign"}
	f, err := e.Compile(t.Context(), foreign)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := host.Invoke(t.Context(), f, invocation(host.NewRecorder(&hosttest.Discard{}, nil))); err == nil || !strings.Contains(err.Error(), "instantiate") {
		t.Errorf("a module with an import nobody offers: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("interrupted")
	cancel(stop)
	if _, err := e.Compile(ctx, p); !errors.Is(err, stop) {
		t.Errorf("compile with a cancelled context: %v", err)
	}
	held, err := e.Compile(t.Context(), p)
	if err != nil || string(invoke(t, held).Output) != "{}" {
		t.Errorf("compile after a cancelled one: %v", err)
	}
	for range 2 { // a second Close changes nothing
		if err := e.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := e.Compile(t.Context(), p); err == nil {
		t.Error("a closed engine compiled a module")
	}
	if _, err := host.Invoke(t.Context(), held, invocation(host.NewRecorder(&hosttest.Discard{}, nil))); err == nil {
		t.Error("a closed engine made an instance")
	}
	if err := held.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAnAbandonedCompilationIsKept(t *testing.T) {
	e := newEngine(t, wasmtime.Config{})
	p := hosttest.Prepared(t, hosttest.Echo())
	var wg sync.WaitGroup
	for range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		wg.Go(func() {
			if m, err := e.Compile(ctx, p); err == nil {
				if err := m.Close(context.Background()); err != nil {
					t.Error(err)
				}
			} else if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
		cancel()
	}
	wg.Wait()
	if out := invoke(t, hosttest.Compile(t, e, p)); string(out.Output) != "{}" {
		t.Errorf("output %q", out.Output)
	}
}

func TestAnEngineMayBeClosedWhileItCompiles(t *testing.T) {
	p := hosttest.Prepared(t, hosttest.Echo())
	for range 5 {
		e, err := wasmtime.New(t.Context(), wasmtime.Config{})
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			if m, err := e.Compile(context.Background(), p); err == nil {
				if err := m.Close(context.Background()); err != nil {
					t.Error(err)
				}
			}
		})
		if err := e.Close(t.Context()); err != nil {
			t.Error(err)
		}
		wg.Wait()
	}
}

func TestInstancesLeaveNothingBehind(t *testing.T) {
	cycles := 2_000
	if os.Getenv("WRIT_LONG") != "" {
		cycles = 100_000
	}
	e := newEngine(t, wasmtime.Config{})
	m := hosttest.Compile(t, e, hosttest.Prepared(t, hosttest.Echo()))
	trapping := hosttest.Compile(t, e, hosttest.Prepared(t, hosttest.Returning("", "unreachable", "{}")))
	cycle := func(n int) {
		for i := range n {
			if i%10 == 0 {
				invoke(t, trapping)
			}
			if out := invoke(t, m); !bytes.Equal(out.Output, []byte("{}")) {
				t.Fatalf("cycle %d: %+v", i, out)
			}
		}
	}
	cycle(cycles / 4)
	before := resident(t)
	cycle(cycles)
	if grown := resident(t) - before; grown > 32<<20 {
		t.Errorf("%d cycles grew the process by %d MiB", cycles, grown>>20)
	}
}

// resident returns the resident set of this process in bytes.
func resident(t *testing.T) int64 {
	t.Helper()
	runtime.GC()
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skip("no /proc here:", err)
	}
	var size, pages int64
	if _, err := fmt.Sscan(string(data), &size, &pages); err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

func TestErrorsCarryNoBacktrace(t *testing.T) {
	t.Setenv("RUST_BACKTRACE", "1")
	_, err := newEngine(t, wasmtime.Config{}).Compile(t.Context(), &prepare.Prepared{Wasm: []byte("\x00asm\x01\x00\x00\x00\x01\x7f")})
	if err == nil || strings.Contains(err.Error(), "backtrace") || strings.Contains(err.Error(), ".rs") || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v, want one line without a backtrace", err)
	}
}
