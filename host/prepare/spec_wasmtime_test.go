//go:build cgo && !writ_nowasmtime

package prepare

import (
	"fmt"
	"math"

	"github.com/bytecodealliance/wasmtime-go/v39"
)

func furtherEngines(t testingT) map[string]func() specEngine {
	return map[string]func() specEngine{"wasmtime": func() specEngine {
		w, err := newWasmtimeSpec()
		if err != nil {
			t.Fatal(err)
		}
		return w
	}}
}

// wasmtimeSpec runs the modules of one script in one store of wasmtime's.
type wasmtimeSpec struct {
	engine *wasmtime.Engine
	store  *wasmtime.Store
	linker *wasmtime.Linker
	budget int64
}

func newWasmtimeSpec() (*wasmtimeSpec, error) {
	config := wasmtime.NewConfig()
	config.SetStrategy(wasmtime.StrategyCranelift)
	config.SetMaxWasmStack(4 << 20)
	config.SetWasmReferenceTypes(true)
	w := &wasmtimeSpec{engine: wasmtime.NewEngineWithConfig(config), budget: 1 << 60}
	w.store = wasmtime.NewStore(w.engine)
	w.linker = wasmtime.NewLinker(w.engine)
	w.linker.AllowShadowing(true)
	err := w.linker.FuncNew(RefillModule, RefillName, wasmtime.NewFuncType(nil, nil),
		func(c *wasmtime.Caller, _ []wasmtime.Val) ([]wasmtime.Val, *wasmtime.Trap) {
			fuel := c.GetExport(FuelGlobal).Global()
			for held := fuel.Get(c).I64(); held < 0; held += FuelSlice {
				if w.budget < FuelSlice {
					return nil, wasmtime.NewTrap("out of fuel")
				}
				w.budget -= FuelSlice
				if err := fuel.Set(c, wasmtime.ValI64(held+FuelSlice)); err != nil {
					return nil, wasmtime.NewTrap(err.Error())
				}
			}
			return nil, nil
		})
	return w, err
}

func (w *wasmtimeSpec) close() {
	w.linker.Close()
	w.store.Close()
	w.engine.Close()
}

func (w *wasmtimeSpec) start(name string, wasm []byte) (specInstance, error) {
	module, err := wasmtime.NewModule(w.engine, wasm)
	if err != nil {
		return nil, err
	}
	inner, err := w.linker.Instantiate(w.store, module)
	if err != nil {
		return nil, wasmtimeTrap(err, nil)
	}
	i := &wasmtimeInstance{wasmtimeSpec: w, inner: inner, types: map[string]funcType{}, calls: map[string]*wasmtime.Func{}}
	m := newModule(wasm, rules{pagesMax: pagesMax, anyImport: true, anyExport: true, anySize: true})
	m.read()
	for _, e := range m.exports {
		if e.kind == kindFunction {
			i.types[e.name] = m.typeOf(e.index)
		}
	}
	if name != "" {
		if err := w.linker.DefineInstance(w.store, name, inner); err != nil {
			return nil, err
		}
	}
	if f := inner.GetFunc(w.store, StartExport); f != nil {
		_, err = f.Call(w.store)
	}
	return i, wasmtimeTrap(err, i)
}

type wasmtimeInstance struct {
	*wasmtimeSpec
	inner *wasmtime.Instance
	types map[string]funcType
	calls map[string]*wasmtime.Func // by export
}

func (i *wasmtimeInstance) global(name string) *wasmtime.Global {
	if e := i.inner.GetExport(i.store, name); e != nil {
		return e.Global()
	}
	return nil
}

func (i *wasmtimeInstance) get(export string) []uint64 {
	switch v := i.global(export).Get(i.store); v.Kind() {
	case wasmtime.KindI32:
		return []uint64{uint64(uint32(v.I32()))}
	case wasmtime.KindI64:
		return []uint64{uint64(v.I64())}
	case wasmtime.KindF32:
		return []uint64{uint64(math.Float32bits(v.F32()))}
	case wasmtime.KindF64:
		return []uint64{math.Float64bits(v.F64())}
	case wasmtime.KindExternref:
		return referenceBits(v)
	default:
		return []uint64{0}
	}
}

func (i *wasmtimeInstance) left() int64 { return i.budget + i.global(FuelGlobal).Get(i.store).I64() }

// call calls an export through a module that takes floats and vectors apart, so
// that none of their bits pass through this side's language.
func (i *wasmtimeInstance) call(export string, args []uint64) ([]uint64, error) {
	typ := i.types[export]
	through, err := i.through(export, typ)
	if err != nil {
		return nil, fmt.Errorf("a module for %s: %w", typ, err)
	}
	var given []any
	for _, p := range apart(typ.params) {
		switch v := args[len(given)]; p {
		case i32:
			given = append(given, int32(v))
		case externref:
			var object any
			if v != 0 {
				object = v
			}
			given = append(given, wasmtime.ValExternref(object))
		default:
			given = append(given, int64(v))
		}
	}
	if err := i.global(StackGlobal).Set(i.store, wasmtime.ValI64(portableSlots)); err != nil {
		return nil, err
	}
	result, err := through.Call(i.store, given...)
	switch {
	case err != nil:
		return nil, wasmtimeTrap(err, i)
	case result == nil && len(typ.results) == 1: // a null reference
		return []uint64{0}, nil
	}
	return resultBits(result), nil
}

// through returns the function that passes the bits of an export's values on.
func (i *wasmtimeInstance) through(export string, typ funcType) (*wasmtime.Func, error) {
	if f := i.calls[export]; f != nil {
		return f, nil
	}
	module, err := wasmtime.NewModule(i.engine, takeApart(typ))
	if err != nil {
		return nil, err
	}
	caller, err := wasmtime.NewInstance(i.store, module, []wasmtime.AsExtern{i.inner.GetFunc(i.store, export)})
	if err != nil {
		return nil, err
	}
	i.calls[export] = caller.GetFunc(i.store, "call")
	return i.calls[export], nil
}

func resultBits(result any) []uint64 {
	switch v := result.(type) {
	case nil:
		return []uint64{}
	case int32:
		return []uint64{uint64(uint32(v))}
	case int64:
		return []uint64{uint64(v)}
	case []wasmtime.Val:
		bits := []uint64{}
		for _, one := range v {
			if one.Kind() == wasmtime.KindExternref {
				bits = append(bits, referenceBits(one)...)
				continue
			}
			bits = append(bits, resultBits(one.Get())...)
		}
		return bits
	}
	return []uint64{result.(uint64)} // a reference to a host object
}

func referenceBits(v wasmtime.Val) []uint64 {
	if n, ok := v.Externref().(uint64); ok {
		return []uint64{n}
	}
	return []uint64{0}
}

// wasmtimeTrap puts a trap into wazero's words, and an overflow that the stack
// budget found into those of one that an engine found.
func wasmtimeTrap(err error, i *wasmtimeInstance) error {
	trap, ok := err.(*wasmtime.Trap)
	if !ok || trap.Code() == nil {
		return err
	}
	if i != nil && i.global(StackGlobal).Get(i.store).I64() < 0 {
		return errStackOverflow
	}
	words := map[wasmtime.TrapCode]string{
		wasmtime.UnreachableCodeReached: "unreachable", wasmtime.MemoryOutOfBounds: "out of bounds memory access",
		wasmtime.TableOutOfBounds: "invalid table access", wasmtime.IndirectCallToNull: "invalid table access",
		wasmtime.BadSignature: "indirect call type mismatch", wasmtime.IntegerOverflow: "integer overflow",
		wasmtime.IntegerDivisionByZero: "integer divide by zero", wasmtime.BadConversionToInteger: "invalid conversion to integer",
	}
	if word := words[*trap.Code()]; word != "" {
		return fmt.Errorf("wasm error: %s", word)
	}
	return err
}

// apart lists types as [takeApart] passes them.
func apart(types []byte) []byte {
	var out []byte
	for _, t := range types {
		switch t {
		case f32, funcref:
			out = append(out, i32)
		case f64:
			out = append(out, i64)
		case v128:
			out = append(out, i64, i64)
		default:
			out = append(out, t)
		}
	}
	return out
}

// takeApart is a module that imports a function of the type and exports call,
// which has integers for floats, two for a vector, and for a funcref whether it
// is not null.
func takeApart(typ funcType) []byte {
	list := func(types []byte) []byte { return append(appendU32(nil, uint32(len(types))), types...) }
	types := append([]byte{2, 0x60}, append(list(typ.params), list(typ.results)...)...)
	types = append(append(types, 0x60), append(list(apart(typ.params)), list(apart(typ.results))...)...)
	imports := append(appendName(appendName([]byte{1}, "m"), "f"), kindFunction, 0)
	exports := append(appendName([]byte{1}, "call"), kindFunction, 1)
	body := appendU32(nil, uint32(len(typ.results)))
	for _, t := range typ.results {
		body = append(body, 1, t)
	}
	at := uint32(0)
	get := func() { body = appendU32(append(body, opLocalGet), at); at++ }
	for _, t := range typ.params {
		switch t {
		case funcref:
			body = append(body, opRefNull, funcref)
			at++
			continue
		case v128:
			get()
			body = append(body, opPrefixSIMD, 0x12) // i64x2.splat
			get()
			body = append(body, opPrefixSIMD, 0x1e, 1) // i64x2.replace_lane
			continue
		}
		get()
		switch t {
		case f32:
			body = append(body, 0xbe) // f32.reinterpret_i32
		case f64:
			body = append(body, 0xbf)
		}
	}
	body = append(body, opCall, 0)
	for n := len(typ.results) - 1; n >= 0; n-- {
		body = appendU32(append(body, opLocalSet), at+uint32(n))
	}
	for n, t := range typ.results {
		body = appendU32(append(body, opLocalGet), at+uint32(n))
		switch t {
		case f32:
			body = append(body, 0xbc) // i32.reinterpret_f32
		case f64:
			body = append(body, 0xbd)
		case funcref:
			body = append(body, opRefIsNull, 0x45) // i32.eqz
		case v128:
			body = append(body, opPrefixSIMD, 0x1d, 0) // i64x2.extract_lane
			body = appendU32(append(body, opLocalGet), at+uint32(n))
			body = append(body, opPrefixSIMD, 0x1d, 1)
		}
	}
	body = append(body, opEnd)
	out := appendSection([]byte("\x00asm\x01\x00\x00\x00"), sectionType, types)
	out = appendSection(out, sectionImport, imports)
	out = appendSection(out, sectionFunction, []byte{1, 1})
	out = appendSection(out, sectionExport, exports)
	code := append(appendU32([]byte{1}, uint32(len(body))), body...)
	return appendSection(out, sectionCode, code)
}
