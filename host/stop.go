package host

import (
	"fmt"

	"github.com/writrun/writ/host/trace"
)

// StopCause says why the host ended a guest. The words are this project's own,
// so no engine's text, address or path reaches a record.
type StopCause string

// Traps of the guest's own code. Calls overflow where the profile's stack budget
// ends, whatever the engine could hold.
const (
	StopUnreachable       StopCause = "unreachable"
	StopMemoryBounds      StopCause = "memory_out_of_bounds"
	StopTableAccess       StopCause = "invalid_table_access" // an index out of bounds, or a call through an empty entry
	StopIndirectCallType  StopCause = "indirect_call_type"
	StopIntegerOverflow   StopCause = "integer_overflow"
	StopDivideByZero      StopCause = "integer_divide_by_zero"
	StopInvalidConversion StopCause = "invalid_conversion"
	StopStackOverflow     StopCause = "stack_overflow"
)

// Stops by the host.
const (
	StopFuel          StopCause = "fuel_exhausted"
	StopHostCalls     StopCause = "host_calls_exhausted"
	StopOutputBytes   StopCause = "output_too_large"
	StopOutputPointer StopCause = "invalid_output_pointer"
	StopBadPointer    StopCause = "bad_pointer"
	StopExit          StopCause = "exit"   // the guest called proc_exit
	StopMemory        StopCause = "memory" // the guest could not allocate what it needed
	StopMissingExport StopCause = "missing_export"
)

// Phase is the part of an invocation a guest was in.
type Phase string

// The phases of an invocation, in their order.
const (
	PhaseInstantiate Phase = "instantiate"
	PhaseStart       Phase = "start"      // the start function
	PhaseInitialize  Phase = "initialize" // _initialize
	PhaseAlloc       Phase = "alloc"      // writ_alloc, for the request
	PhaseExecute     Phase = "execute"
	PhaseVerify      Phase = "verify"
)

// Limit names of stops, as in abi.LimitTable.
const (
	limitFuel      = "fuel"
	limitMemory    = "memory_bytes"
	limitOutput    = "output_bytes"
	limitHostCalls = "host_calls"
	limitStack     = "stack_slots" // of the profile
)

// stopped ends the guest. It returns false, for host functions to pass on.
func (c *Calls) stopped(cause StopCause, limit string, value uint64, detail string) bool {
	if c.stop == nil && c.fault == nil {
		c.stop = &trace.StopInfo{Cause: string(cause), Phase: string(c.phase), Function: c.function(),
			Limit: limit, LimitValue: value, Detail: detail}
	}
	return false
}

// badPointer ends the guest for a range outside its memory.
func (c *Calls) badPointer() bool {
	return c.stopped(StopBadPointer, "", 0, "an argument points outside the guest's memory")
}

// exited ends the guest as proc_exit asks.
func (c *Calls) exited(code uint32) bool {
	if code != 0 && c.saidOutOfMemory {
		return c.outOfMemory()
	}
	return c.stopped(StopExit, "", 0, fmt.Sprintf("the guest called proc_exit with code %d", code))
}

// trapped ends the guest for a trap of its own.
func (c *Calls) trapped(cause StopCause) bool {
	if c.saidOutOfMemory {
		return c.outOfMemory()
	}
	if int64(c.stack.Get()) < 0 {
		return c.stopped(StopStackOverflow, limitStack, c.stackSlots, "")
	}
	return c.stopped(cause, "", 0, "")
}

// outOfMemory ends a guest that said on its standard error that it is out of
// memory, and then left or trapped, as the Go runtime does.
func (c *Calls) outOfMemory() bool {
	return c.stopped(StopMemory, limitMemory, c.limits.MemoryBytes, "the guest ran out of memory; a larger memory_bytes may help")
}

// failed ends the invocation for a fault of the host.
func (c *Calls) failed(err error) bool {
	if c.fault == nil {
		c.fault = err
	}
	return false
}
