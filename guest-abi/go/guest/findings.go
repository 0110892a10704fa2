package guest

import (
	"fmt"

	"github.com/writrun/writ/guest-abi/abi"
)

// Findings collects what a rule finds and turns it into a response by the one
// rule all rules share: nothing evaluated is not a pass, and neither is a doubt.
type Findings struct {
	rule       abi.ID
	subjects   int // looked at
	violations []abi.Violation
	unlisted   int // violations beyond abi.ViolationsMax
	doubts     []string
	doubtCount int
}

// NewFindings starts the findings of the rule that c invokes.
func NewFindings(c *Check) *Findings { return &Findings{rule: c.Request.Rule.ID} }

// Evaluated notes that one more subject was looked at.
func (f *Findings) Evaluated() { f.subjects++ }

// Violation notes a breach by the claim, evidence or artifact of the given id.
func (f *Findings) Violation(subject, format string, args ...any) {
	if len(f.violations) == abi.ViolationsMax {
		f.unlisted++
		return
	}
	f.violations = append(f.violations, abi.Violation{RuleID: f.rule, Subject: subject, Message: fmt.Sprintf(format, args...)})
}

// doubtsShown is how many doubts a reason spells out.
const doubtsShown = 3

// Doubt notes something the rule could not judge.
func (f *Findings) Doubt(format string, args ...any) {
	if f.doubtCount++; len(f.doubts) < doubtsShown {
		f.doubts = append(f.doubts, fmt.Sprintf(format, args...))
	}
}

// Response is FAIL if there are violations, else ESCALATE if there are doubts or
// nothing was evaluated, else PASS. What names the subjects, for instance "claims".
func (f *Findings) Response(what string) abi.VerifyResponse {
	r := abi.VerifyResponse{Status: abi.Pass, Violations: f.violations}
	switch count := len(f.violations) + f.unlisted; {
	case count > 0:
		r.Status = abi.Fail
		r.Reason = fmt.Sprintf("%d violations in %d %s", count, f.subjects, what)
		if f.unlisted > 0 {
			r.Reason += fmt.Sprintf("; the first %d are listed", len(f.violations))
		}
	case f.doubtCount > 0:
		r.Status, r.Reason = abi.Escalate, f.doubts[0]
		for _, d := range f.doubts[1:] {
			r.Reason += "; " + d
		}
		if more := f.doubtCount - len(f.doubts); more > 0 {
			r.Reason += fmt.Sprintf("; and %d more", more)
		}
	case f.subjects == 0:
		r.Status, r.Reason = abi.Escalate, "nothing evaluated: no "+what
	default:
		r.Reason = fmt.Sprintf("%d %s evaluated", f.subjects, what)
	}
	return r
}
