package kernels_test

import (
	"context"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/writrun/writ/conformance/kernels"
	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host/prepare"
)

// bareWazero is wazero with as little around it as a prepared module needs: its
// own WASI and a refill that never runs out.
type bareWazero struct{ wazero.Runtime }

func newWazero(tb testing.TB, config wazero.RuntimeConfig) bareWazero {
	tb.Helper()
	ctx := context.Background()
	r := wazero.NewRuntimeWithConfig(ctx, config.WithCoreFeatures(api.CoreFeaturesV2).WithDebugInfoEnabled(false))
	tb.Cleanup(func() { _ = r.Close(ctx) })
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, r); err != nil {
		tb.Fatal(err)
	}
	refill := api.GoModuleFunc(func(_ context.Context, m api.Module, _ []uint64) {
		fuel := m.ExportedGlobal(prepare.FuelGlobal).(api.MutableGlobal)
		for int64(fuel.Get()) < 0 {
			fuel.Set(fuel.Get() + prepare.FuelSlice)
		}
	})
	_, err := r.NewHostModuleBuilder(prepare.RefillModule).NewFunctionBuilder().
		WithGoModuleFunction(refill, nil, nil).Export(prepare.RefillName).Instantiate(ctx)
	if err != nil {
		tb.Fatal(err)
	}
	return bareWazero{r}
}

// instantiate makes an instance and returns what calls its run.
func (r bareWazero) instantiate(tb testing.TB, compiled wazero.CompiledModule) func(n int32) (uint64, error) {
	tb.Helper()
	ctx := context.Background()
	m, err := r.InstantiateModule(ctx, compiled, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = m.Close(ctx) })
	for _, export := range []string{prepare.StartExport, abi.ExportInitialize} {
		if f := m.ExportedFunction(export); f != nil {
			if _, err := f.Call(ctx); err != nil {
				tb.Fatalf("%s: %v", export, err)
			}
		}
	}
	f := m.ExportedFunction(kernels.RunExport)
	return func(n int32) (uint64, error) {
		results, err := f.Call(ctx, api.EncodeI32(n))
		if err != nil {
			return 0, err
		}
		return results[0], nil
	}
}
