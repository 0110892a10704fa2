package wazero_test

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
	"github.com/writrun/writ/host/wazero"
)

func newEngine(t testing.TB, cfg wazero.Config) *wazero.Engine {
	t.Helper()
	e, err := wazero.New(context.Background(), cfg)
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
	if want := "github.com/tetratelabs/wazero " + wazero.Version; !strings.Contains(string(mod), want) {
		t.Errorf("go.mod does not have %q", want)
	}
	e := newEngine(t, wazero.Config{Interpreter: true})
	if e.Name() != "wazero-interpreter" || e.Version() != wazero.Version || newEngine(t, wazero.Config{}).Name() != "wazero" {
		t.Errorf("engine is %s %s", e.Name(), e.Version())
	}
}

func TestCompilationsAreShared(t *testing.T) {
	e := newEngine(t, wazero.Config{})
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
	e := newEngine(t, wazero.Config{})
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
	e, err := wazero.New(context.Background(), wazero.Config{})
	if err != nil {
		t.Fatal(err)
	}
	p := hosttest.Prepared(t, hosttest.Echo())
	if _, err := e.Compile(t.Context(), &prepare.Prepared{Wasm: []byte("\x00asm\x01\x00\x00\x00\xff"), Digest: "broken", Original: "broken"}); err == nil {
		t.Error("a broken module was compiled")
	}
	unprepared := &prepare.Prepared{Wasm: hosttest.Wat(t, hosttest.Echo()), Digest: "unprepared"}
	m, err := e.Compile(t.Context(), unprepared)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := host.Invoke(t.Context(), m, invocation(host.NewRecorder(&hosttest.Discard{}, nil))); err == nil || !strings.Contains(err.Error(), "prepared") {
		t.Errorf("a module without a fuel counter: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("interrupted")
	cancel(stop)
	if _, err := e.Compile(ctx, p); !errors.Is(err, stop) {
		t.Errorf("compile with a cancelled context: %v", err)
	}
	if m, err := e.Compile(t.Context(), p); err != nil || string(invoke(t, m).Output) != "{}" {
		t.Errorf("compile after a cancelled one: %v", err)
	}
	if err := e.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Compile(t.Context(), p); err == nil {
		t.Error("a closed engine compiled a module")
	}
}

func TestCacheDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "for", "us")
	p := hosttest.Prepared(t, hosttest.Echo())
	for range 2 { // the second engine finds what the first one left
		e := newEngine(t, wazero.Config{CacheDir: dir})
		if out := invoke(t, hosttest.Compile(t, e, p)); string(out.Output) != "{}" {
			t.Errorf("output %q", out.Output)
		}
	}
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("cache directory: %v %v", info, err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) == 0 {
		t.Errorf("nothing is kept in the cache: %v", err)
	}
}

func TestUnsafeCacheDirectoriesAreRefused(t *testing.T) {
	base := t.TempDir()
	open, file, link := filepath.Join(base, "open"), filepath.Join(base, "file"), filepath.Join(base, "link")
	for _, err := range []error{os.Mkdir(open, 0o700), os.Chmod(open, 0o750), os.WriteFile(file, nil, 0o600), os.Symlink(base, link)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for dir, want := range map[string]string{open: "chmod 700", file: "not a directory", link: "not a directory"} {
		if _, err := wazero.New(t.Context(), wazero.Config{CacheDir: dir}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", filepath.Base(dir), err, want)
		}
	}
}

func TestTrapsHaveTheSameTextEverywhere(t *testing.T) {
	p := hosttest.Prepared(t, hosttest.Returning("", "unreachable", "{}"))
	for _, cfg := range []wazero.Config{{}, {Interpreter: true}} {
		stop := invoke(t, hosttest.Compile(t, newEngine(t, cfg), p)).Stop
		if stop == nil || stop.Detail != "" || stop.Cause != string(host.StopUnreachable) {
			t.Errorf("stop %+v: no text of the engine's may be in it", stop)
		}
	}
}

func TestInstancesLeaveNothingBehind(t *testing.T) {
	cycles := 5_000
	if os.Getenv("WRIT_LONG") != "" {
		cycles = 100_000
	}
	e := newEngine(t, wazero.Config{})
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
	cycle(cycles / 10)
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
