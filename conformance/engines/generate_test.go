package engines_test

import (
	"encoding/binary"
	"math/rand/v2"

	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host/prepare"
)

// flavour is the form in which a random module is written.
type flavour struct {
	// spelled writes out after each operator that makes a NaN what preparation
	// promises of it.
	spelled bool
	// bare is for running the module without preparation: it has the globals that
	// the host wants, and an export for a start section.
	bare bool
}

// The shape of random modules.
const (
	patience      = 400     // function entries and loop passes of one export
	addressMask   = 0x7fff  // of loads and stores, most of the time
	resultsAt     = 0x8000  // where the entry keeps the results of the functions
	inputAt       = 0xff00  // where writ_alloc puts the request
	riskyIn       = 60      // one of so many expressions may trap
	loopLabel     = 0xff    // a label that only its own back edge may use
	plungeSlotMax = 6       // operands on the stack of a frame that plunges
	bareFuel      = 1 << 40 // what a bare module holds and never spends
)

var valueTypes = []byte{i32, i64, f32, f64, v128}

// generator makes one random module: an executor that calls each of its random
// functions in turn, from the one its request names on, and returns its memory.
type generator struct {
	*rand.Rand
	flavour
	m          *binaryModule
	signatures []signature // of the random functions
	functions  uint64      // index of the first
	plunge     uint64      // a function that calls itself as often as it is told
	clock      uint64
	fill       uint64
	log        uint64
	globals    map[byte][]uint64
	patience   uint64 // global

	// Of the body at hand.
	body   code
	locals []byte
	labels []byte // the type of each enclosing block, innermost last
	result string
	temps  map[shape]uint64
	left   int // how many more expressions the body may have
}

// randomModule makes the module of a seed. Flavours of one seed do the same.
func randomModule(seed uint64, f flavour) []byte {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15)), flavour: f, m: newBinaryModule(), globals: map[byte][]uint64{}}
	g.clock = g.m.importFunc(abi.ModuleWrit, "clock_now", signature{"", string([]byte{i64})})
	g.fill = g.m.importFunc(abi.ModuleWrit, "random_fill", signature{"\x7f\x7f", "\x7f"})
	g.log = g.m.importFunc(abi.ModuleWrit, "log", signature{"\x7f\x7f\x7f", "\x7f"})
	g.m.memory.op(1, 1, 4)
	g.m.count(5)
	g.m.export(abi.ExportMemory, 2, 0)
	g.makeGlobals()
	for range 3 + g.IntN(5) {
		g.signatures = append(g.signatures, signature{g.types(4), g.types(2)})
	}
	g.plunge, g.functions = 3, 4
	g.makePlunge()
	for _, s := range g.signatures {
		g.makeFunction(s)
	}
	g.makeEntries()
	g.makeTable()
	g.makeData()
	return g.m.bytes()
}

func (g *generator) types(most int) string {
	b := make([]byte, g.IntN(most+1))
	for i := range b {
		b[i] = valueTypes[g.IntN(len(valueTypes))]
	}
	return string(b)
}

func (g *generator) oneIn(n int) bool { return g.IntN(n) == 0 }

func (g *generator) makeGlobals() {
	for _, t := range valueTypes {
		for range 2 {
			g.body = nil
			g.constant(t)
			g.globals[t] = append(g.globals[t], g.m.global(t, g.body))
		}
	}
	g.patience = g.m.global(i32, code{opI32Const, 0})
	if g.bare {
		for _, name := range []string{prepare.FuelGlobal, prepare.StackGlobal} {
			held := code{opI64Const}
			held.s(bareFuel)
			g.m.export(name, 3, g.m.global(i64, held))
		}
	}
}

// makePlunge writes a function of n that calls itself n times, with frames of a
// size of its own.
func (g *generator) makePlunge() {
	locals := []byte(g.types(plungeSlotMax))
	b := code{opLocalGet, 0, opIf, noType, opElse, opI32Const, 0, opReturn, opEnd}
	g.body = nil
	operands := g.IntN(plungeSlotMax)
	for range operands {
		g.constant(valueTypes[g.IntN(len(valueTypes))])
	}
	b.op(g.body...)
	b.op(opLocalGet, 0, opI32Const, 1, opI32Sub, opCall)
	b.u(g.plunge)
	b.op(opLocalSet, 0)
	for range operands {
		b.op(opDrop)
	}
	b.op(opLocalGet, 0, opI32Const, 3, opI32Add)
	g.m.function(signature{"\x7f", "\x7f"}, locals, b)
}

func (g *generator) makeFunction(s signature) {
	locals := []byte(g.types(8))
	g.begin(s, locals)
	g.spend()
	g.body.op(opGlobalGet)
	g.body.u(g.patience)
	g.body.op(opI32Const, 0, opI32LtS, opIf, noType)
	for i := range len(s.results) {
		g.zero(s.results[i])
	}
	g.body.op(opReturn, opEnd)
	for range 1 + g.IntN(5) {
		g.statement()
	}
	for i := range len(s.results) {
		g.expression(s.results[i])
	}
	if g.spelled {
		locals = append(locals, f32, f64, v128)
	}
	g.m.function(s, locals, g.body)
}

func (g *generator) begin(s signature, locals []byte) {
	g.body, g.labels, g.result, g.left = nil, nil, s.results, 60+g.IntN(120)
	g.locals = append([]byte(s.params), locals...)
	n := uint64(len(g.locals))
	g.temps = map[shape]uint64{nan32: n, nan64: n + 1, nan32x4: n + 2, nan64x2: n + 2}
}

// spend takes one from the patience.
func (g *generator) spend() {
	g.body.op(opGlobalGet)
	g.body.u(g.patience)
	g.body.op(opI32Const, 1, opI32Sub, opGlobalSet)
	g.body.u(g.patience)
}

// makeEntries writes the exports of a guest, and sometimes a start function.
func (g *generator) makeEntries() {
	alloc := code{}
	alloc.i32const(inputAt)
	g.m.export(abi.ExportAlloc, 0, g.m.function(signature{"\x7f", "\x7f"}, nil, alloc))
	g.m.export(abi.ExportFree, 0, g.m.function(signature{"\x7f\x7f", ""}, nil, nil))
	g.begin(signature{"\x7f\x7f", "\x7e"}, valueTypes)
	for i := range g.signatures {
		g.body.op(opLocalGet, 0, opI32Load8U, 0, 0)
		g.body.i32const(int32(i))
		g.body.op(opI32LeU, opIf, noType, opCall)
		g.body.u(g.clock)
		g.body.op(opDrop)
		g.callFresh(i)
		g.body.op(opEnd)
	}
	for _, t := range valueTypes {
		for i, global := range g.globals[t] {
			g.body.i32const(int32(resultsAt + 0x1000 + int(t)*32 + i*16))
			g.body.op(opGlobalGet)
			g.body.u(global)
			g.access(stores[t][0], 0)
		}
	}
	g.body.op(opMemorySize, 0, opI32Const, 16, opI32Shl, opI64ExtendU)
	g.m.export(abi.ExportExecute, 0, g.m.function(signature{"\x7f\x7f", "\x7e"}, valueTypes, g.body))
	if g.oneIn(3) {
		g.begin(signature{}, valueTypes)
		g.callFresh(g.IntN(len(g.signatures)))
		start := g.m.function(signature{}, valueTypes, g.body)
		if g.bare {
			g.m.export(prepare.StartExport, 0, start)
		} else {
			g.m.start = int(start)
		}
	}
}

// callFresh calls a random function with constants and all patience, and stores
// its results. The last locals of the body hold one value of each type.
func (g *generator) callFresh(i int) {
	scratch := map[byte]uint64{}
	for n, t := range valueTypes {
		scratch[t] = uint64(len(g.locals) - len(valueTypes) + n)
	}
	g.body.i32const(patience)
	g.body.op(opGlobalSet)
	g.body.u(g.patience)
	s := g.signatures[i]
	for n := range len(s.params) {
		g.constant(s.params[n])
	}
	g.body.op(opCall)
	g.body.u(g.functions + uint64(i))
	for n := len(s.results) - 1; n >= 0; n-- {
		t := s.results[n]
		g.body.op(opLocalSet)
		g.body.u(scratch[t])
		g.body.i32const(int32(resultsAt + 32*i + 16*n))
		g.body.op(opLocalGet)
		g.body.u(scratch[t])
		g.access(stores[t][0], 0)
	}
}

func (g *generator) makeTable() {
	g.m.tables.op(0x70, 1, 16, 32)
	g.m.count(4)
	g.m.elems.op(0, opI32Const, 0, opEnd)
	g.m.elems.u(uint64(len(g.signatures)))
	for i := range g.signatures {
		g.m.elems.u(g.functions + uint64(i))
	}
	g.m.count(9)
}

// makeData fills a part of memory with floats of all kinds.
func (g *generator) makeData() {
	var bytes []byte
	for range 64 {
		bytes = binary.LittleEndian.AppendUint64(bytes, bits64[g.IntN(len(bits64))])
		bytes = binary.LittleEndian.AppendUint32(bytes, bits32[g.IntN(len(bits32))])
		bytes = binary.LittleEndian.AppendUint32(bytes, bits32[g.IntN(len(bits32))])
	}
	g.m.data.op(0, opI32Const, 0, opEnd)
	g.m.data.sized(bytes)
	g.m.count(11)
}
