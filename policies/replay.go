package policies

import (
	"context"
	"fmt"
	"slices"
)

// Verdicts of a replay or rerun, from best to worst.
const (
	VerdictAcceptable             = "acceptable"
	VerdictAcceptableWithWarnings = "acceptable_with_warnings"
	VerdictNonCertifiable         = "non_certifiable"
	VerdictUnacceptable           = "unacceptable"
)

// Reasons the floor of verdicts gives.
const (
	ReasonServedDifference         = "served_difference"
	ReasonNeverCertifiable         = "never_certifiable"
	ReasonContradictionsNotChecked = "contradictions_not_checked"
	ReasonDifferencesLeftOut       = "differences_left_out"
)

// ReplayInput is what the replay policy is asked over: what a replay or rerun
// showed, and what the original manifest allows.
type ReplayInput struct {
	Action           string             `json:"action"` // replay or rerun
	Tenant           string             `json:"tenant"`
	Now              int64              `json:"now"` // nanoseconds since 1970
	FlowID           string             `json:"flow_id"`
	DeterminismLevel string             `json:"determinism_level"`
	Mode             string             `json:"mode"`          // of the original manifest: strict, bounded or observational
	Acceptability    string             `json:"acceptability"` // of the original manifest: exact_match, invariant_preserving or statistically_bounded
	Envelope         ReplayEnvelope     `json:"envelope"`
	Measured         ReplayMeasured     `json:"measured"`
	Differences      []ReplayDifference `json:"differences"`
	Entropy          ReplayEntropy      `json:"entropy"`
	Flags            LimitingFlags      `json:"flags"`
}

// ReplayEnvelope is how far a rerun may stray, as the original manifest says.
type ReplayEnvelope struct {
	Declared              bool    `json:"declared"` // exactly when the mode is bounded
	MinClaimOverlap       float64 `json:"min_claim_overlap"`
	MaxContradictionDelta int     `json:"max_contradiction_delta"`
}

// ReplayMeasured is how far it strayed.
type ReplayMeasured struct {
	ClaimOverlap          float64 `json:"claim_overlap"` // Jaccard over (step, claim_id, statement)
	ContradictionsChecked bool    `json:"contradictions_checked"`
	ContradictionDelta    int     `json:"contradiction_delta"` // 0 where they were not checked
}

// ReplayDifference is one difference between the original and the replay.
type ReplayDifference struct {
	Name     string `json:"name"`     // unique among the differences, for instance "outputs of summarize"
	Kind     string `json:"kind"`     // structure, steps_ended, failures, human_input, outputs, evidence, artifacts, claims, contradictions, arbitration or entropy
	Blocking bool   `json:"blocking"` // under the manifest's acceptability
	Served   bool   `json:"served"`   // every input came from the record
	Address  string `json:"address"`  // lane/seq, or ""
	Detail   string `json:"detail"`
}

// ReplayEntropy is what both executions drew.
type ReplayEntropy struct {
	Original EntropyReport `json:"original"`
	Replayed EntropyReport `json:"replayed"`
}

// EntropyReport is what one execution drew from its sources of entropy.
type EntropyReport struct {
	Sources   []EntropyDrawn `json:"sources"`
	Exhausted bool           `json:"exhausted"` // it ran beyond its budget, whatever happened then
}

// EntropyDrawn is what was drawn from one source.
type EntropyDrawn struct {
	Source    string `json:"source"` // seeded_rng, external_oracle, human_input or data
	Calls     int64  `json:"calls"`
	Magnitude int64  `json:"magnitude"`
}

// LimitingFlags say what keeps a run from ever being certifiable.
type LimitingFlags struct {
	Override bool `json:"override"`
	Fork     bool `json:"fork"`
	Draft    bool `json:"draft"`
	Unsafe   bool `json:"unsafe"`
	Observe  bool `json:"observe"`
	DryRun   bool `json:"dry_run"`
}

// names lists the flags that are up.
func (f LimitingFlags) names() []string {
	var up []string
	for _, flag := range []struct {
		name string
		up   bool
	}{{"override", f.Override}, {"fork", f.Fork}, {"draft", f.Draft}, {"unsafe", f.Unsafe}, {"observe", f.Observe}, {"dry_run", f.DryRun}} {
		if flag.up {
			up = append(up, flag.name)
		}
	}
	return up
}

// ReplayDecision is what a replay or rerun shows.
type ReplayDecision struct {
	Verdict    string
	Blocking   []string // names of differences
	Acceptable []string // names of differences
	Reasons    []string // tagged "operator: " and "flow: " where both were asked
	Record     Record   // of the operator's answer
	Records    []Record // of every answer, the operator's first
}

type replayResult struct {
	Verdict    string   `json:"verdict"`
	Blocking   []string `json:"blocking"`
	Acceptable []string `json:"acceptable"`
	Reasons    []string `json:"reasons"`
}

// verdictRank orders verdicts from best to worst; what is no verdict is -1.
func verdictRank(verdict string) int {
	return slices.Index([]string{VerdictAcceptable, VerdictAcceptableWithWarnings, VerdictNonCertifiable, VerdictUnacceptable}, verdict)
}

// ReplayVerdict asks what a replay or rerun shows, and then holds the answer to
// the floor. A flow that brings a replay policy is asked as well, and the worse
// verdict stands. An error means that there is no verdict.
func (s *Set) ReplayVerdict(ctx context.Context, in ReplayInput) (ReplayDecision, error) {
	if err := in.check(); err != nil {
		return ReplayDecision{}, err
	}
	if err := s.flow.belongs(in.FlowID); err != nil {
		return ReplayDecision{}, err
	}
	d, err := s.replay.judge(ctx, in)
	own := s.flow.policy(DecisionReplay)
	if err != nil || own == nil {
		return d, err
	}
	other, err := own.judge(ctx, in)
	if err != nil {
		return ReplayDecision{Record: d.Record, Records: append(d.Records, other.Records...)}, s.flow.blame(err)
	}
	return CombineReplay(d, other), nil
}

func (p *policy) judge(ctx context.Context, in ReplayInput) (ReplayDecision, error) {
	var r replayResult
	record, err := p.decide(ctx, in.Now, in, &r)
	d := ReplayDecision{Record: record, Records: []Record{record}}
	if err != nil {
		return d, err
	}
	if verdictRank(r.Verdict) < 0 {
		return d, &Refusal{Code: CodeResult, Detail: fmt.Sprintf("verdict %.40q is none of acceptable, acceptable_with_warnings, non_certifiable, unacceptable", r.Verdict)}
	}
	if err := in.known(r.Blocking, r.Acceptable); err != nil {
		return d, err
	}
	d.Verdict, d.Blocking, d.Acceptable, d.Reasons = r.Verdict, r.Blocking, r.Acceptable, r.Reasons
	return in.floor(d), nil
}

// CombineReplay takes the worse verdict; what blocks for one blocks.
func CombineReplay(operator, flow ReplayDecision) ReplayDecision {
	d := ReplayDecision{
		Verdict:  WorseVerdict(operator.Verdict, flow.Verdict),
		Blocking: slices.Clone(operator.Blocking),
		Reasons:  CombineReasons(operator.Reasons, flow.Reasons),
		Record:   operator.Record,
		Records:  slices.Concat(operator.Records, flow.Records),
	}
	for _, name := range flow.Blocking {
		if !slices.Contains(d.Blocking, name) {
			d.Blocking = append(d.Blocking, name)
		}
	}
	d.Acceptable = slices.DeleteFunc(slices.Clone(operator.Acceptable), func(name string) bool { return slices.Contains(d.Blocking, name) })
	return d
}

// check refuses an input that a policy could misread.
func (in *ReplayInput) check() error {
	if in.Action != "replay" && in.Action != "rerun" {
		return &Refusal{Code: CodeInput, Detail: fmt.Sprintf("action %.40q is neither replay nor rerun", in.Action)}
	}
	if !slices.Contains([]string{"strict", "bounded", "observational"}, in.Mode) {
		return &Refusal{Code: CodeInput, Detail: fmt.Sprintf("replay mode %.40q is not strict, bounded or observational", in.Mode)}
	}
	seen := map[string]bool{}
	for _, d := range in.Differences {
		if d.Name == "" || seen[d.Name] {
			return &Refusal{Code: CodeInput, Detail: fmt.Sprintf("difference %.80q has no name of its own", d.Name)}
		}
		seen[d.Name] = true
	}
	return nil
}

// known refuses a result that names a difference nobody found, or one twice.
func (in *ReplayInput) known(lists ...[]string) error {
	left := map[string]bool{}
	for _, d := range in.Differences {
		left[d.Name] = true
	}
	for _, list := range lists {
		for _, name := range list {
			if !left[name] {
				return &Refusal{Code: CodeResult, Detail: fmt.Sprintf("the result names a difference %.80q that is not there or that it names twice", name)}
			}
			delete(left, name)
		}
	}
	return nil
}

// floor holds a verdict to what no policy can change: a served difference is
// unacceptable, what can never be certifiable is not acceptable, a count that
// was not made does not satisfy an envelope, and no difference goes unnamed.
func (in *ReplayInput) floor(d ReplayDecision) ReplayDecision {
	worsen := func(verdict, reason string) {
		if verdictRank(verdict) > verdictRank(d.Verdict) {
			d.Verdict = verdict
		}
		if !slices.Contains(d.Reasons, reason) {
			d.Reasons = append(d.Reasons, reason)
		}
	}
	for _, x := range in.Differences {
		isBlocking, isAcceptable := slices.Contains(d.Blocking, x.Name), slices.Contains(d.Acceptable, x.Name)
		if served := x.Served || in.Action == "replay"; served {
			worsen(VerdictUnacceptable, ReasonServedDifference)
			d.Acceptable = slices.DeleteFunc(d.Acceptable, func(name string) bool { return name == x.Name })
			isAcceptable = false
		} else if !isBlocking && !isAcceptable {
			worsen(VerdictUnacceptable, ReasonDifferencesLeftOut)
		}
		if !isBlocking && !isAcceptable {
			d.Blocking = append(d.Blocking, x.Name)
		}
	}
	if in.Action == "rerun" && in.Envelope.Declared && !in.Measured.ContradictionsChecked {
		worsen(VerdictNonCertifiable, ReasonContradictionsNotChecked)
	}
	for _, flag := range in.Flags.names() {
		worsen(VerdictNonCertifiable, ReasonNeverCertifiable+": "+flag)
	}
	return d
}
