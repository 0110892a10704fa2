package prepare

import (
	"context"
	"errors"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// errOutOfFuel is what the test host's refill stops an instance with.
var errOutOfFuel = errors.New("out of fuel")

// errStackOverflow is how wazero calls an overflow that it finds itself.
var errStackOverflow = errors.New("stack overflow")

// machine runs prepared modules on wazero with a budget of fuel.
type machine struct {
	rt     wazero.Runtime
	budget int64 // not yet handed to the guest
	slice  int64
}

var engines = map[string]func() wazero.RuntimeConfig{
	"compiler":    wazero.NewRuntimeConfigCompiler,
	"interpreter": wazero.NewRuntimeConfigInterpreter,
}

func newMachine(t testing.TB, config wazero.RuntimeConfig, budget, slice int64) *machine {
	t.Helper()
	ctx := context.Background()
	m := &machine{budget: budget, slice: slice}
	m.rt = wazero.NewRuntimeWithConfig(ctx, config.WithMemoryLimitPages(65536))
	t.Cleanup(func() { m.rt.Close(ctx) })
	refill := api.GoModuleFunc(func(_ context.Context, mod api.Module, _ []uint64) {
		fuel := mod.ExportedGlobal(FuelGlobal).(api.MutableGlobal)
		for int64(fuel.Get()) < 0 {
			add := min(m.slice, m.budget)
			if add == 0 {
				panic(errOutOfFuel)
			}
			m.budget -= add
			fuel.Set(fuel.Get() + uint64(add))
		}
	})
	_, err := m.rt.NewHostModuleBuilder(RefillModule).NewFunctionBuilder().
		WithGoModuleFunction(refill, nil, nil).Export(RefillName).Instantiate(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// start instantiates a module and runs its start function.
func (m *machine) start(name string, wasm []byte) (api.Module, error) {
	ctx := context.Background()
	mod, err := m.rt.InstantiateWithConfig(ctx, wasm, wazero.NewModuleConfig().WithName(name).WithStartFunctions())
	if err != nil {
		return nil, err
	}
	if start := mod.ExportedFunction(StartExport); start != nil {
		_, err = start.Call(ctx)
	}
	return mod, err
}

func (m *machine) instantiate(t testing.TB, wasm []byte) api.Module {
	t.Helper()
	mod, err := m.start("", wasm)
	if err != nil {
		t.Fatalf("instantiate: %v", err)
	}
	return mod
}

// call calls an export with the whole stack budget and puts an overflow into a
// word of its own.
func call(mod api.Module, export string, args ...uint64) ([]uint64, error) {
	return callWithin(mod, portableSlots, export, args...)
}

func callWithin(mod api.Module, slots uint64, export string, args ...uint64) ([]uint64, error) {
	stack, _ := mod.ExportedGlobal(StackGlobal).(api.MutableGlobal)
	if stack != nil {
		stack.Set(slots)
	}
	f := mod.ExportedFunction(export)
	results, err := f.Call(context.Background(), args...)
	at := 0
	for _, t := range f.Definition().ResultTypes() { // wazero leaves garbage above bit 31
		if err == nil && (t == i32 || t == f32) {
			results[at] = uint64(uint32(results[at]))
		}
		if at++; t == v128 {
			at++
		}
	}
	if stack != nil && int64(stack.Get()) < 0 {
		err = errStackOverflow
	}
	return results, err
}

// left is the fuel that remains in all.
func (m *machine) left(mod api.Module) int64 {
	return m.budget + int64(mod.ExportedGlobal(FuelGlobal).Get())
}

func mustPrepare(t testing.TB, wasm []byte) []byte {
	t.Helper()
	p, err := prepare(wasm, anything)
	if err != nil {
		t.Fatal(err)
	}
	return p.Wasm
}
