package prepare

import "fmt"

// What compiling a body takes, measured on both compilers, grows with the square
// of its blocks and calls and with what each merge of control flow has to do with
// each local. compileWorkMax is some twenty seconds of the slower one for the worst shape known. It does not
// hold every shape: branches that all bring other values to one place are dearer
// than a count can say without refusing honest code. So hosts compile under a
// limit of time and memory as well.
const (
	compileWorkMax      = 3_000_000 // of one module
	bulkInstructionsMax = 100_000   // that pay by their length, of one module
	blocksPerWork       = 50
	callsPerWork        = 20
)

// work estimates what compiling the body, settled, takes.
func (t *meter) work(locals int) uint64 {
	loops, blocks := uint64(len(t.loops)), t.blocks
	if t.floats.active <= nanBranchesMax {
		blocks += uint64(t.floats.active)
	}
	return blocks*blocks/blocksPerWork + t.leaving*t.leaving/callsPerWork + loops*loops + (blocks+t.leaving+loops)*uint64(locals)
}

// addWork adds the estimate of a function's body.
func (m *module) addWork(work uint64, function uint32) {
	before := m.work
	if m.work += work; before <= compileWorkMax && m.work > compileWorkMax {
		m.faults.add(m.sections[sectionCode].start, codeAboveLimit, fmt.Sprintf("function %d", function),
			"the functions up to this one take %d units to compile, above the limit compile_work_max %d", m.work, uint64(compileWorkMax))
	}
}

// addBulk counts the instructions of a body that pay by their length.
func (m *module) addBulk(n uint64, function uint32) {
	before := m.bulk
	if m.bulk += n; before <= bulkInstructionsMax && m.bulk > bulkInstructionsMax {
		m.faults.add(m.sections[sectionCode].start, codeAboveLimit, fmt.Sprintf("function %d", function),
			"the functions up to this one have %d bulk instructions, above the limit bulk_instructions_max %d", m.bulk, uint64(bulkInstructionsMax))
	}
}
