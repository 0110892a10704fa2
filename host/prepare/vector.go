package prepare

// bulk checks the instructions after opPrefixBulk. Those that work on a length
// are metered by it, before they run.
func (v *validator) bulk(at int, dead bool) {
	sub := v.r.u32()
	if v.r.fault != nil {
		return
	}
	switch {
	case sub < uint32(len(truncations)):
		v.m.features.add(featureTruncation)
		blind := shapeF32
		if truncations[sub].operand == f64 {
			blind = shapeF64
		}
		v.floating(truncations[sub], blind, shapeNone, false)
	case sub <= bulkMemoryFill:
		v.m.features.add(featureBulkMemory)
		v.bulkMemory(at, sub, dead)
	case sub <= bulkTableCopy:
		v.m.features.add(featureBulkMemory)
		v.bulkTable(at, sub, dead)
	case sub <= bulkTableFill:
		v.m.features.add(featureReferenceTypes)
		v.tableLength(at, sub, dead)
	case sub >= 19 && sub <= 22:
		v.r.fail(at, codeWideArithmetic, "opcode 0xfc %d is not on the allow-list", sub)
	default:
		v.r.fail(at, codeMalformed, "opcode 0xfc %d is not on the allow-list", sub)
	}
}

func (v *validator) bulkMemory(at int, sub uint32, dead bool) {
	var active span // where the index of an active segment stands
	if sub == bulkMemoryInit || sub == bulkDataDrop {
		from := v.r.pos
		i := v.r.u32()
		switch {
		case v.r.fault != nil:
		case !v.m.hasDataCount:
			v.r.fail(at, codeMalformed, "data segments are used and the data count section is missing")
		case i >= v.m.dataCount:
			v.r.fail(at, codeIndex, "data segment %d of %d", i, v.m.dataCount)
		case i < uint32(len(v.m.active)) && v.m.active[i]:
			active = span{from, v.r.pos}
		}
		if sub == bulkDataDrop {
			v.meter.segment(active)
			return
		}
	}
	v.memoryZero(at)
	if sub == bulkMemoryCopy {
		v.memoryZero(at)
	}
	v.wantAll([]byte{i32, i32, i32})
	v.meter.length(at, helperBytes, dead)
	v.meter.segment(active)
}

func (v *validator) bulkTable(at int, sub uint32, dead bool) {
	i := v.r.u32()
	if sub == bulkTableCopy {
		from := v.r.u32()
		if to, from := v.table(at, i), v.table(at, from); to != from {
			v.r.fail(at, codeType, "table.copy from %s to %s", typeName(from), typeName(to))
		}
	} else {
		if v.r.fault == nil && i >= uint32(len(v.m.elements)) {
			v.r.fail(at, codeIndex, "element segment %d of %d", i, len(v.m.elements))
		}
		if sub == bulkElemDrop || v.r.fault != nil {
			return
		}
		if t := v.table(at, v.r.u32()); v.r.fault == nil && t != v.m.elements[i] {
			v.r.fail(at, codeType, "table.init of %s in a table of %s", typeName(v.m.elements[i]), typeName(t))
		}
	}
	v.wantAll([]byte{i32, i32, i32})
	v.meter.length(at, helperEntries, dead)
}

func (v *validator) tableLength(at int, sub uint32, dead bool) {
	elem := v.table(at, v.r.u32())
	switch sub {
	case bulkTableGrow:
		v.wantAll([]byte{elem, i32})
		v.give(i32)
		v.meter.length(at, helperEntries, dead)
	case bulkTableSize:
		v.give(i32)
	case bulkTableFill:
		v.wantAll([]byte{i32, elem, i32})
		v.meter.length(at, helperEntries, dead)
	}
}

// simd checks the instructions after opPrefixSIMD.
func (v *validator) simd(at int) {
	sub := v.r.u32()
	if v.r.fault != nil {
		return
	}
	v.m.features.add(featureSIMD)
	switch {
	case sub >= uint32(len(simdShapes)):
		v.r.fail(at, codeRelaxedSIMD, "opcode 0xfd %d is not on the allow-list", sub)
	case simdShapes[sub] == '1' || simdShapes[sub] == '2':
		blind, made := simdFloats(sub)
		v.floating(numericOp{v128, simdShapes[sub] - '0', v128}, blind, made, false)
	case simdShapes[sub] != '.':
		v.simdShape(simdShapes[sub])
	case sub == simdConst:
		v.r.bytes(16, "a v128 constant")
		v.give(v128)
	case sub <= simdStore:
		v.simdMemory(sub, []byte{4, 3, 3, 3, 3, 3, 3, 0, 1, 2, 3, 4}[sub])
	case sub == simdLoadZero || sub == simdLastZero:
		v.simdMemory(simdFirstLoad, byte(sub-simdLoadZero)+2)
	case sub == simdShuffle:
		for range 16 {
			v.lane(32)
		}
		v.simdShape('2')
	case sub >= simdFirstSplat && sub <= simdLastLane:
		v.simdLane(sub)
	case sub >= simdLoadLane && sub < simdLoadZero:
		v.simdLaneMemory(sub)
	default:
		v.r.fail(at, codeMalformed, "opcode 0xfd %d is not on the allow-list", sub)
	}
}

func (v *validator) simdShape(shape byte) {
	switch shape {
	case 't':
		v.want(v128)
		v.give(i32)
		return
	case 's':
		v.want(i32)
		v.want(v128)
	default:
		for range shape - '0' {
			v.want(v128)
		}
	}
	v.give(v128)
}

func (v *validator) simdMemory(sub uint32, align byte) {
	v.memoryArgument(align)
	if sub == simdStore {
		v.want(v128)
		v.want(i32)
		return
	}
	v.want(i32)
	v.give(v128)
}

func (v *validator) lane(lanes byte) {
	at := v.r.pos
	if i := v.r.byte(); v.r.fault == nil && i >= lanes {
		v.r.fail(at, codeInvalid, "lane %d of %d", i, lanes)
	}
}

// simdLane checks splat, extract_lane and replace_lane.
func (v *validator) simdLane(sub uint32) {
	if sub < simdFirstLane {
		v.want([]byte{i32, i32, i32, i64, f32, f64}[sub-simdFirstSplat])
		v.give(v128)
		return
	}
	// In opcode order: i8x16 and i16x8 have two extracts (signed, unsigned).
	lanes := []byte{16, 16, 16, 8, 8, 8, 4, 4, 2, 2, 4, 4, 2, 2}[sub-simdFirstLane]
	types := []byte{i32, i32, i32, i32, i32, i32, i32, i32, i64, i64, f32, f32, f64, f64}
	const replaces = "..r..r.r.r.r.r"
	v.lane(lanes)
	t := types[sub-simdFirstLane]
	if replaces[sub-simdFirstLane] == 'r' {
		v.want(t)
		t = v128
	}
	v.want(v128)
	v.give(t)
}

func (v *validator) simdLaneMemory(sub uint32) {
	width := byte(sub-simdLoadLane) & 3
	v.memoryArgument(width)
	v.lane(16 >> width)
	v.want(v128)
	v.want(i32)
	if sub < simdStoreLane {
		v.give(v128)
	}
}
