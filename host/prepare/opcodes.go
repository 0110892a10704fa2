package prepare

// Opcodes that the validator, the constant expressions or the rewrite name.
const (
	opUnreachable  = 0x00
	opNop          = 0x01
	opBlock        = 0x02
	opLoop         = 0x03
	opIf           = 0x04
	opElse         = 0x05
	opEnd          = 0x0b
	opBr           = 0x0c
	opBrIf         = 0x0d
	opBrTable      = 0x0e
	opReturn       = 0x0f
	opCall         = 0x10
	opCallIndirect = 0x11
	opDrop         = 0x1a
	opSelect       = 0x1b
	opSelectTyped  = 0x1c
	opLocalGet     = 0x20
	opLocalSet     = 0x21
	opLocalTee     = 0x22
	opGlobalGet    = 0x23
	opGlobalSet    = 0x24
	opTableGet     = 0x25
	opTableSet     = 0x26
	opFirstLoad    = 0x28
	opFirstStore   = 0x36
	opLastStore    = 0x3e
	opMemorySize   = 0x3f
	opMemoryGrow   = 0x40
	opI32Const     = 0x41
	opI64Const     = 0x42
	opF32Const     = 0x43
	opF64Const     = 0x44
	opFirstNumeric = 0x45
	opI32LtU       = 0x49
	opI64LtS       = 0x53
	opF32Eq        = 0x5b
	opF32Ne        = 0x5c
	opF64Eq        = 0x61
	opF64Ne        = 0x62
	opI64Sub       = 0x7d
	opI64Mul       = 0x7e
	opI64Or        = 0x84
	opI64ShrU      = 0x88
	opI64ExtendU   = 0xad
	opFirstExtend  = 0xc0
	opLastNumeric  = 0xc4
	opRefNull      = 0xd0
	opRefIsNull    = 0xd1
	opRefFunc      = 0xd2
	opPrefixBulk   = 0xfc
	opPrefixSIMD   = 0xfd
)

// Second opcodes after opPrefixBulk.
const (
	bulkMemoryInit = 8
	bulkDataDrop   = 9
	bulkMemoryCopy = 10
	bulkMemoryFill = 11
	bulkTableInit  = 12
	bulkElemDrop   = 13
	bulkTableCopy  = 14
	bulkTableGrow  = 15
	bulkTableSize  = 16
	bulkTableFill  = 17
)

// Second opcodes after opPrefixSIMD.
const (
	simdFirstLoad  = 0
	simdStore      = 11
	simdConst      = 12
	simdShuffle    = 13
	simdFirstSplat = 15
	simdFirstLane  = 21
	simdLastLane   = 34
	simdF32x4Eq    = 65
	simdF64x2Eq    = 71
	simdBitselect  = 82
	simdLoadLane   = 84
	simdStoreLane  = 88
	simdLoadZero   = 92
	simdLastZero   = 93
)

// memoryOp is a load or store: its value type and the log2 of its width.
type memoryOp struct{ typ, align byte }

// memoryOps is indexed by opcode from opFirstLoad to opLastStore.
var memoryOps = [...]memoryOp{
	{i32, 2}, {i64, 3}, {f32, 2}, {f64, 3},
	{i32, 0}, {i32, 0}, {i32, 1}, {i32, 1},
	{i64, 0}, {i64, 0}, {i64, 1}, {i64, 1}, {i64, 2}, {i64, 2},
	{i32, 2}, {i64, 3}, {f32, 2}, {f64, 3},
	{i32, 0}, {i32, 1}, {i64, 0}, {i64, 1}, {i64, 2},
}

// numericOp is an operator: one operand type, taken once or twice, and a result.
type numericOp struct{ operand, arity, result byte }

// numeric returns the operator of an opcode from opFirstNumeric to opLastNumeric.
func numeric(op byte) numericOp {
	for _, g := range numericGroups {
		if op <= g.last {
			return g.numericOp
		}
	}
	return numericOp{}
}

// numericGroups lists runs of operators of one type, in opcode order.
var numericGroups = [...]struct {
	last byte
	numericOp
}{
	{0x45, numericOp{i32, 1, i32}}, {0x4f, numericOp{i32, 2, i32}},
	{0x50, numericOp{i64, 1, i32}}, {0x5a, numericOp{i64, 2, i32}},
	{0x60, numericOp{f32, 2, i32}}, {0x66, numericOp{f64, 2, i32}},
	{0x69, numericOp{i32, 1, i32}}, {0x78, numericOp{i32, 2, i32}},
	{0x7b, numericOp{i64, 1, i64}}, {0x8a, numericOp{i64, 2, i64}},
	{0x91, numericOp{f32, 1, f32}}, {0x98, numericOp{f32, 2, f32}},
	{0x9f, numericOp{f64, 1, f64}}, {0xa6, numericOp{f64, 2, f64}},
	{0xa7, numericOp{i64, 1, i32}}, {0xa9, numericOp{f32, 1, i32}}, {0xab, numericOp{f64, 1, i32}},
	{0xad, numericOp{i32, 1, i64}}, {0xaf, numericOp{f32, 1, i64}}, {0xb1, numericOp{f64, 1, i64}},
	{0xb3, numericOp{i32, 1, f32}}, {0xb5, numericOp{i64, 1, f32}}, {0xb6, numericOp{f64, 1, f32}},
	{0xb8, numericOp{i32, 1, f64}}, {0xba, numericOp{i64, 1, f64}}, {0xbb, numericOp{f32, 1, f64}},
	{0xbc, numericOp{f32, 1, i32}}, {0xbd, numericOp{f64, 1, i64}},
	{0xbe, numericOp{i32, 1, f32}}, {0xbf, numericOp{i64, 1, f64}},
	{0xc1, numericOp{i32, 1, i32}}, {0xc4, numericOp{i64, 1, i64}},
}

// truncations is indexed by the second opcode 0 to 7 after opPrefixBulk.
var truncations = [...]numericOp{
	{f32, 1, i32}, {f32, 1, i32}, {f64, 1, i32}, {f64, 1, i32},
	{f32, 1, i64}, {f32, 1, i64}, {f64, 1, i64}, {f64, 1, i64},
}

// simdShapes tells the shape of each SIMD instruction without immediates by its
// second opcode, 16 a line: 1 v128 to v128, 2 two v128 to v128, 3 three v128 to
// v128, t v128 to i32, s v128 and i32 to v128; a dot has its own rule or, from
// simdLastZero on, is not an instruction.
const simdShapes = "" +
	"..............2." + // 0x00
	"................" + // 0x10
	"...2222222222222" + // 0x20
	"2222222222222222" + // 0x30
	"2222222222222122" + // 0x40
	"223t..........11" + // 0x50
	"111tt221111sss22" + // 0x60
	"2222112222121111" + // 0x70
	"112tt221111sss22" + // 0x80
	"2222122222.22222" + // 0x90
	"11.tt..1111sss2." + // 0xa0
	".2...222222.2222" + // 0xb0
	"11.tt..1111sss2." + // 0xc0
	".2...22222222222" + // 0xd0
	"11.12222222211.1" + // 0xe0
	"2222222211111111" // 0xf0

// refusedOpcode returns the code of the feature an opcode outside the
// allow-list belongs to.
func refusedOpcode(op byte) string {
	switch op {
	case 0x06, 0x07, 0x08, 0x09, 0x0a, 0x18, 0x19, 0x1f:
		return codeExceptions
	case 0x12, 0x13:
		return codeTailCalls
	case 0x14, 0x15, 0xd4, 0xd5, 0xd6:
		return codeTypedReferences
	case 0xd3, 0xfb:
		return codeGC
	case 0xfe:
		return codeThreads
	}
	return codeMalformed
}
