package policies

import (
	"context"
	"fmt"
	"slices"
)

// States of a rung.
const (
	RungYes        = "yes"
	RungNo         = "no"
	RungNotChecked = "not_checked"
)

// Reasons the floor of standings gives.
const (
	ReasonRungsOnlyRemovable = "rungs_only_removable"
	ReasonLedgerIncomplete   = "ledger_incomplete"
)

// StandingNone is the highest rung of a run that has not even the first.
const StandingNone = "none"

// StandingInput is what the standing policy is asked over: the facts Go computed
// from what is retained now.
type StandingInput struct {
	Action    string        `json:"action"` // standing
	Tenant    string        `json:"tenant"`
	Now       int64         `json:"now"` // nanoseconds since 1970
	FlowID    string        `json:"flow_id"`
	RunID     string        `json:"run_id"`
	Mode      string        `json:"mode"`
	FlowState string        `json:"flow_state"`
	Result    string        `json:"result"` // the run's compound word
	Facts     StandingFacts `json:"facts"`
	Flags     StandingFlags `json:"flags"`
}

// StandingFacts has one fact for each rung, lowest first.
type StandingFacts struct {
	Recorded    RungFact `json:"recorded"`    // events present, digests recomputed
	Anchored    RungFact `json:"anchored"`    // in the ledger up to the newest signed head
	Retained    RungFact `json:"retained"`    // all payloads present and matching
	Sourced     RungFact `json:"sourced"`     // datasets, modules and artifacts present or fetched again, and matching
	Verified    RungFact `json:"verified"`    // live, full coverage, PASS, not permissive
	Reproduced  RungFact `json:"reproduced"`  // policy decisions re-evaluated to the same result
	Replayed    RungFact `json:"replayed"`    // an acceptable replay on record
	Certifiable RungFact `json:"certifiable"` // entropy within budget, nothing that rules it out
}

// RungFact is whether a rung is reached.
type RungFact struct {
	State  string `json:"state"`  // yes, no or not_checked
	Detail string `json:"detail"` // for instance "local" or the engines of the replay
}

// StandingFlags are what narrows a standing or must be said beside it.
type StandingFlags struct {
	LimitingFlags
	LedgerIncomplete       bool `json:"ledger_incomplete"`
	Redacted               bool `json:"redacted"`
	PayloadsWithheld       bool `json:"payloads_withheld"`
	TailLost               bool `json:"tail_lost"`
	ClockAnomaly           bool `json:"clock_anomaly"`
	ProviderVersionUnknown bool `json:"provider_version_unknown"`
	ChecksNotPerformed     bool `json:"checks_not_performed"`
	EntropyExhausted       bool `json:"entropy_exhausted"`
	InterventionUnresolved bool `json:"intervention_unresolved"`
}

// StandingRungs is the state of each rung, lowest first.
type StandingRungs struct {
	Recorded    string `json:"recorded"`
	Anchored    string `json:"anchored"`
	Retained    string `json:"retained"`
	Sourced     string `json:"sourced"`
	Verified    string `json:"verified"`
	Reproduced  string `json:"reproduced"`
	Replayed    string `json:"replayed"`
	Certifiable string `json:"certifiable"`
}

// rung is one place of the ladder.
type rung struct {
	name  string
	state *string
}

// ladder lists the rungs, lowest first.
func (r *StandingRungs) ladder() []rung {
	return []rung{{"recorded", &r.Recorded}, {"anchored", &r.Anchored}, {"retained", &r.Retained}, {"sourced", &r.Sourced},
		{"verified", &r.Verified}, {"reproduced", &r.Reproduced}, {"replayed", &r.Replayed}, {"certifiable", &r.Certifiable}}
}

// highest is the last rung before the first that is not reached.
func (r *StandingRungs) highest() string {
	last := StandingNone
	for _, rung := range r.ladder() {
		if *rung.state != RungYes {
			break
		}
		last = rung.name
	}
	return last
}

// rungRank is a rung's place on the ladder; none is 0, and what is no rung -1.
func rungRank(name string) int {
	if name == StandingNone {
		return 0
	}
	ladder := new(StandingRungs).ladder()
	i := slices.IndexFunc(ladder, func(r rung) bool { return r.name == name })
	if i < 0 {
		return -1
	}
	return i + 1
}

// rungs is the standing the facts come to by themselves.
func (f StandingFacts) rungs() StandingRungs {
	return StandingRungs{f.Recorded.State, f.Anchored.State, f.Retained.State, f.Sourced.State,
		f.Verified.State, f.Reproduced.State, f.Replayed.State, f.Certifiable.State}
}

// StandingDecision is what a run may claim now.
type StandingDecision struct {
	Rungs      StandingRungs
	Highest    string   // a rung, or none
	NarrowedBy []string // tagged "operator: " and "flow: " where both were asked
	Record     Record   // of the operator's answer
	Records    []Record // of every answer, the operator's first
}

type standingResult struct {
	Rungs      StandingRungs `json:"rungs"`
	Highest    string        `json:"highest"`
	NarrowedBy []string      `json:"narrowed_by"`
}

// Standing asks what a run may claim, and then holds the answer to the floor. A
// flow that brings a standing policy is asked as well, and only the rungs both
// leave stand. An error means that the run may claim nothing.
func (s *Set) Standing(ctx context.Context, in StandingInput) (StandingDecision, error) {
	facts := in.Facts.rungs()
	if name, state, ok := facts.wrong(); ok {
		return StandingDecision{}, &Refusal{Code: CodeInput, Detail: fmt.Sprintf("fact %s is %.40q, not yes, no or not_checked", name, state)}
	}
	if err := s.flow.belongs(in.FlowID); err != nil {
		return StandingDecision{}, err
	}
	d, err := s.standing.stand(ctx, in)
	own := s.flow.policy(DecisionStanding)
	if err != nil || own == nil {
		return d, err
	}
	other, err := own.stand(ctx, in)
	if err != nil {
		return StandingDecision{Record: d.Record, Records: append(d.Records, other.Records...)}, s.flow.blame(err)
	}
	return CombineStanding(d, other), nil
}

func (p *policy) stand(ctx context.Context, in StandingInput) (StandingDecision, error) {
	var r standingResult
	record, err := p.decide(ctx, in.Now, in, &r)
	d := StandingDecision{Record: record, Records: []Record{record}}
	if err != nil {
		return d, err
	}
	if name, state, ok := r.Rungs.wrong(); ok {
		return d, &Refusal{Code: CodeResult, Detail: fmt.Sprintf("rung %s is %.40q, not yes, no or not_checked", name, state)}
	}
	if rungRank(r.Highest) < 0 {
		return d, &Refusal{Code: CodeResult, Detail: fmt.Sprintf("highest %.40q is no rung", r.Highest)}
	}
	d.Rungs, d.Highest, d.NarrowedBy = r.Rungs, r.Highest, r.NarrowedBy
	return in.floor(d), nil
}

// CombineStanding keeps the rungs that both leave, and the lower highest.
func CombineStanding(operator, flow StandingDecision) StandingDecision {
	d := StandingDecision{
		Rungs:      operator.Rungs,
		Highest:    operator.Highest,
		NarrowedBy: CombineReasons(operator.NarrowedBy, flow.NarrowedBy),
		Record:     operator.Record,
		Records:    slices.Concat(operator.Records, flow.Records),
	}
	ladder := d.Rungs.ladder()
	for i, other := range flow.Rungs.ladder() {
		if *ladder[i].state == RungYes {
			*ladder[i].state = *other.state
		}
	}
	for _, highest := range []string{flow.Highest, d.Rungs.highest()} {
		if rungRank(highest) < rungRank(d.Highest) {
			d.Highest = highest
		}
	}
	return d
}

// wrong returns the first rung whose state is none.
func (r *StandingRungs) wrong() (name, state string, found bool) {
	for _, rung := range r.ladder() {
		if s := *rung.state; s != RungYes && s != RungNo && s != RungNotChecked {
			return rung.name, s, true
		}
	}
	return "", "", false
}

// floor holds a standing to what no policy can change: a rung the facts do not
// reach stays unreached, an incomplete ledger caps it, and what can never be
// certifiable is not. The policy's own highest stands where it is lower.
func (in *StandingInput) floor(d StandingDecision) StandingDecision {
	narrow := func(reason string) {
		if !slices.Contains(d.NarrowedBy, reason) {
			d.NarrowedBy = append(d.NarrowedBy, reason)
		}
	}
	remove := func(r rung, reason string) {
		if *r.state == RungYes {
			*r.state = RungNo
		}
		narrow(reason)
	}
	facts := in.Facts.rungs()
	ladder := d.Rungs.ladder()
	for i, fact := range facts.ladder() {
		if *ladder[i].state == RungYes && *fact.state != RungYes {
			*ladder[i].state = *fact.state
			narrow(ReasonRungsOnlyRemovable)
		}
	}
	if in.Flags.LedgerIncomplete {
		for _, r := range ladder[1:] {
			remove(r, ReasonLedgerIncomplete)
		}
	}
	limits := in.Flags.names()
	if in.Flags.EntropyExhausted {
		limits = append(limits, "entropy_exhausted")
	}
	if in.Flags.InterventionUnresolved {
		limits = append(limits, "intervention_unresolved")
	}
	for _, flag := range limits {
		remove(ladder[len(ladder)-1], ReasonNeverCertifiable+": "+flag)
	}
	if highest := d.Rungs.highest(); rungRank(highest) < rungRank(d.Highest) {
		d.Highest = highest
	}
	if d.NarrowedBy == nil {
		d.NarrowedBy = []string{}
	}
	return d
}
