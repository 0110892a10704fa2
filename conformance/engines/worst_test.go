package engines_test

import (
	"strings"
	"testing"
	"time"

	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host/prepare"
)

// What compiling a module may cost, at most.
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

// worstShape is a module as large as admission lets through, of one kind.
type worstShape struct {
	name string
	// body appends code that fits into the given number of bytes and leaves nothing.
	body      func(c *code, size int)
	locals    []byte
	bodySize  int // 0 means the largest there may be
	functions int // 0 means as many as fit
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

var (
	addF64   = []byte{0xa0}
	addF32x4 = []byte{opVector, 0xe4, 1}
	addI64   = []byte{0x7c}
)

// nested appends blocks as deep as may be, each with a piece of code in it.
func nested(op byte, inner func(c *code, i int)) func(*code, int) {
	return func(c *code, size int) {
		end := len(*c) + size
		for len(*c)+nesting*64 < end {
			for i := range nesting - 1 {
				if op == opIf {
					c.op(opLocalGet, 0)
				}
				c.op(op, noType)
				inner(c, i)
			}
			for range nesting - 1 {
				c.op(opEnd)
			}
		}
	}
}

// tables appends the largest br_tables there may be, out of the deepest nesting.
func tables(c *code, size int) {
	end := len(*c) + size
	for len(*c)+4*nesting+2*targets+1000 < end {
		for range nesting - 1 {
			c.op(opBlock, noType)
		}
		c.op(opLocalGet, 0, opBrTable)
		c.u(targets - 1)
		for i := range uint64(targets) {
			c.u(i % (nesting - 1))
		}
		for i := range nesting - 1 {
			c.op(opEnd)
			if i%64 == 0 {
				assign(c, i+1, 0x6a)
			}
		}
	}
}

var worstShapes = []worstShape{
	{name: "float additions", body: fill(func(c *code, i int) { assign(c, i, addF64...) }), locals: repeat(f64, bodyLocals)},
	{name: "float vectors", body: fill(func(c *code, i int) { assign(c, i, addF32x4...) }), locals: repeat(v128, bodyLocals)},
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
	})},
	{name: "loads and stores", body: fill(func(c *code, i int) {
		c.op(opI32Const, 0, opLocalGet, 0, 0x29, 0)
		c.u(uint64(i))
		c.op(0x37, 0)
		c.u(uint64(i))
	}), locals: repeat(i32, 1)},
	{name: "copies of memory", body: fill(func(c *code, _ int) {
		c.op(opI32Const, 0, opI32Const, 1, opI32Const, 2, 0xfc, 10, 0, 0)
	})},
	{name: "many functions", body: fill(func(c *code, i int) { assign(c, i%8, addF64...) }), locals: repeat(f64, 8), bodySize: 800, functions: functions - 10},
	{name: "many empty functions", body: func(*code, int) {}, bodySize: 1, functions: functions - 10},
	{name: "many functions of all locals", body: fill(func(c *code, i int) { assign(c, i, addI64...) }), locals: repeat(i64, bodyLocals), bodySize: 400, functions: functions - 10},
}

// module writes the guest of a shape.
func (w worstShape) module() []byte {
	m := newBinaryModule()
	m.memory.op(1, 1, 4)
	m.count(5)
	m.export(abi.ExportMemory, 2, 0)
	m.tables.op(0x70, 1, 4, 4)
	m.count(4)
	m.export(abi.ExportAlloc, 0, m.function(signature{"\x7f", "\x7f"}, nil, code{opI32Const, 1}))
	m.export(abi.ExportFree, 0, m.function(signature{"\x7f\x7f", ""}, nil, nil))
	m.export(abi.ExportExecute, 0, m.function(signature{"\x7f\x7f", "\x7e"}, nil, code{opI64Const, 1}))
	m.typeIndex(signature{})
	var locals code
	if len(w.locals) > 0 {
		locals.u(uint64(len(w.locals)))
		locals.op(w.locals[0])
	}
	size := w.bodySize
	if size == 0 {
		size = bodyBytes - 64
	}
	var body code
	if len(w.locals) > 0 {
		body.u(1)
		body.op(locals...)
	} else {
		body.u(0)
	}
	w.body(&body, size-len(locals)-1)
	body.op(opEnd)
	count := w.functions
	if count == 0 {
		count = (moduleBytes - 4096) / (len(body) + 4)
	}
	for range count {
		m.funcs.u(3)
		m.count(3)
		m.bodies.sized(body)
	}
	return m.bytes()
}

// TestWorstModulesCompile: the largest modules that admission lets through, of
// several shapes, compile within their bounds on every engine that compiles, or
// their prepared form is refused.
func TestWorstModulesCompile(t *testing.T) {
	if !long() {
		t.Skip("SKIPPED, takes minutes: set WRIT_LONG=1")
	}
	for _, w := range worstShapes {
		t.Run(w.name, func(t *testing.T) {
			wasm := w.module()
			if p, err := prepare.Prepare(wasm, prepare.Options{}); err != nil {
				t.Logf("%d bytes: %v", len(wasm), err)
				return
			} else {
				t.Logf("%d bytes, %d prepared", len(wasm), len(p.Wasm))
			}
			for _, engine := range engineNames() {
				if engine == interpreter {
					continue
				}
				reports := runInChild(t, engine, []job{{Name: w.name, Wasm: wasm, CompileOnly: true}})
				if len(reports) == 0 {
					continue
				}
				r := reports[0]
				t.Logf("%s: %v, %d MiB", engine, r.CompileTime.Round(time.Millisecond), (r.BytesPeak-r.BytesBefore)>>20)
				if r.Failure != "" {
					t.Errorf("%s: %s", engine, r.Failure)
				}
				if r.CompileTime > compileTimeMax || r.BytesPeak-r.BytesBefore > compileBytesMax {
					t.Errorf("%s: above %v or %d MiB", engine, compileTimeMax, compileBytesMax>>20)
				}
			}
		})
	}
}
