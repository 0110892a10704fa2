package policies

import (
	"context"

	"github.com/writrun/writ/guest-abi/abi"
)

// AuthorityInput is what the authority policy is asked over.
type AuthorityInput struct {
	Action           string             `json:"action"` // run
	Tenant           string             `json:"tenant"`
	Principal        AuthorityPrincipal `json:"principal"`
	Now              int64              `json:"now"` // nanoseconds since 1970; the run's clock start
	Mode             string             `json:"mode"`
	FlowID           string             `json:"flow_id"`
	FlowState        string             `json:"flow_state"`
	DeterminismLevel string             `json:"determinism_level"`
	Manifest         abi.Digest         `json:"manifest"`
	Plan             abi.Digest         `json:"plan"`
	AllowDeprecated  bool               `json:"allow_deprecated"`
	Modules          []AuthorityModule  `json:"modules"`
	Datasets         []AuthorityDataset `json:"datasets"`
	Effects          []AuthorityEffect  `json:"effects"`
	Warnings         []string           `json:"warnings"`
	Policy           *AuthorityPolicy   `json:"policy,omitempty"` // the flow's own bundle, where it brings one; set by Authority
}

// AuthorityPolicy is the bundle of policies a flow brings, so that an operator
// can say which ones it may bring.
type AuthorityPolicy struct {
	Origin    string     `json:"origin"` // folder, archive, or the OCI reference with its digest
	Digest    abi.Digest `json:"digest"`
	Signed    bool       `json:"signed"`    // by a configured key, over exactly these files
	Signer    string     `json:"signer"`    // the id of that key, or ""
	Note      string     `json:"note"`      // why it does not count as signed, or ""
	Decisions []string   `json:"decisions"` // those it has a package for, sorted
}

// AuthorityPrincipal is who asks.
type AuthorityPrincipal struct {
	Name string `json:"name"`
	Kind string `json:"kind"` // for instance "local, unauthenticated"
}

// AuthorityModule is one use of a guest module.
type AuthorityModule struct {
	User    string     `json:"user"` // the step or rule that runs it
	Kind    abi.Kind   `json:"kind"`
	Name    string     `json:"name"`
	Version string     `json:"version"`
	Digest  abi.Digest `json:"digest"`
	Signed  bool       `json:"signed"`
	Wants   []string   `json:"wants"` // capabilities the module asks for
}

// AuthorityDataset is one dataset of the flow.
type AuthorityDataset struct {
	ID      string     `json:"id"`
	Version string     `json:"version"`
	State   string     `json:"state"`
	Hash    abi.Digest `json:"hash"`
}

// AuthorityEffect is one grant.
type AuthorityEffect struct {
	Step     string   `json:"step"`
	Driver   string   `json:"driver"`
	Intent   string   `json:"intent"`
	Delivery string   `json:"delivery"`
	Reach    []string `json:"reach"`    // "METHOD url_prefix"
	Networks []string `json:"networks"` // CIDR
}

// AuthorityDecision is whether the action may happen.
type AuthorityDecision struct {
	Allow   bool
	Reasons []string // tagged "operator: " and "flow: " where both were asked
	Record  Record   // of the operator's answer
	Records []Record // of every answer, the operator's first
}

type authorityResult struct {
	Allow   bool     `json:"allow"`
	Reasons []string `json:"reasons"`
}

// Authority asks whether an action may happen. A flow that brings an authority
// policy is asked after the operator, who allowed its bundle by then; both have
// to allow. An error means no.
func (s *Set) Authority(ctx context.Context, in AuthorityInput) (AuthorityDecision, error) {
	if err := s.flow.belongs(in.FlowID); err != nil {
		return AuthorityDecision{}, err
	}
	in.Policy = s.flow.describe()
	d, err := s.authority.authorize(ctx, in)
	own := s.flow.policy(DecisionAuthority)
	if err != nil || own == nil || !d.Allow {
		return d, err
	}
	other, err := own.authorize(ctx, in)
	if err != nil {
		return AuthorityDecision{Record: d.Record, Records: append(d.Records, other.Records...)}, s.flow.blame(err)
	}
	return CombineAuthority(d, other), nil
}

func (p *policy) authorize(ctx context.Context, in AuthorityInput) (AuthorityDecision, error) {
	var r authorityResult
	record, err := p.decide(ctx, in.Now, in, &r)
	d := AuthorityDecision{Record: record, Records: []Record{record}}
	if err == nil {
		d.Allow, d.Reasons = r.Allow, r.Reasons
	}
	return d, err
}
