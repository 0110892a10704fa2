package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/writrun/writ/engine/flow"
	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host"
	"github.com/writrun/writ/host/trace"
)

// stopEntropy is the cause of a stop at a source the manifest does not allow.
const stopEntropy = "entropy_exhausted"

const allowedSources = "entropy_budget.allowed_sources"

// errEntropy ends an invocation whose guest reached for a source that is not
// allowed. It never leaves this package.
var errEntropy = errors.New("a source of entropy is not allowed")

// sourceOf is the source of entropy a host call draws on, or "". The virtual
// clock is determined by the plan and draws on none; effects are charged when
// the plan is made.
func sourceOf(call abi.HostCall) string {
	switch call.Name {
	case "random_fill", "random_get":
		return flow.SourceSeededRNG
	case "dataset_size", "dataset_read", "fd_read", "fd_pread", "fd_readdir", "path_open", "path_filestat_get":
		return flow.SourceData
	}
	return ""
}

// charged is a recording boundary that halts at a source outside the budget. The
// call that reached for it is recorded and never answered.
type charged struct {
	*host.Recorder
	denied   map[uint16]string // host call → source
	exceeded string            // the source a call reached for
	fuel     uint64            // that remained then
	calls    uint64
}

// deniedCalls maps each host call that draws on a source outside allowed to it.
func deniedCalls(allowed []string) map[uint16]string {
	denied := map[uint16]string{}
	for _, h := range abi.HostCalls {
		if source := sourceOf(h); source != "" && !slices.Contains(allowed, source) {
			denied[h.Number] = source
		}
	}
	return denied
}

// HostCall records c, and halts if its source is not allowed.
func (b *charged) HostCall(c *trace.Call) error {
	if err := b.Recorder.HostCall(c); err != nil || len(b.denied) == 0 {
		return err
	}
	b.calls++
	if b.exceeded = b.denied[c.Fn]; b.exceeded != "" {
		b.fuel = c.Fuel
		return errEntropy
	}
	return nil
}

// invoke runs a guest. A halt at the entropy budget is a stop of the guest like
// any other, with an event of its own before it.
func (r *run) invoke(ctx context.Context, prepared abi.Digest, inv host.Invocation, recorder *host.Recorder) (host.Outcome, error) {
	b := &charged{Recorder: recorder, denied: r.denied}
	inv.Boundary, inv.Seed, inv.ClockStepNanos = b, r.seed, r.plan.Clock.StepNanos
	out, err := host.Invoke(ctx, r.compiled[prepared], inv)
	if errors.Is(err, errEntropy) {
		return r.halt(inv, b)
	}
	if err != nil {
		return out, fmt.Errorf("lane %s: %w", inv.Lane, err)
	}
	return out, nil
}

func (r *run) halt(inv host.Invocation, b *charged) (host.Outcome, error) {
	if err := b.Flush(); err != nil {
		return host.Outcome{}, fmt.Errorf("lane %s: %w", inv.Lane, err)
	}
	_, err := r.append(inv.Lane, trace.KindEntropyExhausted, trace.CauseRuntime,
		trace.EntropyExhausted{Source: b.exceeded, Budget: allowedSources, Action: r.plan.EntropyBudget.ExhaustionAction})
	stop := &trace.StopInfo{Cause: stopEntropy, Phase: phaseOf(inv.Entry), Limit: allowedSources,
		Detail: "source " + b.exceeded + " is not allowed"}
	return host.Outcome{Stop: stop, FuelUsed: inv.Limits.Fuel - b.fuel, HostCalls: b.calls, ClockEndNanos: inv.ClockStartNanos}, err
}
