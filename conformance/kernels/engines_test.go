package kernels_test

import "testing"

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
