package engines_test

import "encoding/binary"

// constant appends a constant, of the kinds that find mistakes.
func (g *generator) constant(t byte) {
	switch t {
	case i32:
		g.body.i32const(int32(ints[g.IntN(len(ints))]))
	case i64:
		g.body.op(opI64Const)
		g.body.s(int64(ints[g.IntN(len(ints))]))
	case f32:
		g.body.op(opF32Const)
		g.body = binary.LittleEndian.AppendUint32(g.body, bits32[g.IntN(len(bits32))])
	case f64:
		g.body.op(opF64Const)
		g.body = binary.LittleEndian.AppendUint64(g.body, bits64[g.IntN(len(bits64))])
	case v128:
		g.body.op(opVector, 12)
		if g.oneIn(2) {
			for range 4 {
				g.body = binary.LittleEndian.AppendUint32(g.body, bits32[g.IntN(len(bits32))])
			}
		} else {
			for range 2 {
				g.body = binary.LittleEndian.AppendUint64(g.body, bits64[g.IntN(len(bits64))])
			}
		}
	}
}

func (g *generator) zero(t byte) {
	switch t {
	case i32:
		g.body.op(opI32Const, 0)
	case i64:
		g.body.op(opI64Const, 0)
	case f32:
		g.body.op(opF32Const, 0, 0, 0, 0)
	case f64:
		g.body.op(opF64Const, 0, 0, 0, 0, 0, 0, 0, 0)
	case v128:
		g.body.op(opVector, 12)
		g.body.op(make([]byte, 16)...)
	}
}

// localOf returns a local of a type, if there is one.
func (g *generator) localOf(t byte) (uint64, bool) {
	if len(g.locals) == 0 {
		return 0, false
	}
	from := g.IntN(len(g.locals))
	for i := range g.locals {
		if at := (from + i) % len(g.locals); g.locals[at] == t {
			return uint64(at), true
		}
	}
	return 0, false
}

// leaf appends the end of an expression tree.
func (g *generator) leaf(t byte) {
	if local, ok := g.localOf(t); ok && g.oneIn(2) {
		g.body.op(opLocalGet)
		g.body.u(local)
		return
	}
	if g.oneIn(4) {
		g.body.op(opGlobalGet)
		g.body.u(g.globals[t][g.IntN(2)])
		return
	}
	g.constant(t)
}

// expression appends code that leaves a value of type t.
func (g *generator) expression(t byte) {
	if g.left--; g.left < 0 {
		g.leaf(t)
		return
	}
	switch n := g.IntN(100); {
	case n < 12:
		g.leaf(t)
	case n < 60:
		g.operator(t)
	case n < 68:
		g.address()
		g.access(loads[t][g.IntN(len(loads[t]))], g.Uint64N(256))
	case n < 73:
		g.tee(t)
	case n < 79:
		g.expression(t)
		g.expression(t)
		g.expression(i32)
		g.body.op(opSelect)
	case n < 84:
		g.choice(t)
	case n < 88:
		g.block(t)
	case n < 91:
		g.loop(t)
	case n < 94:
		g.branch(t)
	default:
		g.call(t)
	}
}

// operator appends an operator of the tables with its operands.
func (g *generator) operator(t byte) {
	risky := g.oneIn(riskyIn)
	for {
		o := &operatorTable[g.IntN(len(operatorTable))]
		if letterTypes[o.gives] != t || o.risky && !risky {
			if g.oneIn(40) && t != v128 || t == v128 && g.oneIn(400) {
				g.lane(t)
				return
			}
			continue
		}
		g.operands(o.takes)
		if o.prefix != 0 {
			g.body.op(o.prefix)
			g.body.u(uint64(o.first) + g.Uint64N(uint64(o.last-o.first)+1))
		} else {
			g.body.op(o.first + byte(g.IntN(int(o.last-o.first)+1)))
		}
		if g.spelled {
			g.spell(o.makes)
		}
		return
	}
}

func (g *generator) operands(letters string) {
	for i := range len(letters) {
		g.expression(letterTypes[letters[i]])
	}
}

// lane appends an operator that has lanes as immediates.
func (g *generator) lane(t byte) {
	if t == v128 && g.oneIn(3) {
		g.operands("vv")
		g.body.op(opVector, 13)
		for range 16 {
			g.body.op(byte(g.IntN(32)))
		}
		return
	}
	for {
		if o := laneOperators[g.IntN(len(laneOperators))]; letterTypes[o.gives] == t {
			g.operands(o.takes)
			g.body.op(opVector, o.code, byte(g.Uint64N(o.lanes)))
			return
		}
	}
}

// spell writes out what becomes of a NaN in the value on top: in another way
// than preparation does.
func (g *generator) spell(s shape) {
	if s == noNaN {
		return
	}
	var x code
	x.u(g.temps[s])
	get := append(code{opLocalGet}, x...)
	g.body.op(opLocalSet)
	g.body.op(x...)
	switch s {
	case nan32:
		g.body.op(opF32Const, 0, 0, 0xc0, 0x7f)
	case nan64:
		g.body.op(opF64Const, 0, 0, 0, 0, 0, 0, 0xf8, 0x7f)
	case nan32x4:
		g.body.op(opVector, 12, 0, 0, 0xc0, 0x7f, 0, 0, 0xc0, 0x7f, 0, 0, 0xc0, 0x7f, 0, 0, 0xc0, 0x7f)
	case nan64x2:
		g.body.op(opVector, 12, 0, 0, 0, 0, 0, 0, 0xf8, 0x7f, 0, 0, 0, 0, 0, 0, 0xf8, 0x7f)
	}
	for range 3 {
		g.body.op(get...)
	}
	g.body.op(map[shape][]byte{nan32: {0x5c, opSelect}, nan64: {0x62, opSelect},
		nan32x4: {opVector, 0x42, opVector, 0x52}, nan64x2: {opVector, 0x48, opVector, 0x52}}[s]...)
}

// address appends an address, nearly always one inside memory.
func (g *generator) address() {
	g.expression(i32)
	if !g.oneIn(riskyIn) {
		g.body.i32const(addressMask)
		g.body.op(opI32And)
	}
}

// access appends a load or store. Its alignment is a hint that may be wrong.
func (g *generator) access(op []byte, offset uint64) {
	g.body.op(op...)
	g.body.u(0)
	g.body.u(offset)
}

func (g *generator) tee(t byte) {
	g.expression(t)
	if local, ok := g.localOf(t); ok {
		g.body.op(opLocalTee)
		g.body.u(local)
	}
}

func (g *generator) enter(op, typ, label byte) {
	g.body.op(op, typ)
	g.labels = append(g.labels, label)
}

func (g *generator) leave() {
	g.body.op(opEnd)
	g.labels = g.labels[:len(g.labels)-1]
}

func (g *generator) choice(t byte) {
	g.expression(i32)
	g.enter(opIf, t, t)
	g.statements()
	g.expression(t)
	g.body.op(opElse)
	g.statements()
	g.expression(t)
	g.leave()
}

func (g *generator) block(t byte) {
	g.enter(opBlock, t, t)
	g.statements()
	g.expression(t)
	g.leave()
}

// loop appends a loop that goes on while its condition and the patience last.
func (g *generator) loop(t byte) {
	g.enter(opLoop, t, loopLabel)
	g.spend()
	g.statements()
	g.expression(t)
	g.expression(i32)
	g.body.op(opGlobalGet)
	g.body.u(g.patience)
	g.body.op(opI32Const, 0, opI32GtS, opI32And, opBrIf, 0)
	g.leave()
}

// branch appends a value that may leave an enclosing block instead.
func (g *generator) branch(t byte) {
	g.expression(t)
	for depth := range uint64(len(g.labels)) {
		if g.labels[uint64(len(g.labels))-1-depth] == t && g.oneIn(2) {
			g.expression(i32)
			g.body.op(opBrIf)
			g.body.u(depth)
			return
		}
	}
}

// call appends a call that gives one value: direct, through the table, deep, or
// of memory.size and memory.grow.
func (g *generator) call(t byte) {
	if t == i32 && g.oneIn(4) {
		g.odd()
		return
	}
	from := g.IntN(len(g.signatures))
	for n := range g.signatures {
		i := (from + n) % len(g.signatures)
		s := g.signatures[i]
		if s.results != string([]byte{t}) {
			continue
		}
		for k := range len(s.params) {
			g.expression(s.params[k])
		}
		if g.oneIn(2) {
			g.body.op(opCall)
			g.body.u(g.functions + uint64(i))
			return
		}
		g.body.i32const(int32(i))
		if g.oneIn(30) {
			g.expression(i32)
			g.body.op(opI32Const, 15, opI32And, opI32Add)
		}
		g.body.op(opCallIndirect)
		g.body.u(g.m.typeIndex(s))
		g.body.op(0)
		return
	}
	g.leaf(t)
}

// odd appends one of the rarer instructions that give an i32.
func (g *generator) odd() {
	switch g.IntN(8) {
	case 0:
		depths := []int32{1, 40, 500, 1500, 1637, 1638, 1639, 3000}
		depth := depths[g.IntN(3)]
		if g.oneIn(8) {
			depth = depths[g.IntN(len(depths))]
		}
		g.body.i32const(depth)
		g.body.op(opCall)
		g.body.u(g.plunge)
	case 1, 2:
		g.body.op(opMemorySize, 0)
	case 3:
		g.expression(i32)
		g.body.op(opI32Const, 1, opI32And, opMemoryGrow, 0)
	case 4:
		g.expression(i32)
		g.body.op(opMemoryGrow, 0)
	case 5:
		g.body.op(0xfc, 16, 0) // table.size
	case 6:
		g.body.op(opRefFunc)
		g.body.u(g.functions)
		g.expression(i32)
		g.body.op(opI32Const, 3, opI32And, 0xfc, 15, 0) // table.grow
	case 7:
		g.address()
		g.body.op(opI32Const, 8, opCall)
		g.body.u(g.fill)
	}
}
