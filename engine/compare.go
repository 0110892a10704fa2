package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/writrun/writ/engine/evidence"
	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host"
	"github.com/writrun/writ/host/trace"
)

// record is where the events of a run go: the journal of a live run, or in a
// replay the trace they are compared with.
type record interface {
	Append(trace.Lane, trace.Event) (trace.Address, error)
	Sync() error
}

// laneRecord is one lane of a record, for a host.Recorder.
type laneRecord struct {
	record
	lane trace.Lane
}

func (l laneRecord) Append(e trace.Event) (trace.Address, error) { return l.record.Append(l.lane, e) }

// Codes of a [Divergence].
const (
	DivergedEvent   = "event_differs"   // the event at the address is another
	DivergedExtra   = "event_extra"     // the record has no event there
	DivergedMissing = "event_left_over" // the replay ended before the event
)

// Divergence is the first place where a replay was not as recorded, in the
// order of the sealed trace. Addresses and counts of the replay are the record's
// up to there.
type Divergence struct {
	Code     string `json:"code"`
	Address  string `json:"address"` // of the event, or of the call in its batch
	StepID   abi.ID `json:"step_id,omitempty"`
	Kind     string `json:"kind"`               // of the event in the record, or of the one that is extra
	Function string `json:"function,omitempty"` // the host call, where the event is a batch of calls
	Recorded string `json:"recorded"`           // JSON, cut to a few hundred characters; "" where there is nothing
	Replayed string `json:"replayed"`
}

// divergedTextMax bounds each side that a [Divergence] shows, in bytes.
const divergedTextMax = 2000

// errDiverged ends an invocation that cannot be served any further.
var errDiverged = errors.New("the replay diverged before")

// comparison is a record that takes each event of a replay for the recorded one
// at the same address, and notes where that is not so. Control is left out: it
// holds what is not part of the execution.
type comparison struct {
	trace *evidence.Trace

	mu       sync.Mutex
	next     map[trace.Lane]int // how many events of the lane were reproduced
	diverged map[trace.Lane]*Divergence
	calls    uint64
	effects  uint64

	results, arbitrations int
}

func newComparison(tr *evidence.Trace) *comparison {
	return &comparison{trace: tr, next: map[trace.Lane]int{}, diverged: map[trace.Lane]*Divergence{}}
}

// Append compares e. Of a lane only the first difference is noted; what follows
// it is bound to differ as well.
func (c *comparison) Append(lane trace.Lane, e trace.Event) (trace.Address, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := c.next[lane]
	headers := c.trace.Headers(lane)
	switch {
	case lane == trace.LaneControl || c.diverged[lane] != nil:
		c.next[lane]++
		return trace.Address{Lane: lane, Seq: uint64(i)}, nil
	case i >= len(headers):
		a := trace.Address{Lane: lane, Seq: uint64(i)}
		if i > 0 {
			a.Seq = headers[i-1].Seq + 1
		}
		c.diverged[lane] = &Divergence{Code: DivergedExtra, Address: a.String(), Kind: e.Kind.String(), Replayed: payloadText(e.Kind, e.Payload)}
		return a, nil
	}
	h, payload, err := c.trace.Payload(headers[i].Address())
	if err != nil {
		return h.Address(), err
	}
	c.next[lane]++
	if h.Kind != e.Kind || !bytes.Equal(payload, e.Payload) {
		c.diverged[lane] = differs(h, payload, e)
	}
	switch e.Kind {
	case trace.KindHostCalls:
		c.calls += e.Span
	case trace.KindEffectOutcome:
		c.effects++
	case trace.KindVerificationResult:
		c.results++
	case trace.KindVerificationArbitration:
		c.arbitrations++
	}
	return h.Address(), nil
}

// Sync does nothing: nothing is written.
func (c *comparison) Sync() error { return nil }

// serve answers an effect from the record. The intent was compared by then, and
// the outcome is what the lane has next.
func (c *comparison) serve(lane trace.Lane) (trace.EffectOutcome, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out trace.EffectOutcome
	headers := c.trace.Headers(lane)
	i := c.next[lane]
	if c.diverged[lane] != nil || i >= len(headers) || headers[i].Kind != trace.KindEffectOutcome {
		return out, errDiverged
	}
	_, payload, err := c.trace.Payload(headers[i].Address())
	if err != nil {
		return out, err
	}
	return out, trace.DecodePayload(payload, &out)
}

// first returns the first divergence in the order of the trace, but of the run
// lane's last: its end follows from all the others. Events that were not
// reproduced are one, the very last apart, which is the seal's.
func (c *comparison) first() *Divergence {
	lanes := slices.DeleteFunc(c.trace.Lanes(), func(l trace.Lane) bool { return l == trace.LaneRun || l == trace.LaneControl })
	for _, lane := range append(lanes, trace.LaneRun) {
		if d := c.diverged[lane]; d != nil {
			return c.named(lane, d)
		}
		headers := c.trace.Headers(lane)
		for _, h := range headers[min(c.next[lane], len(headers)):] {
			if h.Kind != trace.KindRunEnd {
				return c.named(lane, &Divergence{Code: DivergedMissing, Address: h.Address().String(), Kind: h.Kind.String(), Recorded: c.recordedText(h)})
			}
		}
	}
	for lane, d := range c.diverged { // of a lane the record does not have
		if !slices.Contains(c.trace.Lanes(), lane) {
			return c.named(lane, d)
		}
	}
	return nil
}

func (c *comparison) named(lane trace.Lane, d *Divergence) *Divergence {
	if lane != trace.LaneRun && !strings.Contains(string(lane), "@") {
		d.StepID = abi.ID(lane)
	}
	return d
}

func (c *comparison) recordedText(h trace.Header) string {
	_, payload, err := c.trace.Payload(h.Address())
	if err != nil {
		return ""
	}
	return payloadText(h.Kind, payload)
}

// differs describes a difference between an event and the recorded one, to the
// host call where both are batches of calls.
func differs(h trace.Header, recorded []byte, e trace.Event) *Divergence {
	d := &Divergence{Code: DivergedEvent, Address: h.Address().String(), Kind: h.Kind.String(), Recorded: payloadText(h.Kind, recorded), Replayed: payloadText(e.Kind, e.Payload)}
	if h.Kind != e.Kind {
		d.Replayed = cut(e.Kind.String() + " " + d.Replayed)
		return d
	}
	var was, is trace.HostCalls
	if h.Kind != trace.KindHostCalls || trace.DecodePayload(recorded, &was) != nil || trace.DecodePayload(e.Payload, &is) != nil {
		return d
	}
	for i := range max(len(was.Calls), len(is.Calls)) {
		a, b := callText(was.Calls, i), callText(is.Calls, i)
		if a == b {
			continue
		}
		d.Address = trace.Address{Lane: h.Lane, Seq: h.Seq + uint64(i)}.String()
		d.Recorded, d.Replayed = a, b
		if i < len(was.Calls) {
			d.Function = callName(was.Calls[i].Fn)
		} else {
			d.Function = callName(is.Calls[i].Fn)
		}
		return d
	}
	return d
}

func callName(number uint16) string {
	for _, h := range abi.HostCalls {
		if h.Number == number {
			return h.Name
		}
	}
	return fmt.Sprint(number)
}

// callText writes the call with index i of a batch, or "" if there is none.
func callText(calls []trace.Call, i int) string {
	if i >= len(calls) {
		return ""
	}
	text, err := json.Marshal(calls[i])
	if err != nil {
		return cut(fmt.Sprintf("%+v", calls[i]))
	}
	return cut(string(text))
}

func payloadText(kind trace.Kind, payload []byte) string {
	text, err := trace.PayloadJSON(kind, payload)
	if err != nil {
		return cut(fmt.Sprintf("%x", payload))
	}
	return cut(string(text))
}

func cut(s string) string {
	if len(s) <= divergedTextMax {
		return s
	}
	return s[:divergedTextMax] + "…"
}

// served returns the function that answers the effects of a step from the record.
func (r *run) served(lane trace.Lane) func(context.Context, host.EffectCall) (host.EffectReply, error) {
	return func(_ context.Context, c host.EffectCall) (host.EffectReply, error) {
		intent := trace.EffectIntent{Ordinal: c.Ordinal, Driver: c.Driver, Request: c.Request, Fuel: c.Fuel}
		if _, err := r.append(lane, trace.KindEffectIntent, trace.CauseTool, intent); err != nil {
			return host.EffectReply{}, err
		}
		out, err := r.compared.serve(lane)
		if err != nil {
			return host.EffectReply{}, err
		}
		if _, err := r.append(lane, trace.KindEffectOutcome, trace.CauseTool, out); err != nil {
			return host.EffectReply{}, err
		}
		return host.EffectReply{Response: out.Response, Code: abi.Code(out.Code)}, nil
	}
}
