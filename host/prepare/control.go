package prepare

// control checks and meters the structured control instructions and calls.
func (v *validator) control(at int, op byte, dead bool) {
	switch op {
	case opUnreachable:
		v.unreachable()
		v.meter.plain(dead)
	case opNop:
	case opBlock, opLoop, opIf:
		v.enter(at, op, dead)
	case opElse:
		v.elseArm(at)
	case opEnd:
		v.end()
	case opBr:
		target := v.label()
		v.wantAll(v.frames[target].labelTypes())
		v.branch(target, dead)
		v.unreachable()
	case opBrIf:
		target := v.label()
		v.want(i32)
		types := v.frames[target].labelTypes()
		v.wantAll(types)
		v.give(types...)
		v.branch(target, dead)
		v.meter.next(v.r.pos, dead)
	case opBrTable:
		v.branchTable(dead)
	case opReturn:
		v.wantAll(v.frames[0].results)
		v.branch(0, dead)
		v.unreachable()
	case opCall, opCallIndirect:
		v.call(at, op, dead)
	default:
		v.r.fail(at, refusedOpcode(op), "opcode 0x%02x is not on the allow-list", op)
	}
}

// branch meters one branch instruction.
func (v *validator) branch(target uint32, dead bool) {
	v.meter.plain(dead)
	v.meter.branch(int(target), dead)
}

func (v *validator) enter(at int, op byte, dead bool) {
	t := v.blockType()
	if op == opIf {
		v.want(i32)
		v.meter.plain(dead)
	}
	v.wantAll(t.params)
	v.push(op, t)
	v.meter.enter(op, at, v.r.pos, len(t.params) > 0, dead)
}

// finish closes the innermost frame and returns it.
func (v *validator) finish() frame {
	f := *v.top()
	v.wantAll(f.results)
	if v.r.fault == nil && len(v.operands) != f.height {
		v.r.fail(v.r.pos, codeType, "%d operands are left over at the end of a block", len(v.operands)-f.height)
	}
	v.frames = v.frames[:len(v.frames)-1]
	return f
}

func (v *validator) elseArm(at int) {
	f := v.finish()
	if v.r.fault == nil && f.op != opIf {
		v.r.fail(at, codeMalformed, "else without if")
	}
	if v.r.fault != nil {
		return
	}
	v.push(opElse, funcType{f.params, f.results})
	v.meter.elseArm(v.r.pos)
}

func (v *validator) end() {
	f := v.finish()
	if v.r.fault == nil && f.op == opIf && string(f.params) != string(f.results) {
		v.r.fail(v.r.pos, codeType, "if without else has parameters (%s) and results (%s)", typeNames(f.params), typeNames(f.results))
	}
	v.give(f.results...)
	v.meter.end(v.r.pos)
}

func (v *validator) branchTable(dead bool) {
	v.want(i32)
	most := uint32(branchTargetsMax)
	if v.m.rules.anySize {
		most = bodyBytesMax
	}
	n := v.r.count("branch_targets_max", most)
	v.targets = v.targets[:0]
	for range n + 1 {
		v.targets = append(v.targets, v.label())
	}
	if v.r.fault != nil {
		return
	}
	v.meter.plain(dead)
	arity := len(v.frames[v.targets[n]].labelTypes())
	for _, target := range v.targets {
		types := v.frames[target].labelTypes()
		if len(types) != arity {
			v.r.fail(v.r.pos, codeType, "the targets of br_table take %d and %d operands", len(types), arity)
			return
		}
		v.matches(types)
		v.meter.branch(int(target), dead)
	}
	v.unreachable()
}

// matches checks the topmost operands against types and leaves them.
func (v *validator) matches(types []byte) {
	f := v.top()
	for i := range types {
		want := types[len(types)-1-i]
		at := len(v.operands) - 1 - i
		switch {
		case at < f.height && f.unreachable:
			return
		case at < f.height:
			v.r.fail(v.r.pos, codeType, "an operand is missing")
			return
		case v.operands[at] != want && v.operands[at] != unknown:
			v.r.fail(v.r.pos, codeType, "the operand has type %s and needs %s", typeName(v.operands[at]), typeName(want))
			return
		}
		v.meter.floats.observe(v.sources[at])
	}
}

func (v *validator) call(instruction int, op byte, dead bool) {
	at := v.r.pos
	var t funcType
	if op == opCallIndirect {
		i := v.m.typeIndex(v.r)
		tableAt := v.r.pos
		index := v.r.u32()
		if index != 0 {
			v.m.features.add(featureReferenceTypes)
		}
		if elem := v.table(tableAt, index); v.r.fault == nil && elem != funcref {
			v.r.fail(tableAt, codeType, "call_indirect through a table of %s", typeName(elem))
		}
		if v.r.fault != nil {
			return
		}
		t = v.m.types[i]
		v.want(i32)
		v.meter.leaves(instruction, dead)
		v.meter.calls(instruction, dead)
	} else {
		i := v.r.u32()
		if v.r.fault == nil && i >= uint32(len(v.m.funcs)) {
			v.r.fail(at, codeIndex, "function %d of %d", i, len(v.m.funcs))
		}
		if v.r.fault != nil {
			return
		}
		t = v.m.typeOf(i)
		if i < uint32(v.m.imported) {
			v.meter.leaves(instruction, dead)
		} else {
			v.meter.calls(instruction, dead)
		}
		v.meter.function(span{at, v.r.pos}, i)
	}
	v.wantAll(t.params)
	v.give(t.results...)
	v.meter.runsOther()
	v.meter.plain(dead)
}
