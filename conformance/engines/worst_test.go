package engines_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host/prepare"
)

// What compiling a module may cost, at most, in time of processors.
const (
	compileTimeMax  = 20 * time.Second
	compileBytesMax = 1 << 30
)

// Limits of admission, as package prepare holds them.
const (
	moduleBytes = 16 << 20
	bodyBytes   = 512 << 10
	bodyLocals  = 4_096
	nesting     = 4_096
	targets     = 8_192
	functions   = 20_000
)

// worstShape is a kind of code that is dear to compile.
type worstShape struct {
	name string
	// body appends code that fits into the given number of bytes and leaves nothing.
	body   func(c *code, size int)
	locals []byte
	size   int // of a body that says nothing alone, or 0 for the largest
}

func repeat(t byte, n int) []byte { return []byte(strings.Repeat(string([]byte{t}), n)) }

// fill appends a piece again and again.
func fill(piece func(c *code, i int)) func(*code, int) {
	return func(c *code, size int) {
		for i, end := 0, len(*c)+size; len(*c)+64 < end; i++ {
			piece(c, i)
		}
	}
}

// assign appends set of local i from local i+1, added to itself.
func assign(c *code, i int, add ...byte) {
	c.op(opLocalGet)
	c.u(uint64((i + 1) % bodyLocals))
	c.op(opLocalGet)
	c.u(uint64(i % bodyLocals))
	c.op(add...)
	c.op(opLocalSet)
	c.u(uint64(i % bodyLocals))
}

// stored appends a store of local i.
func stored(c *code, i int, store ...byte) {
	c.op(opI32Const, 0, opLocalGet)
	c.u(uint64(i % bodyLocals))
	c.op(store...)
	c.op(0, 8)
}

var (
	addF64   = []byte{0xa0}
	addF32x4 = []byte{opVector, 0xe4, 1}
	addI64   = []byte{0x7c}
)

// nested appends blocks as deep as may be, each with a piece of code in it.
func nested(op byte, inner func(c *code, i int)) func(*code, int) {
	return func(c *code, size int) {
		end, depth := len(*c)+size, min(nesting-1, size/64)
		for len(*c)+depth*24 < end {
			for i := range depth {
				if op == opIf {
					c.op(opLocalGet, 0)
				}
				c.op(op, noType)
				inner(c, i)
			}
			for range depth {
				c.op(opEnd)
			}
		}
	}
}

// tables appends the largest br_tables there may be, out of the deepest nesting.
func tables(c *code, size int) {
	end, depth, count := len(*c)+size, min(nesting-1, size/8), min(targets, size/8)
	for len(*c)+3*depth+2*count+depth/4+16 < end {
		for range depth {
			c.op(opBlock, noType)
		}
		c.op(opLocalGet, 0, opBrTable)
		c.u(uint64(count - 1))
		for i := range count {
			c.u(uint64(i % depth))
		}
		for i := range depth {
			c.op(opEnd)
			if i%64 == 0 {
				assign(c, i+1, 0x6a)
			}
		}
	}
}

var worstShapes = []worstShape{
	{name: "float additions that are stored", body: fill(func(c *code, i int) { assign(c, i, addF64...); stored(c, i, 0x39) }), locals: repeat(f64, bodyLocals)},
	{name: "float vectors that are stored", body: fill(func(c *code, i int) { assign(c, i, addF32x4...); stored(c, i, opVector, 11) }), locals: repeat(v128, bodyLocals)},
	{name: "float constants that are stored", body: fill(func(c *code, i int) {
		c.op(opI32Const, 0, opF64Const, 1, 2, 3, 4, 5, 6, 7, byte(i), 0x9f, 0x39, 0, 8)
	})},
	{name: "ifs that assign", body: fill(func(c *code, i int) {
		c.op(opMemorySize, 0, opIf, noType)
		assign(c, i, addI64...)
		c.op(opEnd)
	}), locals: repeat(i64, bodyLocals)},
	{name: "loops that assign", body: fill(func(c *code, i int) {
		c.op(opLoop, noType)
		assign(c, i, addI64...)
		c.op(opMemorySize, 0, opBrIf, 0, opEnd)
	}), locals: repeat(i64, bodyLocals)},
	{name: "nested loops that assign", body: nested(opLoop, func(c *code, i int) {
		assign(c, i, addI64...)
		c.op(opMemorySize, 0, opBrIf, 0)
	}), locals: repeat(i64, bodyLocals)},
	{name: "nested ifs that assign", body: nested(opIf, func(c *code, i int) { assign(c, i+1, 0x6a) }), locals: repeat(i32, bodyLocals)},
	{name: "large branch tables", body: tables, locals: repeat(i32, bodyLocals)},
	{name: "calls through a table", body: fill(func(c *code, _ int) {
		c.op(opI32Const, 1, opCallIndirect, 3, 0)
	}), locals: repeat(i32, 1)},
	{name: "loads and stores", body: fill(func(c *code, i int) {
		c.op(opI32Const, 0, opLocalGet, 0, 0x29, 0)
		c.u(uint64(i))
		c.op(0x37, 0)
		c.u(uint64(i))
	}), locals: repeat(i32, 1)},
	{name: "copies of memory", body: fill(func(c *code, _ int) {
		c.op(opI32Const, 0, opI32Const, 1, opI32Const, 2, 0xfc, 10, 0, 0)
	}), locals: repeat(i32, 1)},
	{name: "many functions", body: fill(func(c *code, i int) { c.op(opLocalGet, 0, opLocalGet, 0, 0xa0, opLocalSet, 0) }), locals: repeat(f64, 8), size: 800},
	{name: "many empty functions", body: func(*code, int) {}, size: 1},
	{name: "many functions of all locals", body: fill(func(c *code, i int) { assign(c, i, addI64...) }), locals: repeat(i64, bodyLocals), size: 400},
}

// module writes a guest of count functions of a shape.
func (w worstShape) module(size, count int) []byte {
	m := newBinaryModule()
	m.memory.op(1, 1, 4)
	m.count(5)
	m.export(abi.ExportMemory, 2, 0)
	m.tables.op(0x70, 1, 4, 4)
	m.count(4)
	m.export(abi.ExportAlloc, 0, m.function(signature{"\x7f", "\x7f"}, nil, code{opI32Const, 1}))
	m.export(abi.ExportFree, 0, m.function(signature{"\x7f\x7f", ""}, nil, nil))
	m.export(abi.ExportExecute, 0, m.function(signature{"\x7f\x7f", "\x7e"}, nil, code{opI64Const, 1}))
	plain := m.typeIndex(signature{})
	var body code
	if len(w.locals) > 0 {
		body.u(1)
		body.u(uint64(len(w.locals)))
		body.op(w.locals[0])
	} else {
		body.u(0)
	}
	w.body(&body, size)
	body.op(opEnd)
	for range count {
		m.funcs.u(plain)
		m.count(3)
		m.bodies.sized(body)
	}
	return m.bytes()
}

// admitted reports whether preparation lets a module through.
func admitted(wasm []byte) bool {
	_, err := prepare.Prepare(wasm, prepare.Options{})
	return err == nil
}

// largest returns the module of a shape with the most functions that admission
// lets through, of bodies of at most size bytes; nil if it lets none through.
func (w worstShape) largest(size int) []byte {
	for ; !admitted(w.module(size, 1)); size = size * 3 / 4 {
		if size == 0 {
			return nil
		}
	}
	least, most := 1, min(functions-4, moduleBytes/max(size, 1)+1)
	for least < most {
		if middle := (least + most + 1) / 2; admitted(w.module(size, middle)) {
			least = middle
		} else {
			most = middle - 1
		}
	}
	return w.module(size, least)
}

// TestWorstModulesCompile: the largest modules that admission lets through, of
// several shapes and with bodies of several sizes, compile within their bounds on
// every engine that compiles.
func TestWorstModulesCompile(t *testing.T) {
	if !long() {
		t.Skip("SKIPPED, takes minutes: set WRIT_LONG=1")
	}
	for _, w := range worstShapes {
		sizes := []int{w.size}
		if w.size == 0 {
			sizes = []int{bodyBytes - 64, bodyBytes / 32}
		}
		for _, size := range sizes {
			t.Run(fmt.Sprintf("%s, bodies of %d bytes", w.name, size), func(t *testing.T) {
				wasm := w.largest(size)
				if wasm == nil {
					t.Skip("admission refuses the shape")
				}
				for _, engine := range engineNames() {
					if engine != interpreter {
						checkCompile(t, engine, wasm)
					}
				}
			})
		}
	}
}

func checkCompile(t *testing.T, engine string, wasm []byte) {
	reports := runInChild(t, engine, []job{{Name: t.Name(), Wasm: wasm, CompileOnly: true}})
	if len(reports) == 0 {
		return
	}
	r, needed := reports[0], reports[0].BytesPeak-reports[0].BytesBefore
	t.Logf("%s: %d bytes, %d prepared, compile in %v and %d MiB", engine, len(wasm), r.PreparedSize, r.CompileTime.Round(time.Millisecond), needed>>20)
	switch {
	case r.Failure != "":
		t.Errorf("%s: %s", engine, r.Failure)
	case r.CompileTime > compileTimeMax || needed > compileBytesMax:
		t.Errorf("%s: above %v or %d MiB", engine, compileTimeMax, compileBytesMax>>20)
	}
}
