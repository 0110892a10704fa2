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
	fuelPerEntry    = 1 // table entries a bulk instruction works on
)

// editKind says what an edit puts into a body.
type editKind uint8

const (
	editIndex   editKind = iota // a function index in place of the original one
	editCharge                  // take value units of fuel; nothing where value is zero
	editChecked                 // as editCharge, and call refill if that leaves less than zero
	editCheck                   // call refill if the fuel is below zero
	editHelper                  // call helper number value, which charges by the operand on top of the stack
	editLoad                    // before a quiet loop that is in no other: copy the fuel into the local
	editGroups                  // the number of local groups, value without the one for the fuel
	editLocal                   // the local group for the fuel
)

// edit replaces the bytes from at to end of the original.
type edit struct {
	at, end int
	kind    editKind
	value   uint64
	loop    int // the innermost loop around, as an index in body.loops, or noLoop
}

const noLoop = -1

// loop is a loop of a body. A quiet one calls nothing, not even inside an inner
// loop, so nothing but its own charges changes the fuel while it runs.
type loop struct {
	outer int // index of the loop around, or noLoop
	calls bool
}

// body is how one function body is rewritten. In quiet loops the fuel is read
// from a local and written to both: a charge that had to read the global again
// would wait for the last charge's store, which doubles the time of short loops.
type body struct {
	edits []edit // in order of position
	loops []loop
	local uint32 // index of the local that holds the fuel in quiet loops
}

func (b *body) quiet(loop int) bool { return loop != noLoop && !b.loops[loop].calls }

func (b *body) hasQuiet() bool {
	return slices.ContainsFunc(b.loops, func(l loop) bool { return !l.calls })
}

// meterFrame is a control frame as the meter sees it.
type meterFrame struct {
	active int  // edit that pays for the instruction at hand
	lowest int  // the outermost frame a branch inside leads to
	loop   int  // the innermost loop around the frame
	dead   bool // the frame itself is in unreachable code
}

// meter collects the edits of one body. A charge stands where control may enter:
// at the body, a loop header, an arm of an if, and after a branch; it pays for
// every instruction that surely follows, also beyond the end of an inner block
// that no branch leaves early. So a trap cannot dodge a charge, and straight
// code pays once. Unreachable code has no charges. Only the charges at bodies and
// loop headers look whether fuel is left: no path without end avoids both. Calls
// that may leave the module look as well, so that the host never sees a debt.
type meter struct {
	body
	m      *module
	frames []meterFrame
	loop   int // the innermost loop at hand
}

// start begins a body. groups is where the number of its local groups stands,
// locals how many locals it has, and pos where its instructions begin.
func (t *meter) start(groups span, count uint32, locals, pos int) {
	t.edits, t.loops, t.frames = t.edits[:0], t.loops[:0], t.frames[:0]
	t.loop, t.local = noLoop, uint32(locals)
	t.add(edit{at: groups.start, end: groups.end, kind: editGroups, value: uint64(count)})
	t.add(edit{at: pos, end: pos, kind: editLocal})
	active := t.charge(pos, editChecked, uint64(costCall+locals/localsPerFuel))
	t.frames = append(t.frames, meterFrame{active: active, loop: noLoop})
}

func (t *meter) top() *meterFrame { return &t.frames[len(t.frames)-1] }

func (t *meter) add(e edit) int {
	e.loop = t.loop
	t.edits = append(t.edits, e)
	return len(t.edits) - 1
}

func (t *meter) charge(pos int, kind editKind, cost uint64) int {
	return t.add(edit{at: pos, end: pos, kind: kind, value: cost})
}

// plain pays for one instruction. dead says that the validator has found this
// place unreachable within its frame.
func (t *meter) plain(dead bool) {
	if f := t.top(); !dead && !f.dead {
		t.edits[f.active].value += costInstruction
	}
}

// next begins a new charge in the frame at hand.
func (t *meter) next(pos int, dead bool) {
	if f := t.top(); !dead && !f.dead {
		f.active = t.charge(pos, editCharge, 0)
	}
}

// enter begins the frame of the instruction at, whose body begins at pos.
func (t *meter) enter(op byte, at, pos int, dead bool) {
	f := meterFrame{active: t.top().active, lowest: len(t.frames), loop: t.loop, dead: dead || t.top().dead}
	switch {
	case f.dead:
	case op == opLoop:
		t.loops = append(t.loops, loop{outer: t.loop})
		t.loop = len(t.loops) - 1
		t.add(edit{at: at, end: at, kind: editLoad})
		f.active = t.charge(pos, editChecked, costLoop)
	case op == opIf:
		f.active = t.charge(pos, editCharge, 0)
	}
	t.frames = append(t.frames, f)
}

// elseArm begins the second arm of an if at pos.
func (t *meter) elseArm(pos int) { t.next(pos, false) }

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
	t.frames = t.frames[:len(t.frames)-1]
	index := len(t.frames)
	if index == 0 || f.dead {
		return
	}
	if t.loop != f.loop {
		if f.loop != noLoop && t.loops[t.loop].calls {
			t.loops[f.loop].calls = true
		}
		t.loop = f.loop
	}
	outer := t.top()
	outer.lowest = min(outer.lowest, f.lowest)
	if f.lowest < index {
		outer.active = t.charge(pos, editCharge, 0)
	}
}

// calls notes that other code runs here, which may charge as well.
func (t *meter) calls() {
	if t.loop != noLoop {
		t.loops[t.loop].calls = true
	}
}

// leaves has the fuel looked at before the instruction at pos.
func (t *meter) leaves(pos int, dead bool) {
	if !dead && !t.top().dead {
		t.add(edit{at: pos, end: pos, kind: editCheck})
	}
}

// function notes a function index at s.
func (t *meter) function(s span, index uint32) {
	t.add(edit{at: s.start, end: s.end, kind: editIndex, value: uint64(t.m.moved(index))})
}

// length has a helper charge for the instruction at pos by its length operand.
func (t *meter) length(pos int, helper uint64, dead bool) {
	if !dead && !t.top().dead {
		t.calls()
		t.add(edit{at: pos, end: pos, kind: editHelper, value: helper})
	}
}
