package policies

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"strconv"

	"github.com/writrun/writ/guest-abi/abi"
)

// ArbitrationInput is what the arbitration policy is asked over.
type ArbitrationInput struct {
	Action          string              `json:"action"` // arbitrate
	Tenant          string              `json:"tenant"`
	Now             int64               `json:"now"` // nanoseconds since 1970; the subject's end
	Mode            string              `json:"mode"`
	FlowID          string              `json:"flow_id"`
	Target          string              `json:"target"` // a step id, or "flow"
	Rule            string              `json:"rule"`   // unanimous, quorum or strict_first_failure
	QuorumThreshold float64             `json:"quorum_threshold"`
	QuorumNeeded    int                 `json:"quorum_needed"` // results that reach the threshold; set by Arbitrate
	Results         []ArbitrationResult `json:"results"`
	Coverage        Coverage            `json:"coverage"` // Evaluated and Complete are set by Arbitrate
}

// ArbitrationResult is one verification result.
type ArbitrationResult struct {
	RuleID     string     `json:"rule_id"`
	Target     string     `json:"target"`
	Status     abi.Status `json:"status"`
	Severity   string     `json:"severity"`
	Randomness string     `json:"randomness"`
	Violations int        `json:"violations"`
}

// Coverage is how much of what was to be evaluated was.
type Coverage struct {
	Expected  int  `json:"expected"`  // results there should be
	Evaluated int  `json:"evaluated"` // results that are PASS, FAIL or ESCALATE
	Complete  bool `json:"complete"`  // every expected result is there
}

// ArbitrationDecision is what the results come to.
type ArbitrationDecision struct {
	Decision   string // PASS, FAIL or ESCALATE
	Permissive bool
	Reasons    []string
	Record     Record
}

type arbitrationResult struct {
	Decision   string   `json:"decision"`
	Reasons    []string `json:"reasons"`
	Permissive bool     `json:"permissive"`
}

// Arbitrate asks what results come to, and then holds the answer to the floor.
// The arbitration of a flow that brings one stands in place of the operator's.
// An error means that there is no decision.
func (s *Set) Arbitrate(ctx context.Context, in ArbitrationInput) (ArbitrationDecision, error) {
	if err := errors.Join(s.flow.belongs(in.FlowID), in.complete()); err != nil {
		return ArbitrationDecision{}, err
	}
	d, err := s.ask(ctx, in)
	if err != nil {
		return d, err
	}
	for _, best := range in.atBest() {
		other, err := s.ask(ctx, best)
		if err != nil {
			return ArbitrationDecision{Record: d.Record}, err
		}
		d = d.noBetterThan(other)
	}
	return in.floor(d), nil
}

func (s *Set) ask(ctx context.Context, in ArbitrationInput) (ArbitrationDecision, error) {
	var r arbitrationResult
	arbiter := s.arbitration
	if own := s.flow.policy(DecisionArbitration); own != nil {
		arbiter = own
	}
	record, err := arbiter.decide(ctx, in.Now, in, &r)
	if err != nil {
		if arbiter != s.arbitration {
			err = s.flow.blame(err)
		}
		return ArbitrationDecision{Record: record}, err
	}
	if severity(r.Decision) < 0 {
		return ArbitrationDecision{Record: record}, &Refusal{Code: CodeResult, Detail: fmt.Sprintf("decision %.40q is not PASS, FAIL or ESCALATE", r.Decision)}
	}
	return ArbitrationDecision{Decision: r.Decision, Permissive: r.Permissive, Reasons: r.Reasons, Record: record}, nil
}

// complete fills in what follows from the results.
func (in *ArbitrationInput) complete() error {
	in.Coverage.Evaluated = 0
	for _, r := range in.Results {
		switch r.Status {
		case abi.Pass, abi.Fail, abi.Escalate:
			in.Coverage.Evaluated++
		case abi.Errored, abi.NotRun:
		default:
			return &Refusal{Code: CodeInput, Detail: fmt.Sprintf("result of rule %s has status %.40q", r.RuleID, r.Status)}
		}
	}
	in.Coverage.Complete = len(in.Results) >= in.Coverage.Expected
	in.QuorumNeeded = 0
	if in.Rule == "quorum" {
		needed, err := quorumNeeded(in.QuorumThreshold, len(in.Results))
		if err != nil {
			return err
		}
		in.QuorumNeeded = needed
	}
	return nil
}

// quorumNeeded is the least number of n results that is at least threshold of
// them, computed exactly from the threshold's decimal form.
func quorumNeeded(threshold float64, n int) (int, error) {
	t, ok := new(big.Rat).SetString(strconv.FormatFloat(threshold, 'f', -1, 64))
	if !ok || threshold <= 0.5 || threshold > 1 {
		return 0, &Refusal{Code: CodeInput, Detail: fmt.Sprintf("quorum_threshold %v is not above 0.5 and at most 1", threshold)}
	}
	t.Mul(t, big.NewRat(int64(n), 1))
	needed, rest := new(big.Int).QuoRem(t.Num(), t.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		needed.Add(needed, big.NewInt(1))
	}
	return int(needed.Int64()), nil
}
