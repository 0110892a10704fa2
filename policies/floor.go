package policies

import (
	"slices"

	"github.com/writrun/writ/guest-abi/abi"
)

// Reasons the floor gives.
const (
	ReasonNothingEvaluated = "nothing_evaluated"
	ReasonCoverageGap      = "coverage_gap"
	ReasonErrorsNoBetter   = "errors_do_not_improve"
)

// severity orders decisions from best to worst; what is no decision is -1.
func severity(decision string) int {
	return slices.Index([]string{"PASS", "ESCALATE", "FAIL"}, decision)
}

// noBetterThan returns the worse of two decisions. An error or a missing result
// may not make a decision better than a PASS in its place would.
func (d ArbitrationDecision) noBetterThan(other ArbitrationDecision) ArbitrationDecision {
	if severity(other.Decision) > severity(d.Decision) {
		d.Decision = other.Decision
		if !slices.Contains(d.Reasons, ReasonErrorsNoBetter) {
			d.Reasons = append(d.Reasons, ReasonErrorsNoBetter)
		}
	}
	return d
}

// atBest returns the input as it could have been at its best: with a PASS for
// every result that is NOT_RUN, for every one that is ERROR, and for all of both.
// Where results have no such status there is nothing to return.
func (in ArbitrationInput) atBest() []ArbitrationInput {
	var all []ArbitrationInput
	for _, gone := range [][]abi.Status{{abi.NotRun}, {abi.Errored}, {abi.NotRun, abi.Errored}} {
		if !slices.ContainsFunc(gone, func(s abi.Status) bool { return !in.has(s) }) {
			all = append(all, in.withPassFor(gone))
		}
	}
	return all
}

func (in ArbitrationInput) has(status abi.Status) bool {
	return slices.ContainsFunc(in.Results, func(r ArbitrationResult) bool { return r.Status == status })
}

func (in ArbitrationInput) withPassFor(gone []abi.Status) ArbitrationInput {
	in.Results = slices.Clone(in.Results)
	for i := range in.Results {
		if slices.Contains(gone, in.Results[i].Status) {
			in.Results[i].Status = abi.Pass
			in.Coverage.Evaluated++
		}
	}
	return in
}

// floor holds a decision to what no policy can change: nothing evaluated is
// not a pass, a gap in live coverage is a failure, and permissive is computed.
func (in ArbitrationInput) floor(d ArbitrationDecision) ArbitrationDecision {
	worsen := func(decision, reason string) {
		if severity(decision) > severity(d.Decision) {
			d.Decision = decision
		}
		if !slices.Contains(d.Reasons, reason) {
			d.Reasons = append(d.Reasons, reason)
		}
	}
	if in.Coverage.Evaluated == 0 {
		worsen("ESCALATE", ReasonNothingEvaluated)
	}
	if !in.Coverage.Complete && in.Mode == "live" {
		worsen("FAIL", ReasonCoverageGap)
	}
	short := !in.Coverage.Complete || slices.ContainsFunc(in.Results, func(r ArbitrationResult) bool { return r.Status != abi.Pass })
	d.Permissive = d.Decision == "PASS" && (d.Permissive || short)
	if d.Reasons == nil {
		d.Reasons = []string{}
	}
	return d
}
