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
	Reasons []string
	Record  Record
}

type authorityResult struct {
	Allow   bool     `json:"allow"`
	Reasons []string `json:"reasons"`
}

// Authority asks whether an action may happen. An error means no.
func (s *Set) Authority(ctx context.Context, in AuthorityInput) (AuthorityDecision, error) {
	var r authorityResult
	record, err := s.authority.decide(ctx, in.Now, in, &r)
	if err != nil {
		return AuthorityDecision{Record: record}, err
	}
	return AuthorityDecision{Allow: r.Allow, Reasons: r.Reasons, Record: record}, nil
}
