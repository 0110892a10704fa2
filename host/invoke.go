package host

import (
	"context"
	"errors"
	"fmt"

	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host/prepare"
	"github.com/writrun/writ/host/trace"
)

// Invocation is one message for one guest, and everything its answer may
// depend on.
type Invocation struct {
	Lane            trace.Lane // part of the key of its random stream
	Entry           string     // abi.ExportExecute or abi.ExportVerify
	Input           []byte
	Limits          abi.Limits // zero fields mean defaults
	Seed            [32]byte   // of the run's randomness
	ClockStartNanos int64      // since the epoch, above 0
	ClockStepNanos  int64      // by which each reading advances the clock
	Datasets        []Dataset
	Artifacts       ArtifactStore // nil means none
	Boundary        Boundary
	Effects         bool // whether any effect is granted
}

// Outcome is how an invocation ended: with an output, or with a stop.
type Outcome struct {
	Output        []byte          // exactly what the guest returned, nil if it was stopped
	Stop          *trace.StopInfo // nil if the guest returned
	FuelUsed      uint64
	MemoryBytes   uint64 // at the end; memory never shrinks
	HostCalls     uint64 // answered ones
	Effects       uint64 // performed ones
	ClockEndNanos int64
}

// Invoke runs the guest in a fresh instance of m for one message. Equal
// invocations of equal modules have equal outcomes and leave equal records.
//
// An error is never the guest's fault: the context was cancelled (then it is the
// context's cause, and the batch of calls at hand stays unrecorded, so that a
// record is cut by content only), the record could not be kept, a driver or the
// host panicked, or the engine failed.
func Invoke(ctx context.Context, m Compiled, inv Invocation) (out Outcome, err error) {
	c, err := newCalls(ctx, &inv)
	if err != nil {
		return Outcome{}, fmt.Errorf("invoke guest: %w", err)
	}
	if ctx.Err() != nil {
		return Outcome{}, context.Cause(ctx)
	}
	release := context.AfterFunc(ctx, func() { c.canceled.Store(true) })
	defer release()
	defer c.close()
	i, err := m.Instantiate(ctx, c)
	if err != nil {
		return Outcome{}, fmt.Errorf("invoke guest: instantiate: %w", err)
	}
	defer func() {
		if closeErr := i.Close(context.WithoutCancel(ctx)); closeErr != nil && err == nil {
			out, err = Outcome{}, fmt.Errorf("invoke guest: close instance: %w", closeErr)
		}
	}()
	if err := c.attach(i); err != nil {
		return Outcome{}, fmt.Errorf("invoke guest: %w", err)
	}
	output, err := c.run(ctx, i, &inv)
	if err != nil {
		return Outcome{}, err
	}
	if err := c.boundary.Flush(); err != nil {
		return Outcome{}, fmt.Errorf("invoke guest: record host calls: %w", err)
	}
	return c.outcome(output), nil
}

func (c *Calls) outcome(output []byte) Outcome {
	return Outcome{
		Output: output, Stop: c.stop, FuelUsed: c.limits.Fuel - c.remaining(), MemoryBytes: uint64(c.memory.Size()),
		HostCalls: c.count, Effects: uint64(c.effects), ClockEndNanos: c.clock,
	}
}

// run takes the guest through its phases. It returns no output if the guest was
// stopped.
func (c *Calls) run(ctx context.Context, i Instance, inv *Invocation) ([]byte, error) {
	for _, p := range []struct {
		phase  Phase
		export string
	}{{PhaseStart, prepare.StartExport}, {PhaseInitialize, abi.ExportInitialize}} {
		if _, _, err := c.enterGuest(ctx, i, p.phase, p.export); err != nil || c.stop != nil {
			return nil, err
		}
	}
	ptr, err := c.deliver(ctx, i, inv.Input)
	if err != nil || c.stop != nil {
		return nil, err
	}
	phase := PhaseExecute
	if inv.Entry == abi.ExportVerify {
		phase = PhaseVerify
	}
	packed, present, err := c.enterGuest(ctx, i, phase, inv.Entry, ptr, uint32(len(inv.Input)))
	switch {
	case err != nil || c.stop != nil:
		return nil, err
	case !present:
		c.stopped(StopMissingExport, "", 0, "the module has no such function of the form (i32, i32) -> i64")
		return nil, nil
	}
	return c.collect(uint32(packed>>32), uint32(packed)), nil
}

// deliver copies the request into memory the guest allocates.
func (c *Calls) deliver(ctx context.Context, i Instance, input []byte) (uint32, error) {
	size := uint32(len(input))
	if uint64(len(input)) > uint64(c.limits.MemoryBytes) {
		c.phase, c.export = PhaseAlloc, abi.ExportAlloc
		c.stopped(StopMemory, limitMemory, c.limits.MemoryBytes, fmt.Sprintf("the request has %d bytes", len(input)))
		return 0, nil
	}
	result, present, err := c.enterGuest(ctx, i, PhaseAlloc, abi.ExportAlloc, size)
	if err != nil || c.stop != nil {
		return 0, err
	}
	ptr := uint32(result)
	if !present {
		c.stopped(StopMissingExport, "", 0, "the module has no such function of the form (i32) -> i32")
		return 0, nil
	}
	if ptr == 0 && size > 0 {
		c.stopped(StopMemory, limitMemory, c.limits.MemoryBytes, fmt.Sprintf("the guest gave no memory for a request of %d bytes", size))
		return 0, nil
	}
	if to, ok := c.bytesAt(ptr, size); ok {
		copy(to, input)
	}
	return ptr, nil
}

// collect copies the output out of the guest's memory, once its size is known
// to be allowed.
func (c *Calls) collect(ptr, size uint32) []byte {
	switch {
	case size == 0:
		c.stopped(StopOutputPointer, "", 0, "the guest returned a message of no bytes")
		return nil
	case uint64(size) > c.limits.OutputBytes:
		c.stopped(StopOutputBytes, limitOutput, c.limits.OutputBytes, fmt.Sprintf("the guest returned a message of %d bytes", size))
		return nil
	}
	from, ok := c.memory.Read(ptr, size)
	if !ok {
		c.stopped(StopOutputPointer, "", 0, "the guest returned a message outside its memory")
		return nil
	}
	return append([]byte(nil), from...)
}

// enterGuest calls an export. Whatever ended the call is sorted out here: a stop
// of the guest is in c.stop, everything else is the error.
func (c *Calls) enterGuest(ctx context.Context, i Instance, phase Phase, export string, args ...uint32) (uint64, bool, error) {
	c.phase, c.export = phase, export
	c.stack.Set(c.stackSlots)
	result, present, err := i.Call(ctx, export, args...)
	var trap *Trap
	switch {
	case c.fault != nil:
		if ctx.Err() != nil && (errors.Is(c.fault, context.Cause(ctx)) || errors.Is(c.fault, ctx.Err())) {
			return 0, present, context.Cause(ctx)
		}
		return 0, present, fmt.Errorf("invoke guest: %w", c.fault)
	case c.stop != nil:
		return 0, present, nil
	case errors.As(err, &trap):
		c.trapped(trap.Cause)
		return 0, present, nil
	case err != nil && c.current != 0:
		return 0, present, fmt.Errorf("invoke guest: host call %s panicked: %w", c.function(), err)
	case err != nil:
		return 0, present, fmt.Errorf("invoke guest: call %s: %w", export, err)
	}
	return result, present, nil
}
