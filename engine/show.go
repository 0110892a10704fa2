package engine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/writrun/writ/engine/evidence"
	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host/trace"
)

// Summary is everything a run's record says of it, short of single host calls.
type Summary struct {
	Result
	AdmittedAt  time.Time             `json:"admitted_at"`
	SealedAt    time.Time             `json:"sealed_at,omitzero"`
	Sealed      bool                  `json:"sealed"`
	Events      int                   `json:"events"`
	Principal   string                `json:"principal"`
	Identity    trace.Identity        `json:"identity"`
	Authority   AuthoritySummary      `json:"authority"`
	Provenance  map[string]string     `json:"provenance"`
	Seed        trace.Hex             `json:"seed"`
	ClockStart  time.Time             `json:"clock_start"`
	Datasets    []trace.DatasetPinned `json:"datasets"`
	Effects     []EffectSummary       `json:"effects"`
	Claims      []ClaimSummary        `json:"claims"`
	Interrupted string                `json:"interrupted,omitempty"` // why the run stopped before its end
	Damage      string                `json:"damage,omitempty"`      // what is wrong after the journal's last good event
}

// AuthoritySummary is the policy's answer to whether the run might happen.
type AuthoritySummary struct {
	Allow   bool       `json:"allow"`
	Reasons []string   `json:"reasons"`
	Policy  abi.Digest `json:"policy"`
	Address string     `json:"address"`
}

// EffectSummary is one effect: what was asked, what the guest saw, and the tries.
type EffectSummary struct {
	StepID   abi.ID                `json:"step_id"`
	Address  string                `json:"address"` // of the intent
	Driver   string                `json:"driver"`
	Request  trace.Bytes           `json:"request"`
	Status   string                `json:"status"` // ok or failed; without an outcome not_sent, or unknown
	Response trace.Bytes           `json:"response"`
	Code     int32                 `json:"code"`
	Withheld bool                  `json:"withheld"`
	Attempts []trace.EffectAttempt `json:"attempts"`
}

// ClaimSummary is a claim and the step that made it.
type ClaimSummary struct {
	StepID abi.ID `json:"step_id"`
	abi.Claim
}

// Show reads what a run came to from its record.
func (r *Runner) Show(id abi.RunID) (Result, error) {
	s, err := Inspect(r.Tenant, id)
	return s.Result, err
}

// Inspect reads a run's record: the sealed trace, or the journal of an
// unfinished run as far as it is whole. A payload that is missing or does not
// match is an error that names its address.
func Inspect(t *evidence.Tenant, id abi.RunID) (Summary, error) {
	tr, err := Open(t, id)
	if err != nil {
		return Summary{}, err
	}
	defer tr.Close()
	return Summarize(tr)
}

// Open opens the record of a run, whether it is sealed or not.
func Open(t *evidence.Tenant, id abi.RunID) (*evidence.Trace, error) {
	known, err := t.Run(id)
	if err != nil {
		return nil, err
	}
	if known.Sealed() {
		return t.OpenTrace(id)
	}
	return t.OpenJournal(id)
}

// Summarize reads the whole of an open record.
func Summarize(tr *evidence.Trace) (Summary, error) {
	known := tr.Summary()
	s := summarizer{steps: map[trace.Lane]*StepResult{}, effects: map[string]*EffectSummary{}}
	s.out = Summary{AdmittedAt: known.AdmittedAt, SealedAt: known.SealedAt, Sealed: tr.Sealed()}
	s.out.RunID, s.out.FlowID, s.out.Plan = known.RunID, known.FlowID, known.Plan
	s.out.RequestID, s.out.TraceRoot = known.RequestID, known.TraceRoot
	s.out.State, s.out.Decision, s.out.NonCertifiable = known.State, DecisionNone, true
	for _, lane := range tr.Lanes() {
		for e, err := range tr.Events(lane) {
			if err != nil {
				return s.out, err
			}
			s.out.Events++
			if err := s.event(e); err != nil {
				return s.out, fmt.Errorf("read run %s: event %s: %w", known.RunID, e.Address(), err)
			}
		}
	}
	if d := tr.Damage(); d != nil {
		s.out.Damage = d.Error()
	}
	s.finish()
	return s.out, nil
}

type summarizer struct {
	out     Summary
	steps   map[trace.Lane]*StepResult
	order   []trace.Lane
	effects map[string]*EffectSummary
	asked   []string // addresses of intents, in the order of lanes
	tries   []trace.EffectAttempt
}

func (s *summarizer) event(e evidence.Entry) error {
	address := e.Address().String()
	payload := trace.NewPayload(e.Kind)
	if payload == nil {
		return fmt.Errorf("kind %d is unknown", e.Kind)
	}
	if err := trace.DecodePayload(e.Payload, payload); err != nil {
		return err
	}
	switch p := payload.(type) {
	case *trace.RunStart, *trace.DatasetPinned, *trace.ExecutionEnd, *trace.RunEnd, *trace.Admission,
		*trace.AuthorityDecision, *trace.EffectAttempt, *trace.ExecutionInterrupted:
		s.aboutRun(payload, address)
	case *trace.VerificationResult:
		s.out.Results = append(s.out.Results, RuleResult{RuleID: p.RuleID, Target: p.Target, Status: p.Status,
			Reason: p.Reason, Violations: p.Violations, FuelUsed: p.FuelUsed, Address: address})
	case *trace.VerificationArbitration:
		s.out.Arbitrations = append(s.out.Arbitrations, Arbitration{Target: p.Target, Decision: p.Decision,
			Permissive: p.Permissive, Reasons: p.Reasons, Entrypoint: p.Entrypoint, Policy: p.Policy, Address: address})
	default:
		return s.aboutStep(e.Lane, payload, address)
	}
	return nil
}

// aboutRun takes up what concerns the run as a whole.
func (s *summarizer) aboutRun(payload any, address string) {
	switch p := payload.(type) {
	case *trace.RunStart:
		s.out.Mode, s.out.Seed, s.out.ClockStart = p.Mode, p.Seed, time.Unix(0, p.ClockStartNanos).UTC()
	case *trace.DatasetPinned:
		s.out.Datasets = append(s.out.Datasets, *p)
	case *trace.ExecutionEnd:
		s.out.State, s.out.Decision, s.out.Result.Result = p.State, p.Decision, p.Result
		s.out.Permissive, s.out.Reasons, s.out.Marks = p.Permissive, p.Reasons, p.Marks
		s.out.NonCertifiable = slices.Contains(p.Marks, MarkNonCertifiable)
	case *trace.RunEnd:
		s.out.ExecutionDigest = p.ExecutionDigest
	case *trace.Admission:
		s.out.Principal, s.out.Identity, s.out.Provenance = p.Principal, p.Identity, p.Provenance
	case *trace.AuthorityDecision:
		s.out.Authority = AuthoritySummary{Allow: p.Allow, Reasons: p.Reasons, Policy: p.Policy, Address: address}
	case *trace.EffectAttempt:
		s.tries = append(s.tries, *p)
	case *trace.ExecutionInterrupted:
		s.out.Interrupted = p.Reason
	}
}

// aboutStep takes up an event of a step's own lane.
func (s *summarizer) aboutStep(lane trace.Lane, payload any, address string) error {
	if strings.Contains(string(lane), "@") || lane == trace.LaneRun || lane == trace.LaneControl {
		return nil
	}
	step := s.steps[lane]
	if step == nil {
		step = &StepResult{StepID: abi.ID(lane), State: "running"}
		s.steps[lane] = step
		s.order = append(s.order, lane)
	}
	switch p := payload.(type) {
	case *trace.StepEnd:
		step.State, step.Address, step.FuelUsed, step.Calls = StateSucceeded, address, p.FuelUsed, p.HostCalls
		return s.claims(step, p.Output)
	case *trace.StepFailed:
		step.State, step.Address, step.FuelUsed, step.Calls = StateFailed, address, p.FuelUsed, p.HostCalls
		step.Cause, step.Detail = failureText(*p)
	case *trace.StepSkipped:
		step.State, step.Address, step.Cause, step.Detail = stateSkipped, address, stateSkipped, skipText(*p)
	case *trace.EffectIntent:
		step.Effects++
		s.effects[address] = &EffectSummary{StepID: step.StepID, Address: address, Driver: p.Driver, Request: p.Request, Status: "unknown"}
		s.asked = append(s.asked, address)
	case *trace.EffectOutcome:
		if len(s.asked) == 0 {
			return fmt.Errorf("an outcome without an intent")
		}
		e := s.effects[s.asked[len(s.asked)-1]]
		e.Status, e.Response, e.Code, e.Withheld = p.Status, p.Response, p.Code, p.Withheld
	}
	return nil
}

func (s *summarizer) claims(step *StepResult, output []byte) error {
	resp, err := abi.DecodeExecuteResponse(output)
	if err != nil {
		return err
	}
	step.Claims, step.Evidence = len(resp.Claims), len(resp.Evidence)
	for _, c := range resp.Claims {
		s.out.Claims = append(s.out.Claims, ClaimSummary{StepID: step.StepID, Claim: c})
	}
	return nil
}

func skipText(p trace.StepSkipped) string {
	if len(p.Because) == 0 {
		return p.Reason
	}
	return p.Reason + ": " + strings.Join(p.Because, ", ")
}

// finish brings together what came from different lanes.
func (s *summarizer) finish() {
	for _, lane := range s.order {
		s.out.Steps = append(s.out.Steps, *s.steps[lane])
	}
	for _, try := range s.tries {
		if e := s.effects[try.Address]; e != nil {
			e.Attempts = append(e.Attempts, try)
		}
	}
	unknown := ""
	for _, address := range s.asked {
		e := s.effects[address]
		if n := len(e.Attempts); e.Status == "unknown" && n > 0 && e.Attempts[n-1].Status == "failed" {
			// Nothing was sent, and the run was stopped before it could try again.
			e.Status = "not_sent"
		}
		if e.Status == "unknown" && unknown == "" {
			unknown = address
		}
		s.out.Effects = append(s.out.Effects, *e)
	}
	if s.out.Sealed || s.out.State == StateQuarantined {
		return
	}
	switch {
	case s.out.Interrupted != "" && unknown != "":
		s.out.State = StateInDoubt
		s.out.Reasons = []string{(&doubt{address: unknown}).Error()}
	case s.out.Interrupted != "":
		s.out.State = StateInterrupted
		s.out.Reasons = []string{s.out.Interrupted}
	}
}
