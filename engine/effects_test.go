package engine_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/writrun/writ/engine"
	"github.com/writrun/writ/engine/effect"
	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host/hosttest"
	"github.com/writrun/writ/host/trace"
)

const effectImport = `(import "writ_v1" "effect" (func $effect (param i32 i32 i32 i32) (result i64)))`

// posts is an executor that performs one effect, traps if its result is below
// zero and want is "ok", and then answers output.
func (w *world) posts(name, output, want string) {
	check := ""
	if want == "ok" {
		check = `(if (i64.lt_s (local.get $c) (i64.const 0)) (then unreachable))`
	}
	body := `(local.set $c (call $effect (i32.const 6000) (i32.const 4) (i32.const 6016) (i32.const 12)))` + check
	wat := hosttest.Returning(effectImport, body, output)
	wat = strings.TrimSuffix(wat, "\n)") + `(data (i32.const 6000) "http") (data (i32.const 6016) "{\22method\22:1}"))`
	w.module(name, abi.Executor, wat)
}

func effectFlow(delivery string) string {
	return `
entropy_budget: {allowed_sources: [seeded_rng, data, external_oracle], exhaustion_action: halt}
nondeterminism_intent: [{source: external, justification: a test}]
steps:
  - id: post
    module: post.wasm
    role: agent
    claims: false
    effects:
      - driver: http
        intent: external
        allow: [{methods: [POST], url_prefix: "https://example.org/"}]
        delivery: ` + delivery + `
  - {id: claims, module: claims.wasm, role: reasoning, claims: true, needs: [post]}
verification:
  rules:
    - {rule_id: r1, module: r1.wasm, targets: [claims]}
  arbitration: {rule: unanimous}
`
}

func effectWorld(t *testing.T, want string) *world {
	w := newWorld(t)
	w.posts("post", emptyOutput, want)
	w.says("claims", oneClaim)
	w.rules("r1", passes, "r1")
	return w
}

func TestEffectIsDurableBeforeTheGuestSeesIt(t *testing.T) {
	w := effectWorld(t, "ok")
	var during []string
	w.driver.during = func() {
		runs, err := w.tenant.Runs()
		if err != nil || len(runs) != 1 {
			t.Fatalf("%d runs: %v", len(runs), err)
		}
		s, err := engine.Inspect(w.tenant, runs[0].RunID)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range s.Effects {
			during = append(during, e.Status)
		}
	}
	res := w.run(w.plan(bounded, effectFlow("at_most_once")))
	if diff := cmp.Diff([]string{"unknown"}, during); diff != "" {
		t.Errorf("effects on disk while the driver acts (-want +got):\n%s", diff)
	}
	if res.Result != "pass" || !contains(res.Marks, engine.MarkProviderUnknown) {
		t.Errorf("result %q marks %q", res.Result, res.Marks)
	}
	s, err := engine.Inspect(w.tenant, res.RunID)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Effects) != 1 || s.Effects[0].Status != "ok" || len(s.Effects[0].Attempts) != 1 {
		t.Errorf("effects %+v", s.Effects)
	}
}

func TestUnknownOutcomeStopsTheRun(t *testing.T) {
	cases := []struct {
		name     string
		delivery string
		answers  []effect.Outcome
		asked    int
		state    string
	}{
		{"at most once", "at_most_once", []effect.Outcome{{Status: effect.StatusUnknown}}, 1, engine.StateInDoubt},
		{"idempotent, known at the second try", "idempotent", []effect.Outcome{{Status: effect.StatusUnknown}, {Status: effect.StatusOK, Response: []byte("{}")}}, 2, engine.StateSucceeded},
		{"idempotent, never known", "idempotent", []effect.Outcome{{Status: effect.StatusUnknown}}, 3, engine.StateInDoubt},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := effectWorld(t, "ok")
			w.driver.answers = c.answers
			res := w.run(w.plan(bounded, effectFlow(c.delivery)))
			if res.State != c.state || len(w.driver.asked) != c.asked {
				t.Errorf("state %q after %d tries, want %q after %d", res.State, len(w.driver.asked), c.state, c.asked)
			}
			for _, a := range w.driver.asked {
				if a.Key != w.driver.asked[0].Key || a.Key == "" {
					t.Errorf("idempotency key %q of try %d differs from the first", a.Key, a.Number)
				}
			}
			if c.state == engine.StateInDoubt && (res.Exit() != engine.ExitUndecided || !strings.Contains(strings.Join(res.Reasons, ""), "post/")) {
				t.Errorf("exit %d reasons %q: the effect in doubt is to be named", res.Exit(), res.Reasons)
			}
		})
	}
}

func TestUngrantedEffectIsRecordedAndRefused(t *testing.T) {
	w := effectWorld(t, "any")
	w.driver.covers = os.ErrPermission
	res := w.run(w.plan(bounded, effectFlow("at_most_once")))
	if len(w.driver.asked) != 0 {
		t.Error("the driver was asked for an effect no grant covers")
	}
	s, err := engine.Inspect(w.tenant, res.RunID)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Effects) != 1 || s.Effects[0].Status != "failed" || s.Effects[0].Code != int32(abi.NotGranted) {
		t.Errorf("effects %+v", s.Effects)
	}
}

func TestCancelBeforeSendingLeavesNoDoubt(t *testing.T) {
	w := effectWorld(t, "ok")
	ctx, cancel := context.WithCancel(t.Context())
	w.driver.during = cancel
	w.driver.answers = []effect.Outcome{{Status: effect.StatusFailed, Code: abi.Unavailable}}
	res, err := w.runner().Run(ctx, w.plan(bounded, effectFlow("at_most_once")))
	if !errors.Is(err, engine.ErrInterrupted) || res.State != engine.StateInterrupted {
		t.Fatalf("state %q: %v", res.State, err)
	}
	s, err := engine.Inspect(w.tenant, res.RunID)
	if err != nil || len(s.Effects) != 1 || s.Effects[0].Status != "not_sent" {
		t.Errorf("effects %+v, %v", s.Effects, err)
	}
}

func TestMalformedEffectIsInvalidToTheGuest(t *testing.T) {
	w := effectWorld(t, "any")
	w.driver.covers = abi.Invalid
	res := w.run(w.plan(bounded, effectFlow("at_most_once")))
	s, err := engine.Inspect(w.tenant, res.RunID)
	if err != nil || len(s.Effects) != 1 || s.Effects[0].Code != int32(abi.Invalid) || len(s.Effects[0].Attempts) != 1 || s.Effects[0].Attempts[0].Error == "" {
		t.Errorf("effects %+v, %v", s.Effects, err)
	}
}

func TestMissingSecretIsRefusedAtAdmission(t *testing.T) {
	w := effectWorld(t, "ok")
	body := strings.Replace(effectFlow("at_most_once"), "        delivery:", "        secrets: [{name: TOKEN, header: Authorization}]\n        delivery:", 1)
	_, err := w.runner().Run(t.Context(), w.plan(bounded, body))
	if r := refusal(t, err); r.Code != "secret_missing" || !strings.Contains(strings.Join(r.Next, ""), "--secret TOKEN=") {
		t.Errorf("refusal %+v", r)
	}
}

func TestSecretIsNowhereInTheStore(t *testing.T) {
	const value = "sw0rdfish-of-the-sea"
	w := effectWorld(t, "ok")
	w.secrets = []effect.Secret{must(effect.ParseSecret("TOKEN=env:T", func(string) (string, bool) { return value, true }, os.ReadFile))}
	w.driver.answers = []effect.Outcome{{Status: effect.StatusOK, Response: []byte(`{"echo":"` + value + `","b64":"c3cwcmRmaXNoLW9mLXRoZS1zZWE="}`)}}
	body := strings.Replace(effectFlow("at_most_once"), "        delivery:", "        secrets: [{name: TOKEN, header: Authorization}]\n        delivery:", 1)
	res := w.run(w.plan(bounded, body))
	if res.Result != "pass" || len(w.driver.asked) != 1 || len(w.driver.asked[0].Secrets) != 1 {
		t.Fatalf("result %q; the driver got %+v", res.Result, w.driver.asked)
	}
	err := filepath.Walk(w.dir, func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		for _, form := range []string{value, "c3cwcmRmaXNoLW9mLXRoZS1zZWE"} {
			if strings.Contains(string(b), form) {
				t.Errorf("%s holds the secret as %q", path, form)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestPanickingDriverLeavesAJournal(t *testing.T) {
	w := effectWorld(t, "ok")
	w.driver.during = func() { panic("driver broke") }
	_, err := w.runner().Run(t.Context(), w.plan(bounded, effectFlow("at_most_once")))
	if err == nil || !strings.Contains(err.Error(), "journal is kept") {
		t.Errorf("error %v", err)
	}
	runs, _ := w.tenant.Runs()
	s, err := engine.Inspect(w.tenant, runs[0].RunID)
	if err != nil || s.State != engine.StateInDoubt || s.Identity == (trace.Identity{}) {
		t.Errorf("state %q, %v", s.State, err)
	}
}

func contains(list []string, want string) bool {
	for _, s := range list {
		if s == want {
			return true
		}
	}
	return false
}
