package prepare

import "slices"

// Fuel costs. They are part of the profile: a change is a new profile.
const (
	costInstruction = 1  // every instruction but block, loop, else, end and nop
	costLoop        = 1  // each pass through a loop header, beside its instructions
	costCall        = 2  // each entry into a function, beside its instructions
	localsPerFuel   = 8  // locals that are set to zero at an entry for one unit
	bytesPerFuel    = 16 // bytes a bulk instruction works on for one unit
	fuelPerPage     = 65536 / bytesPerFuel
	fuelPerEntry    = 1  // table entries a bulk instruction works on
	costMerged      = 12 // cost of small blocks that is paid with the block before them, in all
	costUnchecked   = 64 // a body of at most this cost that calls nothing does not look whether fuel is left
)

// editKind says what an edit puts into a body.
type editKind uint8

const (
	editIndex   editKind = iota // a function index in place of the original one
	editLabel                   // a label, value before preparation, of a branch out of the loops inside loop to
	editCharge                  // take value units of fuel; nothing where value is zero
	editEntry                   // the charge at the start of a body
	editHeader                  // the charge at a loop header
	editCheck                   // call refill if the fuel is below zero
	editHelper                  // call helper number value, which charges by the operand on top of the stack
	editLoop                    // before a loop whose header ends at value
	editEnd                     // after the end of a loop
	editGroups                  // the number of local groups, value without those added
	editLocals                  // the local groups added
	editCall                    // tell the function called what is left of the stack budget
	editSegment                 // the empty data segment in place of an active one
	editNaN                     // make the operand on top canonical, as site number to says
)

// edit replaces the bytes from at to end of the original.
type edit struct {
	at, end int
	kind    editKind
	value   uint64
	loop    int    // the innermost loop around, as an index in body.loops, or noLoop
	to      int    // of a label: the innermost loop around the code inside the target; of an editNaN: its site
	before  int    // of an editCharge: the edit that charges for the block before it
	merged  uint64 // of the value: cost of small blocks after it
}

const noLoop = -1

// loop is a loop of a body. A quiet one calls nothing, not even inside an inner
// loop, so nothing but its own charges changes the fuel while it runs.
type loop struct {
	outer  int // index of the loop around, or noLoop
	depth  int // how many loops are around
	calls  bool
	params bool // it takes operands
	quiets int  // quiet loops among this one and those around it, set by settle
}

// body is how one function body is rewritten.
//
// Quiet loops are the hot ones, and two things would double the time of a short
// one: a charge that reads the global waits for the store of the charge before
// it, and a call to refill has engines spill what is alive across it at every
// pass. So in quiet loops the fuel is read from a local and written to both, and
// refill is called in a second loop around the first, to which the header
// branches when no fuel is left.
type body struct {
	edits      []edit // in order of position
	loops      []loop
	floats     floats
	locals     int    // the body's own, parameters included
	frameSlots uint64 // what a call of the body takes from the stack budget
	runs       bool   // the body calls something, if only a helper
	frames     bool   // the body calls a function that may call others
	blocks     uint64 // blocks and arms of ifs
	leaving    uint64 // calls before which the fuel is looked at
	lengths    uint64 // instructions that pay by their length

	// Set by settle.
	total uint64         // of all charges
	added []byte         // types of the locals added
	fuel  uint32         // local that holds the fuel in quiet loops and at the entry
	stack uint32         // local that holds what is left of the stack budget
	spare [shapes]uint32 // locals for operands that are made canonical
}

// checked reports whether the body looks at its start whether fuel is left.
// Small leaves need not: what calls them looks.
func (b *body) checked() bool { return b.runs || b.total > costUnchecked }

// settle is called when all of the body is known. It moves the costs of small
// blocks to the block they are surely entered from: one that is skipped is then
// paid for all the same, and code with many short branches is a third faster. A
// block takes over at most costMerged, whatever the number of blocks after it:
// the arms of a large switch must not all be paid at each pass.
func (b *body) settle() {
	b.total = 0
	for i := len(b.edits) - 1; i >= 0; i-- {
		e := &b.edits[i]
		switch {
		case e.kind == editCharge && b.edits[e.before].merged+e.value <= costMerged:
			b.edits[e.before].value += e.value
			b.edits[e.before].merged += e.value
			e.value = 0
		case e.kind == editCharge || e.kind == editEntry || e.kind == editHeader:
			b.total += e.value
		}
	}
	for i := range b.loops {
		l := &b.loops[i]
		l.quiets = b.quiets(l.outer)
		if !l.calls {
			l.quiets++
		}
	}
	b.floats.settle()
	b.addLocals()
}

// addLocals decides which locals the rewritten body needs beside its own.
func (b *body) addLocals() {
	b.added = b.added[:0]
	if b.hasQuiet() || b.frames {
		b.fuel = b.addLocal(i64)
	}
	if b.frames {
		b.stack = b.addLocal(i64)
	}
	var wanted [shapes]bool
	for _, s := range b.floats.sites {
		wanted[s.shape] = wanted[s.shape] || s.active && s.local == noLocal
	}
	for shape, typ := range [shapes]byte{shapeF32: f32, shapeF64: f64, shapeF32x4: v128, shapeF64x2: v128} {
		if wanted[shape] {
			b.spare[shape] = b.addLocal(typ)
		}
	}
}

func (b *body) addLocal(typ byte) uint32 {
	b.added = append(b.added, typ)
	return uint32(b.locals + len(b.added) - 1)
}

func (b *body) quiet(loop int) bool { return loop != noLoop && !b.loops[loop].calls }

func (b *body) quiets(loop int) int {
	if loop == noLoop {
		return 0
	}
	return b.loops[loop].quiets
}

func (b *body) hasQuiet() bool {
	return slices.ContainsFunc(b.loops, func(l loop) bool { return !l.calls })
}

// meterFrame is a control frame as the meter sees it.
type meterFrame struct {
	active int  // edit that pays for the instruction at hand
	lowest int  // the outermost frame a branch inside leads to
	around int  // the innermost loop around the frame
	inside int  // the innermost loop around the code in the frame
	dead   bool // the frame itself is in unreachable code
}

// meter collects the edits of one body. A charge stands where control may enter:
// at the body, a loop header, an arm of an if, and after a branch; it pays for
// every instruction that surely follows, also beyond the end of an inner block
// that no branch leaves early. So a trap cannot dodge a charge, and straight
// code pays once. Unreachable code has no charges. Only loop headers and bodies
// that call or are long look whether fuel is left: no long path avoids both. Calls
// that may leave the module look as well, so that the host never sees a debt.
type meter struct {
	body
	m     *module
	stack []meterFrame
	loop  int // the innermost loop at hand
}

// start begins a body. groups is where the number of its local groups stands,
// locals are its locals, the parameters first, and pos is where its instructions
// begin.
func (t *meter) start(groups span, count uint32, locals []byte, params, pos int) {
	t.edits, t.loops, t.stack = t.edits[:0], t.loops[:0], t.stack[:0]
	t.loop, t.locals, t.runs, t.frames = noLoop, len(locals), false, false
	t.blocks, t.leaving, t.lengths = 0, 0, 0
	t.floats.start(locals, params)
	t.add(edit{at: groups.start, end: groups.end, kind: editGroups, value: uint64(count)})
	t.add(edit{at: pos, end: pos, kind: editLocals})
	active := t.charge(pos, editEntry, uint64(costCall+len(locals)/localsPerFuel))
	t.stack = append(t.stack, meterFrame{active: active, around: noLoop, inside: noLoop})
}

func (t *meter) top() *meterFrame { return &t.stack[len(t.stack)-1] }

func (t *meter) add(e edit) int {
	e.loop = t.loop
	t.edits = append(t.edits, e)
	return len(t.edits) - 1
}

func (t *meter) charge(pos int, kind editKind, cost uint64) int {
	return t.add(edit{at: pos, end: pos, kind: kind, value: cost})
}

// block begins a block that is entered from the one that before pays for.
func (t *meter) block(pos, before int) int {
	return t.add(edit{at: pos, end: pos, kind: editCharge, before: before})
}

// plain pays for one instruction. dead says that the validator has found this
// place unreachable within its frame.
func (t *meter) plain(dead bool) {
	if f := t.top(); !dead && !f.dead {
		t.edits[f.active].value += costInstruction
	}
}

// next begins a new block in the frame at hand.
func (t *meter) next(pos int, dead bool) {
	if f := t.top(); !dead && !f.dead {
		f.active = t.block(pos, f.active)
	}
}

// enter begins the frame of the instruction at, whose body begins at pos.
func (t *meter) enter(op byte, at, pos int, params, dead bool) {
	t.blocks++
	f := meterFrame{active: t.top().active, lowest: len(t.stack), around: t.loop, dead: dead || t.top().dead}
	switch {
	case f.dead:
	case op == opLoop:
		t.loops = append(t.loops, loop{outer: t.loop, depth: t.depth(), params: params})
		t.loop = len(t.loops) - 1
		t.add(edit{at: at, end: at, kind: editLoop, value: uint64(pos)})
		f.active = t.charge(pos, editHeader, costLoop)
	case op == opIf:
		f.active = t.block(pos, f.active)
	}
	f.inside = t.loop
	t.stack = append(t.stack, f)
}

// elseArm begins the second arm of an if at pos.
func (t *meter) elseArm(pos int) {
	t.blocks++
	if f := t.top(); !f.dead {
		f.active = t.block(pos, t.stack[len(t.stack)-2].active)
	}
}

// branch notes a branch from the frame at hand to the frame with index target.
func (t *meter) branch(target int, dead bool) {
	if f := t.top(); !dead && !f.dead {
		f.lowest = min(f.lowest, target)
	}
}

// end leaves a frame at pos. Where a branch inside led further out, what follows
// does not surely run and begins a new charge.
func (t *meter) end(pos int) {
	f := *t.top()
	t.stack = t.stack[:len(t.stack)-1]
	index := len(t.stack)
	if index == 0 || f.dead {
		return
	}
	if f.inside != f.around {
		t.add(edit{at: pos, end: pos, kind: editEnd})
		if f.around != noLoop && t.loops[f.inside].calls {
			t.loops[f.around].calls = true
		}
		t.loop = f.around
	}
	outer := t.top()
	outer.lowest = min(outer.lowest, f.lowest)
	if f.lowest < index {
		outer.active = t.block(pos, outer.active)
	}
}

// depth is how many loops are around the place at hand.
func (t *meter) depth() int {
	if t.loop == noLoop {
		return 0
	}
	return t.loops[t.loop].depth + 1
}

// makesNaN notes that the instruction before pos may make a NaN.
func (t *meter) makesNaN(pos int, shape laneShape) source {
	return t.canonicalAt(pos, t.floats.makes(shape, t.depth()))
}

// readsLocal notes that the instruction before pos leaves a local's value.
func (t *meter) readsLocal(pos int, local uint32, typ byte) source {
	return t.canonicalAt(pos, t.floats.read(local, typ, t.depth()))
}

func (t *meter) canonicalAt(pos int, s source) source {
	if s > 0 {
		t.add(edit{at: pos, end: pos, kind: editNaN, to: int(s) - 1})
	}
	return s
}

// calls notes that the instruction at pos calls a function that may call others.
func (t *meter) calls(pos int, dead bool) {
	if !dead && !t.top().dead {
		t.frames = true
		t.add(edit{at: pos, end: pos, kind: editCall})
	}
}

// runsOther notes that other code runs here, which may charge as well.
func (t *meter) runsOther() {
	t.runs = true
	if t.loop != noLoop {
		t.loops[t.loop].calls = true
	}
}

// leaves has the fuel looked at before the instruction at pos.
func (t *meter) leaves(pos int, dead bool) {
	if !dead && !t.top().dead {
		t.leaving++
		t.add(edit{at: pos, end: pos, kind: editCheck})
	}
}

// label notes a label at s, also in unreachable code.
func (t *meter) label(s span, depth, target uint32) {
	if to := t.stack[target].inside; to != t.loop {
		t.add(edit{at: s.start, end: s.end, kind: editLabel, value: uint64(depth), to: to})
	}
}

// segment notes the index at s of an active data segment, if there is one.
func (t *meter) segment(s span) {
	if s == (span{}) {
		return
	}
	t.m.dropsActive = true
	t.add(edit{at: s.start, end: s.end, kind: editSegment})
}

// function notes a function index at s.
func (t *meter) function(s span, index uint32) {
	t.add(edit{at: s.start, end: s.end, kind: editIndex, value: uint64(t.m.moved(index))})
}

// length has a helper charge for the instruction at pos by its length operand.
func (t *meter) length(pos int, helper uint64, dead bool) {
	if !dead && !t.top().dead {
		t.lengths++
		t.runsOther()
		t.add(edit{at: pos, end: pos, kind: editHelper, value: helper})
	}
}
