package flow

import (
	"encoding/json"
	"slices"

	"github.com/writrun/writ/guest-abi/abi"
)

// PlanVersion is the plan format this package writes and reads.
const PlanVersion = 1

// planDepthMax bounds the nesting of a plan file, which wraps configurations.
const planDepthMax = DepthMax + 8

// Plan is a manifest resolved and pinned: every module and dataset by digest,
// every default filled in. Make one with [Resolve] or [ParsePlan]; it is not to
// be changed.
type Plan struct {
	PlanVersion         int             `json:"plan_version"`
	FlowID              abi.ID          `json:"flow_id"`
	TenantID            string          `json:"tenant_id"`
	FlowState           string          `json:"flow_state"`
	Manifest            abi.Digest      `json:"manifest"`
	DeterminismLevel    string          `json:"determinism_level"`
	ReplayMode          string          `json:"replay_mode"`
	ReplayAcceptability string          `json:"replay_acceptability"`
	ReplayEnvelope      *ReplayEnvelope `json:"replay_envelope,omitempty"`
	Clock               Clock           `json:"clock"`
	StackProfile        string          `json:"stack_profile"`
	Seed                *Seed           `json:"seed,omitempty"` // nil is drawn at admission
	EntropyBudget       EntropyBudget   `json:"entropy_budget"`
	Intents             []Intent        `json:"nondeterminism_intent"`
	Order               []abi.ID        `json:"order"`              // topological, ties by id
	Steps               []PlanStep      `json:"steps"`              // in this order
	Rules               []PlanRule      `json:"rules"`              // sorted by id
	MaxCost             uint64          `json:"max_cost,omitempty"` // fuel of all results together; it is in the rules' limits
	Arbitration         Arbitration     `json:"arbitration"`
	Policies            *PlanPolicies   `json:"policies,omitempty"` // nil: the flow brings none
	Datasets            []PlanDataset   `json:"datasets"`           // sorted by id
	Warnings            []string        `json:"warnings"`
}

// Clock is the virtual clock of a plan.
type Clock struct {
	Kind       string `json:"kind"`
	Start      string `json:"start,omitempty"` // RFC 3339; "" is the admission time
	StartNanos int64  `json:"-"`               // of Start, since 1970; 0 if there is none
	StepNanos  int64  `json:"step_ns"`
}

// PlanStep is one executor invocation, resolved.
type PlanStep struct {
	ID       abi.ID          `json:"id"`
	Module   ModulePin       `json:"module"`
	Role     abi.Role        `json:"role"`
	Needs    []abi.ID        `json:"needs"` // sorted
	Requires string          `json:"requires,omitempty"`
	Claims   bool            `json:"claims"`
	Config   json.RawMessage `json:"config"`
	Datasets []abi.ID        `json:"datasets"` // in the order of the manifest
	Effects  []Effect        `json:"effects"`
	Limits   abi.Limits      `json:"limits"` // no field is zero
}

// PlanRule is one verification rule, resolved.
type PlanRule struct {
	RuleID     abi.ID          `json:"rule_id"`
	Module     ModulePin       `json:"module"`
	Config     json.RawMessage `json:"config"`
	Targets    []string        `json:"targets"` // sorted step ids, or TargetFlow
	Severity   string          `json:"severity"`
	Randomness string          `json:"randomness"` // as the module declares it
	Limits     abi.Limits      `json:"limits"`     // no field is zero
}

// PlanDataset is a dataset with the digest of its bytes.
type PlanDataset struct {
	ID         abi.ID     `json:"id"`
	Version    string     `json:"version"`
	State      string     `json:"state"`
	Hash       abi.Digest `json:"hash"`
	StorageURI string     `json:"storage_uri"`
	Folder     bool       `json:"folder"`
	Size       int64      `json:"size"` // bytes of all files
	Files      int64      `json:"files"`
}

// Canonical returns the plan as JSON with sorted keys, the form that is digested
// and retained.
func (p *Plan) Canonical() []byte { return canonicalOf(p) }

// Digest returns the digest of the canonical form: the plan identity.
func (p *Plan) Digest() abi.Digest { return abi.DigestOf(p.Canonical()) }

// Step returns the step of an id, or a zero step.
func (p *Plan) Step(id abi.ID) PlanStep {
	for _, s := range p.Steps {
		if s.ID == id {
			return s
		}
	}
	return PlanStep{}
}

// RulesFor returns the rules that judge a target, a step id or [TargetFlow], by id.
func (p *Plan) RulesFor(target string) []PlanRule {
	var out []PlanRule
	for _, v := range p.Rules {
		if slices.Contains(v.Targets, target) {
			out = append(out, v)
		}
	}
	return out
}

// DatasetsDigest returns the datasets identity: the digest over every dataset's
// whole tuple.
func (p *Plan) DatasetsDigest() abi.Digest { return abi.DigestOf(canonicalOf(orEmpty(p.Datasets))) }

// PolicyDigest returns the policy identity: rules with their configuration and
// targets, arbitration with its threshold, and the digest of the arbitration
// policy.
func (p *Plan) PolicyDigest(arbitration abi.Digest) abi.Digest {
	type rule struct {
		RuleID   abi.ID          `json:"rule_id"`
		Module   abi.Digest      `json:"module"`
		Config   json.RawMessage `json:"config"`
		Targets  []string        `json:"targets"`
		Severity string          `json:"severity"`
	}
	rules := []rule{}
	for _, v := range p.Rules {
		rules = append(rules, rule{v.RuleID, v.Module.Digest, v.Config, v.Targets, v.Severity})
	}
	return abi.DigestOf(canonicalOf(map[string]any{
		"rules": rules, "arbitration": p.Arbitration, "arbitration_policy": arbitration, "bundle": p.bundleDigest(),
	}))
}

// bundleDigest names the bundle of policies the flow brings, or is "".
func (p *Plan) bundleDigest() abi.Digest {
	if p.Policies == nil {
		return ""
	}
	return p.Policies.Digest
}

// canonicalOf encodes a value of this package as canonical JSON.
func canonicalOf(v any) []byte {
	b, err := abi.EncodeMessage(v)
	if err != nil {
		// Every text in a plan was checked when it was read.
		panic("flow: encode plan: " + err.Error())
	}
	r := &reader{places: map[string]position{}}
	tree := parseJSON(r, b, planDepthMax)
	if tree == nil || len(r.faults) > 0 {
		panic("flow: read own plan: " + r.faults.Error())
	}
	return tree.canonical()
}

func orEmpty[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}
