package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/writrun/writ/engine/evidence"
	"github.com/writrun/writ/guest-abi/abi"
)

// Explanation says in plain sentences why a run came to its result.
type Explanation struct {
	RunID     abi.RunID  `json:"run_id"`
	State     string     `json:"state"`
	Result    string     `json:"result"`
	Sentences []Sentence `json:"sentences"`
}

// Sentence is one reason and the address of the event that shows it.
type Sentence struct {
	Text    string `json:"text"`
	Address string `json:"address,omitempty"`
}

// violationsShown is how many violations of one result are told in full.
const violationsShown = 3

// Explain reads a run's record and says why it came to its result, failures
// first.
func Explain(t *evidence.Tenant, id abi.RunID) (Explanation, error) {
	s, err := Inspect(t, id)
	if err != nil {
		return Explanation{}, err
	}
	e := Explanation{RunID: id, State: s.State, Result: s.Result.Result}
	e.say("", "%s", s.outcome())
	for _, step := range s.Steps {
		e.step(step, s.Effects)
	}
	for _, r := range s.Results {
		e.rule(r)
	}
	for _, a := range s.Arbitrations {
		e.say(a.Address, "Arbitration of %s under %s: %s%s.", a.Target, a.Entrypoint, a.Decision, because(a.Reasons))
	}
	if s.Permissive {
		e.say("", "The decision is permissive: at least one expected result is not PASS.")
	}
	e.marks(s)
	return e, nil
}

func (e *Explanation) say(address, format string, args ...any) {
	e.Sentences = append(e.Sentences, Sentence{Text: fmt.Sprintf(format, args...), Address: address})
}

// outcome is the first sentence: what the run came to.
func (s Summary) outcome() string {
	switch {
	case s.Damage != "":
		return "The record is damaged after its last good event: " + s.Damage + "."
	case s.State == StateInDoubt:
		return "The run is in doubt: " + strings.Join(s.Reasons, "; ") + ", and goes no further until a person settles it."
	case s.State == StateInterrupted:
		return "The run was interrupted (" + s.Interrupted + ") and came to no result; its journal is kept."
	case !s.Sealed:
		return "The run has not ended: it is going on now, or its process ended without a word."
	case s.Result.Result == ResultFailed:
		return "The run failed: at least one step did not succeed, whatever the rules said of the others."
	case s.Result.Result == ResultFail:
		return "The run's arbitration is FAIL" + because(s.Reasons) + "."
	case s.Result.Result == ResultEscalate && slices.Contains(s.Reasons, ReasonNothingEvaluated):
		return "Nothing was evaluated, which is not a pass."
	case s.Result.Result == ResultEscalate:
		return "The run's arbitration is ESCALATE: the policy could not decide" + because(s.Reasons) + "."
	}
	return "Every step succeeded, the registered rules evaluated their recorded inputs, and the declared policy accepted. That is not truth or completeness."
}

func because(reasons []string) string {
	if len(reasons) == 0 {
		return ""
	}
	return " (" + strings.Join(reasons, "; ") + ")"
}

func (e *Explanation) step(step StepResult, effects []EffectSummary) {
	switch step.State {
	case StateFailed:
		e.say(step.Address, "Step %s failed: %s.", step.StepID, step.Detail)
	case stateSkipped:
		e.say(step.Address, "Step %s was skipped: %s.", step.StepID, step.Detail)
	}
	for _, f := range effects {
		if f.StepID != step.StepID || f.Status == "ok" {
			continue
		}
		text := "and the guest was told " + abi.Code(f.Code).String()
		if f.Status == "unknown" {
			text = fmt.Sprintf("after %d tries, and nobody here can know whether it happened", len(f.Attempts))
		}
		if n := len(f.Attempts); n > 0 && f.Attempts[n-1].Error != "" {
			text += " (" + f.Attempts[n-1].Error + ")"
		}
		e.say(f.Address, "An effect of step %s through driver %s is %s %s.", step.StepID, f.Driver, f.Status, text)
	}
}

func (e *Explanation) rule(r RuleResult) {
	if r.Status == abi.Pass {
		return
	}
	text := fmt.Sprintf("Rule %s on %s: %s", r.RuleID, r.Target, r.Status)
	if r.Reason != "" {
		text += ", " + r.Reason
	}
	e.say(r.Address, "%s.", text)
	for i, v := range r.Violations {
		if i == violationsShown {
			e.say(r.Address, "%d more violations of rule %s.", len(r.Violations)-i, r.RuleID)
			return
		}
		e.say(r.Address, "Violation of %s by %s: %s.", v.RuleID, v.Subject, strings.TrimSuffix(v.Message, "."))
	}
}

// marks tells what stays on the result.
func (e *Explanation) marks(s Summary) {
	for _, m := range s.Marks {
		switch m {
		case MarkDraft:
			e.say("", "The run cannot be certified: its flow is a draft.")
		case MarkProviderUnknown:
			e.say("", "An effect reached a provider whose model or service version was not recorded.")
		}
	}
}
