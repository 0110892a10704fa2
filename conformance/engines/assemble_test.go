package engines_test

import "encoding/binary"

// code is a piece of a binary module.
type code []byte

func (c *code) op(b ...byte) { *c = append(*c, b...) }

// u appends an unsigned LEB128 number.
func (c *code) u(v uint64) { *c = binary.AppendUvarint(*c, v) }

// s appends a signed LEB128 number.
func (c *code) s(v int64) {
	for {
		b := byte(v & 0x7f)
		v >>= 7
		if v == 0 && b&0x40 == 0 || v == -1 && b&0x40 != 0 {
			*c = append(*c, b)
			return
		}
		*c = append(*c, b|0x80)
	}
}

func (c *code) name(s string) {
	c.u(uint64(len(s)))
	*c = append(*c, s...)
}

func (c *code) sized(b []byte) {
	c.u(uint64(len(b)))
	*c = append(*c, b...)
}

// section appends a section of count items.
func (c *code) section(id byte, count int, items []byte) {
	var body code
	body.u(uint64(count))
	body = append(body, items...)
	c.op(id)
	c.sized(body)
}

// Opcodes that the tests write by name.
const (
	opUnreachable  = 0x00
	opBlock        = 0x02
	opLoop         = 0x03
	opIf           = 0x04
	opElse         = 0x05
	opEnd          = 0x0b
	opBr           = 0x0c
	opBrIf         = 0x0d
	opBrTable      = 0x0e
	opReturn       = 0x0f
	opCall         = 0x10
	opCallIndirect = 0x11
	opDrop         = 0x1a
	opSelect       = 0x1b
	opLocalGet     = 0x20
	opLocalSet     = 0x21
	opLocalTee     = 0x22
	opGlobalGet    = 0x23
	opGlobalSet    = 0x24
	opI32Load8U    = 0x2d
	opMemorySize   = 0x3f
	opMemoryGrow   = 0x40
	opI32Const     = 0x41
	opI64Const     = 0x42
	opF32Const     = 0x43
	opF64Const     = 0x44
	opI32LtS       = 0x48
	opI32LeU       = 0x4d
	opI32GtS       = 0x4a
	opI32Add       = 0x6a
	opI32Sub       = 0x6b
	opI32And       = 0x71
	opI32Shl       = 0x74
	opI64ExtendU   = 0xad
	opRefFunc      = 0xd2
	opVector       = 0xfd
	noType         = 0x40
)

func (c *code) i32const(v int32) { c.op(opI32Const); c.s(int64(v)) }

// signature is a function type.
type signature struct{ params, results string } // of type bytes

// binaryModule is a module in the making: imports come before functions, and the
// index spaces are in order of addition.
type binaryModule struct {
	types   []signature
	imports code
	counts  map[byte]int // of items by section
	funcs   code
	bodies  code
	tables  code
	memory  code
	globals code
	exports code
	start   int // function, or 0 for none
	elems   code
	data    code
}

func newBinaryModule() *binaryModule { return &binaryModule{counts: map[byte]int{}} }

func (m *binaryModule) typeIndex(s signature) uint64 {
	for i, t := range m.types {
		if t == s {
			return uint64(i)
		}
	}
	m.types = append(m.types, s)
	return uint64(len(m.types) - 1)
}

// count numbers the items of a section.
func (m *binaryModule) count(section byte) int {
	m.counts[section]++
	return m.counts[section] - 1
}

func (m *binaryModule) importFunc(module, name string, s signature) uint64 {
	m.imports.name(module)
	m.imports.name(name)
	m.imports.op(0)
	m.imports.u(m.typeIndex(s))
	return uint64(m.count(2))
}

func (m *binaryModule) function(s signature, locals []byte, body code) uint64 {
	m.funcs.u(m.typeIndex(s))
	var b code
	b.u(uint64(len(locals)))
	for _, t := range locals {
		b.op(1, t)
	}
	b = append(b, body...)
	b.op(opEnd)
	m.bodies.sized(b)
	return uint64(m.counts[2] + m.count(3))
}

func (m *binaryModule) export(name string, kind byte, index uint64) {
	m.exports.name(name)
	m.exports.op(kind)
	m.exports.u(index)
	m.count(7)
}

func (m *binaryModule) global(typ byte, initial code) uint64 {
	m.globals.op(typ, 1)
	m.globals.op(initial...)
	m.globals.op(opEnd)
	return uint64(m.count(6))
}

func (m *binaryModule) bytes() []byte {
	out := code("\x00asm\x01\x00\x00\x00")
	var types code
	for _, t := range m.types {
		types.op(0x60)
		types.name(t.params)
		types.name(t.results)
	}
	out.section(1, len(m.types), types)
	out.section(2, m.counts[2], m.imports)
	out.section(3, m.counts[3], m.funcs)
	out.section(4, m.counts[4], m.tables)
	out.section(5, m.counts[5], m.memory)
	out.section(6, m.counts[6], m.globals)
	out.section(7, m.counts[7], m.exports)
	if m.start > 0 {
		var index code
		index.u(uint64(m.start))
		out.op(8)
		out.sized(index)
	}
	out.section(9, m.counts[9], m.elems)
	out.section(10, m.counts[3], m.bodies)
	out.section(11, m.counts[11], m.data)
	return out
}
