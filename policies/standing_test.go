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

// facts is an input all of whose facts are in one state.
func facts(state string) policies.StandingInput {
	f := policies.RungFact{State: state}
	return policies.StandingInput{Action: "standing", Tenant: "demo", Now: 1, FlowID: "f", RunID: "r", Mode: "live", FlowState: "validated", Result: "pass",
		Facts: policies.StandingFacts{Recorded: f, Anchored: f, Retained: f, Sourced: f, Verified: f, Reproduced: f, Replayed: f, Certifiable: f}}
}

func factsBut(change func(*policies.StandingInput)) policies.StandingInput {
	in := facts("yes")
	change(&in)
	return in
}

func rungs(state string) policies.StandingRungs {
	return policies.StandingRungs{Recorded: state, Anchored: state, Retained: state, Sourced: state, Verified: state, Reproduced: state, Replayed: state, Certifiable: state}
}

// claiming returns a set whose standing policy says that every rung is in a state.
func claiming(t *testing.T, state, highest string) *policies.Set {
	t.Helper()
	set, err := policies.Load(policies.Config{Standing: folder(fmt.Sprintf(`package writ.standing
default standing := {}
standing := {"rungs": {r: %q | some r in ["recorded", "anchored", "retained", "sourced", "verified", "reproduced", "replayed", "certifiable"]}, "highest": %q, "narrowed_by": []}`, state, highest))})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func TestStandingsOfTheDefaultPolicy(t *testing.T) {
	cases := []struct {
		name     string
		in       policies.StandingInput
		highest  string
		narrowed []string
	}{
		{"every rung", facts("yes"), "certifiable", []string{}},
		{"none", facts("no"), "none", []string{"recorded: no"}},
		{"not checked stops the ladder", factsBut(func(in *policies.StandingInput) { in.Facts.Sourced.State = "not_checked" }), "retained", []string{"sourced: not_checked"}},
		{"a flag is said", factsBut(func(in *policies.StandingInput) { in.Flags.ClockAnomaly = true }), "certifiable", []string{"clock_anomaly"}},
		{"what limits is said", factsBut(func(in *policies.StandingInput) { in.Flags.Fork = true }), "replayed", []string{"fork", "never_certifiable: fork"}},
	}
	set := defaults(t)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			d, err := set.Standing(t.Context(), c.in)
			if err != nil {
				t.Fatal(err)
			}
			if d.Highest != c.highest {
				t.Errorf("highest %s, want %s", d.Highest, c.highest)
			}
			if diff := cmp.Diff(c.narrowed, d.NarrowedBy); diff != "" {
				t.Errorf("narrowed by (-want +got):\n%s", diff)
			}
		})
	}
}

// TestFloorOfStandings has a case for each line Go enforces, under a policy that
// says otherwise.
func TestFloorOfStandings(t *testing.T) {
	capped, last := rungs("no"), rungs("yes")
	capped.Recorded, last.Certifiable = "yes", "no"
	limited := func(change func(*policies.StandingFlags)) policies.StandingInput {
		return factsBut(func(in *policies.StandingInput) { change(&in.Flags) })
	}
	cases := []struct {
		name         string
		says         string
		highest      string
		in           policies.StandingInput
		want         policies.StandingRungs
		wantHighest  string
		wantNarrowed string
	}{
		{"no rung is added", "yes", "certifiable", facts("no"), rungs("no"), "none", "rungs_only_removable"},
		{"not checked is not reached", "yes", "certifiable", facts("not_checked"), rungs("not_checked"), "none", "rungs_only_removable"},
		{"rungs can be removed", "no", "none", facts("yes"), rungs("no"), "none", ""},
		{"the highest can be lowered", "yes", "retained", facts("yes"), rungs("yes"), "retained", ""},
		{"the highest follows from the rungs", "no", "certifiable", facts("yes"), rungs("no"), "none", ""},
		{"an incomplete ledger caps at recorded", "yes", "certifiable", limited(func(f *policies.StandingFlags) { f.LedgerIncomplete = true }), capped, "recorded", "ledger_incomplete"},
		{"override", "yes", "certifiable", limited(func(f *policies.StandingFlags) { f.Override = true }), last, "replayed", "never_certifiable: override"},
		{"fork", "yes", "certifiable", limited(func(f *policies.StandingFlags) { f.Fork = true }), last, "replayed", "never_certifiable: fork"},
		{"draft", "yes", "certifiable", limited(func(f *policies.StandingFlags) { f.Draft = true }), last, "replayed", "never_certifiable: draft"},
		{"unsafe", "yes", "certifiable", limited(func(f *policies.StandingFlags) { f.Unsafe = true }), last, "replayed", "never_certifiable: unsafe"},
		{"observe", "yes", "certifiable", limited(func(f *policies.StandingFlags) { f.Observe = true }), last, "replayed", "never_certifiable: observe"},
		{"dry-run", "yes", "certifiable", limited(func(f *policies.StandingFlags) { f.DryRun = true }), last, "replayed", "never_certifiable: dry_run"},
		{"exhausted entropy", "yes", "certifiable", limited(func(f *policies.StandingFlags) { f.EntropyExhausted = true }), last, "replayed", "never_certifiable: entropy_exhausted"},
		{"an unresolved intervention", "yes", "certifiable", limited(func(f *policies.StandingFlags) { f.InterventionUnresolved = true }), last, "replayed", "never_certifiable: intervention_unresolved"},
		{"what holds is left alone", "yes", "certifiable", facts("yes"), rungs("yes"), "certifiable", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			d, err := claiming(t, c.says, c.highest).Standing(t.Context(), c.in)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, d.Rungs); diff != "" || d.Highest != c.wantHighest {
				t.Errorf("highest %s, want %s; rungs (-want +got):\n%s", d.Highest, c.wantHighest, diff)
			}
			if c.wantNarrowed != "" && !slices.Contains(d.NarrowedBy, c.wantNarrowed) || c.wantNarrowed == "" && len(d.NarrowedBy) > 0 {
				t.Errorf("narrowed by %q, want %q", d.NarrowedBy, c.wantNarrowed)
			}
		})
	}
}

func TestInvalidStandingsAreRefused(t *testing.T) {
	cases := []struct {
		name, says, highest string
		in                  policies.StandingInput
		code, detail        string
	}{
		{"another state", "maybe", "none", facts("yes"), policies.CodeResult, "maybe"},
		{"no rung", "yes", "gold", facts("yes"), policies.CodeResult, "gold"},
		{"a fact in another state", "yes", "none", facts("true"), policies.CodeInput, "true"},
		{"a fact in no state", "yes", "none", facts(""), policies.CodeInput, "recorded"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			d, err := claiming(t, c.says, c.highest).Standing(t.Context(), c.in)
			var r *policies.Refusal
			if !errors.As(err, &r) || r.Code != c.code || !strings.Contains(r.Detail, c.detail) || d.Highest != "" {
				t.Errorf("%q, %v; want %s saying %q", d.Highest, err, c.code, c.detail)
			}
		})
	}
	missing := `package writ.standing
default standing := {"rungs": {"recorded": "yes"}, "highest": "none", "narrowed_by": []}`
	set, err := policies.Load(policies.Config{Standing: folder(missing)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := set.Standing(t.Context(), facts("yes")); err == nil || !strings.Contains(err.Error(), "anchored") {
		t.Errorf("a result without rungs: %v", err)
	}
}

func TestOnlyRungsThatOperatorAndFlowLeaveStand(t *testing.T) {
	answer := func(change string, highest string) content {
		return content{"a.rego": fmt.Sprintf(`package flow.f.standing
default standing := {}
standing := {"rungs": object.union({name: fact.state | some name, fact in input.facts}, %s), "highest": %q, "narrowed_by": ["own"]}`, change, highest)}
	}
	cases := []struct {
		name     string
		flow     content
		in       policies.StandingInput
		highest  string
		verified string
	}{
		{"the flow leaves all", answer(`{}`, "certifiable"), facts("yes"), "certifiable", "yes"},
		{"the flow removes one", answer(`{"verified": "no"}`, "sourced"), facts("yes"), "sourced", "no"},
		{"the flow's highest is lower", answer(`{}`, "recorded"), facts("yes"), "recorded", "yes"},
		{"the flow adds none", answer(`{"verified": "yes"}`, "certifiable"), factsBut(func(in *policies.StandingInput) { in.Facts.Verified.State = "no" }), "sourced", "no"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			set, err := defaults(t).WithFlow(read(t, c.flow))
			if err != nil {
				t.Fatal(err)
			}
			d, err := set.Standing(t.Context(), c.in)
			if err != nil {
				t.Fatal(err)
			}
			if d.Highest != c.highest || d.Rungs.Verified != c.verified || !slices.Contains(d.NarrowedBy, "flow: own") || len(d.Records) != 2 {
				t.Errorf("highest %s, verified %s, narrowed by %q; want %s, %s", d.Highest, d.Rungs.Verified, d.NarrowedBy, c.highest, c.verified)
			}
		})
	}
	set, err := defaults(t).WithFlow(read(t, content{"a.rego": "package flow.f.standing\ndefault standing := {}\n"}))
	if err != nil {
		t.Fatal(err)
	}
	if d, err := set.Standing(t.Context(), facts("yes")); err == nil || d.Highest != "" {
		t.Errorf("a flow without an answer: %q, %v", d.Highest, err)
	}
}
