package engine

import (
	"context"
	"errors"
	"slices"

	"github.com/writrun/writ/engine/flow"
	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host"
	"github.com/writrun/writ/host/trace"
	"github.com/writrun/writ/policies"
)

// subject is what a rule looks at: one step, or the flow.
type subject struct {
	target   string
	phase    abi.Phase
	absent   string // why there is nothing to look at, or ""
	clockEnd int64
	request  abi.VerifyRequest // without the rule
	datasets []abi.ID
	arts     *artifactScope
}

func (r *run) stepSubject(s *stepState) subject {
	sub := subject{target: string(s.plan.ID), phase: abi.PhaseStep, clockEnd: s.clockEnd, datasets: s.plan.Datasets}
	if !s.ok() {
		sub.absent = "step " + string(s.plan.ID) + " " + s.state
		return sub
	}
	evidence := slices.Clone(s.output.Evidence)
	for _, id := range s.plan.Needs {
		evidence = append(evidence, r.steps[id].output.Evidence...)
	}
	sub.arts = s.arts
	sub.request = abi.VerifyRequest{
		Claims: s.output.Claims, Evidence: evidence, Artifacts: s.output.Artifacts,
		Outputs: []abi.TargetOutput{{StepID: s.plan.ID, Output: s.output.Output}}, Datasets: s.handles,
	}
	return sub
}

func (r *run) flowSubject() subject {
	sub := subject{target: "flow", phase: abi.PhaseFlow, clockEnd: r.clockStart}
	var needs []abi.ID
	for _, s := range r.order {
		sub.clockEnd = max(sub.clockEnd, s.clockEnd)
		if !s.ok() {
			if sub.absent == "" {
				sub.absent = "step " + string(s.plan.ID) + " " + s.state
			}
			continue
		}
		needs = append(needs, s.plan.ID)
		sub.request.Claims = append(sub.request.Claims, s.output.Claims...)
		sub.request.Evidence = append(sub.request.Evidence, s.output.Evidence...)
		sub.request.Artifacts = append(sub.request.Artifacts, s.output.Artifacts...)
		sub.request.Outputs = append(sub.request.Outputs, abi.TargetOutput{StepID: s.plan.ID, Output: s.output.Output})
	}
	for _, d := range r.plan.Datasets {
		sub.datasets = append(sub.datasets, d.ID)
		sub.request.Datasets = append(sub.request.Datasets, r.pinned[d.ID].Handle)
	}
	sub.arts = r.newScope(needs)
	return sub
}

// verify asks each rule about sub, in plan order. Every rule yields exactly one
// result, NOT_RUN included.
func (r *run) verify(ctx context.Context, rules []flow.PlanRule, sub subject) ([]RuleResult, error) {
	var results []RuleResult
	for _, rule := range rules {
		result, err := r.rule(ctx, rule, sub)
		if err != nil {
			return nil, err
		}
		results = append(results, result)
	}
	return results, nil
}

func (r *run) rule(ctx context.Context, rule flow.PlanRule, sub subject) (RuleResult, error) {
	lane := trace.RuleLane(rule.RuleID, sub.target)
	record := trace.VerificationResult{RuleID: rule.RuleID, Target: sub.target, Violations: []abi.Violation{}}
	if sub.absent != "" {
		record.Status, record.Reason = abi.NotRun, sub.absent
		return r.recordResult(lane, record)
	}
	release, err := r.slot(ctx)
	if err != nil {
		return RuleResult{}, err
	}
	defer release()
	r.progress("verify", string(lane))
	req := sub.request
	req.ABI = abi.Version
	req.Rule = abi.VerifyRule{ID: rule.RuleID, Config: objectOrEmpty(rule.Config), Phase: sub.phase, Target: sub.target}
	input, err := abi.EncodeMessage(req)
	if err != nil {
		return RuleResult{}, err
	}
	start := trace.VerificationStart{RuleID: rule.RuleID, Target: sub.target, Phase: sub.phase,
		Module: rule.Module.Digest, Prepared: rule.Module.Prepared, Input: abi.DigestOf(input)}
	if _, err := r.append(lane, trace.KindVerificationStart, trace.CausePolicy, start); err != nil {
		return RuleResult{}, err
	}
	out, err := r.invoke(ctx, rule.Module.Prepared, host.Invocation{
		Lane: lane, Entry: abi.ExportVerify, Input: input, Limits: rule.Limits,
		ClockStartNanos: sub.clockEnd, Datasets: r.datasets(sub.datasets), Artifacts: sub.arts.readOnly(),
	}, host.NewRecorder(laneRecord{r.record, lane}, nil))
	if err != nil {
		return RuleResult{}, err
	}
	judgeRule(&record, out)
	return r.recordResult(lane, record)
}

// judgeRule turns what a rule module did into a result. A trap, a stop or an
// unreadable answer is ERROR: never a pass, never dropped.
func judgeRule(record *trace.VerificationResult, out host.Outcome) {
	record.Output, record.FuelUsed, record.HostCalls = out.Output, out.FuelUsed, out.HostCalls
	record.Status, record.Stop = abi.Errored, out.Stop
	if out.Stop == nil {
		resp, err := abi.DecodeVerifyResponse(out.Output)
		if err == nil {
			record.Status, record.Reason, record.Violations = resp.Status, resp.Reason, resp.Violations
			return
		}
		var own *abi.GuestError
		if errors.As(err, &own) {
			record.Reason = own.Code + ": " + own.Message
			return
		}
		record.Stop = invalidOutput(abi.ExportVerify, err)
	}
	record.Reason = stopText(*record.Stop)
}

func (r *run) recordResult(lane trace.Lane, record trace.VerificationResult) (RuleResult, error) {
	a, err := r.append(lane, trace.KindVerificationResult, trace.CausePolicy, record)
	return RuleResult{RuleID: record.RuleID, Target: record.Target, Status: record.Status, Reason: record.Reason,
		Violations: record.Violations, FuelUsed: record.FuelUsed, Address: a}, err
}

// arbitrate asks the policy for its decision over results of target and
// records it: the decision in its own lane, what was asked in control.
func (r *run) arbitrate(ctx context.Context, target string, now int64, results []RuleResult) (*Arbitration, error) {
	r.progress("arbitrate", target)
	d, err := r.policies.Arbitrate(policies.WithSeed(ctx, policies.PolicySeed(r.seed)), r.arbitrationInput(target, now, results))
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		// The policy engine's wording stays out of the core record.
		d.Decision, d.Permissive, d.Reasons = DecisionEscalate, false, []string{"no_decision"}
	}
	record := trace.VerificationArbitration{Target: target, Entrypoint: d.Record.Entrypoint, Policy: d.Record.Policy,
		Input: d.Record.InputDigest, Decision: d.Decision, Permissive: d.Permissive, Reasons: d.Reasons}
	a, appendErr := r.append(trace.ArbitrationLane(target), trace.KindVerificationArbitration, trace.CausePolicy, record)
	if appendErr != nil {
		return nil, appendErr
	}
	traceRecord := trace.DecisionTrace{Address: a, Entrypoint: d.Record.Entrypoint, InputDocument: d.Record.Input, RulesFired: d.Record.RulesFired}
	if err != nil {
		traceRecord.Error = err.Error()
	}
	if _, err := r.append(trace.LaneControl, trace.KindDecisionTrace, trace.CausePolicy, traceRecord); err != nil {
		return nil, err
	}
	r.decided(r.id, a, d.Record, DecisionResult{Decision: d.Decision, Permissive: d.Permissive, Reasons: d.Reasons}, err)
	return &Arbitration{Target: target, Decision: d.Decision, Permissive: d.Permissive, Reasons: d.Reasons,
		Entrypoint: d.Record.Entrypoint, Policy: d.Record.Policy, Address: a}, nil
}

func (r *run) arbitrationInput(target string, now int64, results []RuleResult) policies.ArbitrationInput {
	in := policies.ArbitrationInput{
		Action: "arbitrate", Tenant: r.TenantID.String(), Mode: ModeLive, Now: now, FlowID: string(r.plan.FlowID), Target: target,
		Rule: r.plan.Arbitration.Rule, QuorumThreshold: r.plan.Arbitration.QuorumThreshold,
	}
	in.Coverage.Expected = r.expected(target)
	for _, res := range results {
		rule := r.rules[res.RuleID]
		in.Results = append(in.Results, policies.ArbitrationResult{RuleID: string(res.RuleID), Target: res.Target, Status: res.Status,
			Severity: rule.Severity, Randomness: rule.Randomness, Violations: len(res.Violations)})
	}
	return in
}

// expected is how many results there should be: one for each rule and target,
// and for the flow those of every step as well.
func (r *run) expected(target string) int {
	n := 0
	for _, rule := range r.plan.Rules {
		if target == trace.TargetFlow {
			n += len(rule.Targets)
		} else if slices.Contains(rule.Targets, target) {
			n++
		}
	}
	return n
}
