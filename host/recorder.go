package host

import (
	"context"
	"fmt"

	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host/trace"
)

// Sink takes the events of one lane.
type Sink interface {
	// Append adds an event and returns its address. It must not keep the payload.
	Append(e trace.Event) (trace.Address, error)
	// Sync makes everything appended durable.
	Sync() error
}

// callsHeadBytesMax is the longest head of an array of trace.BatchCallsMax items.
const callsHeadBytesMax = 3

// Recorder is the boundary of a live invocation: calls become HOST_CALLS events
// of at most trace.BatchCallsMax calls, effects go to a function of the caller's.
// A batch ends with its last call, before a call that would make it longer than
// trace.BatchInlineBytesMax, or before another event of the lane, so how calls
// are cut into events follows from the calls alone. A call that is longer than
// that by itself is a batch by itself.
type Recorder struct {
	sink   Sink
	effect func(context.Context, EffectCall) (EffectReply, error)
	batch  []byte // room for the array's head, then the calls
	count  int
}

// NewRecorder returns a recorder that appends to s. The function performs
// effects and appends their events itself; nil refuses every effect as
// abi.NotGranted.
func NewRecorder(s Sink, effect func(context.Context, EffectCall) (EffectReply, error)) *Recorder {
	return &Recorder{sink: s, effect: effect, batch: make([]byte, callsHeadBytesMax, 8<<10)}
}

// HostCall adds a call to the batch at hand.
func (r *Recorder) HostCall(c *trace.Call) error {
	before := len(r.batch)
	r.batch = trace.AppendCall(r.batch, c)
	if len(r.batch) > trace.BatchInlineBytesMax && r.count > 0 {
		call := r.batch[before:]
		r.batch = r.batch[:before]
		if err := r.Flush(); err != nil {
			return err
		}
		r.batch = append(r.batch, call...)
	}
	r.count++
	if r.count < trace.BatchCallsMax {
		return nil
	}
	return r.Flush()
}

// Effect ends the batch at hand and performs the effect.
func (r *Recorder) Effect(ctx context.Context, c EffectCall) (EffectReply, error) {
	if err := r.Flush(); err != nil {
		return EffectReply{}, err
	}
	if r.effect == nil {
		return EffectReply{Code: abi.NotGranted}, nil
	}
	return r.effect(ctx, c)
}

// Flush appends the batch at hand as an event. After an error nothing more can
// be recorded.
func (r *Recorder) Flush() error {
	if r.count == 0 {
		return nil
	}
	var head [callsHeadBytesMax]byte
	h := trace.AppendCallsHead(head[:0], r.count)
	payload := r.batch[callsHeadBytesMax-len(h):]
	copy(payload, h)
	_, err := r.sink.Append(trace.Event{Kind: trace.KindHostCalls, Cause: trace.CauseEnvironment, Attempt: 1,
		Payload: payload, Span: uint64(r.count)})
	if err != nil {
		return fmt.Errorf("append %d host calls: %w", r.count, err)
	}
	r.batch, r.count = r.batch[:callsHeadBytesMax], 0
	return nil
}
