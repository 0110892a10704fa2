package policies

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/writrun/writ/guest-abi/abi"
)

// WithFlow returns the set for a run of the flow whose bundle b is: its
// arbitration replaces the operator's, and what it says of authority, replay and
// standing is combined with what the operator's policies say. The two are
// evaluated apart; neither sees the other's packages or data.
func (s *Set) WithFlow(b *Bundle) (*Set, error) {
	switch {
	case b == nil:
		return nil, &Refusal{Code: CodeBundleFlow, Detail: "no bundle was given"}
	case s.flow != nil:
		return nil, &Refusal{Code: CodeBundleFlow, Detail: fmt.Sprintf("the policies already hold the bundle of flow %s", s.flow.flowID)}
	}
	own := *s
	own.flow = b
	return &own, nil
}

// Flow returns the bundle of the flow, or nil.
func (s *Set) Flow() *Bundle { return s.flow }

// policy returns the bundle's policy for a decision, or nil.
func (b *Bundle) policy(decision string) *policy {
	if b == nil {
		return nil
	}
	return b.decisions[decision]
}

// belongs refuses to decide for another flow than the bundle's.
func (b *Bundle) belongs(flowID string) error {
	if b != nil && b.flowID != flowID {
		return &Refusal{Code: CodeBundleFlow, Detail: fmt.Sprintf("the policies hold the bundle of flow %s and were asked about flow %.100s", b.flowID, flowID)}
	}
	return nil
}

// describe shows the bundle to the operator's authority.
func (b *Bundle) describe() *AuthorityPolicy {
	if b == nil {
		return nil
	}
	return &AuthorityPolicy{Origin: b.origin, Digest: b.digest, Signed: b.signature.Signed, Signer: b.signature.Signer,
		Note: b.signature.Note, Decisions: b.Decisions()}
}

// blame says of a refusal that it is the flow's policy that gave no answer.
func (b *Bundle) blame(err error) error {
	var r *Refusal
	if errors.As(err, &r) {
		return &Refusal{Code: r.Code, Detail: fmt.Sprintf("bundle of flow %s: %s", b.flowID, r.Detail)}
	}
	return err
}

// CombineAuthority allows what both allow.
func CombineAuthority(operator, flow AuthorityDecision) AuthorityDecision {
	return AuthorityDecision{
		Allow:   operator.Allow && flow.Allow,
		Reasons: CombineReasons(operator.Reasons, flow.Reasons),
		Record:  operator.Record,
		Records: slices.Concat(operator.Records, flow.Records),
	}
}

// CombineReasons tags reasons with whose they are, the operator's first. What the
// floor says is nobody's, and is said once.
func CombineReasons(operator, flow []string) []string {
	reasons, floors := make([]string, 0, len(operator)+len(flow)), []string{}
	add := func(origin string, given []string) {
		for _, r := range given {
			if !isFloor(r) {
				reasons = append(reasons, origin+": "+r)
			} else if !slices.Contains(floors, r) {
				floors = append(floors, r)
			}
		}
	}
	add("operator", operator)
	add("flow", flow)
	return append(reasons, floors...)
}

func isFloor(reason string) bool {
	return strings.HasPrefix(reason, ReasonNeverCertifiable+": ") || slices.Contains([]string{
		ReasonServedDifference, ReasonContradictionsNotChecked, ReasonDifferencesLeftOut, ReasonRungsOnlyRemovable, ReasonLedgerIncomplete}, reason)
}

// WorseVerdict returns the worse of two verdicts of a replay. What is no verdict
// makes the result unacceptable.
func WorseVerdict(operator, flow string) string {
	a, b := verdictRank(operator), verdictRank(flow)
	switch {
	case a < 0 || b < 0:
		return VerdictUnacceptable
	case b > a:
		return flow
	}
	return operator
}

// ArbitrationDigest names the arbitration policy in force: the flow's bundle
// where it has one for that, else the operator's policy.
func (s *Set) ArbitrationDigest() abi.Digest {
	if own := s.flow.policy(DecisionArbitration); own != nil {
		return own.digest
	}
	return s.arbitration.digest
}
