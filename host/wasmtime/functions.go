//go:build cgo && !writ_nowasmtime

package wasmtime

import (
	"fmt"

	"github.com/bytecodealliance/wasmtime-go/v39"
	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host"
	"github.com/writrun/writ/host/prepare"
)

// unwindText is the message of the trap that a host function unwinds a guest
// with. Nobody reads it: the reason is in the instance's host.Calls.
const unwindText = "ended by the host"

// callback is a host function in wasmtime's raw form.
type callback = func(*wasmtime.Caller, []wasmtime.Val) ([]wasmtime.Val, *wasmtime.Trap)

// offer adds the host functions to the linker.
func offer(l *wasmtime.Linker, functions []host.Function) error {
	refill := host.Function{
		HostCall: abi.HostCall{Module: prepare.RefillModule, Name: prepare.RefillName},
		Call:     func(c *host.Calls, _ []uint64) bool { return c.Refill() },
	}
	for _, f := range append(functions, refill) {
		if len(f.Params) > stackValuesMax || len(f.Results) > 1 {
			return fmt.Errorf("offer host function %s.%s: it has %d parameters and %d results", f.Module, f.Name, len(f.Params), len(f.Results))
		}
		params, err := valueTypes(f.Params)
		if err != nil {
			return fmt.Errorf("offer host function %s.%s: %w", f.Module, f.Name, err)
		}
		results, err := valueTypes(f.Results)
		if err != nil {
			return fmt.Errorf("offer host function %s.%s: %w", f.Module, f.Name, err)
		}
		if err := l.FuncNew(f.Module, f.Name, wasmtime.NewFuncType(params, results), bind(f)); err != nil {
			return fmt.Errorf("offer host function %s.%s: %w", f.Module, f.Name, engineError(err))
		}
	}
	return nil
}

func valueTypes(types []abi.ValueType) ([]*wasmtime.ValType, error) {
	out := make([]*wasmtime.ValType, len(types))
	for i, t := range types {
		switch t {
		case abi.I32:
			out[i] = wasmtime.NewValType(wasmtime.KindI32)
		case abi.I64:
			out[i] = wasmtime.NewValType(wasmtime.KindI64)
		default:
			return nil, fmt.Errorf("type %#x is neither i32 nor i64", byte(t))
		}
	}
	return out, nil
}

// bind makes a wasmtime function of a host function. Arguments arrive as their
// declared type and are zero-extended; results are cut to theirs.
func bind(f host.Function) callback {
	size := max(len(f.Params), len(f.Results))
	narrow := len(f.Results) == 1 && f.Results[0] == abi.I32
	return func(caller *wasmtime.Caller, args []wasmtime.Val) (results []wasmtime.Val, trap *wasmtime.Trap) {
		i := caller.Data().(*instance)
		i.memory.refetch = true
		defer func() {
			// Left to wasmtime-go the panic would go on in the caller of the guest,
			// without a word of where it came from.
			if fault := recover(); fault != nil {
				i.fault = panicError(fault)
				results, trap = nil, wasmtime.NewTrap(unwindText)
			}
		}()
		for n, a := range args {
			if f.Params[n] == abi.I32 {
				i.stack[n] = uint64(uint32(a.I32()))
			} else {
				i.stack[n] = uint64(a.I64())
			}
		}
		if !f.Call(i.calls, i.stack[:size]) {
			return nil, wasmtime.NewTrap(unwindText)
		}
		if len(f.Results) == 0 {
			return nil, nil
		}
		if narrow {
			i.result[0] = wasmtime.ValI32(int32(uint32(i.stack[0])))
		} else {
			i.result[0] = wasmtime.ValI64(int64(i.stack[0]))
		}
		return i.result[:], nil
	}
}

// panicError makes an error of what a panic carried.
func panicError(fault any) error {
	if err, ok := fault.(error); ok {
		return fmt.Errorf("panic: %w", err)
	}
	return fmt.Errorf("panic: %v", fault)
}
