package engine

import (
	"slices"

	"github.com/writrun/writ/guest-abi/abi"
)

// Decisions of arbitration, and "none" where nothing was arbitrated.
const (
	DecisionPass     = "PASS"
	DecisionFail     = "FAIL"
	DecisionEscalate = "ESCALATE"
	DecisionNone     = "none"
)

// Result words: one compound word that never says plain "pass" for anything
// less.
const (
	ResultPass           = "pass"
	ResultPassPermissive = "pass_permissive"
	ResultFail           = "fail"     // arbitration said FAIL
	ResultEscalate       = "escalate" // arbitration could not decide
	ResultFailed         = "failed"   // a step failed
)

// States of a run in this release.
const (
	StateAdmitted    = "admitted"
	StateInterrupted = "interrupted"
	StateInDoubt     = "in_doubt"
	StateQuarantined = "quarantined"
	StateSucceeded   = "succeeded"
	StateFailed      = "failed"
)

// stateSkipped is the state of a step that did not start.
const stateSkipped = "skipped"

// ReasonNothingEvaluated is the reason of a decision over no result at all.
const ReasonNothingEvaluated = "nothing_evaluated"

// Exit codes of the tool that a result maps to.
const (
	ExitAccepted         = 0
	ExitFailed           = 1
	ExitUndecided        = 7
	ExitNothingEvaluated = 8
	ExitInterrupted      = 130
)

// Result is what a run may be said to have come to.
type Result struct {
	RunID           abi.RunID     `json:"run_id"`
	FlowID          abi.ID        `json:"flow_id"`
	Mode            string        `json:"mode"`
	State           string        `json:"state"`
	Decision        string        `json:"decision"`
	Result          string        `json:"result"` // "" while the run has not ended
	Permissive      bool          `json:"permissive"`
	NonCertifiable  bool          `json:"non_certifiable"`
	Reasons         []string      `json:"reasons"`
	Marks           []string      `json:"marks"`
	Plan            abi.Digest    `json:"plan"`
	TraceRoot       abi.Digest    `json:"trace_root,omitempty"`
	ExecutionDigest abi.Digest    `json:"execution_digest,omitempty"`
	Steps           []StepResult  `json:"steps"`
	Results         []RuleResult  `json:"results"`
	Arbitrations    []Arbitration `json:"arbitrations"`
	RequestID       string        `json:"request_id,omitempty"`
	Existing        bool          `json:"existing"` // an earlier run, shown for its request id
}

// StepResult is how one step ended.
type StepResult struct {
	StepID   abi.ID `json:"step_id"`
	State    string `json:"state"` // succeeded, failed, skipped, running or pending
	Cause    string `json:"cause,omitempty"`
	Detail   string `json:"detail,omitempty"`
	Address  string `json:"address,omitempty"` // of the event that ended it
	Claims   int    `json:"claims"`
	Evidence int    `json:"evidence"`
	Effects  int    `json:"effects"`
	FuelUsed uint64 `json:"fuel_used"`
	Calls    uint64 `json:"host_calls"`
}

// RuleResult is one verification result.
type RuleResult struct {
	RuleID     abi.ID          `json:"rule_id"`
	Target     string          `json:"target"`
	Status     abi.Status      `json:"status"`
	Reason     string          `json:"reason,omitempty"`
	Violations []abi.Violation `json:"violations"`
	FuelUsed   uint64          `json:"fuel_used"`
	Address    string          `json:"address"`
}

// Arbitration is the policy's decision over the results of one target.
type Arbitration struct {
	Target     string     `json:"target"`
	Decision   string     `json:"decision"`
	Permissive bool       `json:"permissive"`
	Reasons    []string   `json:"reasons"`
	Entrypoint string     `json:"entrypoint"`
	Policy     abi.Digest `json:"policy"`
	Address    string     `json:"address"`
}

// Exit returns the tool's exit code for r.
func (r Result) Exit() int {
	switch {
	case r.State == StateInterrupted:
		return ExitInterrupted
	case r.Result == ResultPass, r.Result == ResultPassPermissive:
		return ExitAccepted
	case r.Result == ResultFail, r.Result == ResultFailed:
		return ExitFailed
	case slices.Contains(r.Reasons, ReasonNothingEvaluated):
		return ExitNothingEvaluated
	default:
		return ExitUndecided
	}
}

// resultWord names what a finished run came to. An execution failure outweighs
// any decision: results over half a run accept nothing.
func resultWord(failed bool, decision string, permissive bool) string {
	switch {
	case failed:
		return ResultFailed
	case decision == DecisionPass && !permissive:
		return ResultPass
	case decision == DecisionPass:
		return ResultPassPermissive
	case decision == DecisionFail:
		return ResultFail
	default:
		return ResultEscalate
	}
}

// severity orders decisions from best to worst. What is no decision at all is
// as bad as an escalation: it accepts nothing.
func severity(decision string) int {
	switch decision {
	case DecisionPass:
		return 0
	case DecisionFail:
		return 2
	default:
		return 1
	}
}

// worse returns the worse of two decisions.
func worse(a, b string) string {
	if severity(b) > severity(a) {
		return b
	}
	return a
}
