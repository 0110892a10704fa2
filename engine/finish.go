package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/writrun/writ/engine/flow"
	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host/trace"
)

// Marks travel with a result to the last line of output and the last file.
const (
	MarkNonCertifiable  = "non_certifiable"
	MarkPermissive      = "permissive"
	MarkProviderUnknown = "provider_version_unknown"
	MarkDraft           = "draft_flow"
)

// finish verifies and arbitrates the flow, ends the run lane and seals.
func (r *run) finish(ctx context.Context) (Result, error) {
	sub := r.flowSubject()
	flowResults, err := r.verify(ctx, r.plan.RulesFor("flow"), sub)
	if err != nil {
		return Result{}, err
	}
	var all []RuleResult
	failed := false
	decision, reasons := DecisionPass, []string(nil)
	permissive := false
	for _, s := range r.order {
		all = append(all, s.results...)
		failed = failed || s.state == StateFailed
		if s.decision == nil {
			continue
		}
		permissive = permissive || s.decision.Permissive
		if s.decision.Decision != DecisionPass {
			decision = worse(decision, s.decision.Decision)
			reasons = append(reasons, fmt.Sprintf("step %s: %s", s.plan.ID, s.decision.Decision))
		}
	}
	all = append(all, flowResults...)
	whole, err := r.arbitrate(ctx, "flow", sub.clockEnd, all)
	if err != nil {
		return Result{}, err
	}
	// A flow's decision is never better than that of one of its steps.
	decision = worse(decision, whole.Decision)
	reasons = append(slices.Clone(whole.Reasons), reasons...)
	permissive = whole.Permissive || permissive && decision == DecisionPass

	state := StateSucceeded
	if failed {
		state = StateFailed
	}
	return r.seal(trace.ExecutionEnd{State: state, Decision: decision, Result: resultWord(failed, decision, permissive),
		Permissive: permissive, Reasons: reasons, Marks: r.marks(permissive)})
}

// marks are computed here and never taken away.
func (r *run) marks(permissive bool) []string {
	marks := []string{}
	if r.plan.FlowState == flow.StateDraft {
		marks = append(marks, MarkNonCertifiable, MarkDraft)
	}
	if permissive {
		marks = append(marks, MarkPermissive)
	}
	for _, s := range r.order {
		if s.effects > 0 && slices.ContainsFunc(s.plan.Effects, versioned) {
			marks = append(marks, MarkProviderUnknown)
			break
		}
	}
	slices.Sort(marks)
	return marks
}

// seal ends the record and says of the run what the sealed record says.
func (r *run) seal(end trace.ExecutionEnd) (Result, error) {
	r.progress("seal", string(r.id))
	if _, err := r.append(trace.LaneRun, trace.KindExecutionEnd, trace.CauseRuntime, end); err != nil {
		return Result{}, err
	}
	if r.compared != nil {
		return Result{}, nil
	}
	_, err := r.journal.Seal(r.layout(), func(digest abi.Digest) (trace.Event, error) {
		payload, err := trace.EncodePayload(trace.RunEnd{ExecutionDigest: digest, Result: end.Result})
		return trace.Event{Kind: trace.KindRunEnd, Cause: trace.CauseRuntime, Attempt: 1, Payload: payload}, err
	})
	if err != nil {
		return Result{}, err
	}
	return r.Show(r.id)
}

// layout is the order of lanes in the sealed trace: the run, each step with its
// rules and its arbitration, those of the flow, and control.
func (r *run) layout() []trace.Lane {
	lanes := []trace.Lane{trace.LaneRun}
	target := func(name string) {
		for _, rule := range r.plan.RulesFor(name) {
			lanes = append(lanes, trace.RuleLane(rule.RuleID, name))
		}
		lanes = append(lanes, trace.ArbitrationLane(name))
	}
	for _, s := range r.order {
		lanes = append(lanes, trace.StepLane(s.plan.ID))
		target(string(s.plan.ID))
	}
	target("flow")
	return append(lanes, trace.LaneControl)
}
