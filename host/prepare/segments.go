package prepare

import "fmt"

// constant reads a constant expression of type want. It returns the value of an
// i32.const; known is false where the value is not in the module itself.
// Function indices in it are noted in edits, because preparation moves functions.
func (m *module) constant(r *reader, want byte, edits *[]edit) (value uint32, known bool) {
	start := r.pos
	var got []byte
	for {
		at := r.pos
		op := r.byte()
		if r.fault != nil {
			return 0, false
		}
		switch op {
		case opEnd:
			if len(got) != 1 || got[0] != want {
				m.faults.add(start, codeType, "", "constant expression has type (%s) and needs %s", typeNames(got), typeName(want))
			}
			return value, known
		case opI32Const:
			value, known = uint32(r.signed(32)), true
			got = append(got, i32)
		case opRefFunc:
			got = append(got, funcref)
			m.functionIndex(r, edits)
		default:
			got = append(got, m.otherConstant(r, at, op))
		}
		if len(got) > 1 && r.fault == nil {
			r.fail(at, codeType, "a constant expression has one value")
		}
	}
}

// otherConstant reads the rest of a constant instruction and returns its type.
func (m *module) otherConstant(r *reader, at int, op byte) byte {
	switch op {
	case opI64Const:
		r.signed(64)
		return i64
	case opF32Const:
		r.bytes(4, "an f32 constant")
		return f32
	case opF64Const:
		r.bytes(8, "an f64 constant")
		return f64
	case opPrefixSIMD:
		if sub := r.u32(); r.fault == nil && sub != simdConst {
			r.fail(at, codeInvalid, "instruction 0xfd %d is not constant", sub)
		}
		r.bytes(16, "a v128 constant")
		m.features.add(featureSIMD)
		return v128
	case opRefNull:
		m.features.add(featureReferenceTypes)
		return m.referenceType(r)
	case opGlobalGet:
		i := r.u32()
		if r.fault == nil && (i >= uint32(len(m.globals)) || !m.globals[i].imported || m.globals[i].mutable) {
			r.fail(at, codeInvalid, "a constant expression reads global %d, which is not an imported constant", i)
			return unknown
		}
		if r.fault == nil {
			return m.globals[i].typ
		}
	case 0x6a, 0x6b, 0x6c, 0x7c, 0x7d, 0x7e:
		r.fail(at, codeExtendedConst, "a constant expression calculates")
	default:
		r.fail(at, codeInvalid, "instruction 0x%02x is not constant", op)
	}
	return unknown
}

// referenceType reads the type after ref.null and the like.
func (m *module) referenceType(r *reader) byte {
	at := r.pos
	t := m.valueType(r)
	if r.fault == nil && !isReference(t) {
		r.fail(at, codeMalformed, "%s is not a reference type", typeName(t))
	}
	return t
}

// functionIndex reads a function index, declares it and notes its place.
func (m *module) functionIndex(r *reader, edits *[]edit) {
	at := r.pos
	i := r.u32()
	if r.fault != nil {
		return
	}
	if i >= uint32(len(m.funcs)) {
		r.fail(at, codeIndex, "function %d of %d", i, len(m.funcs))
		return
	}
	m.declare(i)
	*edits = append(*edits, edit{at: at, end: r.pos, kind: editIndex, value: uint64(m.moved(i))})
}

func (m *module) readElements(r *reader) {
	n := m.vector(r, sectionElement, "element_segments_max", elementSegmentsMax)
	for i := range n {
		m.readElement(r, fmt.Sprintf("element segment %d", i))
		if r.fault != nil {
			r.fault.Where = fmt.Sprintf("element segment %d", i)
			return
		}
	}
}

// readElement reads one segment. Flag 1 is passive or declarative, flag 2 has a
// table index (or is declarative), flag 4 has expressions for functions.
func (m *module) readElement(r *reader, where string) {
	at := r.pos
	flags := r.u32()
	if r.fault == nil && flags > 7 {
		r.fail(at, codeMalformed, "%d are not flags of a segment", flags)
		return
	}
	if flags != 0 {
		m.features.add(featureBulkMemory)
	}
	active := flags&1 == 0
	var tableIndex, offset uint32
	var known bool
	if active {
		if flags&2 != 0 {
			tableIndex = r.u32()
		}
		offset, known = m.constant(r, i32, &m.elementEdits)
	}
	elem := m.elementType(r, flags)
	n := r.count("element_entries_max", elementEntriesMax)
	if m.entries += int(n); r.fault == nil && m.entries > elementEntriesMax {
		r.fail(at, codeAboveLimit, "%d entries are above the limit element_entries_max %d", m.entries, elementEntriesMax)
	}
	for range n {
		if r.fault != nil {
			return
		}
		if flags&4 == 0 {
			m.functionIndex(r, &m.elementEdits)
		} else {
			m.constant(r, elem, &m.elementEdits)
		}
	}
	if r.fault != nil {
		return
	}
	m.elements = append(m.elements, elem)
	if active {
		m.checkElement(at, where, tableIndex, elem, offset, n, known)
	}
}

func (m *module) elementType(r *reader, flags uint32) byte {
	switch {
	case flags&3 == 0:
		return funcref
	case flags&4 != 0:
		return m.referenceType(r)
	}
	at := r.pos
	if kind := r.byte(); r.fault == nil && kind != 0 {
		r.fail(at, codeMalformed, "0x%02x is not a kind of elements", kind)
	}
	return funcref
}

func (m *module) checkElement(at int, where string, tableIndex uint32, elem byte, offset, n uint32, known bool) {
	if tableIndex >= uint32(len(m.tables)) {
		m.faults.add(at, codeIndex, where, "table %d of %d", tableIndex, len(m.tables))
		return
	}
	t := m.tables[tableIndex]
	if t.elem != elem {
		m.faults.add(at, codeType, where, "%s elements for a table of %s", typeName(elem), typeName(t.elem))
	}
	if known && !t.imported && uint64(offset)+uint64(n) > uint64(t.min) {
		m.faults.add(at, codeOutOfBounds, where, "offset %d and %d entries pass the table's minimum of %d", offset, n, t.min)
	}
}

func (m *module) readData(r *reader) {
	n := m.vector(r, sectionData, "data_segments_max", dataSegmentsMax)
	for i := range n {
		at := r.pos
		flags := r.u32()
		m.active = append(m.active, flags != 1)
		switch {
		case r.fault != nil:
		case flags > 2:
			r.fail(at, codeMalformed, "%d are not flags of a segment", flags)
		case flags == 1:
			m.features.add(featureBulkMemory)
			r.bytes(r.u32(), "a data segment")
		default:
			m.readActiveData(r, at, i, flags == 2)
		}
		if r.fault != nil {
			r.fault.Where = fmt.Sprintf("data segment %d", i)
			return
		}
	}
}

// activeSegments reads ahead which data segments are active: the data section
// stands behind the code, from pos on. What is wrong there is found when it is
// its turn.
func (m *module) activeSegments(pos int) []bool {
	r := &reader{data: m.data, pos: pos, end: len(m.data)}
	for !r.done() {
		id := r.byte()
		size := r.u32()
		content := r.pos
		r.bytes(size, "a section")
		if r.fault == nil && id == sectionData {
			ahead := *m
			ahead.faults, ahead.refused = faultList{}, map[string]bool{}
			ahead.readData(&reader{data: m.data, pos: content, end: r.pos})
			return ahead.active
		}
	}
	return nil
}

func (m *module) readActiveData(r *reader, at int, segment uint32, indexed bool) {
	var index uint32
	if indexed {
		index = r.u32()
	}
	var none []edit
	offset, known := m.constant(r, i32, &none)
	content := r.bytes(r.u32(), "a data segment")
	if r.fault != nil {
		return
	}
	where := func() string { return fmt.Sprintf("data segment %d", segment) }
	if index >= uint32(len(m.memories)) {
		m.faults.add(at, codeIndex, where(), "memory %d of %d", index, len(m.memories))
		return
	}
	memory := m.memories[index]
	if known && !memory.imported && uint64(offset)+uint64(len(content)) > uint64(memory.min)<<16 {
		m.faults.add(at, codeOutOfBounds, where(), "offset %d and %d bytes pass the memory's minimum of %d pages", offset, len(content), memory.min)
	}
}
