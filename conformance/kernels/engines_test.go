package kernels_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/writrun/writ/conformance/kernels"
	"github.com/writrun/writ/host/prepare"
)

// bareEngine is an engine with as little around it as a prepared module needs:
// the engine's own WASI and a refill that never runs out.
type bareEngine interface {
	compile(wasm []byte) (bareModule, error)
	close()
}

// bareModule is a compiled module.
type bareModule interface {
	// instantiate makes an instance, initializes it and returns what calls its
	// run. The instance lives as long as the engine.
	instantiate() (runner, error)
}

// runner calls the run of one instance.
type runner func(n int32) (uint64, error)

// way is one way to have a guest run under control, or not under any.
type way struct {
	engine, name string
	prepared     bool // whether it runs prepared modules
	open         func() (bareEngine, error)
}

// compared reports whether w is one of the two that show what preparation costs.
func (w way) compared() bool { return w.name == "original" || w.name == "prepared" }

func (w way) opened(tb testing.TB) bareEngine {
	tb.Helper()
	e, err := w.open()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(e.close)
	return e
}

// start compiles and instantiates a module.
func (w way) start(tb testing.TB, original, prepared []byte) runner {
	tb.Helper()
	wasm := original
	if w.prepared {
		wasm = prepared
	}
	m, err := w.opened(tb).compile(wasm)
	if err != nil {
		tb.Fatal(err)
	}
	run, err := m.instantiate()
	if err != nil {
		tb.Fatal(err)
	}
	return run
}

// built is where the kernels were compiled to, once per process.
var built = sync.OnceValues(func() (map[string][]byte, error) {
	dir, err := os.MkdirTemp("", "writ-kernels-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := kernels.Build(context.Background(), dir); err != nil {
		return nil, err
	}
	if err := kernels.BuildGuest(context.Background(), dir); err != nil {
		return nil, err
	}
	modules := map[string][]byte{}
	for _, k := range append(kernels.Kernels(), kernels.Guest()) {
		if modules[k.Name], err = os.ReadFile(filepath.Join(dir, k.Name+".wasm")); err != nil {
			return nil, err
		}
	}
	return modules, nil
})

// module returns a kernel as compiled, and as prepared.
func module(tb testing.TB, name string) (original, prepared []byte) {
	tb.Helper()
	modules, err := built()
	if errors.Is(err, kernels.ErrNoCompiler) {
		tb.Skipf("SKIPPED: %v", err)
	}
	if err != nil {
		tb.Fatal(err)
	}
	p, err := prepare.Prepare(modules[name], prepare.Options{})
	if err != nil {
		tb.Fatalf("%s: %v", name, err)
	}
	return modules[name], p.Wasm
}
