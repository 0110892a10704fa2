package prepare

import "slices"

// Section identifiers of the binary format.
const (
	sectionCustom    = 0
	sectionType      = 1
	sectionImport    = 2
	sectionFunction  = 3
	sectionTable     = 4
	sectionMemory    = 5
	sectionGlobal    = 6
	sectionExport    = 7
	sectionStart     = 8
	sectionElement   = 9
	sectionCode      = 10
	sectionData      = 11
	sectionDataCount = 12
	sectionTag       = 13
)

// External kinds of imports and exports.
const (
	kindFunction = 0
	kindTable    = 1
	kindMemory   = 2
	kindGlobal   = 3
)

func kindName(k byte) string {
	return [...]string{"function", "table", "memory", "global"}[k&3]
}

// span is a range of the original bytes.
type span struct{ start, end int }

// rules say which modules are admitted. The zero value is what guests meet; only
// tests that run other modules loosen it.
type rules struct {
	pagesMax  uint32 // of memory, from the plan's budget
	deep      bool   // the stack budget is the deep one
	anyImport bool   // imports are validated and not compared with the host calls
	anyExport bool   // required exports are not asked for
	anySize   bool   // externref is admitted, and any number of parameters and branch targets
}

type limits struct {
	min, max uint32
	hasMax   bool
	imported bool
}

type table struct {
	limits
	elem byte
}

type global struct {
	typ      byte
	mutable  bool
	imported bool
}

type importEntry struct {
	module, name string
	kind         byte
	typeIndex    uint32 // of a function
	offset       int
}

type exportEntry struct {
	name   string
	kind   byte
	index  uint32
	offset int
}

// module is what admission has read so far. Later sections are checked against
// earlier ones while they are read, so each byte is looked at once.
type module struct {
	rules  rules
	data   []byte
	faults faultList

	refused  map[string]bool // feature codes already reported
	features featureSet

	sections [sectionTag]span // content after the count, for sections that are vectors
	counts   [sectionTag]uint32

	types    []funcType
	imports  []importEntry
	funcs    []uint32 // type index of each function, imported ones first
	imported int      // how many of funcs are imported
	tables   []table
	memories []limits
	globals  []global
	exports  []exportEntry
	start    uint32
	hasStart bool

	elements     []byte // element type of each segment
	entries      int    // of all element segments
	hasDataCount bool
	dataCount    uint32
	active       []bool // of each data segment
	dropsActive  bool   // code names an active data segment
	work         uint64 // estimate of what compiling takes
	bulk         uint64 // instructions that pay by their length
	declared     []bool // functions that ref.func may name in a body
	metadata     []byte
	hasMetadata  bool

	inserted     Inserted
	elementEdits []edit
	globalEdits  []edit
	code         codeWriter
}

func newModule(data []byte, r rules) *module {
	return &module{rules: r, data: data, refused: map[string]bool{}}
}

// sectionRank orders the sections; the data count comes before the code.
var sectionRank = [sectionTag]int{sectionType: 1, sectionImport: 2, sectionFunction: 3, sectionTable: 4, sectionMemory: 5,
	sectionGlobal: 6, sectionExport: 7, sectionStart: 8, sectionElement: 9, sectionDataCount: 10, sectionCode: 11, sectionData: 12}

// read parses and validates the whole module. Faults are in m.faults.
func (m *module) read() {
	if !m.readHeader() {
		return
	}
	r := &reader{data: m.data, pos: 8, end: len(m.data)}
	rank := 0
	for !r.done() {
		at := r.pos
		id := r.byte()
		size := r.u32()
		content := r.pos
		r.bytes(size, "a section")
		if r.fault != nil {
			break
		}
		switch {
		case id == sectionTag:
			r.fail(at, codeExceptions, "the module has a tag section")
		case id > sectionTag:
			r.fail(at, codeMalformed, "section %d does not exist", id)
		case id != sectionCustom && sectionRank[id] <= rank:
			r.fail(at, codeMalformed, "section %d is repeated or out of order", id)
		}
		if r.fault != nil {
			break
		}
		rank = max(rank, sectionRank[id])
		if !m.readSection(id, &reader{data: m.data, pos: content, end: r.pos}) {
			return
		}
	}
	if r.fault != nil {
		m.faults.put(*r.fault)
		return
	}
	m.checkWhole()
}

// checkWhole checks what no single section can.
func (m *module) checkWhole() {
	if n := uint32(len(m.funcs) - m.imported); n != m.counts[sectionCode] {
		m.faults.add(len(m.data), codeMalformed, "code section", "%d bodies for %d functions", m.counts[sectionCode], n)
	}
	if m.hasDataCount && m.dataCount != m.counts[sectionData] {
		m.faults.add(len(m.data), codeMalformed, "data count section", "%d segments are announced and %d are there", m.dataCount, m.counts[sectionData])
	}
	if !m.rules.anyImport {
		m.checkImports()
	}
	if !m.rules.anyExport {
		m.checkExports()
	}
	m.checkForeign()
}

// readSection reads one section and reports whether reading can go on.
func (m *module) readSection(id byte, r *reader) bool {
	where, read := m.sectionReader(id)
	read(r)
	if r.fault == nil && r.pos != r.end {
		r.fail(r.pos, codeMalformed, "%d bytes are left over", r.end-r.pos)
	}
	if r.fault == nil {
		return true
	}
	if r.fault.Where == "" {
		r.fault.Where = where
	}
	m.faults.put(*r.fault)
	return false
}

func (m *module) sectionReader(id byte) (string, func(*reader)) {
	switch id {
	case sectionType:
		return "type section", m.readTypes
	case sectionImport:
		return "import section", m.readImports
	case sectionFunction:
		return "function section", m.readFunctions
	case sectionTable:
		return "table section", m.readTables
	case sectionMemory:
		return "memory section", m.readMemories
	case sectionGlobal:
		return "global section", m.readGlobals
	case sectionExport:
		return "export section", m.readExports
	case sectionStart:
		return "start section", m.readStart
	case sectionElement:
		return "element section", m.readElements
	case sectionCode:
		return "code section", m.readCode
	case sectionData:
		return "data section", m.readData
	case sectionDataCount:
		return "data count section", m.readDataCount
	}
	return "custom section", m.readCustom
}

// vector reads a section's count and remembers where its elements are.
func (m *module) vector(r *reader, id int, limit string, most uint32) uint32 {
	n := r.count(limit, most)
	m.counts[id] = n
	m.sections[id] = span{r.pos, r.end}
	return n
}

func (m *module) typeOf(function uint32) funcType { return m.types[m.funcs[function]] }

func (m *module) export(name string) (exportEntry, bool) {
	i := slices.IndexFunc(m.exports, func(e exportEntry) bool { return e.name == name })
	if i < 0 {
		return exportEntry{}, false
	}
	return m.exports[i], true
}
