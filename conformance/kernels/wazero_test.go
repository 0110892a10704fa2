package kernels_test

import (
	"context"
	"fmt"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/writrun/writ/conformance/kernels"
	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host/prepare"
)

// waysOfWazero are the unprepared module, the prepared one, and wazero's own way
// to stop a guest.
func waysOfWazero() []way {
	plain := func() (bareEngine, error) { return newWazero(false) }
	return []way{
		{"wazero", "original", false, plain},
		{"wazero", "prepared", true, plain},
		{"wazero", "close-on-done", false, func() (bareEngine, error) { return newWazero(true) }},
	}
}

// bareWazero is a runtime of wazero's compiler.
type bareWazero struct {
	ctx     context.Context
	cancel  context.CancelFunc
	runtime wazero.Runtime
}

func newWazero(closeOnDone bool) (bareEngine, error) {
	// A context that can end, as without one there is nothing to close on.
	ctx, cancel := context.WithCancel(context.Background())
	config := wazero.NewRuntimeConfigCompiler().WithCoreFeatures(api.CoreFeaturesV2).
		WithDebugInfoEnabled(false).WithCloseOnContextDone(closeOnDone)
	w := &bareWazero{ctx, cancel, wazero.NewRuntimeWithConfig(ctx, config)}
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, w.runtime); err != nil {
		return nil, err
	}
	refill := api.GoModuleFunc(func(_ context.Context, m api.Module, _ []uint64) {
		fuel := m.ExportedGlobal(prepare.FuelGlobal).(api.MutableGlobal)
		for int64(fuel.Get()) < 0 {
			fuel.Set(fuel.Get() + prepare.FuelSlice)
		}
	})
	_, err := w.runtime.NewHostModuleBuilder(prepare.RefillModule).NewFunctionBuilder().
		WithGoModuleFunction(refill, nil, nil).Export(prepare.RefillName).Instantiate(ctx)
	return w, err
}

func (w *bareWazero) close() {
	_ = w.runtime.Close(context.Background())
	w.cancel()
}

func (w *bareWazero) compile(wasm []byte) (bareModule, error) {
	compiled, err := w.runtime.CompileModule(w.ctx, wasm)
	return wazeroModule{w, compiled}, err
}

type wazeroModule struct {
	*bareWazero
	compiled wazero.CompiledModule
}

func (w wazeroModule) instantiate() (runner, error) {
	m, err := w.runtime.InstantiateModule(w.ctx, w.compiled, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		return nil, err
	}
	for _, export := range []string{prepare.StartExport, abi.ExportInitialize} {
		if f := m.ExportedFunction(export); f != nil {
			if _, err := f.Call(w.ctx); err != nil {
				return nil, fmt.Errorf("call %s: %w", export, err)
			}
		}
	}
	f := m.ExportedFunction(kernels.RunExport)
	return func(n int32) (uint64, error) {
		results, err := f.Call(w.ctx, api.EncodeI32(n))
		if err != nil {
			return 0, err
		}
		return results[0], nil
	}, nil
}
