package abi

import "fmt"

// Limits bounds one invocation of a guest. A zero field means its default.
type Limits struct {
	Fuel        uint64 `json:"fuel,omitempty"`         // fuel units, about one per instruction
	MemoryBytes uint64 `json:"memory_bytes,omitempty"` // linear memory; a multiple of 65,536 after rounding down
	OutputBytes uint64 `json:"output_bytes,omitempty"` // one message from the guest
	HostCalls   uint64 `json:"host_calls,omitempty"`   // calls that cross the boundary
	LogBytes    uint64 `json:"log_bytes,omitempty"`    // text of log, and of fd_write to 1 and 2
	Effects     uint64 `json:"effects,omitempty"`      // effect calls
	Artifacts   uint64 `json:"artifacts,omitempty"`    // artifact_put calls
}

// Limit is a named bound: what it counts, its default and the ceiling a
// manifest cannot pass.
type Limit struct {
	Name    string // as in manifests, errors and records
	Unit    string
	Default uint64
	Ceiling uint64
}

// PageBytes is the size of a WebAssembly memory page.
const PageBytes = 65536

// LimitTable lists the limits of one invocation, in the order of [Limits].
var LimitTable = []Limit{
	{"fuel", "fuel", 20_000_000_000, 10_000_000_000_000},
	{"memory_bytes", "bytes", 256 << 20, 65535 * PageBytes},
	{"output_bytes", "bytes", 16 << 20, 64 << 20},
	{"host_calls", "calls", 1_000_000, 100_000_000},
	{"log_bytes", "bytes", 1 << 20, 64 << 20},
	{"effects", "calls", 64, 100_000},
	{"artifacts", "calls", 256, 100_000},
}

// Fixed limits of the ABI. They have no manifest field.
const (
	ArgumentBytesMax = 16 << 20 // one memory argument of a host call
	ArtifactBytesMax = 16 << 20 // one artifact
	MetadataBytesMax = 64 << 10 // the writ.module section
	MetadataDepthMax = 64       // nesting of the metadata's JSON
	MessageDepthMax  = 512      // nesting of a message's JSON
	ModuleBytesMax   = 16 << 20 // a module as it comes
	PreparedBytesMax = 64 << 20 // a module after preparation
	RandomBytesMax   = 1 << 20  // one random_fill or random_get
	DriverBytesMax   = 64       // a driver's name
	PathBytesMax     = 4096     // a dataset path
	IntegerMax       = 1<<53 - 1
)

func (l *Limits) fields() []*uint64 {
	return []*uint64{&l.Fuel, &l.MemoryBytes, &l.OutputBytes, &l.HostCalls, &l.LogBytes, &l.Effects, &l.Artifacts}
}

// Resolve replaces zero fields by their defaults and rounds memory down to
// whole pages. It fails on a value above its ceiling, naming the limit.
func (l Limits) Resolve() (Limits, error) {
	for i, f := range l.fields() {
		limit := LimitTable[i]
		if *f == 0 {
			*f = limit.Default
		}
		if *f > limit.Ceiling {
			return Limits{}, fmt.Errorf("%s %d is above the ceiling of %d %s", limit.Name, *f, limit.Ceiling, limit.Unit)
		}
	}
	l.MemoryBytes -= l.MemoryBytes % PageBytes
	if l.MemoryBytes == 0 {
		return Limits{}, fmt.Errorf("memory_bytes is below one page of %d bytes", PageBytes)
	}
	return l, nil
}
