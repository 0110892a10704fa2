package prepare

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
	editIndex  editKind = iota // a function index in place of the original one
	editCharge                 // take value units of fuel; nothing where value is zero
	editHelper                 // call helper number value, which charges by the operand on top of the stack
)

// edit replaces the bytes from at to end of the original.
type edit struct {
	at, end int
	kind    editKind
	value   uint64
}

// meterFrame is a control frame as the meter sees it.
type meterFrame struct {
	active int  // edit that pays for the instruction at hand
	lowest int  // the outermost frame a branch inside leads to
	dead   bool // the frame itself is in unreachable code
}

// meter collects the edits of one body. A charge stands where control may enter:
// at the body, a loop header, an arm of an if, and after a branch; it pays for
// every instruction that surely follows, also beyond the end of an inner block
// that no branch leaves early. So a trap cannot dodge a charge, and straight
// code pays once. Unreachable code has no charges.
type meter struct {
	m      *module
	edits  []edit
	frames []meterFrame
}

// start begins a body whose instructions begin at pos.
func (t *meter) start(pos, locals int) {
	t.edits, t.frames = t.edits[:0], t.frames[:0]
	t.frames = append(t.frames, meterFrame{active: t.charge(pos, uint64(costCall+locals/localsPerFuel))})
}

func (t *meter) top() *meterFrame { return &t.frames[len(t.frames)-1] }

func (t *meter) charge(pos int, cost uint64) int {
	t.edits = append(t.edits, edit{at: pos, end: pos, kind: editCharge, value: cost})
	return len(t.edits) - 1
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
		f.active = t.charge(pos, 0)
	}
}

// enter begins a frame whose instructions begin at pos.
func (t *meter) enter(op byte, pos int, dead bool) {
	f := meterFrame{active: t.top().active, lowest: len(t.frames), dead: dead || t.top().dead}
	if !f.dead {
		switch op {
		case opLoop:
			f.active = t.charge(pos, costLoop)
		case opIf:
			f.active = t.charge(pos, 0)
		}
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
	outer := t.top()
	outer.lowest = min(outer.lowest, f.lowest)
	if f.lowest < index {
		outer.active = t.charge(pos, 0)
	}
}

// function notes a function index at s.
func (t *meter) function(s span, index uint32) {
	t.edits = append(t.edits, edit{at: s.start, end: s.end, kind: editIndex, value: uint64(t.m.moved(index))})
}

// length has a helper charge for the instruction at pos by its length operand.
func (t *meter) length(pos int, helper uint64, dead bool) {
	if !dead && !t.top().dead {
		t.edits = append(t.edits, edit{at: pos, end: pos, kind: editHelper, value: helper})
	}
}
