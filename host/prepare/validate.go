package prepare

import (
	"fmt"
	"slices"
)

// frame is one entry of the control stack.
type frame struct {
	op              byte // opBlock, opLoop, opIf, opElse; opBlock for the function itself
	params, results []byte
	height          int // of the operand stack below the frame's operands
	unreachable     bool
}

// validator checks function bodies by the algorithm of the specification's
// appendix: a stack of operand types and a stack of control frames. It tells the
// meter of each instruction, so that charges and rewriting need no second pass.
type validator struct {
	m        *module
	r        *reader
	meter    *meter
	locals   []byte
	operands []byte
	sources  []source // of the operands
	height   int      // most operands so far
	wide     bool     // one of them was a v128
	frames   []frame
	targets  []uint32 // of the br_table at hand
}

// readCode reads and validates every body. Faults in a body do not stop the
// search: the next body starts where the section says.
func (m *module) readCode(r *reader) {
	n := m.vector(r, sectionCode, "functions_max", functionsMax)
	if r.fault == nil && int(n) != len(m.funcs)-m.imported {
		r.fail(r.pos, codeMalformed, "%d bodies for %d functions", n, len(m.funcs)-m.imported)
		return
	}
	if m.hasDataCount {
		m.active = m.activeSegments(r.end)
		defer func() { m.active = nil }()
	}
	v := &validator{m: m, meter: &meter{m: m}}
	for i := range n {
		at := r.pos
		size := r.u32()
		start := r.pos
		r.bytes(size, "a function body")
		index := uint32(m.imported) + i
		where := fmt.Sprintf("function %d", index)
		if r.fault == nil && size > bodyBytesMax {
			m.faults.add(at, codeAboveLimit, where, "body of %d bytes is above the limit body_bytes_max %d", size, bodyBytesMax)
			continue
		}
		if r.fault != nil {
			r.fault.Where = where
			return
		}
		if m.faults.full() {
			return
		}
		v.body(index, &reader{data: m.data, pos: start, end: r.pos})
		if v.r.fault != nil {
			v.r.fault.Where = where
			m.faults.put(*v.r.fault)
			continue
		}
		m.code.body(m, span{start, r.pos}, &v.meter.body)
		m.addWork(v.meter.work(len(v.locals)), index)
		m.addBulk(v.meter.lengths, index)
	}
}

func (v *validator) body(index uint32, r *reader) {
	t := v.m.typeOf(index)
	v.r = r
	v.operands, v.sources, v.frames = v.operands[:0], v.sources[:0], v.frames[:0]
	v.height, v.wide = 0, false
	groups, count := v.readLocals(t)
	v.meter.start(groups, count, v.locals, len(t.params), r.pos)
	v.push(opBlock, funcType{nil, t.results})
	for len(v.frames) > 0 && r.fault == nil {
		v.instruction()
	}
	v.meter.frameSlots = v.frameSlots()
	if r.fault == nil && r.pos != r.end {
		r.fail(r.pos, codeMalformed, "%d bytes are left over after the last end", r.end-r.pos)
	}
}

// frameSlots is what a call of the body takes from the stack budget: its
// parameters, locals and operands, where a v128 is two, and what a call itself
// needs.
func (v *validator) frameSlots() uint64 {
	slots := len(v.locals) + v.height + slotsPerCall
	for _, t := range v.locals {
		if t == v128 {
			slots++
		}
	}
	if v.wide {
		slots += v.height
	}
	return uint64(slots)
}

// readLocals returns where the number of local groups stands, and that number.
func (v *validator) readLocals(t funcType) (groups span, count uint32) {
	v.locals = append(v.locals[:0], t.params...)
	groups.start = v.r.pos
	count = v.r.count("body_bytes_max", bodyBytesMax)
	groups.end = v.r.pos
	total := uint64(0)
	for range count {
		at := v.r.pos
		n := v.r.u32()
		typ := v.m.valueType(v.r)
		total += uint64(n)
		if v.r.fault == nil && total > localsMax {
			v.r.fail(at, codeAboveLimit, "%d locals are above the limit locals_max %d", total, localsMax)
		}
		if v.r.fault != nil {
			return groups, count
		}
		for range n {
			v.locals = append(v.locals, typ)
		}
	}
	return groups, count
}

func (v *validator) top() *frame { return &v.frames[len(v.frames)-1] }

func (v *validator) push(op byte, t funcType) {
	if len(v.frames) > nestingMax {
		v.r.fail(v.r.pos, codeAboveLimit, "nesting is above the limit nesting_max %d", nestingMax)
		return
	}
	v.frames = append(v.frames, frame{op: op, params: t.params, results: t.results, height: len(v.operands)})
	v.give(t.params...)
}

func (v *validator) give(types ...byte) {
	for _, t := range types {
		v.giveFrom(t, sourceExact)
	}
}

// giveFrom pushes an operand that comes from s.
func (v *validator) giveFrom(t byte, s source) {
	v.operands, v.sources = append(v.operands, t), append(v.sources, s)
	v.height = max(v.height, len(v.operands))
	v.wide = v.wide || t == v128
}

// takeFrom pops an operand and says where it comes from.
func (v *validator) takeFrom() (byte, source) {
	f := v.top()
	last := len(v.operands) - 1
	if last < f.height {
		if !f.unreachable {
			v.r.fail(v.r.pos, codeType, "an operand is missing")
		}
		return unknown, sourceExact
	}
	t, s := v.operands[last], v.sources[last]
	v.operands, v.sources = v.operands[:last], v.sources[:last]
	return t, s
}

// take pops an operand whose bits can be observed.
func (v *validator) take() byte {
	t, s := v.takeFrom()
	v.meter.floats.observe(s)
	return t
}

// want pops an operand of a type whose bits can be observed.
func (v *validator) want(want byte) byte {
	got, s := v.wantFrom(want)
	v.meter.floats.observe(s)
	return got
}

// wantFrom pops an operand of a type and says where it comes from.
func (v *validator) wantFrom(want byte) (byte, source) {
	got, s := v.takeFrom()
	if got != want && got != unknown && want != unknown {
		v.r.fail(v.r.pos, codeType, "the operand has type %s and needs %s", typeName(got), typeName(want))
	}
	return got, s
}

// live reports whether the instruction at hand can be reached.
func (v *validator) live() bool { return !v.top().unreachable && !v.meter.top().dead }

func (v *validator) wantAll(types []byte) {
	for _, t := range slices.Backward(types) {
		v.want(t)
	}
}

func (v *validator) unreachable() {
	f := v.top()
	v.operands, v.sources = v.operands[:f.height], v.sources[:f.height]
	f.unreachable = true
}

// labelTypes are the operands a branch to f takes along.
func (f *frame) labelTypes() []byte {
	if f.op == opLoop {
		return f.params
	}
	return f.results
}

// label reads a label and returns its frame's index in v.frames.
func (v *validator) label() uint32 {
	at := v.r.pos
	depth := v.r.u32()
	if v.r.fault == nil && depth >= uint32(len(v.frames)) {
		v.r.fail(at, codeIndex, "label %d of %d", depth, len(v.frames))
	}
	if v.r.fault != nil {
		return 0
	}
	target := uint32(len(v.frames)) - 1 - depth
	v.meter.label(span{at, v.r.pos}, depth, target)
	return target
}

// blockType reads the type of a block.
func (v *validator) blockType() funcType {
	r := v.r
	if r.pos >= r.end || r.fault != nil {
		r.byte()
		return funcType{}
	}
	at, b := r.pos, r.data[r.pos]
	switch {
	case b == 0x40:
		r.pos++
		return funcType{}
	case b > 0x40 && b < 0x80:
		v.m.valueType(r)
		return funcType{nil, r.data[at : at+1]}
	}
	i := r.signed(33)
	if r.fault == nil && (i < 0 || i >= int64(len(v.m.types))) {
		r.fail(at, codeIndex, "type %d of %d types", i, len(v.m.types))
	}
	if r.fault != nil {
		return funcType{}
	}
	t := v.m.types[i]
	if len(t.params) > 0 {
		v.m.features.add(featureMultiValue)
	}
	return t
}

// instruction reads, checks and meters one instruction.
func (v *validator) instruction() {
	at := v.r.pos
	op := v.r.byte()
	if v.r.fault != nil {
		return
	}
	dead := v.top().unreachable
	switch {
	case op <= opCallIndirect:
		v.control(at, op, dead)
		return
	case op >= opFirstNumeric && op <= opLastNumeric:
		if op >= opFirstExtend {
			v.m.features.add(featureSignExtension)
		}
		blind, made := numericFloats(op)
		v.floating(numeric(op), blind, made, convertsToFloat(op))
	case op >= opFirstLoad && op <= opLastStore:
		v.loadOrStore(op)
	case op >= opLocalGet && op <= opTableSet:
		v.variable(op)
	case op == opPrefixBulk:
		v.bulk(at, dead)
	case op == opPrefixSIMD:
		v.simd(at)
	default:
		v.plain(at, op, dead)
	}
	v.meter.plain(dead)
}

// floating checks an operator that does not look at NaN bits of the shape
// blind, may make a NaN of the shape made, or, if clean, never gives one.
func (v *validator) floating(o numericOp, blind, made laneShape, clean bool) {
	for range o.arity {
		_, s := v.wantFrom(o.operand)
		v.meter.floats.use(s, blind)
	}
	switch {
	case made != shapeNone && v.live():
		v.giveFrom(o.result, v.meter.makesNaN(v.r.pos, made))
	case clean:
		v.giveFrom(o.result, sourceClean)
	default:
		v.give(o.result)
	}
}

// memory checks that there is a memory for an instruction.
func (v *validator) memory(at int) {
	if v.r.fault == nil && len(v.m.memories) == 0 {
		v.r.fail(at, codeIndex, "the instruction needs a memory and there is none")
	}
}

func (v *validator) memoryArgument(align byte) {
	at := v.r.pos
	a := v.r.u32()
	v.r.u32()
	switch {
	case v.r.fault != nil:
	case a&^0x3f == 0x40:
		v.r.fail(at, codeMultiMemory, "the instruction names a memory")
	case a > uint32(align):
		v.r.fail(at, codeInvalid, "alignment 2^%d is above the width 2^%d", a, align)
	}
	v.memory(at)
}

func (v *validator) loadOrStore(op byte) {
	o := memoryOps[op-opFirstLoad]
	v.memoryArgument(o.align)
	if op >= opFirstStore {
		v.want(o.typ)
		v.want(i32)
		return
	}
	v.want(i32)
	v.give(o.typ)
}

func (v *validator) variable(op byte) {
	at := v.r.pos
	i := v.r.u32()
	if v.r.fault != nil {
		return
	}
	switch op {
	case opLocalGet, opLocalSet, opLocalTee:
		if i >= uint32(len(v.locals)) {
			v.r.fail(at, codeIndex, "local %d of %d", i, len(v.locals))
			return
		}
		v.local(op, i)
	case opGlobalGet, opGlobalSet:
		if i >= uint32(len(v.m.globals)) {
			v.r.fail(at, codeIndex, "global %d of %d", i, len(v.m.globals))
			return
		}
		if op == opGlobalSet && !v.m.globals[i].mutable {
			v.r.fail(at, codeInvalid, "global %d is immutable", i)
		}
		v.getOrSet(v.m.globals[i].typ, op == opGlobalSet, op == opGlobalGet)
	default:
		v.m.features.add(featureReferenceTypes)
		elem := v.table(at, i)
		if op == opTableSet {
			v.want(elem)
			v.want(i32)
			return
		}
		v.want(i32)
		v.give(elem)
	}
}

// local checks an instruction on a local.
func (v *validator) local(op byte, i uint32) {
	t := v.locals[i]
	if op != opLocalGet {
		_, s := v.wantFrom(t)
		switch {
		case t == v128:
			v.meter.floats.observe(s)
		case v.live():
			v.meter.floats.assign(s, i)
		}
	}
	if op == opLocalSet {
		return
	}
	from := sourceExact
	if v.live() {
		from = v.meter.readsLocal(v.r.pos, i, t)
	}
	v.giveFrom(t, from)
}

func (v *validator) getOrSet(t byte, takes, gives bool) {
	if takes {
		v.want(t)
	}
	if gives {
		v.give(t)
	}
}

// table returns the element type of a table.
func (v *validator) table(at int, i uint32) byte {
	if v.r.fault == nil && i >= uint32(len(v.m.tables)) {
		v.r.fail(at, codeIndex, "table %d of %d", i, len(v.m.tables))
	}
	if v.r.fault != nil {
		return unknown
	}
	return v.m.tables[i].elem
}

// plain checks what has no family of its own.
func (v *validator) plain(at int, op byte, dead bool) {
	r := v.r
	switch op {
	case opDrop:
		v.takeFrom()
	case opSelect, opSelectTyped:
		v.selects(op)
	case opMemorySize, opMemoryGrow:
		v.memoryZero(at)
		if op == opMemoryGrow {
			v.want(i32)
			v.meter.length(at, helperPages, dead)
		}
		v.give(i32)
	case opI32Const:
		r.signed(32)
		v.give(i32)
	case opI64Const:
		r.signed(64)
		v.give(i64)
	case opF32Const:
		v.constantFloat(f32, isNaN32(r.bytes(4, "an f32 constant")))
	case opF64Const:
		v.constantFloat(f64, isNaN64(r.bytes(8, "an f64 constant")))
	case opRefNull:
		v.m.features.add(featureReferenceTypes)
		v.give(v.m.referenceType(r))
	case opRefIsNull:
		v.m.features.add(featureReferenceTypes)
		if t := v.take(); t != unknown && !isReference(t) {
			r.fail(at, codeType, "the operand has type %s and needs a reference", typeName(t))
		}
		v.give(i32)
	case opRefFunc:
		v.refFunc(dead)
	default:
		r.fail(at, refusedOpcode(op), "opcode 0x%02x is not on the allow-list", op)
	}
}

func (v *validator) constantFloat(t byte, isNaN bool) {
	if isNaN {
		v.give(t)
		return
	}
	v.giveFrom(t, sourceClean)
}

// memoryZero reads the memory index of an instruction, which is one zero byte.
func (v *validator) memoryZero(at int) {
	if b := v.r.byte(); v.r.fault == nil && b != 0 {
		v.r.fail(at, codeMultiMemory, "the instruction names memory %d", b)
	}
	v.memory(at)
}

func (v *validator) refFunc(dead bool) {
	v.m.features.add(featureReferenceTypes)
	at := v.r.pos
	i := v.r.u32()
	switch {
	case v.r.fault != nil:
	case i >= uint32(len(v.m.funcs)):
		v.r.fail(at, codeIndex, "function %d of %d", i, len(v.m.funcs))
	case !v.m.declared[i]:
		v.r.fail(at, codeInvalid, "function %d is not declared: ref.func needs it in an export, element or global", i)
	default:
		v.meter.function(span{at, v.r.pos}, i)
	}
	v.give(funcref)
}

func (v *validator) selects(op byte) {
	if op == opSelectTyped {
		v.m.features.add(featureReferenceTypes)
		n := v.r.count("select_types_max", selectTypesMax)
		if v.r.fault == nil && n != 1 {
			v.r.fail(v.r.pos, codeInvalid, "select has %d types and needs one", n)
		}
		t := v.m.valueType(v.r)
		v.want(i32)
		v.want(t)
		v.want(t)
		v.give(t)
		return
	}
	v.want(i32)
	b := v.take()
	a := v.take()
	switch {
	case isReference(a) || isReference(b):
		v.r.fail(v.r.pos, codeType, "select over references needs a type")
	case a != b && a != unknown && b != unknown:
		v.r.fail(v.r.pos, codeType, "select over %s and %s", typeName(a), typeName(b))
	}
	v.give(max(a, b)) // unknown is the smallest
}
