package prepare

import (
	"bytes"
	"encoding/binary"
)

// Helper functions that preparation appends after the original ones. The first
// three take a length, charge for it and return it.
const (
	helperBytes   = 0 // memory.fill, memory.copy, memory.init
	helperPages   = 1 // memory.grow
	helperEntries = 2 // table.fill, table.copy, table.init, table.grow
	helperEntry   = 3 // what a body that calls others does when fuel or stack is below zero
	helpers       = 4
)

// moved returns the index a function has after preparation: the refill import
// stands between the original imports and the defined functions.
func (m *module) moved(function uint32) uint32 {
	if function < uint32(m.imported) {
		return function
	}
	return function + 1
}

func (m *module) refillIndex() uint32 { return uint32(m.imported) }

func (m *module) helperIndex(helper uint64) uint32 { return uint32(len(m.funcs)) + 1 + uint32(helper) }

func (m *module) fuelIndex() uint32 { return uint32(len(m.globals)) }

func (m *module) stackIndex() uint32 { return uint32(len(m.globals)) + 1 }

func appendU32(b []byte, v uint32) []byte { return binary.AppendUvarint(b, uint64(v)) }

// appendS64 appends a signed LEB128.
func appendS64(b []byte, v int64) []byte {
	for v < -64 || v >= 64 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v)&0x7f)
}

func appendName(b []byte, name string) []byte {
	return append(appendU32(b, uint32(len(name))), name...)
}

// codeWriter collects the rewritten bodies while the originals are validated.
type codeWriter struct {
	out     []byte
	scratch []byte
}

// body appends one body, rewritten. Once there is a fault there will be no
// output, so nothing is collected.
func (w *codeWriter) body(m *module, s span, b *body) {
	if len(m.faults.faults) > 0 {
		w.out = nil
		return
	}
	w.scratch = m.rewrite(w.scratch[:0], s, b)
	if len(w.scratch) > preparedBodyBytesMax {
		m.faults.add(s.start, codeAboveLimit, "", "the prepared body has %d bytes, above the limit prepared_body_bytes_max %d", len(w.scratch), preparedBodyBytesMax)
	}
	w.out = append(appendU32(w.out, uint32(len(w.scratch))), w.scratch...)
	if len(w.out) > preparedBytesMax {
		m.faults.add(s.start, codeAboveLimit, "", "the prepared module is above the limit prepared_bytes_max %d", preparedBytesMax)
	}
}

// rewrite appends the original bytes of s with the edits of b.
func (m *module) rewrite(dst []byte, s span, b *body) []byte {
	b.settle()
	from := s.start
	for _, e := range b.edits {
		dst = append(dst, m.data[from:e.at]...)
		from = e.end
		dst = m.apply(dst, b, e)
	}
	return append(dst, m.data[from:s.end]...)
}

// apply appends what an edit puts in.
func (m *module) apply(dst []byte, b *body, e edit) []byte {
	switch e.kind {
	case editIndex:
		return appendU32(dst, uint32(e.value))
	case editLabel: // each quiet loop on the way is two
		return appendU32(dst, uint32(e.value)+uint32(b.quiets(e.loop)-b.quiets(e.to)))
	case editHelper:
		m.inserted.BulkCharges++
		return appendU32(append(dst, opCall), m.helperIndex(e.value))
	case editCharge:
		return m.charge(dst, b, e)
	case editEntry:
		return m.enter(dst, b, e)
	case editCall:
		return appendU32(append(appendU32(append(dst, opLocalGet), b.stack), opGlobalSet), m.stackIndex())
	case editSegment: // active segments are dropped at the start, which not every engine does
		m.inserted.Segments++
		return appendU32(dst, m.dataCount)
	case editNaN:
		s := &b.floats.sites[e.to]
		if s.active {
			m.inserted.NaNs++
		}
		return b.canonical(dst, s)
	case editHeader:
		m.inserted.FuelChecks++
		if b.quiet(e.loop) {
			return m.charge(b.leaveBelowZero(dst, e.loop), b, e)
		}
		return m.check(m.charge(dst, b, e))
	case editCheck:
		m.inserted.FuelChecks++
		return m.check(dst)
	case editLoop:
		if b.quiet(e.loop) {
			return m.refillLoop(append(dst, m.data[e.at:e.value]...), b, e)
		}
	case editEnd:
		if b.quiet(e.loop) {
			return append(dst, opEnd)
		}
	case editGroups:
		return appendU32(dst, uint32(e.value)+uint32(len(b.added)))
	case editLocals:
		for _, typ := range b.added {
			dst = append(dst, 1, typ)
		}
	}
	return dst
}

// enter appends what a body does first: pay, and look whether fuel and, if the
// body calls others, stack is left. Both are looked at together.
func (m *module) enter(dst []byte, b *body, e edit) []byte {
	if !b.frames {
		if dst = m.charge(dst, b, e); b.checked() {
			m.inserted.FuelChecks++
			dst = m.check(dst)
		}
		return dst
	}
	m.inserted.StackChecks++
	m.inserted.FuelChecks++
	m.inserted.FuelCharges++
	dst = appendU32(append(dst, opGlobalGet), m.stackIndex())
	dst = append(appendS64(append(dst, opI64Const), int64(m.rules.slots(b.frameSlots))), opI64Sub)
	dst = appendU32(append(dst, opLocalTee), b.stack)
	dst = appendU32(append(dst, opGlobalGet), m.fuelIndex())
	dst = append(appendS64(append(dst, opI64Const), int64(e.value)), opI64Sub)
	dst = appendU32(append(dst, opLocalTee), b.fuel)
	dst = append(dst, opI64Or)
	dst = appendU32(append(dst, opLocalGet), b.fuel)
	dst = appendU32(append(dst, opGlobalSet), m.fuelIndex())
	dst = append(dst, opI64Const, 0, opI64LtS, opIf, 0x40)
	dst = appendU32(append(dst, opLocalGet), b.stack)
	dst = appendU32(append(dst, opCall), m.helperIndex(helperEntry))
	return append(dst, opEnd)
}

// leaveBelowZero appends a branch to the loop around a quiet loop, where refill
// is called, for fuel below zero. wazero joins a comparison with an if and not
// with a br_if of this kind, but a branch in an if cannot take operands along.
func (b *body) leaveBelowZero(dst []byte, loop int) []byte {
	dst = appendU32(append(dst, opLocalGet), b.fuel)
	dst = append(dst, opI64Const, 0, opI64LtS)
	if b.loops[loop].params {
		return append(dst, opBrIf, 1)
	}
	return append(dst, opIf, 0x40, opBr, 2, opEnd)
}

// charge appends the code that takes fuel.
func (m *module) charge(dst []byte, b *body, e edit) []byte {
	if e.value == 0 {
		return dst
	}
	m.inserted.FuelCharges++
	quiet := b.quiet(e.loop)
	if quiet {
		dst = appendU32(append(dst, opLocalGet), b.fuel)
	} else {
		dst = appendU32(append(dst, opGlobalGet), m.fuelIndex())
	}
	dst = append(appendS64(append(dst, opI64Const), int64(e.value)), opI64Sub)
	if quiet {
		dst = appendU32(append(dst, opLocalTee), b.fuel)
	}
	return appendU32(append(dst, opGlobalSet), m.fuelIndex())
}

// refillLoop appends the beginning of the loop around a quiet loop: it calls
// refill if the fuel is below zero, and has it in the local afterwards.
func (m *module) refillLoop(dst []byte, b *body, e edit) []byte {
	if !b.quiet(b.loops[e.loop].outer) {
		dst = m.loadFuel(dst, b)
	}
	dst = appendU32(append(dst, opLocalGet), b.fuel)
	return append(m.loadFuel(m.refillBelowZero(dst), b), opEnd)
}

// check appends a call to refill if the fuel is below zero.
func (m *module) check(dst []byte) []byte {
	dst = appendU32(append(dst, opGlobalGet), m.fuelIndex())
	return append(m.refillBelowZero(dst), opEnd)
}

func (m *module) loadFuel(dst []byte, b *body) []byte {
	dst = appendU32(append(dst, opGlobalGet), m.fuelIndex())
	return appendU32(append(dst, opLocalSet), b.fuel)
}

// refillBelowZero appends an open if that calls refill for an i64 below zero.
func (m *module) refillBelowZero(dst []byte) []byte {
	dst = append(dst, opI64Const, 0, opI64LtS, opIf, 0x40, opCall)
	return appendU32(dst, m.refillIndex())
}

// helper appends the body of a helper: charge for min(length, most) units of
// work and return the length. Beyond most the instruction fails or traps without
// doing anything, so it costs no more.
func (m *module) helper(dst []byte, helper int) []byte {
	if helper == helperEntry {
		b := m.entryHelper()
		return append(appendU32(dst, uint32(len(b))), b...)
	}
	most, scale := int64(0), []byte(nil)
	switch helper {
	case helperBytes:
		most = pagesMax << 16
		scale = []byte{opI64Const, 4, opI64ShrU} // bytesPerFuel is 1<<4
	case helperPages:
		most = pagesMax
		scale = append(appendS64([]byte{opI64Const}, fuelPerPage), opI64Mul)
	case helperEntries:
		most = tableEntriesMax
	}
	b := appendU32([]byte{0, opGlobalGet}, m.fuelIndex()) // no locals
	limit := appendS64([]byte{opI32Const}, int64(int32(uint32(most))))
	b = append(append(b, opLocalGet, 0), limit...)
	b = append(append(b, opLocalGet, 0), limit...)
	b = append(append(b, opI32LtU, opSelect, opI64ExtendU), scale...)
	b = appendU32(append(b, opI64Sub, opGlobalSet), m.fuelIndex())
	b = append(m.check(b), opLocalGet, 0, opEnd)
	return append(appendU32(dst, uint32(len(b))), b...)
}

// entryHelper returns the body of the helper for entries. Where the stack is
// used up it says so in the global, for the host to see, and traps.
func (m *module) entryHelper() []byte {
	b := []byte{0, opLocalGet, 0, opI64Const, 0, opI64LtS, opIf, 0x40, opLocalGet, 0}
	b = appendU32(append(b, opGlobalSet), m.stackIndex())
	return append(m.check(append(b, opUnreachable, opEnd)), opEnd)
}

// write builds the prepared module.
func (m *module) write() []byte {
	out := append(make([]byte, 0, len(m.data)+len(m.code.out)), "\x00asm\x01\x00\x00\x00"...)
	out = m.section(out, sectionType, 3, []byte{0x60, 0, 0, 0x60, 1, i32, 1, i32, 0x60, 1, i64, 0})
	refill := appendName(appendName(nil, RefillModule), RefillName)
	out = m.section(out, sectionImport, 1, appendU32(append(refill, kindFunction), uint32(len(m.types))))
	var types []byte
	for range helperEntry {
		types = appendU32(types, uint32(len(m.types))+1)
	}
	types = appendU32(types, uint32(len(m.types))+2)
	out = m.section(out, sectionFunction, helpers, types)
	out = appendSection(out, sectionTable, m.writeTables())
	out = appendSection(out, sectionMemory, m.writeMemory())
	out = m.edited(out, sectionGlobal, m.globalEdits, 2, m.counters())
	out = appendSection(out, sectionExport, m.writeExports())
	out = m.edited(out, sectionElement, m.elementEdits, 0, nil)
	var empty [][]byte // data segments that are added
	if m.dropsActive {
		empty = append(empty, []byte{1, 0})
	}
	if m.hasDataCount {
		out = appendSection(out, sectionDataCount, appendU32(nil, m.dataCount+uint32(len(empty))))
	}
	var code []byte
	for i := range helpers {
		code = m.helper(code, i)
	}
	code = append(m.code.out, code...)
	out = appendSection(out, sectionCode, append(appendU32(nil, m.counts[sectionCode]+helpers), code...))
	return m.section(out, sectionData, uint32(len(empty)), bytes.Join(empty, nil))
}

func appendSection(out []byte, id byte, content []byte) []byte {
	if len(content) == 0 {
		return out
	}
	return append(appendU32(append(out, id), uint32(len(content))), content...)
}

// section appends a section's original elements and extra ones after them.
func (m *module) section(out []byte, id byte, extra uint32, appended []byte) []byte {
	return m.edited(out, id, nil, extra, appended)
}

func (m *module) edited(out []byte, id byte, edits []edit, extra uint32, appended []byte) []byte {
	n := m.counts[id] + extra
	if n == 0 {
		return out
	}
	content := m.rewrite(appendU32(nil, n), m.sections[id], &body{edits: edits})
	return appendSection(out, id, append(content, appended...))
}

// maximum returns the limits with the maximum lowered to most.
func (l limits) maximum(most uint32) uint32 {
	if l.hasMax {
		return min(l.max, most)
	}
	return most
}

// counters returns the globals for fuel and stack.
func (m *module) counters() []byte {
	stack := appendS64([]byte{i64, 1, opI64Const}, int64(m.rules.stackSlots()))
	return append([]byte{i64, 1, opI64Const, 0, opEnd}, append(stack, opEnd)...)
}

func (m *module) writeTables() []byte {
	if m.counts[sectionTable] == 0 {
		return nil
	}
	b := appendU32(nil, m.counts[sectionTable])
	for _, t := range m.tables {
		if !t.imported {
			b = appendU32(append(b, t.elem, 1), t.min)
			b = appendU32(b, t.maximum(tableEntriesMax))
		}
	}
	return b
}

func (m *module) writeMemory() []byte {
	if m.counts[sectionMemory] == 0 {
		return nil
	}
	b := appendU32(nil, 1)
	for _, l := range m.memories {
		if !l.imported {
			b = appendU32(append(b, 1), l.min)
			b = appendU32(b, l.maximum(m.rules.pagesMax))
		}
	}
	return b
}

func (m *module) writeExports() []byte {
	n := uint32(len(m.exports)) + 2
	if m.hasStart {
		n++
	}
	b := appendU32(nil, n)
	for _, e := range m.exports {
		index := e.index
		if e.kind == kindFunction {
			index = m.moved(index)
		}
		b = appendU32(append(appendName(b, e.name), e.kind), index)
	}
	b = appendU32(append(appendName(b, FuelGlobal), kindGlobal), m.fuelIndex())
	b = appendU32(append(appendName(b, StackGlobal), kindGlobal), m.stackIndex())
	if m.hasStart {
		b = appendU32(append(appendName(b, StartExport), kindFunction), m.moved(m.start))
	}
	return b
}
