package abi

import (
	"fmt"
	"maps"
	"slices"
)

// DecodeExecuteResponse reads what writ_execute returned. The error is a
// [*JSONError] with an offset, or a [*MessageError] with a path. Absent arrays
// become empty, so no array of the result is nil. If Error is set there is no
// output. That claim ids are unique and confidence is between 0 and 1 is for
// rules to judge.
func DecodeExecuteResponse(data []byte) (ExecuteResponse, error) {
	var r ExecuteResponse
	if err := decode(data, MessageDepthMax, &r); err != nil {
		return ExecuteResponse{}, err
	}
	if r.Error != nil {
		if len(r.Claims) > 0 || len(r.Evidence) > 0 || len(r.Artifacts) > 0 || r.Output != nil {
			return ExecuteResponse{}, broken("error", "stands beside an output; a response is one or the other")
		}
		if err := r.Error.check(); err != nil {
			return ExecuteResponse{}, err
		}
	}
	if err := r.StepOutput.check(""); err != nil {
		return ExecuteResponse{}, err
	}
	r.StepOutput.fill()
	return r, nil
}

// DecodeVerifyResponse reads what writ_verify returned. The error is as for
// [DecodeExecuteResponse], or the [*GuestError] the rule reported of itself, which
// is no verification result either. Violations is never nil.
func DecodeVerifyResponse(data []byte) (VerifyResponse, error) {
	var r struct {
		VerifyResponse
		Error *GuestError `json:"error"`
	}
	if err := decode(data, MessageDepthMax, &r); err != nil {
		return VerifyResponse{}, err
	}
	if r.Error != nil {
		if r.Status != "" || r.Violations != nil || r.Reason != "" {
			return VerifyResponse{}, broken("error", "stands beside a result; a response is one or the other")
		}
		if err := r.Error.check(); err != nil {
			return VerifyResponse{}, err
		}
		return VerifyResponse{}, r.Error
	}
	if err := r.VerifyResponse.check(); err != nil {
		return VerifyResponse{}, err
	}
	r.Violations = orEmpty(r.Violations)
	return r.VerifyResponse, nil
}

func (r *VerifyResponse) check() error {
	if !slices.Contains([]Status{Pass, Fail, Escalate}, r.Status) {
		return broken("status", "is %.40q; a rule says PASS, FAIL or ESCALATE", r.Status)
	}
	if err := checkText("reason", r.Reason, ReasonBytesMax); err != nil {
		return err
	}
	if len(r.Violations) > ViolationsMax {
		return broken("violations", "%d are more than %d", len(r.Violations), ViolationsMax)
	}
	for i, v := range r.Violations {
		path := fmt.Sprintf("violations[%d]", i)
		if _, err := ParseID(string(v.RuleID)); err != nil {
			return broken(path+".rule_id", "%v", err)
		}
		if err := checkText(path+".subject", v.Subject, SubjectBytesMax); err != nil {
			return err
		}
		if err := checkText(path+".message", v.Message, ReasonBytesMax); err != nil {
			return err
		}
	}
	if r.Status == Pass && len(r.Violations) > 0 {
		return broken("status", "is PASS beside %d violations", len(r.Violations))
	}
	return nil
}

// DecodeExecuteRequest reads what the host passes to writ_execute, as strictly as
// responses are read.
func DecodeExecuteRequest(data []byte) (ExecuteRequest, error) {
	var r ExecuteRequest
	if err := decode(data, RequestDepthMax, &r); err != nil {
		return ExecuteRequest{}, err
	}
	if err := r.check(); err != nil {
		return ExecuteRequest{}, err
	}
	if r.Inputs == nil {
		r.Inputs = map[ID]StepOutput{}
	}
	for id, in := range r.Inputs {
		in.fill()
		r.Inputs[id] = in
	}
	r.Datasets = orEmpty(r.Datasets)
	return r, nil
}

func (r *ExecuteRequest) check() error {
	if err := checkRequest(r.ABI, "step.config", r.Step.Config); err != nil {
		return err
	}
	if _, err := ParseID(string(r.FlowID)); err != nil {
		return broken("flow_id", "%v", err)
	}
	if _, err := ParseID(string(r.Step.ID)); err != nil {
		return broken("step.id", "%v", err)
	}
	if !slices.Contains([]Role{RoleAgent, RoleRetrieval, RoleReasoning}, r.Step.Role) {
		return broken("step.role", "is %.40q; it is agent, retrieval or reasoning", r.Step.Role)
	}
	for _, id := range slices.Sorted(maps.Keys(r.Inputs)) {
		in := r.Inputs[id]
		if _, err := ParseID(string(id)); err != nil {
			return broken("inputs", "%v", err)
		}
		if err := in.check("inputs." + string(id) + "."); err != nil {
			return err
		}
	}
	return checkDatasets(r.Datasets)
}

// DecodeVerifyRequest reads what the host passes to writ_verify, as strictly as
// responses are read.
func DecodeVerifyRequest(data []byte) (VerifyRequest, error) {
	var r VerifyRequest
	if err := decode(data, RequestDepthMax, &r); err != nil {
		return VerifyRequest{}, err
	}
	if err := r.check(); err != nil {
		return VerifyRequest{}, err
	}
	o := StepOutput{Claims: r.Claims, Evidence: r.Evidence, Artifacts: r.Artifacts}
	o.fill()
	r.Claims, r.Evidence, r.Artifacts = o.Claims, o.Evidence, o.Artifacts
	r.Outputs, r.Datasets = orEmpty(r.Outputs), orEmpty(r.Datasets)
	return r, nil
}

func (r *VerifyRequest) check() error {
	if err := checkRequest(r.ABI, "rule.config", r.Rule.Config); err != nil {
		return err
	}
	if _, err := ParseID(string(r.Rule.ID)); err != nil {
		return broken("rule.id", "%v", err)
	}
	switch r.Rule.Phase {
	case PhaseStep:
		if _, err := ParseID(r.Rule.Target); err != nil {
			return broken("rule.target", "%v", err)
		}
	case PhaseFlow:
		if r.Rule.Target != "flow" {
			return broken("rule.target", "is %.80q; in phase flow it is flow", r.Rule.Target)
		}
	default:
		return broken("rule.phase", "is %.40q; it is step or flow", r.Rule.Phase)
	}
	// Evidence of several steps is joined here, so its ids may repeat.
	if err := checkItems("", r.Claims, r.Evidence, r.Artifacts); err != nil {
		return err
	}
	for i, o := range r.Outputs {
		if _, err := ParseID(string(o.StepID)); err != nil {
			return broken(fmt.Sprintf("outputs[%d].step_id", i), "%v", err)
		}
	}
	return checkDatasets(r.Datasets)
}
