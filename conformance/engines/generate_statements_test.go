package engines_test

// statements appends none or a few statements.
func (g *generator) statements() {
	for range g.IntN(3) {
		g.statement()
	}
}

// statement appends code that leaves nothing.
func (g *generator) statement() {
	if g.left--; g.left < 0 {
		return
	}
	t := valueTypes[g.IntN(len(valueTypes))]
	switch n := g.IntN(100); {
	case n < 25:
		g.setLocal(t)
	case n < 35:
		g.expression(t)
		g.body.op(opGlobalSet)
		g.body.u(g.globals[t][g.IntN(2)])
	case n < 55:
		g.address()
		g.expression(t)
		g.access(stores[t][g.IntN(len(stores[t]))], g.Uint64N(256))
	case n < 60:
		g.expression(t)
		g.body.op(opDrop)
	case n < 68:
		g.expression(i32)
		g.enter(opIf, noType, noType)
		g.statements()
		g.body.op(opElse)
		g.statements()
		g.leave()
	case n < 73:
		g.enter(opBlock, noType, noType)
		g.statements()
		g.leaveEarly()
		g.statements()
		g.leave()
	case n < 77:
		g.jump()
	case n < 81:
		g.table()
	case n < 86:
		g.bulk()
	case n < 90:
		g.logBytes()
	case n < 93:
		g.laneAccess()
	default:
		g.callAny()
	}
}

func (g *generator) setLocal(t byte) {
	g.expression(t)
	if local, ok := g.localOf(t); ok {
		g.body.op(opLocalSet)
		g.body.u(local)
		return
	}
	g.body.op(opDrop)
}

// leaveEarly appends a br_if to the innermost block, which has no value.
func (g *generator) leaveEarly() {
	g.expression(i32)
	g.body.op(opBrIf, 0)
}

// jump appends, in an arm, a br or return or, rarely, an unreachable.
func (g *generator) jump() {
	g.expression(i32)
	g.enter(opIf, noType, noType)
	depth := g.IntN(len(g.labels))
	label := g.labels[len(g.labels)-1-depth]
	switch {
	case g.oneIn(riskyIn / 10):
		g.body.op(opUnreachable)
	case label == loopLabel || g.oneIn(6):
		for i := range len(g.result) {
			g.expression(g.result[i])
		}
		g.body.op(opReturn)
	default:
		if label != noType {
			g.expression(label)
		}
		g.body.op(opBr)
		g.body.u(uint64(depth))
	}
	if g.oneIn(4) { // code that is never reached
		g.statement()
	}
	g.leave()
}

// table appends a br_table of four blocks.
func (g *generator) table() {
	for range 4 {
		g.enter(opBlock, noType, noType)
	}
	g.expression(i32)
	g.body.op(opBrTable, 4)
	for range 5 {
		g.body.op(byte(g.IntN(4)))
	}
	for range 4 {
		g.leave()
		g.statements()
	}
}

// bulk appends memory.fill, memory.copy or a write to the table.
func (g *generator) bulk() {
	switch g.IntN(3) {
	case 0:
		g.address()
		g.expression(i32)
		g.small()
		g.body.op(0xfc, 11, 0)
	case 1:
		g.address()
		g.address()
		g.small()
		g.body.op(0xfc, 10, 0, 0)
	case 2:
		g.expression(i32)
		g.body.op(opI32Const, 15, opI32And, opRefFunc)
		g.body.u(g.functions + g.Uint64N(uint64(len(g.signatures))))
		g.body.op(0x26, 0) // table.set
	}
}

// small appends a length below 256.
func (g *generator) small() {
	g.expression(i32)
	g.body.i32const(255)
	g.body.op(opI32And)
}

func (g *generator) logBytes() {
	g.body.op(opI32Const, 0)
	g.address()
	g.expression(i32)
	g.body.op(opI32Const, 15, opI32And, opCall)
	g.body.u(g.log)
	g.body.op(opDrop)
}

// laneAccess appends a load or a store of one lane.
func (g *generator) laneAccess() {
	width := byte(g.IntN(4))
	g.address()
	g.expression(v128)
	store := g.oneIn(2)
	if store {
		g.body.op(opVector, 0x58+width, 0, 0)
	} else {
		g.body.op(opVector, 0x54+width, 0, 0)
	}
	g.body.op(byte(g.IntN(16 >> width)))
	if !store {
		g.body.op(opDrop)
	}
}

// callAny calls a function and keeps what results have a local of their type.
func (g *generator) callAny() {
	i := g.IntN(len(g.signatures))
	s := g.signatures[i]
	for k := range len(s.params) {
		g.expression(s.params[k])
	}
	g.body.op(opCall)
	g.body.u(g.functions + uint64(i))
	for k := len(s.results) - 1; k >= 0; k-- {
		if local, ok := g.localOf(s.results[k]); ok {
			g.body.op(opLocalSet)
			g.body.u(local)
		} else {
			g.body.op(opDrop)
		}
	}
}
