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

func TestFewerRungs(t *testing.T) {
	type rungs = map[string]bool
	cases := []struct {
		name                 string
		operator, flow, want rungs
	}{
		{"both", rungs{"recorded": true}, rungs{"recorded": true}, rungs{"recorded": true}},
		{"the operator alone", rungs{"recorded": true}, rungs{"recorded": false}, rungs{"recorded": false}},
		{"the flow alone", rungs{"recorded": false}, rungs{"recorded": true}, rungs{"recorded": false}},
		{"neither", rungs{"recorded": false}, rungs{"recorded": false}, rungs{"recorded": false}},
		{"the flow is silent", rungs{"recorded": true}, rungs{}, rungs{"recorded": false}},
		{"the operator is silent", nil, rungs{"recorded": true}, rungs{"recorded": false}},
		{"each has others", rungs{"recorded": true, "anchored": true}, rungs{"recorded": true, "retained": true}, rungs{"recorded": true, "anchored": false, "retained": false}},
		{"nothing", nil, nil, rungs{}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, policies.FewerRungs(c.operator, c.flow)); diff != "" {
				t.Errorf("rungs (-want +got):\n%s", diff)
			}
		})
	}
}
