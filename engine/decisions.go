package engine

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/writrun/writ/engine/evidence"
	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host/trace"
	"github.com/writrun/writ/policies"
)

// Words of an authority decision, as those of an arbitration are PASS, FAIL and
// ESCALATE.
const (
	DecisionAllow = "ALLOW"
	DecisionDeny  = "DENY"
)

// Reasons that stand for a policy that gave no answer.
const (
	reasonNoDecision         = "no_decision"         // of an arbitration
	reasonAuthorityUndecided = "authority_undecided" // of an authority decision
)

// PolicyDecision is one decision of a policy as the record has it.
type PolicyDecision struct {
	RunID       abi.RunID      `json:"run_id"`  // "" of a refused request: no run exists
	Address     string         `json:"address"` // of the event, or "ledger/<index>" of a refused request
	At          time.Time      `json:"at"`      // the local clock's claim
	FlowID      abi.ID         `json:"flow_id"`
	Entrypoint  string         `json:"entrypoint"` // "" where it is not retained
	Policy      abi.Digest     `json:"policy"`     // "" where it is not retained
	InputDigest abi.Digest     `json:"input_digest"`
	Input       []byte         `json:"-"` // canonical JSON; nil where it is not retained
	Seed        policies.Seed  `json:"-"` // that the policy's randomness came from
	Result      DecisionResult `json:"result"`
	RulesFired  []string       `json:"rules_fired"`
	Error       string         `json:"error,omitempty"`        // why the policy gave no answer
	NotRetained string         `json:"not_retained,omitempty"` // what is missing, so that the decision cannot be asked again
}

// DecisionResult is what a decision came to, after what is enforced whatever a
// policy says.
type DecisionResult struct {
	Decision   string   `json:"decision"` // ALLOW or DENY; PASS, FAIL or ESCALATE; "" where it is not retained
	Permissive bool     `json:"permissive"`
	Reasons    []string `json:"reasons"`
}

// Same reports whether two results let a run go on in the same way. Reasons may
// differ.
func (r DecisionResult) Same(other DecisionResult) bool {
	return r.Decision == other.Decision && r.Permissive == other.Permissive
}

// EachDecision calls each with every decision the tenant's ledger knows of, by
// admission of the runs: those of runs, and the policy's refusals of requests.
// What exists is read from the ledger and from the runs' records, from no index;
// a decision whose payload is gone comes with NotRetained set. An error of each
// ends the reading.
func EachDecision(t *evidence.Tenant, each func(PolicyDecision) error) error {
	var refused *PolicyDecision // by the policy; what was asked may be in the next record
	tell := func() error {
		if refused == nil {
			return nil
		}
		d := *refused
		refused = nil
		return each(d)
	}
	err := t.Ledger(func(index uint64, r evidence.Record) error {
		if r.Decision != nil && refused != nil {
			refused.takeRecord(r)
		}
		if err := tell(); err != nil {
			return err
		}
		switch {
		case r.RunAdmitted != nil:
			found, err := RunDecisions(t, r.RunAdmitted.RunID)
			if err != nil {
				found = []PolicyDecision{{RunID: r.RunAdmitted.RunID, FlowID: r.RunAdmitted.FlowID,
					At: time.Unix(0, r.AtNanos).UTC(), NotRetained: err.Error()}}
			}
			for _, d := range found {
				if err := each(d); err != nil {
					return err
				}
			}
		case r.AdmissionRefused != nil && slices.Contains([]string{"authority_denied", "authority_undecided"}, r.AdmissionRefused.Code):
			d := refusedDecision(index, r)
			refused = &d
		}
		return nil
	})
	if err != nil {
		return err
	}
	return tell()
}

// refusedDecision is a request that the authority policy did not allow.
func refusedDecision(index uint64, r evidence.Record) PolicyDecision {
	d := PolicyDecision{Address: refusedPrefix + strconv.FormatUint(index, 10), At: time.Unix(0, r.AtNanos).UTC(), FlowID: r.AdmissionRefused.FlowID,
		Result: DecisionResult{Decision: DecisionDeny, Reasons: r.Reasons}, NotRetained: "what was asked of the refused request is not retained"}
	if r.AdmissionRefused.Code == "authority_undecided" {
		d.Result.Reasons = []string{reasonAuthorityUndecided}
		d.Error = strings.Join(r.Reasons, "; ")
	}
	return d
}

// refusedPrefix begins the address of a decision that no run came of; the
// ledger's index of the refusal follows.
const refusedPrefix = "ledger/"

// takeRecord takes up what the ledger keeps of what was asked.
func (d *PolicyDecision) takeRecord(r evidence.Record) {
	d.Entrypoint, d.Policy = r.Decision.Entrypoint, r.Decision.Policy
	if len(r.Reasons) != 1 || len(r.Decision.Seed) != len(d.Seed) {
		return
	}
	d.Seed = policies.Seed(r.Decision.Seed)
	d.Input, d.NotRetained = []byte(r.Reasons[0]), ""
	d.InputDigest = abi.DigestOf(d.Input)
}

// refusing is what the ledger keeps of a decision that no run came of.
func refusing(asked policies.Record) *evidence.Decision {
	if asked.Input == nil {
		return nil
	}
	return &evidence.Decision{Entrypoint: asked.Entrypoint, Policy: asked.Policy, Input: asked.Input, Seed: asked.Seed[:], Result: DecisionDeny}
}

// FindRefused returns the decision of a refused request by its address,
// "ledger/<index>".
func FindRefused(t *evidence.Tenant, address string) (PolicyDecision, error) {
	var found *PolicyDecision
	err := EachDecision(t, func(d PolicyDecision) error {
		if d.RunID == "" && d.Address == address {
			found = &d
		}
		return nil
	})
	if err == nil && found == nil {
		err = &evidence.Problem{Code: evidence.CodeEventUnknown, Address: address, Detail: "the ledger has no refused decision there"}
	}
	if err != nil {
		return PolicyDecision{}, err
	}
	return *found, nil
}

// RunDecisions reads the decisions of one run, the authority's first and then
// arbitrations in the order of the record.
func RunDecisions(t *evidence.Tenant, id abi.RunID) ([]PolicyDecision, error) {
	tr, err := Open(t, id)
	if err != nil {
		return nil, err
	}
	defer tr.Close()
	r := decisionReader{trace: tr, inputs: map[string]trace.DecisionTrace{}}
	r.readSeed()
	for _, h := range tr.Headers(trace.LaneControl) {
		if err := r.control(h); err != nil {
			return nil, err
		}
	}
	for _, lane := range tr.Lanes() {
		for _, h := range tr.Headers(lane) {
			if h.Kind != trace.KindVerificationArbitration {
				continue
			}
			if err := r.arbitration(h); err != nil {
				return nil, err
			}
		}
	}
	return r.found, nil
}

// FindDecision returns the decision of a run at an address: of the decision
// itself, or of the DECISION_TRACE that belongs to it.
func FindDecision(t *evidence.Tenant, id abi.RunID, address string) (PolicyDecision, error) {
	all, err := RunDecisions(t, id)
	if err != nil {
		return PolicyDecision{}, err
	}
	var known []string
	for _, d := range all {
		if d.Address == address {
			return d, nil
		}
		known = append(known, d.Address)
	}
	if at, err := trace.ParseAddress(address); err == nil && at.Lane == trace.LaneControl {
		tr, err := Open(t, id)
		if err != nil {
			return PolicyDecision{}, err
		}
		defer tr.Close()
		var about trace.DecisionTrace
		if h, payload, err := tr.Payload(at); err == nil && h.Kind == trace.KindDecisionTrace && trace.DecodePayload(payload, &about) == nil {
			if i := slices.Index(known, about.Address); i >= 0 {
				return all[i], nil
			}
		}
	}
	return PolicyDecision{}, &evidence.Problem{Code: evidence.CodeEventUnknown, Address: address,
		Detail: fmt.Sprintf("run %s has no decision there; its decisions are at %v", id, known)}
}

// decisionReader brings together a decision and what was asked, which the
// record keeps apart.
type decisionReader struct {
	trace   *evidence.Trace
	inputs  map[string]trace.DecisionTrace // by the address of the decision
	missing string                         // the first payload of control that cannot be read
	found   []PolicyDecision
	seed    policies.Seed
	noSeed  string // why it is not known
}

// readSeed reads the seed of the run, which that of its policies follows from.
func (r *decisionReader) readSeed() {
	r.noSeed = "the seed of the run is not retained"
	var start trace.RunStart
	headers := r.trace.Headers(trace.LaneRun)
	if len(headers) == 0 || headers[0].Kind != trace.KindRunStart {
		return
	}
	if lost, err := r.read(headers[0], &start); err == nil && lost == "" && len(start.Seed) == len(r.seed) {
		r.seed, r.noSeed = policies.PolicySeed([32]byte(start.Seed)), ""
	}
}

func (r *decisionReader) begin(h trace.Header) PolicyDecision {
	known := r.trace.Summary()
	return PolicyDecision{RunID: known.RunID, FlowID: known.FlowID, Address: h.Address().String(), At: time.Unix(0, h.AtNanos).UTC(), Seed: r.seed}
}

// control takes up the authority's decision, and what arbitrations were asked.
func (r *decisionReader) control(h trace.Header) error {
	switch h.Kind {
	case trace.KindAuthorityDecision:
		d := r.begin(h)
		var p trace.AuthorityDecision
		lost, err := r.read(h, &p)
		if err != nil {
			return err
		}
		if d.NotRetained = lost; lost == "" {
			d.Entrypoint, d.Policy, d.InputDigest = p.Entrypoint, p.Policy, p.Input
			d.Result = DecisionResult{Decision: allowed(p.Allow), Reasons: p.Reasons}
			d.keepInput(p.InputDocument, r.noSeed)
		}
		r.found = append(r.found, d)
	case trace.KindDecisionTrace:
		var p trace.DecisionTrace
		lost, err := r.read(h, &p)
		if err != nil {
			return err
		}
		if lost == "" {
			r.inputs[p.Address] = p
		} else if r.missing == "" {
			r.missing = lost
		}
	}
	return nil
}

func (r *decisionReader) arbitration(h trace.Header) error {
	d := r.begin(h)
	var p trace.VerificationArbitration
	lost, err := r.read(h, &p)
	if err != nil {
		return err
	}
	if d.NotRetained = lost; lost == "" {
		d.Entrypoint, d.Policy, d.InputDigest = p.Entrypoint, p.Policy, p.Input
		d.Result = DecisionResult{Decision: p.Decision, Permissive: p.Permissive, Reasons: p.Reasons}
	}
	switch about, ok := r.inputs[d.Address]; {
	case ok:
		d.RulesFired, d.Error = about.RulesFired, about.Error
		d.keepInput(about.InputDocument, r.noSeed)
	case d.NotRetained == "":
		d.NotRetained = cmp.Or(r.missing, "the input is not retained")
	}
	r.found = append(r.found, d)
	return nil
}

// keepInput takes the document a policy got, if it is the one it got.
func (d *PolicyDecision) keepInput(doc []byte, noSeed string) {
	switch {
	case d.NotRetained != "":
	case noSeed != "":
		d.NotRetained = noSeed
	case len(doc) == 0:
		d.NotRetained = "the input is not retained"
	case abi.DigestOf(doc) != d.InputDigest:
		d.NotRetained = fmt.Sprintf("the input that is kept has digest %s; the decision was over %s", abi.DigestOf(doc), d.InputDigest)
	default:
		d.Input = doc
	}
}

// read decodes a payload, or says what is lost of it. An error is one of
// reading, or of a payload that is there and is none.
func (r *decisionReader) read(h trace.Header, to any) (lost string, err error) {
	_, payload, err := r.trace.Payload(h.Address())
	var p *evidence.Problem
	switch {
	case errors.As(err, &p):
		return p.Error(), nil
	case err != nil:
		return "", err
	}
	if err := trace.DecodePayload(payload, to); err != nil {
		return "", fmt.Errorf("read decision %s of run %s: %w", h.Address(), r.trace.Summary().RunID, err)
	}
	return "", nil
}

// decided tells of a decision that was just made; run and address are "" where
// no run came of it.
func (r *run) decided(id abi.RunID, address string, asked policies.Record, result DecisionResult, err error) {
	d := PolicyDecision{RunID: id, Address: address, At: r.Now().UTC(), FlowID: r.plan.FlowID, Entrypoint: asked.Entrypoint, Policy: asked.Policy,
		InputDigest: asked.InputDigest, Input: asked.Input, Seed: asked.Seed, Result: result, RulesFired: asked.RulesFired}
	if err != nil {
		d.Error = err.Error()
	}
	r.Decided(d)
}

func allowed(allow bool) string {
	if allow {
		return DecisionAllow
	}
	return DecisionDeny
}

// MarshalJSON writes lists that are never null.
func (r DecisionResult) MarshalJSON() ([]byte, error) {
	type plain DecisionResult
	if r.Reasons == nil {
		r.Reasons = []string{}
	}
	return json.Marshal(plain(r))
}
