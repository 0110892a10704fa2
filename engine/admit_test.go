package engine_test

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/writrun/writ/engine"
	"github.com/writrun/writ/engine/evidence"
	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host/trace"
)

const withDataset = `
datasets:
  - {id: words, version: "1", state: frozen, storage_uri: words.txt}
steps:
  - {id: claims, module: claims.wasm, role: reasoning, claims: true, datasets: [words]}
verification:
  rules:
    - {rule_id: r1, module: r1.wasm, targets: [claims]}
  arbitration: {rule: unanimous}
`

func refusal(t *testing.T, err error) *engine.Refused {
	t.Helper()
	var r *engine.Refused
	if !errors.As(err, &r) {
		t.Fatalf("not a refusal: %v", err)
	}
	return r
}

// datasetWorld is a world with a dataset and everything withDataset names.
func datasetWorld(t *testing.T) *world {
	w := newWorld(t)
	w.says("claims", oneClaim)
	w.rules("r1", passes, "r1")
	w.file("words.txt", "one\r\ntwo\n")
	return w
}

// refusals returns the codes of the ledger's admission_refused records.
func (w *world) refusals() []string {
	w.t.Helper()
	var codes []string
	err := w.tenant.Ledger(func(_ uint64, r evidence.Record) error {
		if r.AdmissionRefused != nil {
			codes = append(codes, r.AdmissionRefused.Code)
		}
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return codes
}

func TestRequestIDShowsTheFirstRun(t *testing.T) {
	w := datasetWorld(t)
	req := w.plan(strict, withDataset)
	req.RequestID = "ticket-1"
	first := w.run(req)
	again := w.run(req)
	if !again.Existing || again.RunID != first.RunID || again.ExecutionDigest != first.ExecutionDigest {
		t.Errorf("second request: existing %v run %s, first %s", again.Existing, again.RunID, first.RunID)
	}
}

func TestRequestIDOfAnotherPlanIsRefused(t *testing.T) {
	w := datasetWorld(t)
	req := w.plan(strict, withDataset)
	req.RequestID = "ticket-1"
	w.run(req)
	other := w.plan(strict, oneStep("rule: unanimous", "r1"))
	other.RequestID = "ticket-1"
	_, err := w.runner().Run(t.Context(), other)
	if r := refusal(t, err); r.Code != "request_id_reused" || len(r.Next) == 0 {
		t.Errorf("refusal %+v", r)
	}
	if diff := cmp.Diff([]string{"request_id_reused"}, w.refusals()); diff != "" {
		t.Errorf("ledger (-want +got):\n%s", diff)
	}
}

func TestDatasetUnderTheSameVersionIsRefused(t *testing.T) {
	cases := []struct {
		name    string
		content string
		body    string
	}{
		{"other bytes", "one\ntwo\n", withDataset},
		{"earlier state", "one\r\ntwo\n", strings.Replace(withDataset, "state: frozen", "state: experimental", 1)},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := datasetWorld(t)
			level := bounded
			w.run(w.plan(level, withDataset))
			w.file("words.txt", c.content)
			_, err := w.runner().Run(t.Context(), w.plan(level, c.body))
			if r := refusal(t, err); r.Code != "dataset_identity" {
				t.Errorf("refusal %+v", r)
			}
		})
	}
}

func TestDatasetChangedAfterPlanIsRefused(t *testing.T) {
	w := datasetWorld(t)
	req := w.plan(strict, withDataset)
	w.file("words.txt", "one\r\ntwo!\n")
	_, err := w.runner().Run(t.Context(), req)
	if r := refusal(t, err); r.Code != "dataset_changed_since_plan" || !strings.Contains(r.Error(), string(req.Plan.Datasets[0].Hash)) {
		t.Errorf("refusal %v", r)
	}
	runs, err := w.tenant.Runs()
	if err != nil || len(runs) != 0 {
		t.Errorf("%d runs were admitted (%v)", len(runs), err)
	}
}

func TestDamagedCopyOfADatasetIsNotRead(t *testing.T) {
	w := datasetWorld(t)
	req := w.plan(strict, withDataset)
	w.run(req)
	hex := req.Plan.Datasets[0].Hash.Hex()
	path := filepath.Join(w.dir, "store", "tenants", "demo", "content", "sha256", hex[:2], hex)
	if err := os.WriteFile(path, []byte("one\r\nTWO\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := w.runner().Run(t.Context(), req)
	if evidence.CodeOf(err) != evidence.CodeContentMismatch {
		t.Errorf("error %v", err)
	}
}

func TestTenantOfAnotherIsRefused(t *testing.T) {
	w := datasetWorld(t)
	req := w.plan(strict, withDataset)
	other := must(abi.ParseTenantID("other"))
	tenant, err := w.store.Tenant(other)
	if err != nil {
		t.Fatal(err)
	}
	r, err := engine.New(engine.Config{Store: w.store, Tenant: tenant, TenantID: other, Engine: w.engine,
		Policies: w.policy, Now: w.now, Rand: rand.Reader})
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.Run(t.Context(), req)
	if got := refusal(t, err); got.Code != "tenant_mismatch" {
		t.Errorf("refusal %+v", got)
	}
}

func TestDeprecatedFlowIsRefusedUnlessAllowed(t *testing.T) {
	w := datasetWorld(t)
	req := w.plan(strict, withDataset)
	plan := *req.Plan
	plan.FlowState = "deprecated"
	req.Plan = &plan
	_, err := w.runner().Run(t.Context(), req)
	if r := refusal(t, err); r.Code != "authority_denied" {
		t.Errorf("refusal %+v", r)
	}
	req.AllowDeprecated = true
	if res := w.run(req); res.Result != "pass" {
		t.Errorf("result %q", res.Result)
	}
}

func TestIdentityChangesWithEachInput(t *testing.T) {
	w := datasetWorld(t)
	base := w.identity(w.plan(strict, withDataset))
	changed := func(name string, got trace.Identity) []string {
		var out []string
		for _, f := range []struct {
			name      string
			base, got abi.Digest
		}{{"tenant", base.Tenant, got.Tenant}, {"manifest", base.Manifest, got.Manifest}, {"plan", base.Plan, got.Plan},
			{"datasets", base.Datasets, got.Datasets}, {"environment", base.Environment, got.Environment},
			{"policy", base.Policy, got.Policy}, {"store", base.Store, got.Store}} {
			if f.base != f.got {
				out = append(out, f.name)
			}
		}
		return out
	}
	if got := changed("nothing", w.identity(w.plan(strict, withDataset))); len(got) > 0 {
		t.Errorf("nothing changed and %q differ", got)
	}
	threshold := strings.Replace(withDataset, "rule: unanimous", "rule: quorum, quorum_threshold: 1", 1)
	if diff := cmp.Diff([]string{"manifest", "plan", "policy"}, changed("arbitration", w.identity(w.plan(strict, threshold)))); diff != "" {
		t.Errorf("another arbitration (-want +got):\n%s", diff)
	}
	version := strings.Replace(withDataset, `version: "1"`, `version: "2"`, 1)
	if diff := cmp.Diff([]string{"manifest", "plan", "datasets"}, changed("dataset", w.identity(w.plan(strict, version)))); diff != "" {
		t.Errorf("another dataset version (-want +got):\n%s", diff)
	}
	w.open(filepath.Join(w.dir, "second"))
	if diff := cmp.Diff([]string{"store"}, changed("store", w.identity(w.plan(strict, withDataset)))); diff != "" {
		t.Errorf("another store (-want +got):\n%s", diff)
	}
}

func (w *world) identity(req engine.Request) trace.Identity {
	w.t.Helper()
	s, err := engine.Inspect(w.tenant, w.run(req).RunID)
	if err != nil {
		w.t.Fatal(err)
	}
	return s.Identity
}

func TestShowRefusesAMissingPayload(t *testing.T) {
	w := datasetWorld(t)
	res := w.run(w.plan(strict, withDataset))
	path := filepath.Join(w.dir, "store", "tenants", "demo", "trace", string(res.RunID)+".payloads")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b[:len(b)-1], 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := w.runner().Show(res.RunID); err == nil {
		t.Errorf("a run without its payloads was shown as %q", got.Result)
	}
}
