package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/writrun/writ/engine"
	"github.com/writrun/writ/engine/evidence"
	"github.com/writrun/writ/engine/flow"
	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host"
	"github.com/writrun/writ/host/hosttest"
	"github.com/writrun/writ/host/prepare"
	"github.com/writrun/writ/host/wazero"
	"github.com/writrun/writ/policies"
)

// replayable is a flow with calls, a stop, a failure, a claim and rules.
func replayable(w *world) engine.Request {
	const imports = `(import "writ_v1" "clock_now" (func $now (result i64))) (import "writ_v1" "random_fill" (func $random (param i32 i32) (result i32)))`
	w.module("claims", abi.Executor, hosttest.Returning(imports, `(local.set $a (i32.const 300)) (loop $l
		(drop (call $now)) (drop (call $random (i32.const 4096) (i32.const 32)))
		(br_if $l (local.tee $a (i32.sub (local.get $a) (i32.const 1)))))`, oneClaim))
	w.module("traps", abi.Executor, hosttest.Returning("", "(drop (i32.div_u (i32.const 1) (local.get $a)))", emptyOutput))
	w.rules("r1", passes, "r1")
	return w.plan(strict, `
steps:
  - {id: claims, module: claims.wasm, role: reasoning, claims: true}
  - {id: traps, module: traps.wasm, role: retrieval, claims: false}
  - {id: after, module: traps.wasm, role: retrieval, claims: false, needs: [traps]}
verification:
  rules:
    - {rule_id: r1, module: r1.wasm, targets: [claims, flow]}
  arbitration: {rule: unanimous}
`)
}

// TestReplay: a run is reproduced, on the engine it was made on and on another,
// nothing of it changes, and the verdict is in the ledger.
func TestReplay(t *testing.T) {
	w := newWorld(t)
	res := w.run(replayable(w))
	before := w.coreOf(res.RunID)
	interpreter, err := wazero.New(t.Context(), wazero.Config{Interpreter: true})
	if err != nil {
		t.Fatal(err)
	}
	defer interpreter.Close(context.Background())
	for _, e := range []interface {
		Name() string
	}{w.engine, interpreter} {
		if e == any(interpreter) {
			w.engine = interpreter
		}
		got, err := w.runner().Replay(t.Context(), res.RunID)
		if err != nil {
			t.Fatal(err)
		}
		if got.Verdict != "acceptable" || got.Divergence != nil || !got.Accepted() || got.ExecutionDigest != res.ExecutionDigest {
			t.Errorf("%s: %+v, divergence %+v", e.Name(), got, got.Divergence)
		}
		if got.Steps != 2 || got.HostCalls != 600 || !strings.HasPrefix(got.Engine, e.Name()) {
			t.Errorf("%s: %d steps, %d calls, engine %q", e.Name(), got.Steps, got.HostCalls, got.Engine)
		}
	}
	for address, digest := range w.coreOf(res.RunID) {
		if before[address] != digest {
			t.Errorf("event %s changed", address)
		}
	}
	verdicts := 0
	err = w.tenant.Ledger(func(_ uint64, r evidence.Record) error {
		if r.Type == evidence.TypeReplayDone && r.ReplayDone.RunID == res.RunID && r.ReplayDone.Verdict == "acceptable" {
			verdicts++
		}
		return nil
	})
	if err != nil || verdicts != 2 {
		t.Errorf("%d verdicts in the ledger, error %v", verdicts, err)
	}
}

// TestReplayServesEffects: an effect of the record is served, not performed.
func TestReplayServesEffects(t *testing.T) {
	w := effectWorld(t, "ok")
	res := w.run(w.plan(bounded, effectFlow("idempotent")))
	performed := len(w.driver.asked)
	w.now = func() time.Time { return time.Unix(1_900_000_000, 0) }
	got, err := w.runner().Replay(t.Context(), res.RunID)
	if err != nil || got.Verdict != "acceptable" || got.Effects == 0 {
		t.Errorf("%+v, divergence %+v, error %v", got, got.Divergence, err)
	}
	if now := len(w.driver.asked); performed == 0 || now != performed {
		t.Errorf("%d effects performed by the run, %d after its replay", performed, now)
	}
}

func policy(text string) fstest.MapFS { return fstest.MapFS{"p.rego": {Data: []byte(text)}} }

func loadPolicies(t *testing.T, c policies.Config) *policies.Set {
	t.Helper()
	s, err := policies.Load(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestReplayRefusals: what may not be replayed is refused, with a record.
func TestReplayRefusals(t *testing.T) {
	w := newWorld(t)
	res := w.run(replayable(w))
	refusedWith := func(name, code string) {
		t.Helper()
		_, err := w.runner().Replay(t.Context(), res.RunID)
		var refused *engine.Refused
		if !errors.As(err, &refused) || refused.Action != "replay" || refused.Code != code || len(refused.Next) == 0 && code == "identity_changed" {
			t.Errorf("%s: error %v, want a refusal %s", name, err, code)
		}
	}
	was := w.policy
	w.policy = loadPolicies(t, policies.Config{Arbitration: policy(`package writ.arbitration
default decision := {"decision": "ESCALATE", "reasons": [], "permissive": false}`)})
	refusedWith("another arbitration", "identity_changed")
	w.policy = loadPolicies(t, policies.Config{Authority: policy(`package writ.authority
default decision := {"allow": false, "reasons": ["no replays here"]}`)})
	refusedWith("authority says no", "authority_denied")
	w.policy = was
	if _, err := w.runner().Replay(t.Context(), "raaaaaaaaaaaaaaaaaaaaaaaaaa"); err == nil {
		t.Error("a run that does not exist was replayed")
	}
}

// exchanging is an engine that compiles another module in place of one.
type exchanging struct {
	host.Engine
	old, new abi.Digest
	with     []byte
}

func (e exchanging) Compile(ctx context.Context, p *prepare.Prepared) (host.Compiled, error) {
	if p.Digest == e.old {
		p = &prepare.Prepared{Profile: p.Profile, Wasm: e.with, Digest: e.new, Original: p.Original}
	}
	return e.Engine.Compile(ctx, p)
}

// TestReplayDivergence: a guest that does anything else than recorded is found out
// at the first place where it does, and no effect is performed by it.
func TestReplayDivergence(t *testing.T) {
	const imports = `(import "writ_v1" "clock_now" (func $now (result i64))) (import "writ_v1" "random_fill" (func $random (param i32 i32) (result i32)))`
	calls := func(body string) string { return hosttest.Returning(imports, body, oneClaim) }
	now, random := `(drop (call $now))`, `(drop (call $random (i32.const 4096) (i32.const 32)))`
	for _, c := range []struct {
		name, is      string
		code, address string
		function      string
	}{
		{"the same", calls(now + random + now), "", "", ""},
		{"two calls exchanged", calls(random + now + now), engine.DivergedEvent, "claims/1", "clock_now"},
		{"other work between calls", calls(now + `(drop (i32.const 1))` + random + now), engine.DivergedEvent, "claims/1", "clock_now"},
		{"another request", calls(now + `(drop (call $random (i32.const 4096) (i32.const 31)))` + now), engine.DivergedEvent, "claims/2", "random_fill"},
		{"a call more", calls(now + random + now + now), engine.DivergedEvent, "claims/1", "clock_now"},
		{"the last call missing", calls(now + random), engine.DivergedEvent, "claims/1", "clock_now"},
		{"another output", hosttest.Returning(imports, now+random+now, strings.Replace(oneClaim, "c1", "c2", 1)), engine.DivergedEvent, "claims/4", ""},
		{"a trap", calls(now + random + now + `unreachable`), engine.DivergedEvent, "claims/1", "clock_now"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.module("claims", abi.Executor, calls(now+random+now))
			w.rules("r1", passes, "r1")
			res := w.run(w.plan(strict, oneStep("rule: unanimous", "r1")))
			s, err := engine.Inspect(w.tenant, res.RunID)
			if err != nil {
				t.Fatal(err)
			}
			plan := planOf(t, w, s)
			is := hosttest.Prepared(t, c.is)
			w.engine = exchanging{Engine: w.engine, old: plan.Step("claims").Module.Prepared, new: is.Digest, with: is.Wasm}
			got, err := w.runner().Replay(t.Context(), res.RunID)
			if err != nil {
				t.Fatal(err)
			}
			d := got.Divergence
			switch {
			case c.code == "":
				if d != nil || got.Verdict != "acceptable" {
					t.Errorf("verdict %s, divergence %+v", got.Verdict, d)
				}
			case d == nil || got.Verdict != "unacceptable" || got.Accepted():
				t.Errorf("verdict %s, divergence %+v", got.Verdict, d)
			case d.Code != c.code || d.Address != c.address || d.Function != c.function || d.StepID != "claims" || d.Recorded == d.Replayed:
				t.Errorf("divergence %+v", d)
			}
		})
	}
}

func planOf(t *testing.T, w *world, s engine.Summary) *flow.Plan {
	t.Helper()
	text, err := w.tenant.Content().Get(s.Identity.Plan, flow.PlanBytesMax)
	if err != nil {
		t.Fatal(err)
	}
	p, err := flow.ParsePlan("plan.json", text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
