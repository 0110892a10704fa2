package policies

import (
	"errors"
	"fmt"
	"slices"

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

// CombineReasons tags reasons with whose they are, the operator's first.
func CombineReasons(operator, flow []string) []string {
	reasons := make([]string, 0, len(operator)+len(flow))
	for _, r := range operator {
		reasons = append(reasons, "operator: "+r)
	}
	for _, r := range flow {
		reasons = append(reasons, "flow: "+r)
	}
	return reasons
}

// verdicts are those of a replay, from best to worst.
func verdicts() []string {
	return []string{"acceptable", "acceptable_with_warnings", "non_certifiable", "unacceptable"}
}

// WorseVerdict returns the worse of two verdicts of a replay. What is no verdict
// makes the result unacceptable.
func WorseVerdict(operator, flow string) string {
	order := verdicts()
	a, b := slices.Index(order, operator), slices.Index(order, flow)
	if a < 0 || b < 0 {
		return order[len(order)-1]
	}
	return order[max(a, b)]
}

// FewerRungs returns the rungs of a standing that are ticked on both sides, under
// every name that either side has: a rung one side does not speak of is not
// ticked.
func FewerRungs(operator, flow map[string]bool) map[string]bool {
	rungs := map[string]bool{}
	for _, side := range []map[string]bool{operator, flow} {
		for name := range side {
			rungs[name] = operator[name] && flow[name]
		}
	}
	return rungs
}

// ArbitrationDigest names the arbitration policy in force: the flow's bundle
// where it has one for that, else the operator's policy.
func (s *Set) ArbitrationDigest() abi.Digest {
	if own := s.flow.policy(DecisionArbitration); own != nil {
		return own.digest
	}
	return s.arbitration.digest
}
