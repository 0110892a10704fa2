package policies_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/writrun/writ/policies"
)

// rerun is a bounded rerun that differs as given.
func rerun(differences ...policies.ReplayDifference) policies.ReplayInput {
	return policies.ReplayInput{Action: "rerun", Tenant: "demo", Now: 1, FlowID: "f", DeterminismLevel: "bounded", Mode: "bounded",
		Acceptability: "invariant_preserving", Differences: differences,
		Measured: policies.ReplayMeasured{ClaimOverlap: 1, ContradictionsChecked: true}}
}

func difference(name string, blocking bool) policies.ReplayDifference {
	return policies.ReplayDifference{Name: name, Kind: "outputs", Blocking: blocking}
}

// judging returns a set whose replay policy always answers the same.
func judging(t *testing.T, verdict string, blocking, acceptable string) *policies.Set {
	t.Helper()
	set, err := policies.Load(policies.Config{Replay: folder(fmt.Sprintf(`package writ.replay
default verdict := {"verdict": %q, "blocking": %s, "acceptable": %s, "reasons": []}`, verdict, blocking, acceptable))})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func TestVerdictsOfTheDefaultPolicy(t *testing.T) {
	a, b := difference("a", false), difference("b", true)
	with := func(in policies.ReplayInput, change func(*policies.ReplayInput)) policies.ReplayInput {
		change(&in)
		return in
	}
	strict := func(in *policies.ReplayInput) { in.Mode = "strict" }
	observational := func(in *policies.ReplayInput) { in.Mode = "observational" }
	cases := []struct {
		name    string
		in      policies.ReplayInput
		verdict string
		reasons []string
	}{
		{"nothing differs", rerun(), policies.VerdictAcceptable, []string{}},
		{"strict, nothing differs", with(rerun(), strict), policies.VerdictAcceptable, []string{}},
		{"strict, anything differs", with(rerun(a), strict), policies.VerdictUnacceptable, []string{"blocking_differences"}},
		{"bounded, acceptable", rerun(a), policies.VerdictAcceptableWithWarnings, []string{"acceptable_differences"}},
		{"bounded, blocking", rerun(b), policies.VerdictUnacceptable, []string{"blocking_differences"}},
		{"observational, acceptable", with(rerun(a), observational), policies.VerdictAcceptableWithWarnings, []string{"acceptable_differences"}},
		{"observational, blocking", with(rerun(b), observational), policies.VerdictNonCertifiable, []string{"blocking_differences_observed"}},
		{"envelope kept", with(rerun(), func(in *policies.ReplayInput) {
			in.Envelope, in.Measured.ClaimOverlap = policies.ReplayEnvelope{Declared: true, MinClaimOverlap: 0.8}, 0.8
		}), policies.VerdictAcceptable, []string{}},
		{"too few claims in common", with(rerun(), func(in *policies.ReplayInput) {
			in.Envelope, in.Measured.ClaimOverlap = policies.ReplayEnvelope{Declared: true, MinClaimOverlap: 0.8}, 0.799
		}), policies.VerdictUnacceptable, []string{"claim_overlap_below_envelope"}},
		{"entropy exhausted", with(rerun(), func(in *policies.ReplayInput) { in.Entropy.Replayed.Exhausted = true }), policies.VerdictNonCertifiable, []string{"entropy_exhausted"}},
	}
	set := defaults(t)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			d, err := set.ReplayVerdict(t.Context(), c.in)
			if err != nil {
				t.Fatal(err)
			}
			if d.Verdict != c.verdict {
				t.Errorf("verdict %s, want %s", d.Verdict, c.verdict)
			}
			if diff := cmp.Diff(c.reasons, d.Reasons); diff != "" {
				t.Errorf("reasons (-want +got):\n%s", diff)
			}
		})
	}
}

// TestFloorOfVerdicts has a case for each line Go enforces, under a policy that
// says otherwise.
func TestFloorOfVerdicts(t *testing.T) {
	served := difference("x", false)
	served.Served = true
	replayed := rerun(difference("x", false))
	replayed.Action, replayed.Mode = "replay", "observational"
	unchecked := rerun()
	unchecked.Envelope.Declared, unchecked.Measured.ContradictionsChecked = true, false
	flagged := func(f policies.LimitingFlags) policies.ReplayInput {
		in := rerun()
		in.Flags = f
		return in
	}
	cases := []struct {
		name                 string
		says                 string
		blocking, acceptable string
		in                   policies.ReplayInput
		want, reason         string
		wantBlocking         []string
	}{
		{"a served difference is unacceptable", "acceptable", `[]`, `["x"]`, rerun(served), "unacceptable", "served_difference", []string{"x"}},
		{"any difference of a replay is a served one", "acceptable", `[]`, `["x"]`, replayed, "unacceptable", "served_difference", []string{"x"}},
		{"no difference goes unnamed", "acceptable", `[]`, `[]`, rerun(difference("x", false)), "unacceptable", "differences_left_out", []string{"x"}},
		{"a count not made fits no envelope", "acceptable", `[]`, `[]`, unchecked, "non_certifiable", "contradictions_not_checked", nil},
		{"override", "acceptable", `[]`, `[]`, flagged(policies.LimitingFlags{Override: true}), "non_certifiable", "never_certifiable: override", nil},
		{"fork", "acceptable", `[]`, `[]`, flagged(policies.LimitingFlags{Fork: true}), "non_certifiable", "never_certifiable: fork", nil},
		{"draft", "acceptable", `[]`, `[]`, flagged(policies.LimitingFlags{Draft: true}), "non_certifiable", "never_certifiable: draft", nil},
		{"unsafe", "acceptable", `[]`, `[]`, flagged(policies.LimitingFlags{Unsafe: true}), "non_certifiable", "never_certifiable: unsafe", nil},
		{"observe", "acceptable", `[]`, `[]`, flagged(policies.LimitingFlags{Observe: true}), "non_certifiable", "never_certifiable: observe", nil},
		{"dry-run", "acceptable", `[]`, `[]`, flagged(policies.LimitingFlags{DryRun: true}), "non_certifiable", "never_certifiable: dry_run", nil},
		{"a worse verdict stands", "unacceptable", `[]`, `[]`, rerun(), "unacceptable", "", nil},
		{"what holds is left alone", "acceptable_with_warnings", `[]`, `["x"]`, rerun(difference("x", false)), "acceptable_with_warnings", "", nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			d, err := judging(t, c.says, c.blocking, c.acceptable).ReplayVerdict(t.Context(), c.in)
			if err != nil {
				t.Fatal(err)
			}
			if d.Verdict != c.want || c.reason != "" && !slices.Contains(d.Reasons, c.reason) || c.reason == "" && len(d.Reasons) > 0 {
				t.Errorf("%s %q, want %s %q", d.Verdict, d.Reasons, c.want, c.reason)
			}
			if !slices.Equal(d.Blocking, c.wantBlocking) {
				t.Errorf("blocking %q, want %q", d.Blocking, c.wantBlocking)
			}
		})
	}
}

func TestInvalidVerdictsAreRefused(t *testing.T) {
	x := rerun(difference("x", false))
	cases := []struct {
		name                       string
		says, blocking, acceptable string
		in                         policies.ReplayInput
		code, detail               string
	}{
		{"another word", "fine", `[]`, `[]`, rerun(), policies.CodeResult, "fine"},
		{"a difference nobody found", "acceptable", `["y"]`, `[]`, x, policies.CodeResult, "y"},
		{"a difference named twice", "acceptable", `["x"]`, `["x"]`, x, policies.CodeResult, "x"},
		{"two differences of one name", "acceptable", `[]`, `["x"]`, rerun(difference("x", false), difference("x", true)), policies.CodeInput, "x"},
		{"a difference without a name", "acceptable", `[]`, `[]`, rerun(difference("", false)), policies.CodeInput, "name"},
		{"another action", "acceptable", `[]`, `[]`, policies.ReplayInput{Action: "resume", Mode: "strict"}, policies.CodeInput, "resume"},
		{"another mode", "acceptable", `[]`, `[]`, policies.ReplayInput{Action: "rerun", Mode: "loose"}, policies.CodeInput, "loose"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			d, err := judging(t, c.says, c.blocking, c.acceptable).ReplayVerdict(t.Context(), c.in)
			var r *policies.Refusal
			if !errors.As(err, &r) || r.Code != c.code || !strings.Contains(r.Detail, c.detail) || d.Verdict != "" {
				t.Errorf("%q, %v; want %s saying %q", d.Verdict, err, c.code, c.detail)
			}
		})
	}
}

func TestTheWorseVerdictOfOperatorAndFlowStands(t *testing.T) {
	answer := func(pkg, verdict string) string {
		return fmt.Sprintf("package %s\ndefault verdict := {\"verdict\": %q, \"blocking\": [], \"acceptable\": [\"x\"], \"reasons\": [%[2]q]}\n", pkg, verdict)
	}
	all := []string{"acceptable", "acceptable_with_warnings", "non_certifiable", "unacceptable"}
	for i, operator := range all {
		set, err := policies.Load(policies.Config{Replay: folder(answer("writ.replay", operator))})
		if err != nil {
			t.Fatal(err)
		}
		for j, flow := range all {
			both, err := set.WithFlow(read(t, content{"a.rego": answer("flow.f.replay", flow)}))
			if err != nil {
				t.Fatal(err)
			}
			d, err := both.ReplayVerdict(t.Context(), rerun(difference("x", false)))
			if err != nil {
				t.Fatal(err)
			}
			if want := all[max(i, j)]; d.Verdict != want || !slices.Equal(d.Reasons, []string{"operator: " + operator, "flow: " + flow}) || len(d.Records) != 2 {
				t.Errorf("%s and %s: %s %q, %d records; want %s", operator, flow, d.Verdict, d.Reasons, len(d.Records), want)
			}
			for _, record := range d.Records {
				if _, err := both.Reevaluate(t.Context(), throughJSON(t, record)); err != nil {
					t.Error(err)
				}
			}
		}
	}
	t.Run("what blocks for one blocks", func(t *testing.T) {
		set, err := defaults(t).WithFlow(read(t, content{"a.rego": `package flow.f.replay
default verdict := {"verdict": "unacceptable", "blocking": ["x"], "acceptable": ["y"], "reasons": []}`}))
		if err != nil {
			t.Fatal(err)
		}
		d, err := set.ReplayVerdict(t.Context(), rerun(difference("x", false), difference("y", false)))
		if err != nil || !slices.Equal(d.Blocking, []string{"x"}) || !slices.Equal(d.Acceptable, []string{"y"}) {
			t.Errorf("blocking %q, acceptable %q, %v", d.Blocking, d.Acceptable, err)
		}
	})
	t.Run("a served difference is unacceptable under both", func(t *testing.T) {
		set, err := defaults(t).WithFlow(read(t, content{"a.rego": answer("flow.f.replay", "acceptable")}))
		if err != nil {
			t.Fatal(err)
		}
		in := rerun(difference("x", false))
		in.Action = "replay"
		if d, err := set.ReplayVerdict(t.Context(), in); err != nil || d.Verdict != policies.VerdictUnacceptable {
			t.Errorf("%s, %v", d.Verdict, err)
		}
	})
	t.Run("no answer of the flow is no verdict", func(t *testing.T) {
		set, err := defaults(t).WithFlow(read(t, content{"a.rego": answer("flow.f.replay", "fine")}))
		if err != nil {
			t.Fatal(err)
		}
		var r *policies.Refusal
		if d, err := set.ReplayVerdict(t.Context(), rerun(difference("x", false))); !errors.As(err, &r) || r.Code != policies.CodeResult || d.Verdict != "" || len(d.Records) != 2 {
			t.Errorf("%s, %v", d.Verdict, err)
		}
	})
	t.Run("another flow is refused", func(t *testing.T) {
		set, err := defaults(t).WithFlow(read(t, content{"a.rego": answer("flow.f.replay", "acceptable")}))
		if err != nil {
			t.Fatal(err)
		}
		in := rerun()
		in.FlowID = "g"
		if _, err := set.ReplayVerdict(t.Context(), in); err == nil {
			t.Error("accepted")
		}
	})
}
