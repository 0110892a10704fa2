package host

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"

	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host/prepare"
	"github.com/writrun/writ/host/trace"
)

// What host calls cost, in fuel. The figures are part of the profile.
const (
	CallFuel         = 64 // each host call
	CallBytesPerFuel = 64 // bytes a host call reads or writes for one further unit
)

// Calls is the state of one invocation's host calls. Engines hold it per
// instance, pass it to each [Function], and unwind the guest when one returns
// false.
type Calls struct {
	// Used by every call.
	memory   Memory
	fuel     Global
	stack    Global
	rest     uint64 // fuel not yet given to the guest
	count    uint64
	limits   abi.Limits
	boundary Boundary
	call     trace.Call
	request  []byte // scratch for call.Request
	current  uint16 // number of the call in progress, else 0
	canceled atomic.Bool

	clock, clockStep int64
	random           *rand.ChaCha8 // nil until first used
	seed             [32]byte
	lane             trace.Lane

	ctx             context.Context // of the invocation, for effects
	stackSlots      uint64          // of the profile
	phase           Phase
	export          string // called by the host, for stops outside host calls
	logLeft         uint64 // bytes
	saidOutOfMemory bool
	effectsGranted  bool
	effects         uint32
	response        []byte
	hasResponse     bool
	artifactsLeft   uint64
	artifacts       ArtifactStore
	artifact        openArtifact
	datasets        datasets
	files           fileTable

	stop  *trace.StopInfo // why the guest was ended
	fault error           // why the invocation cannot go on
}

func newCalls(ctx context.Context, inv *Invocation) (*Calls, error) {
	limits, err := inv.Limits.Resolve()
	switch {
	case err != nil:
		return nil, err
	case inv.Boundary == nil:
		return nil, fmt.Errorf("no boundary")
	case inv.ClockStartNanos <= 0 || inv.ClockStepNanos < 0:
		return nil, fmt.Errorf("clock start %d ns is not above 0 or step %d ns is negative", inv.ClockStartNanos, inv.ClockStepNanos)
	case inv.Entry != abi.ExportExecute && inv.Entry != abi.ExportVerify:
		return nil, fmt.Errorf("entry %q is not %s or %s", inv.Entry, abi.ExportExecute, abi.ExportVerify)
	}
	return &Calls{
		ctx: ctx, limits: limits, rest: limits.Fuel, boundary: inv.Boundary, request: make([]byte, 0, 512),
		clock: inv.ClockStartNanos, clockStep: inv.ClockStepNanos, seed: inv.Seed, lane: inv.Lane,
		phase: PhaseInstantiate, logLeft: limits.LogBytes, effectsGranted: inv.Effects,
		artifactsLeft: limits.Artifacts, artifacts: inv.Artifacts, datasets: datasets{list: inv.Datasets},
	}, nil
}

// attach gives c the memory and the counters of its instance.
func (c *Calls) attach(i Instance) error {
	c.memory, c.fuel, c.stack = i.Memory(), i.Fuel(), i.Stack()
	if c.memory == nil || c.fuel == nil || c.stack == nil {
		return fmt.Errorf("instance lacks one of the exports %s, %s and %s: is the module prepared?", abi.ExportMemory, prepare.FuelGlobal, prepare.StackGlobal)
	}
	c.stackSlots = c.stack.Get()
	return nil
}

// enter begins host call number fn: it counts it, looks for cancellation and
// takes the fixed cost.
func (c *Calls) enter(fn uint16) bool {
	c.current, c.request = fn, c.request[:0]
	c.count++
	if c.count > c.limits.HostCalls {
		c.count--
		return c.stopped(StopHostCalls, limitHostCalls, c.limits.HostCalls, "")
	}
	if c.canceled.Load() {
		return c.failed(context.Cause(c.ctx))
	}
	return c.charge(CallFuel)
}

// chargeBytes takes the cost of reading or writing n bytes.
func (c *Calls) chargeBytes(n uint64) bool {
	return c.charge((n + CallBytesPerFuel - 1) / CallBytesPerFuel)
}

// charge takes n units, from what the guest does not hold yet if that is enough.
func (c *Calls) charge(n uint64) bool {
	if c.rest >= n {
		c.rest -= n
		return true
	}
	c.fuel.Set(c.fuel.Get() - (n - c.rest))
	c.rest = 0
	return int64(c.fuel.Get()) >= 0 || c.exhausted()
}

// Refill is the function prepared modules import as prepare.RefillModule and
// prepare.RefillName: called when the guest's fuel is below zero, it adds slices
// until it is not, or ends the guest.
func (c *Calls) Refill() bool {
	if c.canceled.Load() {
		return c.failed(context.Cause(c.ctx))
	}
	held := int64(c.fuel.Get())
	if held >= 0 {
		return true
	}
	lack := uint64(-held)
	slices := (lack + prepare.FuelSlice - 1) / prepare.FuelSlice
	added := min(slices*prepare.FuelSlice, c.rest)
	c.rest -= added
	c.fuel.Set(uint64(held) + added)
	return added >= lack || c.exhausted()
}

// exhausted records the stop at an empty slice, with what was lacking, and ends
// the guest.
func (c *Calls) exhausted() bool {
	c.call = trace.Call{Fn: abi.CallRefill, Result: int64(c.fuel.Get())}
	if err := c.boundary.HostCall(&c.call); err != nil {
		return c.failed(fmt.Errorf("record stop for fuel: %w", err))
	}
	return c.stopped(StopFuel, limitFuel, c.limits.Fuel, "")
}

// remaining is the fuel left in all.
func (c *Calls) remaining() uint64 {
	if c.fuel == nil {
		return c.rest
	}
	held := int64(c.fuel.Get())
	if held < 0 {
		return c.rest - min(c.rest, uint64(-held))
	}
	return c.rest + uint64(held)
}

// note records the call in progress as answered with result. c.request holds
// the request, or nothing for none.
func (c *Calls) note(result int64) bool {
	c.call.Fn, c.call.Request, c.call.Result, c.call.Fuel = c.current, c.request, result, c.rest+c.fuel.Get()
	if err := c.boundary.HostCall(&c.call); err != nil {
		return c.failed(fmt.Errorf("record host call %s: %w", c.function(), err))
	}
	c.current = 0
	return true
}

// answer records result and gives it to the guest as an i64.
func (c *Calls) answer(stack []uint64, result int64) bool {
	stack[0] = uint64(result)
	return c.note(result)
}

// answer32 records result and gives it to the guest as an i32.
func (c *Calls) answer32(stack []uint64, result int32) bool {
	stack[0] = uint64(uint32(result))
	return c.note(int64(result))
}

// refuse is answer for a code.
func (c *Calls) refuse(stack []uint64, code abi.Code) bool { return c.answer(stack, int64(code)) }

// bytesAt returns size bytes of the guest's memory at ptr, or ends the guest.
func (c *Calls) bytesAt(ptr, size uint32) ([]byte, bool) {
	b, ok := c.memory.Read(ptr, size)
	if !ok {
		return nil, c.badPointer()
	}
	return b, true
}

// function names what is going on, for stops and errors: the host call in
// progress, else the export.
func (c *Calls) function() string {
	if c.current == 0 {
		return c.export
	}
	for _, h := range abi.HostCalls {
		if h.Number == c.current {
			return h.Name
		}
	}
	return ""
}
