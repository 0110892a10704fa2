package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/writrun/writ/engine/flow"
	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host"
	"github.com/writrun/writ/host/trace"
)

// stepState is what a run knows of one step. Its fields are written by the
// step's own goroutine before done is closed and read only after.
type stepState struct {
	plan     flow.PlanStep
	done     chan struct{}
	state    string // succeeded, failed or skipped; the record has the rest
	effects  uint64 // performed
	output   abi.StepOutput
	handles  []abi.DatasetHandle
	clockEnd int64
	arts     *artifactScope
	results  []RuleResult
	decision *Arbitration // nil: the step is no rule's target
}

func (s *stepState) ok() bool { return s.state == StateSucceeded }

// step waits for what s needs, then executes, skips or gives up, verifies and
// arbitrates. It returns an error only for what stops the whole run.
func (r *run) step(ctx context.Context, s *stepState) error {
	defer close(s.done)
	s.clockEnd = r.clockStart
	for _, id := range s.plan.Needs {
		need := r.steps[id]
		select {
		case <-need.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		s.clockEnd = max(s.clockEnd, need.clockEnd)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	because, reason := r.blocked(s)
	if reason != "" {
		if err := r.skip(s, because, reason); err != nil {
			return err
		}
	} else if err := r.execute(ctx, s); err != nil {
		return err
	}
	results, err := r.verify(ctx, r.plan.RulesFor(string(s.plan.ID)), r.stepSubject(s))
	if err != nil {
		return err
	}
	s.results = results
	if len(results) > 0 {
		s.decision, err = r.arbitrate(ctx, string(s.plan.ID), s.clockEnd, results)
	}
	r.ended(s)
	return err
}

// blocked says why s cannot start: the steps at fault and a reason, or "".
func (r *run) blocked(s *stepState) (because []string, reason string) {
	for _, id := range s.plan.Needs {
		if !r.steps[id].ok() {
			because = append(because, string(id))
		}
	}
	if because != nil {
		return because, "a step it needs did not succeed"
	}
	if s.plan.Requires == "" {
		return nil, ""
	}
	judged := 0
	for _, up := range r.upstream(s.plan.ID) {
		if up.decision == nil {
			continue
		}
		judged++
		if up.decision.Decision != DecisionPass || up.decision.Permissive && s.plan.Requires != flow.RequiresPassPermissive {
			because = append(because, string(up.plan.ID))
		}
	}
	switch {
	case because != nil:
		return because, fmt.Sprintf("it requires %s of everything upstream", s.plan.Requires)
	case judged == 0:
		return nil, "it requires pass, and " + ReasonNothingEvaluated + " upstream"
	}
	return nil, ""
}

// upstream returns every step id needs, directly or not, in plan order.
func (r *run) upstream(id abi.ID) []*stepState {
	wanted := map[abi.ID]bool{}
	var mark func(abi.ID)
	mark = func(id abi.ID) {
		for _, need := range r.steps[id].plan.Needs {
			if !wanted[need] {
				wanted[need] = true
				mark(need)
			}
		}
	}
	mark(id)
	var out []*stepState
	for _, other := range r.order {
		if wanted[other.plan.ID] {
			out = append(out, other)
		}
	}
	return out
}

func (r *run) skip(s *stepState, because []string, reason string) error {
	s.state = stateSkipped
	_, err := r.append(trace.StepLane(s.plan.ID), trace.KindStepSkipped, trace.CauseRuntime,
		trace.StepSkipped{Because: because, Reason: reason})
	return err
}

// execute runs the guest of s and records how it ended.
func (r *run) execute(ctx context.Context, s *stepState) error {
	release, err := r.slot(ctx)
	if err != nil {
		return err
	}
	defer release()
	r.progress("start", string(s.plan.ID))
	lane := trace.StepLane(s.plan.ID)
	input, err := r.executeRequest(s)
	if err != nil {
		return err
	}
	start := trace.StepStart{StepID: s.plan.ID, Role: s.plan.Role, Module: s.plan.Module.Digest,
		Prepared: s.plan.Module.Prepared, Input: abi.DigestOf(input)}
	if _, err := r.append(lane, trace.KindStepStart, trace.CauseAgent, start); err != nil {
		return err
	}
	s.arts = r.newScope(s.plan.Needs)
	recorder := host.NewRecorder(laneRecord{r.record, lane}, r.effects(lane, s))
	out, err := r.invoke(ctx, s.plan.Module.Prepared, host.Invocation{
		Lane: lane, Entry: abi.ExportExecute, Input: input, Limits: s.plan.Limits,
		ClockStartNanos: s.clockEnd, Datasets: r.datasets(s.plan.Datasets),
		Artifacts: s.arts, Effects: len(s.plan.Effects) > 0,
	}, recorder)
	if err != nil {
		return err
	}
	s.clockEnd, s.effects = out.ClockEndNanos, out.Effects
	return r.conclude(s, lane, out)
}

func (r *run) executeRequest(s *stepState) ([]byte, error) {
	req := abi.ExecuteRequest{
		ABI: abi.Version, FlowID: r.plan.FlowID,
		Step:     abi.ExecuteStep{ID: s.plan.ID, Role: s.plan.Role, Config: objectOrEmpty(s.plan.Config)},
		Inputs:   map[abi.ID]abi.StepOutput{},
		Datasets: s.handles,
	}
	for _, id := range s.plan.Needs {
		req.Inputs[id] = r.steps[id].output
	}
	return abi.EncodeMessage(req)
}

// conclude judges what the guest of s returned and appends STEP_END or
// STEP_FAILED.
func (r *run) conclude(s *stepState, lane trace.Lane, out host.Outcome) error {
	fail := func(f trace.StepFailed) error {
		f.Output, f.FuelUsed, f.MemoryBytes = out.Output, out.FuelUsed, out.MemoryBytes
		f.HostCalls, f.ClockEndNanos = out.HostCalls, out.ClockEndNanos
		s.state = StateFailed
		_, err := r.append(lane, trace.KindStepFailed, trace.CauseAgent, f)
		return err
	}
	if out.Stop != nil {
		return fail(trace.StepFailed{Stop: out.Stop})
	}
	resp, err := abi.DecodeExecuteResponse(out.Output)
	if err != nil {
		return fail(trace.StepFailed{Stop: invalidOutput(abi.ExportExecute, err)})
	}
	if resp.Error != nil {
		return fail(trace.StepFailed{Error: resp.Error})
	}
	if v := r.violation(s, resp.StepOutput); v != nil {
		if _, err := r.append(lane, trace.KindSemanticViolation, trace.CauseRuntime, *v); err != nil {
			return err
		}
		return fail(trace.StepFailed{Error: &abi.GuestError{Code: v.Code, Message: v.Message}})
	}
	s.output, s.state = resp.StepOutput, StateSucceeded
	_, err = r.append(lane, trace.KindStepEnd, trace.CauseAgent, trace.StepEnd{Output: out.Output, FuelUsed: out.FuelUsed,
		MemoryBytes: out.MemoryBytes, HostCalls: out.HostCalls, ClockEndNanos: out.ClockEndNanos})
	return err
}

// violation checks an output against what the plan and the lane's own calls
// allow it to say.
func (r *run) violation(s *stepState, out abi.StepOutput) *trace.SemanticViolation {
	if !s.plan.Claims && len(out.Claims) > 0 {
		return &trace.SemanticViolation{Code: "undeclared_claims",
			Message: fmt.Sprintf("the step makes %d claims and the manifest says claims: false", len(out.Claims))}
	}
	for _, a := range out.Artifacts {
		if !s.arts.own(a.ArtifactID) {
			return &trace.SemanticViolation{Code: "unknown_artifact",
				Message: fmt.Sprintf("artifact %s was not stored by this step with artifact_put", a.ArtifactID)}
		}
	}
	return nil
}

// invalidOutput is the canonical stop of a guest whose message cannot be read.
func invalidOutput(entry string, err error) *trace.StopInfo {
	stop := &trace.StopInfo{Cause: "invalid_output", Phase: phaseOf(entry), Detail: err.Error()}
	var bad *abi.JSONError
	if errors.As(err, &bad) {
		offset := int64(bad.Offset)
		stop.Offset, stop.Detail = &offset, bad.Reason
	}
	return stop
}

func phaseOf(entry string) string {
	if entry == abi.ExportVerify {
		return "verify"
	}
	return "execute"
}

// failureText is the short and the long of why a guest failed.
func failureText(f trace.StepFailed) (cause, detail string) {
	if f.Error != nil {
		return f.Error.Code, f.Error.Message
	}
	if f.Stop == nil {
		return "", ""
	}
	return f.Stop.Cause, stopText(*f.Stop)
}

// stopText puts a stop in one line.
func stopText(s trace.StopInfo) string {
	text := s.Cause + " in phase " + s.Phase
	if s.Limit != "" {
		text += fmt.Sprintf(": limit %s = %d", s.Limit, s.LimitValue)
	}
	if s.Offset != nil {
		text += fmt.Sprintf(" at byte %d of the output", *s.Offset)
	}
	if s.Detail != "" {
		text += ": " + s.Detail
	}
	return text
}

func objectOrEmpty(b []byte) []byte {
	if len(b) == 0 {
		return []byte("{}")
	}
	return b
}
