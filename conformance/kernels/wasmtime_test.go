//go:build cgo && !writ_nowasmtime

package kernels_test

import (
	"errors"
	"fmt"
	"math"

	"github.com/bytecodealliance/wasmtime-go/v39"

	"github.com/writrun/writ/conformance/kernels"
	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host/prepare"
)

// waysOfWasmtime are the unprepared module, the prepared one, and wasmtime's own
// fuel with its own canonical NaNs.
func waysOfWasmtime() []way {
	plain := func() (bareEngine, error) { return newWasmtime(false) }
	return []way{
		{"wasmtime", "original", false, plain},
		{"wasmtime", "prepared", true, plain},
		{"wasmtime", "fuel+NaN", false, func() (bareEngine, error) { return newWasmtime(true) }},
	}
}

// bareWasmtime is an engine of wasmtime's with its optimizing compiler.
type bareWasmtime struct {
	engine *wasmtime.Engine
	knobs  bool // fuel and canonical NaNs
	stores []*wasmtime.Store
}

func newWasmtime(knobs bool) (bareEngine, error) {
	config := wasmtime.NewConfig()
	config.SetStrategy(wasmtime.StrategyCranelift)
	config.SetConsumeFuel(knobs)
	config.SetCraneliftNanCanonicalization(knobs)
	return &bareWasmtime{engine: wasmtime.NewEngineWithConfig(config), knobs: knobs}, nil
}

func (w *bareWasmtime) close() {
	for _, s := range w.stores {
		s.Close()
	}
	w.engine.Close()
}

func (w *bareWasmtime) compile(wasm []byte) (bareModule, error) {
	m, err := wasmtime.NewModule(w.engine, wasm)
	return wasmtimeModule{w, m}, err
}

type wasmtimeModule struct {
	*bareWasmtime
	module *wasmtime.Module
}

func (w wasmtimeModule) instantiate() (runner, error) {
	store := wasmtime.NewStore(w.engine)
	w.stores = append(w.stores, store)
	store.SetWasi(wasmtime.NewWasiConfig())
	if w.knobs {
		if err := store.SetFuel(math.MaxInt64); err != nil {
			return nil, err
		}
	}
	linker := wasmtime.NewLinker(w.engine)
	defer linker.Close()
	refill := func(c *wasmtime.Caller, _ []wasmtime.Val) ([]wasmtime.Val, *wasmtime.Trap) {
		fuel := c.GetExport(prepare.FuelGlobal).Global()
		left := fuel.Get(c).I64()
		for left < 0 {
			left += prepare.FuelSlice
		}
		if err := fuel.Set(c, wasmtime.ValI64(left)); err != nil {
			return nil, wasmtime.NewTrap(err.Error())
		}
		return nil, nil
	}
	if err := errors.Join(linker.DefineWasi(),
		linker.FuncNew(prepare.RefillModule, prepare.RefillName, wasmtime.NewFuncType(nil, nil), refill)); err != nil {
		return nil, err
	}
	i, err := linker.Instantiate(store, w.module)
	if err != nil {
		return nil, err
	}
	for _, export := range []string{prepare.StartExport, abi.ExportInitialize} {
		if f := i.GetFunc(store, export); f != nil {
			if _, err := f.Call(store); err != nil {
				return nil, fmt.Errorf("call %s: %w", export, err)
			}
		}
	}
	f := i.GetFunc(store, kernels.RunExport)
	return func(n int32) (uint64, error) {
		result, err := f.Call(store, n)
		if err != nil {
			return 0, err
		}
		return uint64(result.(int64)), nil
	}, nil
}
