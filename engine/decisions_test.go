package engine_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/writrun/writ/engine"
	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/policies"
)

// decisionsOf reads every decision of the world's tenant.
func (w *world) decisionsOf() []engine.PolicyDecision {
	w.t.Helper()
	var all []engine.PolicyDecision
	err := engine.EachDecision(w.tenant, func(d engine.PolicyDecision) error {
		all = append(all, d)
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

func words(all []engine.PolicyDecision) []string {
	var out []string
	for _, d := range all {
		out = append(out, d.Address+" "+d.Result.Decision)
	}
	return out
}

// judged runs a flow whose rules answer a quorum's question.
func judged(w *world, answers ...string) engine.Result {
	w.says("claims", oneClaim)
	var ids []string
	for i, answer := range answers {
		id := "r" + string(rune('1'+i))
		w.rules(id, answer, id)
		ids = append(ids, id)
	}
	return w.run(w.plan(strict, oneStep("rule: quorum, quorum_threshold: 0.6", ids...)))
}

func TestDecisionsAreReadFromTheLedger(t *testing.T) {
	w := newWorld(t)
	first := judged(w, passes, passes, fails)
	judged(w, fails, fails, passes)
	all := w.decisionsOf()
	want := []string{
		"control/1 ALLOW", "arbitration@claims/0 PASS", "arbitration@flow/0 PASS",
		"control/1 ALLOW", "arbitration@claims/0 FAIL", "arbitration@flow/0 FAIL",
	}
	if diff := cmp.Diff(want, words(all)); diff != "" {
		t.Fatalf("decisions (-want +got):\n%s", diff)
	}
	for _, d := range all {
		if d.NotRetained != "" || len(d.Input) == 0 || d.InputDigest == "" || d.Policy == "" || d.At.IsZero() || d.FlowID != "trial" {
			t.Errorf("decision %s of %s is not whole: %+v", d.Address, d.RunID, d)
		}
	}
	if !all[1].Result.Permissive || all[1].RunID != first.RunID {
		t.Errorf("the first arbitration is %+v", all[1])
	}
}

func TestDecisionIsFoundByEitherAddress(t *testing.T) {
	w := newWorld(t)
	run := judged(w, passes)
	for _, c := range []struct{ address, want string }{
		{"control/1", "control/1"},
		{"arbitration@flow/0", "arbitration@flow/0"},
		{"control/2", "arbitration@claims/0"}, // the DECISION_TRACE that belongs to it
		{"control/0", ""},
		{"claims/0", ""},
		{"nonsense", ""},
	} {
		d, err := engine.FindDecision(w.tenant, run.RunID, c.address)
		if d.Address != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s: %q, %v", c.address, d.Address, err)
		}
	}
}

func TestDecisionsThatAreGoneAreReported(t *testing.T) {
	w := newWorld(t)
	run := judged(w, passes)
	judged(w, fails)
	file := filepath.Join(w.dir, "store", "tenants", "demo", "trace", string(run.RunID)+".payloads")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	all := w.decisionsOf()
	if diff := cmp.Diff([]string{"control/1 ", "arbitration@claims/0 ", "arbitration@flow/0 ", "control/1 ALLOW", "arbitration@claims/0 FAIL", "arbitration@flow/0 FAIL"}, words(all)); diff != "" {
		t.Fatalf("decisions without payloads (-want +got):\n%s", diff)
	}
	for i, d := range all {
		if gone := d.NotRetained != ""; gone != (i < 3) {
			t.Errorf("decision %d: not retained is %q", i, d.NotRetained)
		}
	}
	if err := os.Remove(strings.TrimSuffix(file, ".payloads") + ".trace"); err != nil {
		t.Fatal(err)
	}
	all = w.decisionsOf()
	if len(all) != 4 || all[0].RunID != run.RunID || all[0].NotRetained == "" {
		t.Errorf("a run without trace gives %+v", all)
	}
}

func TestRefusalsOfAuthorityAreDecisions(t *testing.T) {
	w := newWorld(t)
	var err error
	w.policy, err = policies.Load(policies.Config{Authority: fstest.MapFS{"a.rego": {Data: []byte("package writ.authority\n\ndefault decision := {\"allow\": false, \"reasons\": [\"closed\"]}\n")}}})
	if err != nil {
		t.Fatal(err)
	}
	w.says("claims", oneClaim)
	w.rules("r1", passes, "r1")
	if _, err := w.runner().Run(t.Context(), w.plan(strict, oneStep("rule: unanimous", "r1"))); err == nil {
		t.Fatal("the run was not refused")
	}
	all := w.decisionsOf()
	if diff := cmp.Diff([]string{"ledger/0 DENY"}, words(all)); diff != "" {
		t.Fatalf("decisions (-want +got):\n%s", diff)
	}
	if all[0].NotRetained != "" || all[0].RunID != "" || all[0].Result.Reasons[0] != "closed" || all[0].Name() != policies.DecisionAuthority {
		t.Errorf("the refusal is %+v", all[0])
	}
	found, err := engine.FindRefused(w.tenant, "ledger/0")
	if diff := cmp.Diff(all[0], found); diff != "" || err != nil {
		t.Errorf("found %v (-want +got):\n%s", err, diff)
	}
	if _, err := engine.FindRefused(w.tenant, "ledger/1"); err == nil {
		t.Error("the record of what was asked was found as a decision")
	}
	// Under the default policy it would have been allowed.
	open, err := policies.Default()
	if err != nil {
		t.Fatal(err)
	}
	got, err := engine.AskAgain(t.Context(), open, found)
	if err != nil || got.Result.Decision != engine.DecisionAllow {
		t.Errorf("asked again: %+v, %v", got, err)
	}
	if got, err = engine.AskAgain(t.Context(), w.policy, found); err != nil || !cmp.Equal(got.Result, found.Result) {
		t.Errorf("asked again of the same policy: %+v, %v", got, err)
	}
	texts, err := filepath.Glob(filepath.Join(w.dir, "store", "tenants", "demo", "texts", "*"))
	if err != nil || len(texts) != 2 {
		t.Fatalf("texts %q, %v", texts, err)
	}
	for _, file := range texts {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	if all = w.decisionsOf(); len(all) != 1 || all[0].NotRetained == "" || all[0].Input != nil {
		t.Errorf("without its text the refusal is %+v", all)
	}
}

func TestDecisionsAreToldOf(t *testing.T) {
	w := newWorld(t)
	w.says("claims", oneClaim)
	w.rules("r1", passes, "r1")
	var mu sync.Mutex
	var told []engine.PolicyDecision
	tell := func(d engine.PolicyDecision) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, d)
	}
	run := func() error {
		r := w.runner()
		r.Decided = tell
		_, err := r.Run(t.Context(), w.plan(strict, oneStep("rule: unanimous", "r1")))
		return err
	}
	if err := run(); err != nil {
		t.Fatal(err)
	}
	ignore := cmpopts.IgnoreFields(engine.PolicyDecision{}, "At", "RulesFired")
	if diff := cmp.Diff(w.decisionsOf(), told, ignore); diff != "" {
		t.Errorf("recorded (-) and told (+) decisions differ:\n%s", diff)
	}
	told = nil
	var err error
	w.policy, err = policies.Load(policies.Config{Authority: fstest.MapFS{"a.rego": {Data: []byte("package writ.authority\n\ndefault decision := {\"allow\": false, \"reasons\": [\"closed\"]}\n")}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := run(); err == nil {
		t.Fatal("the run was not refused")
	}
	if len(told) != 1 || told[0].RunID != "" || told[0].Result.Decision != engine.DecisionDeny || len(told[0].Input) == 0 {
		t.Errorf("of a refusal was told %+v", told)
	}
}

const anyPass = `package writ.arbitration

default decision := {"decision": "ESCALATE", "reasons": ["none"], "permissive": false}

decision := {"decision": "PASS", "reasons": ["any"], "permissive": true} if {
	some r in input.results
	r.status == "PASS"
}
`

func TestAskAgain(t *testing.T) {
	w := newWorld(t)
	judged(w, fails, fails, passes)
	judged(w, "x", "y", "z") // every rule is an error: nothing was evaluated
	all := w.decisionsOf()
	set := func(rego string) *policies.Set {
		s, err := policies.Load(policies.Config{Arbitration: fstest.MapFS{"p.rego": {Data: []byte(rego)}}})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	broken := strings.Replace(anyPass, `"permissive": true`, `"permissive": 1 / 0`, 1)
	for _, c := range []struct {
		name     string
		set      *policies.Set
		decision int
		want     engine.DecisionResult
		refused  bool
	}{
		{"the policy it was decided under", w.policy, 1, all[1].Result, false},
		{"authority under the same", w.policy, 0, all[0].Result, false},
		{"another policy", set(anyPass), 1, engine.DecisionResult{Decision: "PASS", Permissive: true, Reasons: []string{"any"}}, false},
		{"the floor is held", set(anyPass), 4, engine.DecisionResult{Decision: "ESCALATE", Reasons: []string{"none", "nothing_evaluated"}}, false},
		{"a policy that fails", set(broken), 1, engine.DecisionResult{Decision: "ESCALATE", Reasons: []string{"no_decision"}}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := engine.AskAgain(t.Context(), c.set, all[c.decision])
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got.Result); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
			if (got.Error != "") != c.refused {
				t.Errorf("error is %q", got.Error)
			}
		})
	}
}

func TestAskAgainRefusesAnotherDocument(t *testing.T) {
	w := newWorld(t)
	judged(w, passes)
	d := w.decisionsOf()[1]
	for name, change := range map[string]func(engine.PolicyDecision) engine.PolicyDecision{
		"not retained":  func(d engine.PolicyDecision) engine.PolicyDecision { d.Input, d.NotRetained = nil, "gone"; return d },
		"unknown field": func(d engine.PolicyDecision) engine.PolicyDecision { d.Input = []byte(`{"new":1}`); return d },
		"missing field": func(d engine.PolicyDecision) engine.PolicyDecision {
			d.Input = []byte(`{"action":"arbitrate"}`)
			return d
		},
		"no entrypoint": func(d engine.PolicyDecision) engine.PolicyDecision { d.Entrypoint = "data.x"; return d },
	} {
		if _, err := engine.AskAgain(t.Context(), w.policy, change(d)); err == nil {
			t.Errorf("%s: it was asked", name)
		}
	}
	if _, err := engine.AskAgain(t.Context(), w.policy, d); err != nil {
		t.Errorf("unchanged: %v", err)
	}
}

func TestAskAgainDrawsTheSame(t *testing.T) {
	w := newWorld(t)
	var err error
	w.policy, err = policies.Load(policies.Config{Arbitration: fstest.MapFS{"p.rego": {Data: []byte(`package writ.arbitration

default decision := {"decision": "ESCALATE", "reasons": ["none"], "permissive": false}

decision := {"decision": "FAIL", "reasons": [sprintf("drew %d at %d", [rand.intn("x", 1000000), time.now_ns()])], "permissive": false} if input.action == "arbitrate"
`)}}})
	if err != nil {
		t.Fatal(err)
	}
	judged(w, passes)
	for _, d := range w.decisionsOf() {
		got, err := engine.AskAgain(t.Context(), w.policy, d)
		if diff := cmp.Diff(d.Result, got.Result); diff != "" || err != nil {
			t.Errorf("%s: %v, result (-want +got):\n%s", d.Address, err, diff)
		}
	}
}

// An operator's policy can be asked again of a flow that brought policies, unless
// its answer was combined with theirs.
func TestAskAgainOfAFlowWithPolicies(t *testing.T) {
	w := newWorld(t)
	judged(w, passes)
	for _, c := range []struct {
		decisions []string
		askable   bool
	}{{[]string{"arbitration"}, true}, {[]string{"arbitration", "authority"}, false}} {
		d := w.decisionsOf()[0]
		var in policies.AuthorityInput
		if err := json.Unmarshal(d.Input, &in); err != nil {
			t.Fatal(err)
		}
		in.Policy = &policies.AuthorityPolicy{Origin: "folder", Digest: d.Policy, Decisions: c.decisions}
		var err error
		if d.Input, err = abi.EncodeMessage(in); err != nil {
			t.Fatal(err)
		}
		d.InputDigest = abi.DigestOf(d.Input)
		got, err := engine.AskAgain(t.Context(), w.policy, d)
		if (err == nil) != c.askable || err == nil && got.Result.Decision != engine.DecisionAllow {
			t.Errorf("%v: %+v, %v", c.decisions, got, err)
		}
	}
}

// BenchmarkAskAgain is what one past decision of a replay costs.
func BenchmarkAskAgain(b *testing.B) {
	w := newWorld(b)
	judged(w, passes, passes, fails)
	d := w.decisionsOf()[1]
	b.ReportAllocs()
	for b.Loop() {
		if _, err := engine.AskAgain(b.Context(), w.policy, d); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "decisions/s")
}
