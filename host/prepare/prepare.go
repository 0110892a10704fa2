// Package prepare decides which WebAssembly modules may run, and rewrites those
// that may so that every engine stops them at the same instruction.
//
// It reads a binary module, validates it in full, and either refuses it with
// every fault it finds or returns a prepared module: the same program with fuel
// and call depth counted in globals, one NaN for all NaNs an instruction makes,
// its memory and table maxima lowered to the budget, its start function made an
// export, and its custom sections gone. It runs nothing, reads no file and no
// clock: equal bytes and options give equal output.
//
// # Fuel
//
// The exported global [FuelGlobal], a mutable i64 that starts at 0, holds what is
// left of the slice at hand. An instruction costs 1, and a bulk instruction more
// by its length. Code takes a block's whole cost from the global before the
// block's first instruction, so nothing that traps is unpaid; a short block is
// paid with the block before it, whether or not it is then entered. Each loop
// header, each function entry but those of short functions that call nothing,
// each bulk instruction and each call that may leave the module looks whether the
// global is below 0, and if so calls the import [RefillModule].[RefillName], of
// type () -> (). The host then either adds fuel to the global until it is 0 or
// more, [FuelSlice] at a time or what remains of the budget, and returns; or it
// stops the instance and never returns to it.
//
// So the global is 0 or more whenever another import is called. When an export has
// returned, it may be below 0 by what the code since the last look cost, at most
// 16 million: a host that wants the budget exact takes that as an empty slice too.
// The fuel left in all is the host's remainder plus the global.
//
// # Stack
//
// The exported global [StackGlobal], a mutable i64, holds how many slots are left
// to calls; its initial value is the profile's budget, and the host sets it to
// that again before it calls an export. A function that calls functions takes its
// frame at its entry: its parameters, locals and most operands, a v128 counted
// twice, and 4 more, but no less than the profile's least frame. What remains is
// in the global when the next function is entered. Below zero the guest traps,
// and the global is left below zero: so the host knows this trap from the guest's
// own.
//
// # NaN
//
// Where an instruction makes a NaN, engines differ in its bits. Here each is the
// positive canonical NaN by the time its bits can be observed. NaN bits that the
// program itself gives, by a constant, a load or a bit operation, are left alone.
package prepare

import (
	"fmt"

	"github.com/writrun/writ/guest-abi/abi"
)

// Profile names the rules of this package: what is admitted, how it is
// rewritten, and what each instruction costs. Recordings made under it replay for
// as long as it is here.
const Profile = "writ-det-1"

// A profile and the size of its stack budget. The portable one fits every
// engine; the deep one is too deep for engines that interpret.
const (
	ProfilePortable = Profile + "/portable" // 16,384 slots, at most 1,638 frames
	ProfileDeep     = Profile + "/deep"     // 65,536 slots, at most 16,384 frames
)

// Names that preparation adds to a module.
const (
	RefillModule = "writ_det"       // import module; no guest may import from it
	RefillName   = "refill"         // () -> ()
	FuelGlobal   = "writ_det_fuel"  // exported mutable i64
	StackGlobal  = "writ_det_stack" // exported mutable i64
	StartExport  = "writ_det_start" // () -> (), there if the module had a start function

	reservedPrefix  = "writ_det_" // no guest may export such a name
	metadataSection = abi.MetadataSection
)

// FuelSlice is how much fuel one refill adds, in units of about one instruction.
// A deadline acts at refills, so it is late by at most one slice.
const FuelSlice = 1_000_000

// Options are what preparation depends on beside the module.
type Options struct {
	// MemoryBytesMax is the plan's budget for linear memory. It is rounded down to
	// whole pages and to the 65,535 pages every module is held to. Zero means the
	// default of the limit memory_bytes.
	MemoryBytesMax uint64
	// Profile is ProfilePortable or ProfileDeep; empty means portable.
	Profile string
}

// Prepared is a module that may run.
type Prepared struct {
	Profile  string     // ProfilePortable or ProfileDeep
	Wasm     []byte     // what engines compile
	Digest   abi.Digest // of Wasm
	Original abi.Digest // of the bytes that were prepared
	Info     Info
}

// Info is what a module says of itself, read without running it.
type Info struct {
	Metadata       []byte   `json:"-"` // content of the writ.module section, nil if there is none
	Imports        []Import `json:"imports"`
	Exports        []Export `json:"exports"`
	HasStart       bool     `json:"has_start"`
	Functions      int      `json:"functions"` // imported ones included
	Tables         int      `json:"tables"`
	Globals        int      `json:"globals"`
	DataSegments   int      `json:"data_segments"`
	Elements       int      `json:"element_segments"`
	MemoryPagesMin uint32   `json:"memory_pages_min"`
	MemoryPagesMax uint32   `json:"memory_pages_max"` // after lowering to the budget
	Features       []string `json:"features"`
	Inserted       Inserted `json:"inserted"`
	OriginalBytes  int      `json:"original_bytes"`
	PreparedBytes  int      `json:"prepared_bytes"`
}

// Inserted counts what preparation puts into the code of a module.
type Inserted struct {
	FuelCharges int `json:"fuel_charges"` // places that take fuel
	FuelChecks  int `json:"fuel_checks"`  // places that look whether fuel is left
	BulkCharges int `json:"bulk_charges"` // instructions that pay by their length
	StackChecks int `json:"stack_checks"` // functions that look whether stack is left
	NaNs        int `json:"nans"`         // places where a NaN is made canonical
	Segments    int `json:"segments"`     // instructions that get an empty data segment in place of an active one
}

// Import is one import of a module.
type Import struct {
	Module    string `json:"module"`
	Name      string `json:"name"`
	Kind      string `json:"kind"`                // function, table, memory or global
	Signature string `json:"signature,omitempty"` // of a function, as "(i32, i32) -> i64"
}

// Export is one export of a module.
type Export struct {
	Name      string `json:"name"`
	Kind      string `json:"kind"`
	Signature string `json:"signature,omitempty"`
}

// Prepare validates a module and rewrites it. Its error is a *[Refusal], unless
// the options are wrong.
func Prepare(original []byte, opts Options) (*Prepared, error) {
	budget := opts.MemoryBytesMax
	if budget == 0 {
		limits, err := abi.Limits{}.Resolve()
		if err != nil {
			return nil, fmt.Errorf("prepare module: %w", err)
		}
		budget = limits.MemoryBytes
	}
	if opts.Profile == "" {
		opts.Profile = ProfilePortable
	}
	if opts.Profile != ProfilePortable && opts.Profile != ProfileDeep {
		return nil, fmt.Errorf("prepare module: profile %q is neither %s nor %s", opts.Profile, ProfilePortable, ProfileDeep)
	}
	return prepare(original, rules{pagesMax: uint32(min(budget/abi.PageBytes, pagesMax)), deep: opts.Profile == ProfileDeep})
}

// Inspect validates a module as [Prepare] does, against the largest memory a
// plan can grant, and tells what it says of itself. Its error is a *[Refusal].
func Inspect(original []byte) (*Info, error) {
	m := newModule(original, rules{pagesMax: pagesMax})
	m.read()
	if err := m.faults.refusal(); err != nil {
		return nil, err
	}
	info := m.info()
	info.PreparedBytes = len(m.write())
	return &info, nil
}

func prepare(original []byte, r rules) (*Prepared, error) {
	m := newModule(original, r)
	m.read()
	if err := m.faults.refusal(); err != nil {
		return nil, err
	}
	wasm := m.write()
	if len(wasm) > preparedBytesMax {
		m.faults.add(0, codeAboveLimit, "", "the prepared module has %d bytes, above the limit prepared_bytes_max %d", len(wasm), preparedBytesMax)
		return nil, m.faults.refusal()
	}
	p := &Prepared{Profile: r.profile(), Wasm: wasm, Digest: abi.DigestOf(wasm), Original: abi.DigestOf(original), Info: m.info()}
	p.Info.PreparedBytes = len(wasm)
	return p, nil
}

func (m *module) info() Info {
	info := Info{
		Metadata: m.metadata, HasStart: m.hasStart,
		Functions: len(m.funcs), Tables: len(m.tables), Globals: len(m.globals),
		DataSegments: int(m.counts[sectionData]), Elements: len(m.elements),
		Features: m.features.names(), Inserted: m.inserted, OriginalBytes: len(m.data),
		Imports: make([]Import, 0, len(m.imports)), Exports: make([]Export, 0, len(m.exports)),
	}
	if len(m.memories) > 0 {
		info.MemoryPagesMin = m.memories[0].min
		info.MemoryPagesMax = m.memories[0].maximum(m.rules.pagesMax)
	}
	for _, e := range m.imports {
		i := Import{Module: e.module, Name: e.name, Kind: kindName(e.kind)}
		if e.kind == kindFunction {
			i.Signature = m.types[e.typeIndex].String()
		}
		info.Imports = append(info.Imports, i)
	}
	for _, e := range m.exports {
		x := Export{Name: e.name, Kind: kindName(e.kind)}
		if e.kind == kindFunction {
			x.Signature = m.typeOf(e.index).String()
		}
		info.Exports = append(info.Exports, x)
	}
	return info
}
