package wazero

import (
	"context"
	"errors"
	"fmt"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host"
	"github.com/writrun/writ/host/prepare"
)

// callContext carries an instance's state to host functions, which are shared by
// all instances. A type of its own is found without a search.
type callContext struct {
	context.Context
	calls *host.Calls
}

// errUnwind is what a host function panics with to end a guest. The reason is in
// the instance's host.Calls.
var errUnwind = errors.New("guest ended by the host")

// offer adds the host functions to the runtime.
func (e *Engine) offer(ctx context.Context) error {
	builders := map[string]wazero.HostModuleBuilder{}
	for _, f := range host.Functions() {
		b := builders[f.Module]
		if b == nil {
			b = e.runtime.NewHostModuleBuilder(f.Module)
			builders[f.Module] = b
		}
		b.NewFunctionBuilder().WithGoFunction(bind(f.Call), valueTypes(f.Params), valueTypes(f.Results)).Export(f.Name)
	}
	refill := bind(func(c *host.Calls, _ []uint64) bool { return c.Refill() })
	builders[prepare.RefillModule] = e.runtime.NewHostModuleBuilder(prepare.RefillModule).
		NewFunctionBuilder().WithGoFunction(refill, nil, nil).Export(prepare.RefillName)
	for name, b := range builders {
		if _, err := b.Instantiate(ctx); err != nil {
			return fmt.Errorf("offer host functions of %s: %w", name, err)
		}
	}
	return nil
}

// bind makes a wazero function of a host function.
func bind(call func(*host.Calls, []uint64) bool) api.GoFunc {
	return func(ctx context.Context, stack []uint64) {
		if !call(ctx.(*callContext).calls, stack) {
			panic(errUnwind)
		}
	}
}

func valueTypes(types []abi.ValueType) []api.ValueType {
	out := make([]api.ValueType, len(types))
	for i, t := range types {
		out[i] = api.ValueType(t)
	}
	return out
}

// instance is one instance of a module.
type instance struct {
	module api.Module
	calls  *host.Calls
}

// Instantiate makes an anonymous instance. Prepared modules have no start
// section and no segments out of bounds, so a failure is not the guest's.
func (c *compiled) Instantiate(ctx context.Context, calls *host.Calls) (host.Instance, error) {
	cfg := wazero.NewModuleConfig().WithName(guestModuleName).WithStartFunctions()
	m, err := c.module.engine.runtime.InstantiateModule(&callContext{ctx, calls}, c.module.compiled, cfg)
	if err != nil {
		return nil, err
	}
	return &instance{m, calls}, nil
}

// Memory returns the exported memory, or nil.
func (i *instance) Memory() host.Memory {
	if m := i.module.ExportedMemory(abi.ExportMemory); m != nil {
		return m
	}
	return nil
}

// Fuel returns the exported fuel counter, or nil.
func (i *instance) Fuel() host.Global { return i.global(prepare.FuelGlobal) }

// Stack returns the exported stack counter, or nil.
func (i *instance) Stack() host.Global { return i.global(prepare.StackGlobal) }

func (i *instance) global(name string) host.Global {
	if g, ok := i.module.ExportedGlobal(name).(api.MutableGlobal); ok {
		return g
	}
	return nil
}

// Call calls an export.
func (i *instance) Call(ctx context.Context, export string, args ...uint32) (uint64, bool, error) {
	f := i.module.ExportedFunction(export)
	if f == nil || len(f.Definition().ParamTypes()) != len(args) || len(args) > stackValuesMax {
		return 0, false, nil
	}
	results := f.Definition().ResultTypes()
	var stack [stackValuesMax]uint64
	for n, a := range args {
		if f.Definition().ParamTypes()[n] != api.ValueTypeI32 {
			return 0, false, nil
		}
		stack[n] = uint64(a)
	}
	if len(results) > 1 {
		return 0, false, nil
	}
	err := f.CallWithStack(&callContext{ctx, i.calls}, stack[:max(len(args), len(results))])
	if err != nil {
		return 0, true, trapOf(err)
	}
	if len(results) == 0 {
		return 0, true, nil
	}
	if results[0] == api.ValueTypeI32 {
		return uint64(uint32(stack[0])), true, nil
	}
	return stack[0], true, nil
}

// Close frees the instance.
func (i *instance) Close(ctx context.Context) error { return i.module.Close(ctx) }

// errNativeStack is no trap of the guest's: what a call needs of the native stack
// is the compiler's choice, so another engine may well go on.
var errNativeStack = errors.New("wazero: the native stack ended before the guest's stack budget; try another engine")

// trapOf puts an error of wazero's into the host's words, if it is a trap.
// wazero's trap values are internal to it, so their texts are compared; a test
// provokes each.
func trapOf(err error) error {
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		if inner.Error() == "stack overflow" {
			return errNativeStack
		}
		if cause, ok := trapCause(inner.Error()); ok {
			return &host.Trap{Cause: cause}
		}
	}
	return err
}

func trapCause(text string) (host.StopCause, bool) {
	switch text {
	case "unreachable":
		return host.StopUnreachable, true
	case "out of bounds memory access":
		return host.StopMemoryBounds, true
	case "invalid table access":
		return host.StopTableAccess, true
	case "indirect call type mismatch":
		return host.StopIndirectCallType, true
	case "integer overflow":
		return host.StopIntegerOverflow, true
	case "integer divide by zero":
		return host.StopDivideByZero, true
	case "invalid conversion to integer":
		return host.StopInvalidConversion, true
	}
	return "", false
}
