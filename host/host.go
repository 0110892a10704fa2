// Package host is the sandbox: it runs one guest for one message and lets it
// reach nothing but the functions of one table, [Functions].
//
// Whatever engine executes the guest, clock, randomness, datasets, artifacts,
// effects and the whole of WASI preview 1 are answered here, and every answer
// is handed to a [Boundary] before the guest sees it, so that the same
// invocation leaves the same record. It refuses to give a guest a real clock,
// file, environment or socket, to call into a guest while a host call is in
// progress, and to use an instance again after it trapped.
//
// What a guest does wrong ends in an [Outcome]; an error of [Invoke] is always
// the host's: a failed record, a panic, a cancelled context.
package host

import (
	"context"

	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host/prepare"
	"github.com/writrun/writ/host/trace"
)

// Engine compiles prepared modules. Its methods are safe for concurrent use.
type Engine interface {
	// Name and Version say what ran a guest. They are provenance and not identity:
	// prepared modules do the same on every engine.
	Name() string
	Version() string
	// Compile refuses a profile whose call depth the engine cannot hold.
	Compile(ctx context.Context, p *prepare.Prepared) (Compiled, error)
	Close(ctx context.Context) error
}

// Compiled is a module ready to be instantiated any number of times, also
// concurrently.
type Compiled interface {
	// Instantiate makes an instance whose host calls go to c. No guest code runs.
	Instantiate(ctx context.Context, c *Calls) (Instance, error)
	Close(ctx context.Context) error
}

// Instance is one instance of a module. It is used by one goroutine and not
// again after Call has failed.
type Instance interface {
	Memory() Memory // exported as abi.ExportMemory; nil if there is none
	Fuel() Global   // exported as prepare.FuelGlobal; nil if there is none
	Stack() Global  // exported as prepare.StackGlobal; nil if there is none
	// Call calls an export with i32 arguments and returns its result, if it has
	// one. present is false if there is no such function with as many parameters.
	// A trap of the guest is a *Trap; any other error is the engine's.
	Call(ctx context.Context, export string, args ...uint32) (result uint64, present bool, err error)
	Close(ctx context.Context) error
}

// Memory is a guest's linear memory.
type Memory interface {
	// Read returns the bytes themselves, not a copy. They are valid until the
	// guest runs again.
	Read(offset, size uint32) ([]byte, bool)
	Size() uint32 // bytes
}

// Global is a guest's mutable i64 global.
type Global interface {
	Get() uint64
	Set(uint64)
}

// Trap is the end of a guest by its own fault, in the host's words.
type Trap struct{ Cause StopCause }

// Error names the cause.
func (t *Trap) Error() string { return "guest trapped: " + string(t.Cause) }

// Boundary is where host calls cross: recorded, or served from a record.
type Boundary interface {
	// HostCall is told of each call after it was answered and before the guest
	// sees the answer. It must not keep c or anything in it.
	HostCall(c *trace.Call) error
	// Effect performs one effect of the lane and returns what the guest sees.
	Effect(ctx context.Context, c EffectCall) (EffectReply, error)
	// Flush ends the batch of calls at hand, if there is one.
	Flush() error
}

// EffectCall is one effect a guest asks for.
type EffectCall struct {
	Driver  string
	Ordinal uint32 // of the effect in its lane, from 0
	Request []byte // a copy; the receiver may keep it
	Fuel    uint64 // remaining at the call
}

// EffectReply is what the guest sees of an effect.
type EffectReply struct {
	Response []byte
	Code     abi.Code // 0 for a response, else why there is none
}

// Dataset is one dataset a guest may read.
type Dataset struct {
	Handle       abi.DatasetHandle
	Listing      abi.DatasetListing // of a single file: one entry with the path ""
	ListingBytes []byte             // what reading the bare id of a folder yields
	Open         Opener
}

// ArtifactStore keeps artifacts and finds those in a lane's scope.
type ArtifactStore interface {
	// Put stores content, which it must not keep. An abi.Code as the error
	// refuses it to the guest.
	Put(content []byte) (abi.Digest, error)
	// Get returns an artifact, or false if none of that digest is in scope.
	Get(id abi.Digest) ([]byte, bool, error)
}
