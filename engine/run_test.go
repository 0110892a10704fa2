package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/writrun/writ/engine"
	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host/hosttest"
	"github.com/writrun/writ/host/trace"
)

func TestResultFollowsTheRules(t *testing.T) {
	cases := []struct {
		name        string
		arbitration string
		answers     []string // of rules r1, r2, …
		want        string
		permissive  bool
		exit        int
	}{
		{"all pass", "rule: unanimous", []string{passes, passes}, "pass", false, 0},
		{"one fails", "rule: unanimous", []string{passes, fails}, "fail", false, 1},
		{"one escalates", "rule: unanimous", []string{passes, escalates}, "escalate", false, 7},
		{"answer is not JSON", "rule: unanimous", []string{passes, "PASS"}, "escalate", false, 7},
		{"answer has a status of the host", "rule: unanimous", []string{`{"status":"NOT_RUN","violations":[]}`}, "escalate", false, 8},
		{"rule reports an error", "rule: unanimous", []string{`{"error":{"code":"broken","message":"m","retryable":false}}`}, "escalate", false, 8},
		{"quorum with a failure is permissive", "rule: quorum, quorum_threshold: 0.6", []string{passes, passes, fails}, "pass_permissive", true, 0},
		{"quorum missed by errors", "rule: quorum, quorum_threshold: 0.6", []string{passes, "x", "y"}, "escalate", false, 7},
		{"first failure", "rule: strict_first_failure", []string{passes, "x"}, "fail", false, 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.says("claims", oneClaim)
			var ids []string
			for i, answer := range c.answers {
				id := "r" + string(rune('1'+i))
				w.rules(id, answer, id)
				ids = append(ids, id)
			}
			got := w.run(w.plan(strict, oneStep(c.arbitration, ids...)))
			if got.Result != c.want || got.Permissive != c.permissive || got.Exit() != c.exit {
				t.Errorf("result %q permissive %v exit %d, want %q %v %d; reasons %q", got.Result, got.Permissive, got.Exit(), c.want, c.permissive, c.exit, got.Reasons)
			}
			if len(got.Results) != len(c.answers) {
				t.Errorf("%d results for %d rules: one each is the rule", len(got.Results), len(c.answers))
			}
		})
	}
}

func TestStrictRunsHaveEqualExecutionDigests(t *testing.T) {
	w := newWorld(t)
	const imports = `(import "writ_v1" "clock_now" (func $now (result i64))) (import "writ_v1" "random_fill" (func $random (param i32 i32) (result i32)))`
	w.module("claims", abi.Executor, hosttest.Returning(imports, "(drop (call $now)) (drop (call $random (i32.const 4096) (i32.const 32)))", oneClaim))
	w.rules("r1", passes, "r1")
	req := w.plan(strict, oneStep("rule: unanimous", "r1"))
	req.Seed, req.ClockStart = &[32]byte{1}, time.Unix(1_700_000_000, 0)
	first := w.run(req)
	w.now = func() time.Time { return time.Unix(1_900_000_000, 0) }
	second := w.run(req)
	if first.ExecutionDigest != second.ExecutionDigest {
		t.Errorf("equal inputs gave %s and %s", first.ExecutionDigest, second.ExecutionDigest)
	}
	if first.TraceRoot == second.TraceRoot {
		t.Error("two runs have one trace root: salts are missing")
	}
	req.Seed = &[32]byte{2}
	if third := w.run(req); third.ExecutionDigest == first.ExecutionDigest {
		t.Error("another seed gave the same execution digest")
	}
}

func TestRunRecordsEveryCrossing(t *testing.T) {
	w := newWorld(t)
	const imports = `(import "writ_v1" "clock_now" (func $now (result i64))) (import "wasi_snapshot_preview1" "random_get" (func $get (param i32 i32) (result i32)))`
	const body = `(func $begin (drop (call $now))) (start $begin) (func (export "_initialize") (drop (call $get (i32.const 4096) (i32.const 8))))`
	wat := hosttest.Returning(imports, "(drop (call $now))", oneClaim)
	wat = strings.TrimSuffix(wat, "\n)") + body + ")"
	w.module("claims", abi.Executor, wat)
	w.rules("r1", passes, "r1")
	res := w.run(w.plan(strict, oneStep("rule: unanimous", "r1")))
	tr, err := engine.Open(w.tenant, res.RunID)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	var names []uint16
	for e, err := range tr.Events("claims") {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind != trace.KindHostCalls {
			continue
		}
		var calls trace.HostCalls
		if err := trace.DecodePayload(e.Payload, &calls); err != nil {
			t.Fatal(err)
		}
		for _, c := range calls.Calls {
			names = append(names, c.Fn)
		}
	}
	if diff := cmp.Diff([]uint16{1, 141, 1}, names); diff != "" {
		t.Errorf("calls of the start function, _initialize and writ_execute (-want +got):\n%s", diff)
	}
	digest, err := tr.ExecutionDigest()
	if err != nil || digest != res.ExecutionDigest {
		t.Errorf("recomputed execution digest %s (%v), recorded %s", digest, err, res.ExecutionDigest)
	}
}

func TestFailedStepSkipsItsDependents(t *testing.T) {
	cases := []struct{ name, output, cause string }{
		{"guest reports an error", `{"error":{"code":"no_data","message":"nothing to read","retryable":true}}`, "no_data"},
		{"output is not JSON", `{"claims":[`, "invalid_output"},
		{"output has a duplicate key", `{"claims":[],"claims":[]}`, "invalid_output"},
		{"output has an integer beyond 2^53", `{"output":9007199254740993}`, "invalid_output"},
		{"output has trailing bytes", emptyOutput + "x", "invalid_output"},
		{"claims are not declared", oneClaim, "undeclared_claims"},
		{"artifact was never stored", `{"artifacts":[{"artifact_id":"sha256:2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881","name":"a","media_type":"text/plain","size":1}]}`, "unknown_artifact"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.says("bad", c.output)
			w.says("claims", oneClaim)
			w.says("after", emptyOutput)
			w.rules("r1", passes, "r1")
			res := w.run(w.plan(strict, `
steps:
  - {id: bad, module: bad.wasm, role: retrieval, claims: false}
  - {id: sibling, module: claims.wasm, role: reasoning, claims: true}
  - {id: child, module: claims.wasm, role: reasoning, claims: true, needs: [bad]}
  - {id: grandchild, module: after.wasm, role: agent, claims: false, needs: [child]}
verification:
  rules:
    - {rule_id: r1, module: r1.wasm, targets: [sibling, child]}
  arbitration: {rule: unanimous}
`))
			if res.Result != "failed" || res.State != "failed" || res.Exit() != 1 {
				t.Fatalf("result %q state %q", res.Result, res.State)
			}
			got := map[string]string{}
			for _, s := range res.Steps {
				got[string(s.StepID)] = s.State + " " + s.Cause
			}
			want := map[string]string{"bad": "failed " + c.cause, "sibling": "succeeded ", "child": "skipped skipped", "grandchild": "skipped skipped"}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
			statuses := map[string]abi.Status{}
			for _, r := range res.Results {
				statuses[r.Target] = r.Status
			}
			if diff := cmp.Diff(map[string]abi.Status{"sibling": abi.Pass, "child": abi.NotRun}, statuses); diff != "" {
				t.Errorf("results (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRequiresPass(t *testing.T) {
	const flowBody = `
steps:
  - {id: claims, module: claims.wasm, role: reasoning, claims: true}
  - {id: middle, module: empty.wasm, role: retrieval, claims: false, needs: [claims]}
  - {id: last, module: empty.wasm, role: agent, claims: false, needs: [middle], requires: REQUIRES}
verification:
  rules:
    - {rule_id: r1, module: r1.wasm, targets: [claims]}
    - {rule_id: r2, module: r2.wasm, targets: [claims]}
    - {rule_id: r3, module: r3.wasm, targets: [claims]}
  arbitration: {rule: quorum, quorum_threshold: 0.6}
`
	cases := []struct {
		name, requires string
		third          string
		want           string
	}{
		{"pass upstream, two edges away", "pass", passes, "succeeded"},
		{"permissive pass is not enough", "pass", fails, "skipped"},
		{"permissive pass is enough if said so", "pass_permissive", fails, "succeeded"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.says("claims", oneClaim)
			w.says("empty", emptyOutput)
			w.rules("r1", passes, "r1")
			w.rules("r2", passes, "r2")
			w.rules("r3", c.third, "r3")
			res := w.run(w.plan(strict, strings.ReplaceAll(flowBody, "REQUIRES", c.requires)))
			i := slices.IndexFunc(res.Steps, func(s engine.StepResult) bool { return s.StepID == "last" })
			if res.Steps[i].State != c.want {
				t.Errorf("step last %s (%s), want %s", res.Steps[i].State, res.Steps[i].Detail, c.want)
			}
		})
	}
}

func TestNothingEvaluatedIsNotAPass(t *testing.T) {
	w := newWorld(t)
	w.says("empty", emptyOutput)
	res := w.run(w.plan(strict, "steps:\n  - {id: only, module: empty.wasm, role: retrieval, claims: false}\nverification:\n  rules: []\n  arbitration: {rule: unanimous}\n"))
	if res.Result != "escalate" || res.Exit() != engine.ExitNothingEvaluated {
		t.Errorf("result %q exit %d reasons %q", res.Result, res.Exit(), res.Reasons)
	}
}

func TestDecisionIsNeverBetterThanAStep(t *testing.T) {
	w := newWorld(t)
	w.says("claims", oneClaim)
	for _, id := range []string{"r1", "r2", "r3", "r4"} {
		w.rules(id, passes, id)
	}
	w.rules("r5", fails, "r5")
	res := w.run(w.plan(strict, `
steps:
  - {id: good, module: claims.wasm, role: reasoning, claims: true}
  - {id: poor, module: claims.wasm, role: reasoning, claims: true}
verification:
  rules:
    - {rule_id: r1, module: r1.wasm, targets: [good]}
    - {rule_id: r2, module: r2.wasm, targets: [good]}
    - {rule_id: r3, module: r3.wasm, targets: [good]}
    - {rule_id: r4, module: r4.wasm, targets: [good]}
    - {rule_id: r5, module: r5.wasm, targets: [poor]}
  arbitration: {rule: quorum, quorum_threshold: 0.6}
`))
	if res.Result != "fail" {
		t.Errorf("result %q: step poor failed arbitration and the flow outvoted it", res.Result)
	}
}

func TestMarksTravelWithTheResult(t *testing.T) {
	w := newWorld(t)
	w.says("claims", oneClaim)
	w.rules("r1", passes, "r1")
	if res := w.run(w.plan(strict, oneStep("rule: unanimous", "r1"))); res.NonCertifiable || len(res.Marks) > 0 {
		t.Errorf("a flow that is validated: non_certifiable %v marks %q", res.NonCertifiable, res.Marks)
	}
	res := w.run(w.planOf(strings.Replace(fmt.Sprintf(header, strict), "validated", "draft", 1) + oneStep("rule: unanimous", "r1")))
	if res.Mode != "live" || !res.NonCertifiable || !slices.Contains(res.Marks, engine.MarkDraft) {
		t.Errorf("mode %q non_certifiable %v marks %q", res.Mode, res.NonCertifiable, res.Marks)
	}
	again, err := w.runner().Show(res.RunID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(res, again); diff != "" {
		t.Errorf("what the run said and what its record says (-run +record):\n%s", diff)
	}
}

func TestCancelLeavesAJournal(t *testing.T) {
	w := newWorld(t)
	w.module("claims", abi.Executor, hosttest.Returning("", "(loop $forever (br $forever))", oneClaim))
	w.rules("r1", passes, "r1")
	req := w.plan(strict, oneStep("rule: unanimous", "r1"))
	ctx, cancel := context.WithCancel(t.Context())
	r, err := engine.New(engine.Config{Store: w.store, Tenant: w.tenant, TenantID: tenantID, Engine: w.engine, Policies: w.policy,
		Now: w.now, Rand: strings.NewReader(strings.Repeat("r", 4096)), Progress: func(p engine.Progress) {
			if p.Phase == "start" {
				cancel()
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	res, err := r.Run(ctx, req)
	if !errors.Is(err, engine.ErrInterrupted) || res.State != engine.StateInterrupted || res.Result != "" || res.Exit() != engine.ExitInterrupted {
		t.Fatalf("state %q result %q exit %d: %v", res.State, res.Result, res.Exit(), err)
	}
	s, err := engine.Inspect(w.tenant, res.RunID)
	if err != nil || s.Sealed || s.Interrupted != "cancelled" {
		t.Errorf("record of the interrupted run: %+v, %v", s, err)
	}
}

func TestGuestIsStoppedAndTheRunGoesOn(t *testing.T) {
	w := newWorld(t)
	w.module("loops", abi.Executor, hosttest.Returning("", "(loop $forever (br $forever))", oneClaim))
	w.says("claims", oneClaim)
	w.rules("r1", passes, "r1")
	res := w.run(w.plan(strict, `
steps:
  - {id: loops, module: loops.wasm, role: retrieval, claims: false, budget: {fuel: 5000000}}
  - {id: claims, module: claims.wasm, role: reasoning, claims: true}
verification:
  rules:
    - {rule_id: r1, module: r1.wasm, targets: [claims]}
  arbitration: {rule: unanimous}
`))
	i := slices.IndexFunc(res.Steps, func(s engine.StepResult) bool { return s.StepID == "loops" })
	if s := res.Steps[i]; s.Cause != "fuel_exhausted" || !strings.Contains(s.Detail, "fuel = 5000000") {
		t.Errorf("step loops: %+v", s)
	}
	if res.Result != "failed" {
		t.Errorf("result %q", res.Result)
	}
}

func TestSourceOutsideTheBudgetHaltsTheStep(t *testing.T) {
	const imports = `(import "wasi_snapshot_preview1" "random_get" (func $get (param i32 i32) (result i32)))`
	for _, c := range []struct{ name, sources, want string }{
		{"allowed", "[seeded_rng, data]", "pass"},
		{"not allowed", "[data]", "failed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.wants = "" // what WASI offers is not to be wanted, so no plan can see it coming
			w.module("claims", abi.Executor, hosttest.Returning(imports, "(drop (call $get (i32.const 4096) (i32.const 8)))", oneClaim))
			w.rules("r1", passes, "r1")
			res := w.run(w.plan(strict, "entropy_budget: {allowed_sources: "+c.sources+", exhaustion_action: halt}\n"+oneStep("rule: unanimous", "r1")))
			if res.Result != c.want {
				t.Fatalf("result %q, want %q: %+v", res.Result, c.want, res.Steps)
			}
			if s := res.Steps[0]; c.want == "failed" && (s.Cause != "entropy_exhausted" || !strings.Contains(s.Detail, "entropy_budget.allowed_sources") || !strings.Contains(s.Detail, "seeded_rng")) {
				t.Errorf("step %+v", s)
			}
		})
	}
}

// TestLongLogsAreSealed has a guest log more in one batch of calls than the
// record keeps inline, in many long lines and in one that is longer by itself.
func TestLongLogsAreSealed(t *testing.T) {
	const imports = `(import "writ_v1" "log" (func $log (param i32 i32 i32) (result i32)))`
	for _, c := range []struct{ name, body string }{
		{"many long lines", `(local.set $a (i32.const 40)) (loop $l (drop (call $log (i32.const 1) (i32.const 16) (i32.const 60000)))
			(br_if $l (local.tee $a (i32.sub (local.get $a) (i32.const 1)))))`},
		{"one line above all", `(drop (memory.grow (i32.const 4))) (drop (call $log (i32.const 1) (i32.const 16) (i32.const 200000)))
			(drop (call $log (i32.const 1) (i32.const 16) (i32.const 5)))`},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.wants = `{"capability":"log","reason":"a test"}`
			w.module("claims", abi.Executor, hosttest.Returning(imports, c.body, oneClaim))
			w.rules("r1", passes, "r1")
			res := w.run(w.plan(strict, oneStep("rule: unanimous", "r1")))
			if res.Result != "pass" {
				t.Errorf("result %q: %+v", res.Result, res.Steps)
			}
			report, err := w.store.Verify(t.Context(), nil)
			if err != nil || len(report.Problems) > 0 {
				t.Errorf("verify: %v, %v", report.Problems, err)
			}
		})
	}
}
