package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/policies"
)

// Asked is what a recorded decision comes to under other policies.
type Asked struct {
	Result     DecisionResult
	Policy     abi.Digest // that was asked
	RulesFired []string
	Error      string // why the policy gave no answer; Result is then what a run makes of that
}

// AskAgain asks a recorded decision of other policies, over the recorded input,
// and holds the answer to what is enforced whatever a policy says. A policy that
// gives no answer is a result like any other, the one a run would have got. The
// error says why the decision cannot be asked.
func AskAgain(ctx context.Context, set *policies.Set, d PolicyDecision) (Asked, error) {
	if d.Input == nil {
		return Asked{}, fmt.Errorf("ask decision %s of run %s again: %s", d.Address, d.RunID, d.NotRetained)
	}
	ctx = policies.WithSeed(ctx, d.Seed)
	switch DecisionName(d.Entrypoint) {
	case policies.DecisionAuthority:
		return authorizeAgain(ctx, set, d)
	case policies.DecisionArbitration:
		return arbitrateAgain(ctx, set, d)
	}
	return Asked{}, fmt.Errorf("ask decision %s of run %s again: there is no decision %.200q", d.Address, d.RunID, d.Entrypoint)
}

// DecisionName is the decision that an entrypoint answers: authority,
// arbitration, replay or standing, and "" for what is no entrypoint.
func DecisionName(entrypoint string) string {
	for _, q := range policies.Questions() {
		if strings.HasSuffix(entrypoint, "."+q.Name+"."+q.Rule) {
			return q.Name
		}
	}
	return ""
}

// Name is the decision this one is of, as [DecisionName] has it. Where the
// payload is gone its place in the record tells; it is "" where a whole run is.
func (d PolicyDecision) Name() string {
	switch name := DecisionName(d.Entrypoint); {
	case name != "":
		return name
	case strings.HasPrefix(d.Address, "arbitration@"):
		return policies.DecisionArbitration
	case d.Address != "":
		return policies.DecisionAuthority
	}
	return ""
}

func arbitrateAgain(ctx context.Context, set *policies.Set, d PolicyDecision) (Asked, error) {
	var in policies.ArbitrationInput
	if err := sameInput(d, &in); err != nil {
		return Asked{}, err
	}
	got, err := set.Arbitrate(ctx, in)
	asked := Asked{Policy: got.Record.Policy, RulesFired: got.Record.RulesFired,
		Result: DecisionResult{Decision: got.Decision, Permissive: got.Permissive, Reasons: got.Reasons}}
	if err == nil {
		return asked, nil
	}
	if ctx.Err() != nil {
		return asked, context.Cause(ctx)
	}
	asked.Error = err.Error()
	asked.Result = DecisionResult{Decision: DecisionEscalate, Reasons: []string{reasonNoDecision}}
	return asked, nil
}

func authorizeAgain(ctx context.Context, set *policies.Set, d PolicyDecision) (Asked, error) {
	var in policies.AuthorityInput
	if err := sameInput(d, &in); err != nil {
		return Asked{}, err
	}
	if in.Policy != nil && set.Flow() == nil {
		if !slices.Contains(in.Policy.Decisions, policies.DecisionAuthority) {
			return operatorAgain(ctx, set, d, in)
		}
		return Asked{}, fmt.Errorf("ask decision %s of run %s again: the flow brought policies of its own, %s, which are not at hand", d.Address, d.RunID, in.Policy.Digest)
	}
	got, err := set.Authority(ctx, in)
	asked := Asked{Policy: got.Record.Policy, RulesFired: got.Record.RulesFired,
		Result: DecisionResult{Decision: allowed(got.Allow), Reasons: got.Reasons}}
	if err == nil {
		return asked, nil
	}
	if ctx.Err() != nil {
		return asked, context.Cause(ctx)
	}
	asked.Error = err.Error()
	asked.Result = DecisionResult{Decision: DecisionDeny, Reasons: []string{reasonAuthorityUndecided}}
	return asked, nil
}

// operatorAgain asks the operator alone, over a document that describes the
// bundle of a flow whose authority nobody asked.
func operatorAgain(ctx context.Context, set *policies.Set, d PolicyDecision, in policies.AuthorityInput) (Asked, error) {
	got, err := set.Ask(ctx, policies.Record{Entrypoint: policies.AuthorityEntrypoint, Input: d.Input, InputDigest: d.InputDigest, Now: in.Now, Seed: d.Seed})
	asked := Asked{Policy: got.Policy, RulesFired: got.RulesFired}
	for _, q := range policies.Questions() {
		if err == nil && q.Name == policies.DecisionAuthority {
			err = q.CheckResult(got.Result)
		}
	}
	var answer struct {
		Allow   bool     `json:"allow"`
		Reasons []string `json:"reasons"`
	}
	if err == nil {
		err = json.Unmarshal(got.Result, &answer)
	}
	if err == nil {
		asked.Result = DecisionResult{Decision: allowed(answer.Allow), Reasons: answer.Reasons}
		return asked, nil
	}
	if ctx.Err() != nil {
		return asked, context.Cause(ctx)
	}
	asked.Error = err.Error()
	asked.Result = DecisionResult{Decision: DecisionDeny, Reasons: []string{reasonAuthorityUndecided}}
	return asked, nil
}

// sameInput reads a recorded input. One that this version would write in another
// way is refused: the answer would be over another document.
func sameInput(d PolicyDecision, in any) error {
	decoder := json.NewDecoder(bytes.NewReader(d.Input))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(in)
	if err == nil {
		var again []byte
		if again, err = abi.EncodeMessage(in); err == nil && !bytes.Equal(again, d.Input) {
			err = fmt.Errorf("this version would ask over %s", abi.DigestOf(again))
		}
	}
	if err != nil {
		return fmt.Errorf("ask decision %s of run %s again: its input %s is of another version: %w", d.Address, d.RunID, d.InputDigest, err)
	}
	return nil
}
