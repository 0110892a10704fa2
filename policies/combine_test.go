package policies_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/policies"
)

var running = policies.AuthorityInput{Action: "run", Tenant: "demo", Now: 1, Mode: "live", FlowID: "f", FlowState: "validated"}

// operating returns a set whose authority policy is text, with a flow's bundle.
func operating(t *testing.T, text string, c content) *policies.Set {
	t.Helper()
	set, err := policies.Load(policies.Config{Authority: fstest.MapFS{"p.rego": {Data: []byte(text)}}})
	if err != nil {
		t.Fatal(err)
	}
	if set, err = set.WithFlow(read(t, c)); err != nil {
		t.Fatal(err)
	}
	return set
}

func operatorOf(allow bool, reason string) string {
	return strings.Replace(authorityOf(allow, reason), "package flow.f.authority", "package writ.authority", 1)
}

func TestBothHaveToAllow(t *testing.T) {
	cases := []struct {
		name           string
		operator, flow bool
		allow          bool
		reasons        []string
		asked          int
	}{
		{"both allow", true, true, true, []string{"operator: o", "flow: f"}, 2},
		{"the flow refuses", true, false, false, []string{"operator: o", "flow: f"}, 2},
		{"the operator refuses, and the flow is not asked", false, true, false, []string{"o"}, 1},
		{"both refuse, and the flow is not asked", false, false, false, []string{"o"}, 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			set := operating(t, operatorOf(c.operator, "o"), content{"a.rego": authorityOf(c.flow, "f")})
			d, err := set.Authority(t.Context(), running)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.reasons, d.Reasons); d.Allow != c.allow || diff != "" {
				t.Errorf("allow %v, want %v; reasons (-want +got):\n%s", d.Allow, c.allow, diff)
			}
			if len(d.Records) != c.asked || d.Record.Entrypoint != policies.AuthorityEntrypoint || d.Records[0].Entrypoint != d.Record.Entrypoint {
				t.Errorf("records %+v", d.Records)
			}
			if c.asked == 2 && (d.Records[1].Entrypoint != "data.flow.f.authority.decision" || d.Records[1].Policy != set.Flow().Digest()) {
				t.Errorf("the flow's record %+v", d.Records[1])
			}
		})
	}
}

// TestAFlowThatGivesNoAnswerIsRefused has each way to fail, under an operator
// that allows and an arbitration that would pass.
func TestAFlowThatGivesNoAnswerIsRefused(t *testing.T) {
	const head = "package flow.f.NAME\n\ndefault decision := {}\n\n"
	answers := map[string]string{"authority": `{"allow": true, "reasons": []}`, "arbitration": `{"decision": "PASS", "reasons": [], "permissive": false}`}
	cases := []struct{ name, policy, code string }{
		{"a missing field", head, policies.CodeResult},
		{"an extra field", head + `decision := object.union(ANSWER, {"note": 1}) if true`, policies.CodeResult},
		{"a conflict", head + "decision := ANSWER if true\n\ndecision := object.union(ANSWER, {\"reasons\": [\"x\"]}) if input.now == 1\n", policies.CodeEvaluation},
		{"an error", head + "decision := ANSWER if 1 / (input.now - 1) == 1\n", policies.CodeEvaluation},
		{"a default that is a list", strings.Replace(head, "{}", "[]", 1), policies.CodeResult},
	}
	for _, c := range cases {
		for _, decision := range slices.Sorted(maps.Keys(answers)) {
			t.Run(c.name+" in "+decision, func(t *testing.T) {
				text := strings.NewReplacer("NAME", decision, "ANSWER", answers[decision]).Replace(c.policy)
				set := withFlow(t, content{"a.rego": text})
				var err error
				var allowed bool
				if decision == "authority" {
					d, failed := set.Authority(t.Context(), running)
					err, allowed = failed, d.Allow
					if len(d.Records) != 2 {
						t.Errorf("%d records, want those of both", len(d.Records))
					}
				} else {
					d, failed := set.Arbitrate(t.Context(), input("unanimous", 0, abi.Pass))
					err, allowed = failed, d.Decision != ""
				}
				wantRefusal(t, err, c.code, "bundle of flow f: ")
				if allowed {
					t.Error("decided all the same")
				}
			})
		}
	}
}

func TestArbitrationOfTheFlow(t *testing.T) {
	set := withFlow(t, content{"a.rego": byThreshold, "flow/f/limits/data.json": `{"passes": 1}`})
	always := withFlow(t, content{"a.rego": strings.Replace(alwaysFail, "FAIL", "PASS", 1)})
	gap := input("unanimous", 0, abi.Pass)
	gap.Coverage.Expected = 2
	cases := []struct {
		name       string
		set        *policies.Set
		in         policies.ArbitrationInput
		decision   string
		permissive bool
	}{
		{"decides with its own data", set, input("unanimous", 0, abi.Pass), "PASS", false},
		{"stands in place of the rule", set, input("unanimous", 0, abi.Pass, abi.Fail), "PASS", true},
		{"can be named as the rule", set, input("data.flow.f.arbitration.decision", 0, abi.Fail), "FAIL", false},
		{"is held to the floor where nothing was evaluated", always, input("unanimous", 0), "ESCALATE", false},
		{"is held to the floor in a gap", always, gap, "FAIL", false},
		{"is held to the floor over what is not PASS", always, input("unanimous", 0, abi.Pass, abi.Errored), "PASS", true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			d, err := c.set.Arbitrate(t.Context(), c.in)
			if err != nil || d.Decision != c.decision || d.Permissive != c.permissive {
				t.Errorf("%s permissive %v, %v; want %s %v", d.Decision, d.Permissive, err, c.decision, c.permissive)
			}
			if d.Record.Policy != c.set.Flow().Digest() || d.Record.Policy != c.set.ArbitrationDigest() || d.Record.Entrypoint != "data.flow.f.arbitration.decision" {
				t.Errorf("record %+v", d.Record)
			}
		})
	}
	plain := withFlow(t, content{"a.rego": authorityOf(true, "f")})
	if d, err := plain.Arbitrate(t.Context(), input("unanimous", 0, abi.Pass)); err != nil || d.Record.Entrypoint != policies.ArbitrationEntrypoint || plain.ArbitrationDigest() != defaults(t).ArbitrationDigest() {
		t.Errorf("a flow without an arbitration: %+v, %v", d.Record, err)
	}
}

// TestTheOperatorSaysWhichBundlesMayBeBrought restricts digests and signers.
func TestTheOperatorSaysWhichBundlesMayBeBrought(t *testing.T) {
	alice := ecSigner(t, "alice")
	files := content{"a.rego": alwaysFail}
	unsigned := read(t, files)
	signed, err := policies.ReadBundle(tarOf(t, alice.signAll(t, files, "")), policies.BundleConfig{FlowID: "f", Keys: []policies.Key{alice.key("")}})
	if err != nil {
		t.Fatal(err)
	}
	const head = "package writ.authority\n\ndefault decision := {\"allow\": false, \"reasons\": [\"no\"]}\n\ndecision := {\"allow\": true, \"reasons\": [\"yes\"]} if "
	cases := []struct {
		name, rule             string
		none, unsigned, signed bool // allowed with no bundle, an unsigned one, a signed one
	}{
		{"none at all", "not input.policy", true, false, false},
		{"signed by alice", `input.policy.signer == "alice"`, false, false, true},
		{"signed by anybody", "input.policy.signed", false, false, true},
		{"signed by bob", `input.policy.signer == "bob"`, false, false, false},
		{"one digest", `input.policy.digest == "` + string(unsigned.Digest()) + `"`, false, true, true},
		{"another digest", `input.policy.digest == "` + string(abi.DigestOf(nil)) + `"`, false, false, false},
		{"no arbitration", `not "arbitration" in object.get(input, ["policy", "decisions"], [])`, true, false, false},
		{"local ones", `input.policy.origin in {"folder", "archive"}`, false, true, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			set, err := policies.Load(policies.Config{Authority: fstest.MapFS{"p.rego": {Data: []byte(head + c.rule + "\n")}}})
			if err != nil {
				t.Fatal(err)
			}
			check := func(what string, set *policies.Set, want bool) {
				in := running
				in.Policy = &policies.AuthorityPolicy{Signed: true, Signer: "alice"} // is not for the caller to say
				if d, err := set.Authority(t.Context(), in); err != nil || d.Allow != want {
					t.Errorf("%s: allow %v, %v; want %v", what, d.Allow, err, want)
				}
			}
			check("no bundle", set, c.none)
			for b, want := range map[*policies.Bundle]bool{unsigned: c.unsigned, signed: c.signed} {
				with, err := set.WithFlow(b)
				if err != nil {
					t.Fatal(err)
				}
				check("signed "+b.Signature().Signer, with, want)
			}
		})
	}
}

func TestDefaultAuthorityAllowsLocalBundles(t *testing.T) {
	d, err := withFlow(t, content{"a.rego": alwaysFail}).Authority(t.Context(), running)
	want := []string{"the flow's policy bundle is not signed; it is pinned by its digest"}
	if diff := cmp.Diff(want, d.Reasons); err != nil || !d.Allow || diff != "" {
		t.Errorf("allow %v, %v; reasons (-want +got):\n%s", d.Allow, err, diff)
	}
}

// TestNeitherSeesTheOther gives the operator and the flow packages of the same
// last names and documents of the same paths.
func TestNeitherSeesTheOther(t *testing.T) {
	lib := "package %s.lib\n\nwho := %q\n"
	operator := fstest.MapFS{"p.rego": {Data: []byte("package writ.authority\n\ndefault decision := {\"allow\": false, \"reasons\": []}\n\ndecision := {\"allow\": true, \"reasons\": [who]} if true\n\nwho := \"operator\"\n\nwho := \"flow\" if data.flow.f\n")}}
	set, err := policies.Load(policies.Config{Authority: operator})
	if err != nil {
		t.Fatal(err)
	}
	set, err = set.WithFlow(read(t, content{
		"a.rego":    "package flow.f.authority\n\ndefault decision := {\"allow\": false, \"reasons\": []}\n\ndecision := {\"allow\": true, \"reasons\": [data.flow.f.lib.who]}\n",
		"lib.rego":  strings.Replace(strings.Replace(lib, "%s", "flow.f", 1), "%q", `"flow"`, 1),
		"data.json": `{"flow": {"f": {"limits": 1}}}`,
	}))
	if err != nil {
		t.Fatal(err)
	}
	d, err := set.Authority(t.Context(), running)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"operator: operator", "flow: flow"}, d.Reasons); diff != "" {
		t.Errorf("reasons (-want +got):\n%s", diff)
	}
}

// TestALoopOfTheFlowIsItsOwn has a flow's policy run until its caller has had
// enough; the operator answered before.
func TestALoopOfTheFlowIsItsOwn(t *testing.T) {
	loop := authorityOf(true, "f") + `
digits := numbers.range(1, 1000)

decision := {"allow": false, "reasons": []} if {
	count([1 | some a in digits; some b in digits; some c in digits; some d in digits; a + b + c + d < 0]) == 1
}
`
	set := withFlow(t, content{"a.rego": loop})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	var d policies.AuthorityDecision
	go func() {
		var err error
		d, err = set.Authority(ctx, running)
		done <- err
	}()
	// The operator's policies, those of the same set included, answer meanwhile.
	for range 20 {
		if d, err := set.Arbitrate(t.Context(), input("unanimous", 0, abi.Pass)); err != nil || d.Decision != "PASS" {
			t.Errorf("%s, %v", d.Decision, err)
		}
		if d, err := defaults(t).Authority(t.Context(), running); err != nil || !d.Allow {
			t.Errorf("%v, %v", d.Allow, err)
		}
	}
	cancel()
	err := <-done
	var r *policies.Refusal
	if !errors.Is(err, context.Canceled) && !(errors.As(err, &r) && r.Code == policies.CodeTooSlow) {
		t.Errorf("error %v", err)
	}
	if d.Allow || len(d.Records) != 2 || len(d.Records[0].Result) == 0 {
		t.Errorf("decision %+v", d)
	}
}

func TestOneBundleForOneFlow(t *testing.T) {
	b := read(t, content{"a.rego": alwaysFail})
	set, err := defaults(t).WithFlow(b)
	if err != nil {
		t.Fatal(err)
	}
	if set.Flow() != b || defaults(t).Flow() != nil {
		t.Error("the set does not hold the bundle")
	}
	_, err = set.WithFlow(b)
	wantRefusal(t, err, policies.CodeBundleFlow, "already")
	_, err = defaults(t).WithFlow(nil)
	wantRefusal(t, err, policies.CodeBundleFlow, "no bundle")
	in := running
	in.FlowID = "g"
	_, err = set.Authority(t.Context(), in)
	wantRefusal(t, err, policies.CodeBundleFlow, "flow g")
	other := input("unanimous", 0, abi.Pass)
	other.FlowID = "g"
	_, err = set.Arbitrate(t.Context(), other)
	wantRefusal(t, err, policies.CodeBundleFlow, "flow g")
}

func TestWorseVerdict(t *testing.T) {
	const ok, warn, not, bad = "acceptable", "acceptable_with_warnings", "non_certifiable", "unacceptable"
	cases := []struct{ operator, flow, want string }{
		{ok, ok, ok}, {ok, warn, warn}, {ok, not, not}, {ok, bad, bad},
		{warn, ok, warn}, {warn, warn, warn}, {warn, not, not}, {warn, bad, bad},
		{not, ok, not}, {not, warn, not}, {not, not, not}, {not, bad, bad},
		{bad, ok, bad}, {bad, warn, bad}, {bad, not, bad}, {bad, bad, bad},
		{"", ok, bad}, {ok, "fine", bad}, {"Acceptable", "", bad},
	}
	for _, c := range cases {
		if got := policies.WorseVerdict(c.operator, c.flow); got != c.want {
			t.Errorf("%q and %q: %s, want %s", c.operator, c.flow, got, c.want)
		}
	}
}

func TestCombineReplay(t *testing.T) {
	operator := policies.ReplayDecision{Verdict: "acceptable_with_warnings", Blocking: []string{"a"}, Acceptable: []string{"b", "c"},
		Reasons: []string{"o", policies.ReasonDifferencesLeftOut}, Record: policies.Record{Entrypoint: policies.ReplayEntrypoint}}
	flow := policies.ReplayDecision{Verdict: "unacceptable", Blocking: []string{"c"}, Acceptable: []string{"a", "b"},
		Reasons: []string{policies.ReasonDifferencesLeftOut, "f"}}
	want := policies.ReplayDecision{Verdict: "unacceptable", Blocking: []string{"a", "c"}, Acceptable: []string{"b"},
		Reasons: []string{"operator: o", "flow: f", policies.ReasonDifferencesLeftOut}, Record: operator.Record}
	if diff := cmp.Diff(want, policies.CombineReplay(operator, flow)); diff != "" {
		t.Errorf("combined (-want +got):\n%s", diff)
	}
}

func TestCombinedRungs(t *testing.T) {
	const yes, no, unknown = policies.RungYes, policies.RungNo, policies.RungNotChecked
	cases := []struct {
		operator, flow string
		reached        bool
	}{
		{yes, yes, true}, {yes, no, false}, {yes, unknown, false},
		{no, yes, false}, {no, no, false}, {no, unknown, false},
		{unknown, yes, false}, {unknown, no, false}, {unknown, unknown, false},
	}
	all := func(s string) policies.StandingDecision {
		return policies.StandingDecision{Rungs: policies.StandingRungs{s, s, s, s, s, s, s, s}, Highest: "certifiable"}
	}
	for _, c := range cases {
		got := policies.CombineStanding(all(c.operator), all(c.flow))
		if (got.Rungs.Recorded == yes) != c.reached || (got.Rungs.Certifiable == yes) != c.reached || (got.Highest == "certifiable") != c.reached {
			t.Errorf("%s and %s: %+v, want reached %v", c.operator, c.flow, got, c.reached)
		}
	}
}

func TestCombineStanding(t *testing.T) {
	const yes, no = policies.RungYes, policies.RungNo
	full := policies.StandingRungs{yes, yes, yes, yes, yes, yes, yes, yes}
	noAnchor, noReplay := full, full
	noAnchor.Anchored, noReplay.Replayed = no, no
	cases := []struct {
		name                   string
		operator, flow         policies.StandingRungs
		operatorHigh, flowHigh string
		highest                string
		operatorSays, flowSays []string
		narrowedBy             []string
	}{
		{"both leave all", full, full, "certifiable", "certifiable", "certifiable", nil, nil, []string{}},
		{"the flow removes one", full, noReplay, "certifiable", "reproduced", "reproduced", nil, []string{"f"}, []string{"flow: f"}},
		{"the operator removes one", noAnchor, full, "recorded", "certifiable", "recorded", []string{"o"}, nil, []string{"operator: o"}},
		{"each removes another", noReplay, noAnchor, "reproduced", "recorded", "recorded", []string{"o"}, []string{"f"}, []string{"operator: o", "flow: f"}},
		{"the flow wants less than it leaves", full, full, "certifiable", "none", "none", nil, nil, []string{}},
		{"the floor is nobody's", full, full, "certifiable", "certifiable", "certifiable", []string{policies.ReasonLedgerIncomplete}, []string{policies.ReasonLedgerIncomplete}, []string{policies.ReasonLedgerIncomplete}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := policies.CombineStanding(policies.StandingDecision{Rungs: c.operator, Highest: c.operatorHigh, NarrowedBy: c.operatorSays},
				policies.StandingDecision{Rungs: c.flow, Highest: c.flowHigh, NarrowedBy: c.flowSays})
			if got.Highest != c.highest {
				t.Errorf("highest %s, want %s; rungs %+v", got.Highest, c.highest, got.Rungs)
			}
			if diff := cmp.Diff(c.narrowedBy, got.NarrowedBy); diff != "" {
				t.Errorf("narrowed by (-want +got):\n%s", diff)
			}
		})
	}
}

const acceptsAll = `package flow.f.replay

default verdict := {"verdict": "acceptable", "blocking": [], "acceptable": [], "reasons": []}

verdict := {"verdict": "VERDICT", "blocking": [], "acceptable": [d.name | some d in input.differences], "reasons": ["f"]} if true
`

func TestReplayWithAFlow(t *testing.T) {
	in := policies.ReplayInput{Action: "rerun", Tenant: "demo", Now: 1, FlowID: "f", DeterminismLevel: "unconstrained", Mode: "observational", Acceptability: "statistically_bounded",
		Measured: policies.ReplayMeasured{ClaimOverlap: 1, ContradictionsChecked: true}}
	served := in
	served.Action = "replay"
	served.Differences = []policies.ReplayDifference{{Name: "outputs of s", Kind: "outputs", Served: true}}
	cases := []struct {
		name, policy string
		in           policies.ReplayInput
		want         string
		records      int
		code         string
	}{
		{"no policy of the flow", alwaysFail, in, "acceptable", 1, ""},
		{"the flow finds nothing wrong", strings.Replace(acceptsAll, "VERDICT", "acceptable", 1), in, "acceptable", 2, ""},
		{"the flow is worse", strings.Replace(acceptsAll, "VERDICT", "unacceptable", 1), in, "unacceptable", 2, ""},
		{"the flow cannot lift the floor", strings.Replace(acceptsAll, "VERDICT", "acceptable", 1), served, "unacceptable", 2, ""},
		{"the flow gives no verdict", strings.Replace(acceptsAll, "VERDICT", "fine", 1), in, "", 2, policies.CodeResult},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			d, err := withFlow(t, content{"a.rego": c.policy}).ReplayVerdict(t.Context(), c.in)
			if c.code != "" {
				wantRefusal(t, err, c.code, "bundle of flow f")
			} else if err != nil {
				t.Fatal(err)
			}
			if d.Verdict != c.want || len(d.Records) != c.records {
				t.Errorf("%+v with %d records, want %s with %d", d, len(d.Records), c.want, c.records)
			}
		})
	}
	in.FlowID = "g"
	_, err := withFlow(t, content{"a.rego": alwaysFail}).ReplayVerdict(t.Context(), in)
	wantRefusal(t, err, policies.CodeBundleFlow, "flow g")
}

const noRungs = `package flow.f.standing

default standing := {}

standing := {"rungs": object.union(facts, {"verified": "no"}), "highest": "sourced", "narrowed_by": ["f"]} if true

facts := {name: fact.state | some name, fact in input.facts}
`

func TestStandingWithAFlow(t *testing.T) {
	yes := policies.RungFact{State: policies.RungYes}
	in := policies.StandingInput{Action: "standing", Tenant: "demo", Now: 1, FlowID: "f", Mode: "live", FlowState: "validated", Result: "pass",
		Facts: policies.StandingFacts{Recorded: yes, Anchored: yes, Retained: yes, Sourced: yes, Verified: yes, Reproduced: yes, Replayed: yes, Certifiable: yes}}
	d, err := withFlow(t, content{"a.rego": noRungs}).Standing(t.Context(), in)
	if err != nil || d.Highest != "sourced" || d.Rungs.Verified != policies.RungNo || d.Rungs.Certifiable != policies.RungYes || len(d.Records) != 2 {
		t.Errorf("%+v, %d records, %v", d, len(d.Records), err)
	}
	d, err = withFlow(t, content{"a.rego": alwaysFail}).Standing(t.Context(), in)
	if err != nil || d.Highest != "certifiable" || len(d.Records) != 1 {
		t.Errorf("without a policy of the flow: %+v, %d records, %v", d, len(d.Records), err)
	}
	_, err = withFlow(t, content{"a.rego": strings.Replace(noRungs, `"f"`, "1", 1)}).Standing(t.Context(), in)
	wantRefusal(t, err, policies.CodeResult, "bundle of flow f")
}
