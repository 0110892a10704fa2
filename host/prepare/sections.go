package prepare

import "fmt"

func (m *module) readTypes(r *reader) {
	n := m.vector(r, sectionType, "types_max", typesMax)
	m.types = make([]funcType, 0, n)
	for range n {
		at := r.pos
		if form := r.byte(); r.fault == nil && form != 0x60 {
			r.fail(at, typeCode(form), "0x%02x is not the form of a function type", form)
		}
		most := uint32(paramsMax)
		if m.rules.anySize {
			most = typesMax
		}
		t := funcType{m.typeList(r, "params_max", most), m.typeList(r, "results_max", resultsMax)}
		if r.fault != nil {
			return
		}
		if len(t.results) > 1 {
			m.features.add(featureMultiValue)
		}
		m.types = append(m.types, t)
	}
}

func (m *module) typeList(r *reader, limit string, most uint32) []byte {
	n := r.count(limit, most)
	start := r.pos
	for range n {
		m.valueType(r)
	}
	return m.data[start:r.pos]
}

// typeIndex reads the index of a function type.
func (m *module) typeIndex(r *reader) uint32 {
	at := r.pos
	i := r.u32()
	if r.fault == nil && i >= uint32(len(m.types)) {
		r.fail(at, codeIndex, "type %d of %d types", i, len(m.types))
		return 0
	}
	return i
}

func (m *module) readImports(r *reader) {
	n := m.vector(r, sectionImport, "imports_max", importsMax)
	for i := range n {
		e := importEntry{offset: r.pos}
		e.module, e.name = r.name("the import's module"), r.name("the import's name")
		at := r.pos
		e.kind = r.byte()
		switch {
		case r.fault != nil:
		case e.kind == kindFunction:
			e.typeIndex = m.typeIndex(r)
			m.funcs = append(m.funcs, e.typeIndex)
			m.imported++
		case e.kind == kindTable:
			m.addTable(r, true)
		case e.kind == kindMemory:
			m.addMemory(r, true)
		case e.kind == kindGlobal:
			g := m.globalType(r)
			g.imported = true
			if g.mutable {
				m.features.add(featureMutableGlobals)
			}
			m.globals = append(m.globals, g)
		case e.kind == 4:
			r.fail(at, codeExceptions, "a tag is imported")
		default:
			r.fail(at, codeMalformed, "0x%02x is not a kind of import", e.kind)
		}
		if r.fault != nil {
			r.fault.Where = fmt.Sprintf("import %d", i)
			return
		}
		m.imports = append(m.imports, e)
	}
}

func (m *module) readFunctions(r *reader) {
	n := m.vector(r, sectionFunction, "functions_max", functionsMax)
	if total := int(n) + m.imported; r.fault == nil && total > functionsMax {
		r.fail(r.pos, codeAboveLimit, "%d is above the limit functions_max %d", total, functionsMax)
	}
	for range n {
		i := m.typeIndex(r)
		if r.fault != nil {
			return
		}
		m.funcs = append(m.funcs, i)
	}
	m.declared = make([]bool, len(m.funcs))
}

// limits reads a limits pair. Flags of later proposals are refused by name.
func (m *module) limits(r *reader, memory bool) limits {
	at := r.pos
	flags := r.byte()
	switch {
	case r.fault != nil || flags <= 1:
	case memory && flags <= 3:
		r.fail(at, codeThreads, "the memory is shared")
	case flags >= 4 && flags <= 7:
		r.fail(at, codeMemory64, "the limits are 64 bits wide")
	default:
		r.fail(at, codeMalformed, "0x%02x are not flags of limits", flags)
	}
	l := limits{min: r.u32(), hasMax: flags == 1}
	if l.hasMax {
		l.max = r.u32()
		if r.fault == nil && l.max < l.min {
			m.faults.add(at, codeInvalid, "", "the maximum %d is below the minimum %d", l.max, l.min)
		}
	}
	return l
}

func (m *module) readTables(r *reader) {
	for range m.vector(r, sectionTable, "tables_max", tablesMax) {
		m.addTable(r, false)
	}
}

func (m *module) addTable(r *reader, imported bool) {
	at := r.pos
	elem := m.valueType(r)
	if r.fault == nil && !isReference(elem) {
		r.fail(at, codeMalformed, "%s is not a type of table elements", typeName(elem))
	}
	t := table{m.limits(r, false), elem}
	t.imported = imported
	if r.fault != nil {
		return
	}
	if t.min > tableEntriesMax {
		m.faults.add(at, codeAboveLimit, fmt.Sprintf("table %d", len(m.tables)), "minimum %d is above the limit table_entries_max %d", t.min, tableEntriesMax)
	}
	if m.tables = append(m.tables, t); len(m.tables) == 2 {
		m.features.add(featureReferenceTypes)
	}
	if len(m.tables) == tablesMax+1 {
		m.faults.add(at, codeAboveLimit, "", "more tables than the limit tables_max %d", tablesMax)
	}
}

func (m *module) readMemories(r *reader) {
	for range m.vector(r, sectionMemory, "memory section entries", 1024) {
		m.addMemory(r, false)
	}
}

func (m *module) addMemory(r *reader, imported bool) {
	at := r.pos
	l := m.limits(r, true)
	l.imported = imported
	if r.fault != nil {
		return
	}
	switch {
	case l.min > 1<<16 || l.max > 1<<16:
		m.faults.add(at, codeInvalid, "memory", "limits are above 65536 pages")
	case l.min > m.rules.pagesMax:
		m.faults.add(at, codeAboveLimit, "memory", "minimum of %d pages is above the limit memory_bytes %d (%d pages)",
			l.min, uint64(m.rules.pagesMax)<<16, m.rules.pagesMax)
	}
	if m.memories = append(m.memories, l); len(m.memories) > memoriesMax {
		m.refuseFeature(at, codeMultiMemory)
	}
}

func (m *module) globalType(r *reader) global {
	g := global{typ: m.valueType(r)}
	at := r.pos
	mutable := r.byte()
	if r.fault == nil && mutable > 1 {
		r.fail(at, codeMalformed, "0x%02x is not a mutability", mutable)
	}
	g.mutable = mutable == 1
	return g
}

func (m *module) readGlobals(r *reader) {
	n := m.vector(r, sectionGlobal, "globals_max", globalsMax)
	for range n {
		g := m.globalType(r)
		m.constant(r, g.typ, &m.globalEdits)
		if r.fault != nil {
			r.fault.Where = fmt.Sprintf("global %d", len(m.globals))
			return
		}
		m.globals = append(m.globals, g)
	}
}

func (m *module) readExports(r *reader) {
	n := m.vector(r, sectionExport, "exports_max", exportsMax)
	names := make(map[string]bool, n)
	for i := range n {
		where := fmt.Sprintf("export %d", i)
		e := exportEntry{offset: r.pos}
		e.name, e.kind, e.index = r.name("the export's name"), r.byte(), r.u32()
		if r.fault == nil && e.kind > kindGlobal {
			r.fail(e.offset, codeMalformed, "0x%02x is not a kind of export", e.kind)
		}
		if r.fault != nil {
			r.fault.Where = where
			return
		}
		if space := m.space(e.kind); e.index >= uint32(space) {
			m.faults.add(e.offset, codeIndex, where, "%s %d of %d", kindName(e.kind), e.index, space)
			continue
		}
		if names[e.name] {
			m.faults.add(e.offset, codeInvalid, where, "the name %.80q is exported twice", e.name)
		}
		names[e.name] = true
		switch {
		case e.kind == kindFunction:
			m.declare(e.index)
		case e.kind == kindGlobal && m.globals[e.index].mutable:
			m.features.add(featureMutableGlobals)
		}
		m.exports = append(m.exports, e)
	}
}

// space returns the size of an index space.
func (m *module) space(kind byte) int {
	switch kind {
	case kindFunction:
		return len(m.funcs)
	case kindTable:
		return len(m.tables)
	case kindMemory:
		return len(m.memories)
	}
	return len(m.globals)
}

// declare notes that ref.func may name a function in a body.
func (m *module) declare(function uint32) {
	if m.declared == nil {
		m.declared = make([]bool, len(m.funcs))
	}
	m.declared[function] = true
}

func (m *module) readStart(r *reader) {
	at := r.pos
	m.start = r.u32()
	if r.fault != nil {
		return
	}
	if m.start >= uint32(len(m.funcs)) {
		m.faults.add(at, codeIndex, "start section", "function %d of %d", m.start, len(m.funcs))
		return
	}
	m.hasStart = true
	if t := m.typeOf(m.start); len(t.params)+len(t.results) > 0 {
		m.faults.add(at, codeInvalid, "start section", "the start function has type %s and needs () -> ()", t)
	}
}

func (m *module) readDataCount(r *reader) {
	at := r.pos
	m.dataCount = r.u32()
	m.hasDataCount = true
	m.features.add(featureBulkMemory)
	if r.fault == nil && m.dataCount > dataSegmentsMax {
		r.fail(at, codeAboveLimit, "%d is above the limit data_segments_max %d", m.dataCount, dataSegmentsMax)
	}
}

func (m *module) readCustom(r *reader) {
	at := r.pos
	name := r.name("the custom section's name")
	content := r.bytes(uint32(r.end-r.pos), "a custom section")
	if r.fault != nil || name != metadataSection {
		return
	}
	where := "custom section " + metadataSection
	switch {
	case m.hasMetadata:
		m.faults.add(at, codeMetadataRepeated, where, "the section is there a second time")
	case len(content) > metadataBytesMax:
		m.faults.add(at, codeAboveLimit, where, "%d bytes are above the limit metadata_bytes_max %d", len(content), metadataBytesMax)
	}
	m.hasMetadata = true
	m.metadata = content
}
