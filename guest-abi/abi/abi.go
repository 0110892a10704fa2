// Package abi is the vocabulary shared by the host and by guest modules: names,
// codes, limits and message shapes of guest ABI version 1.
//
// It imports the standard library only and compiles for GOOS=wasip1, so a guest
// written in Go and the host that runs it use the same types. The normative text
// is guest-abi/README.md; a test compares the two.
package abi

// Version is the guest ABI version this package describes.
const Version = 1

// Import modules a guest may name. An import from any other module is refused
// before the guest is instantiated.
const (
	ModuleWrit = "writ_v1"
	ModuleWASI = "wasi_snapshot_preview1"
)

// Exports of a guest module.
const (
	ExportMemory     = "memory"
	ExportAlloc      = "writ_alloc"   // (size i32) -> ptr i32
	ExportFree       = "writ_free"    // (ptr i32, size i32)
	ExportExecute    = "writ_execute" // (ptr i32, len i32) -> i64: ptr in the high, length in the low 32 bits
	ExportVerify     = "writ_verify"  // as writ_execute
	ExportInitialize = "_initialize"  // called once, if exported, before anything else
	ExportStart      = "_start"       // a module that has only this is a command and is refused
)

// MetadataSection is the custom section that carries a module's [Metadata].
const MetadataSection = "writ.module"

// Code is a host call's result below zero.
type Code int32

// The codes of host-call results. A result of zero or above is the call's value.
const (
	NotGranted      Code = -1 // the plan does not grant this driver, dataset or artifact
	BudgetExhausted Code = -2 // a budget of the lane is spent
	TooLarge        Code = -3 // an argument or a response is above its limit
	NotFound        Code = -4 // no such dataset, file or artifact in scope
	Invalid         Code = -5 // the arguments are not of the call's form
	WouldCall       Code = -6 // a dry run: the effect was recorded and not performed
	Unavailable     Code = -7 // the far side failed, or the host cannot do this now
)

var codeNames = map[Code]string{
	NotGranted: "not_granted", BudgetExhausted: "budget_exhausted", TooLarge: "too_large",
	NotFound: "not_found", Invalid: "invalid", WouldCall: "would_call", Unavailable: "unavailable",
}

// String returns the code's name, for instance "not_granted", or "" for a value that is no code.
func (c Code) String() string { return codeNames[c] }

// Error makes a Code an error for guests.
func (c Code) Error() string { return "host call refused: " + c.String() }
