//go:build cgo && !writ_nowasmtime

package wasmtime

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/bytecodealliance/wasmtime-go/v39"
	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host"
	"github.com/writrun/writ/host/prepare"
)

// instance is one instance of a module, alone in its store, so that all of it
// goes when the store does.
type instance struct {
	store  *wasmtime.Store
	inner  *wasmtime.Instance
	code   *code
	calls  *host.Calls
	memory memory
	dead   bool  // whether a call has failed
	fault  error // what a host function panicked with

	// Scratch of the host call in progress; there is one at a time.
	stack  [stackValuesMax]uint64
	result [1]wasmtime.Val
}

// Instantiate makes an instance in a store of its own. Prepared modules have no
// start section and no segments out of bounds, so a failure is not the guest's.
func (c *compiled) Instantiate(_ context.Context, calls *host.Calls) (host.Instance, error) {
	if !c.module.table.hold() {
		return nil, errClosed
	}
	defer c.module.table.drop()
	i := &instance{calls: calls, code: c.module.code}
	i.store = wasmtime.NewStoreWithData(c.engine.engine, i)
	i.store.Limiter(memoryBytesMax, tableEntriesMax, instancesMax, tablesMax, memoriesMax)
	inner, err := c.engine.linker.Instantiate(i.store, i.code.module)
	if err != nil {
		i.store.Close()
		return nil, engineError(err)
	}
	i.inner = inner
	if i.code.hasMemory {
		i.memory = memory{store: i.store, inner: inner.GetExport(i.store, abi.ExportMemory).Memory(), refetch: true}
	}
	return i, nil
}

// Memory returns the exported memory, or nil.
func (i *instance) Memory() host.Memory {
	if i.memory.inner == nil {
		return nil
	}
	return &i.memory
}

// Fuel returns the exported fuel counter, or nil.
func (i *instance) Fuel() host.Global { return i.counter(prepare.FuelGlobal) }

// Stack returns the exported stack counter, or nil.
func (i *instance) Stack() host.Global { return i.counter(prepare.StackGlobal) }

func (i *instance) counter(name string) host.Global {
	if !i.code.counters[name] {
		return nil
	}
	return &global{store: i.store, inner: i.inner.GetExport(i.store, name).Global()}
}

// Call calls an export.
func (i *instance) Call(_ context.Context, export string, args ...uint32) (uint64, bool, error) {
	s, ok := i.code.functions[export]
	if !ok || s.params != len(args) || !s.onlyI32s || s.results > 1 || len(args) > stackValuesMax {
		return 0, false, nil
	}
	if i.dead {
		return 0, true, errors.New("the instance is not used again: a call of it has failed, or it is closed")
	}
	result, err := i.enter(export, args)
	i.memory.refetch = true
	if err != nil {
		i.dead = true
		return 0, true, err
	}
	return result, true, nil
}

// enter runs the guest. Until it returns without an error the instance is dead.
func (i *instance) enter(export string, args []uint32) (result uint64, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = panicError(fault)
		}
	}()
	values := make([]any, len(args))
	for n, a := range args {
		values[n] = int32(a)
	}
	got, err := i.inner.GetFunc(i.store, export).Call(i.store, values...)
	switch {
	case i.fault != nil:
		return 0, i.fault
	case err != nil:
		return 0, trapOf(err)
	}
	switch got := got.(type) {
	case int32:
		return uint64(uint32(got)), nil
	case int64:
		return uint64(got), nil
	case float32:
		return uint64(math.Float32bits(got)), nil
	case float64:
		return math.Float64bits(got), nil
	}
	return 0, nil
}

// Close frees the instance and its memory at once.
func (i *instance) Close(context.Context) error {
	i.dead = true
	i.memory.bytes, i.memory.refetch = nil, false // so that nothing is read of freed memory
	i.store.Close()
	return nil
}

// memory is an instance's memory. Where its bytes are is asked of the engine
// after each run of the guest, as growth may move them.
type memory struct {
	store   *wasmtime.Store
	inner   *wasmtime.Memory
	bytes   []byte
	refetch bool
}

func (m *memory) data() []byte {
	if m.refetch {
		m.bytes, m.refetch = m.inner.UnsafeData(m.store), false
	}
	return m.bytes
}

// Read returns the bytes of a range, or false if some are not in the memory.
func (m *memory) Read(offset, size uint32) ([]byte, bool) {
	b := m.data()
	end := uint64(offset) + uint64(size)
	if end > uint64(len(b)) {
		return nil, false
	}
	return b[offset:end:end], true
}

// Size returns the size in bytes.
func (m *memory) Size() uint32 { return uint32(len(m.data())) }

// global is an instance's counter.
type global struct {
	store *wasmtime.Store
	inner *wasmtime.Global
}

// Get returns the value.
func (g *global) Get() uint64 { return uint64(g.inner.Get(g.store).I64()) }

// Set changes the value. The global is a mutable i64, so it cannot fail.
func (g *global) Set(v uint64) {
	if err := g.inner.Set(g.store, wasmtime.ValI64(int64(v))); err != nil {
		panic(engineError(err))
	}
}

// errNativeStack is no trap of the guest's: what a call needs of the native stack
// is the compiler's choice, so another engine may well go on.
var errNativeStack = errors.New("wasmtime: the native stack ended before the guest's stack budget; try another engine")

// trapOf puts what ended a call into the host's words. Its text, with addresses
// and frames, goes no further.
func trapOf(err error) error {
	var trap *wasmtime.Trap
	if !errors.As(err, &trap) {
		return engineError(err)
	}
	defer trap.Close()
	code := trap.Code()
	if code == nil {
		return errors.New("wasmtime: a trap without a code")
	}
	if *code == wasmtime.StackOverflow {
		return errNativeStack
	}
	if cause, ok := trapCause(*code); ok {
		return &host.Trap{Cause: cause}
	}
	return fmt.Errorf("wasmtime: a trap with the unknown code %d", *code)
}

func trapCause(code wasmtime.TrapCode) (host.StopCause, bool) {
	switch code {
	case wasmtime.UnreachableCodeReached:
		return host.StopUnreachable, true
	case wasmtime.MemoryOutOfBounds:
		return host.StopMemoryBounds, true
	case wasmtime.TableOutOfBounds, wasmtime.IndirectCallToNull:
		return host.StopTableAccess, true
	case wasmtime.BadSignature:
		return host.StopIndirectCallType, true
	case wasmtime.IntegerOverflow:
		return host.StopIntegerOverflow, true
	case wasmtime.IntegerDivisionByZero:
		return host.StopDivideByZero, true
	case wasmtime.BadConversionToInteger:
		return host.StopInvalidConversion, true
	}
	return "", false
}
