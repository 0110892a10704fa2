package engine_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/writrun/writ/engine"
	"github.com/writrun/writ/engine/effect"
	"github.com/writrun/writ/engine/evidence"
	"github.com/writrun/writ/engine/flow"
	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host"
	"github.com/writrun/writ/host/hosttest"
	"github.com/writrun/writ/host/wazero"
	"github.com/writrun/writ/policies"
)

// world is a folder with a flow in it, a store beside it, and everything a
// runner needs.
type world struct {
	t       testing.TB
	dir     string
	store   *evidence.Store
	tenant  *evidence.Tenant
	engine  host.Engine
	policy  *policies.Set
	driver  *fakeDriver
	secrets []effect.Secret
	now     func() time.Time
	wants   string // of the executors and rules that module writes
}

var tenantID = must(abi.ParseTenantID("demo"))

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), driver: &fakeDriver{}, wants: wants, now: func() time.Time { return time.Unix(1_800_000_000, 0) }}
	w.open(filepath.Join(w.dir, "store"))
	e, err := wazero.New(t.Context(), wazero.Config{})
	if err != nil {
		t.Fatal(err)
	}
	w.engine = e
	t.Cleanup(func() { e.Close(context.Background()) })
	if w.policy, err = policies.Default(); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) open(dir string) {
	w.t.Helper()
	s, err := evidence.Init(evidence.Options{Dir: dir, KeyDir: filepath.Join(w.dir, "keys"), Now: w.now, Rand: rand.Reader})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { s.Close() })
	w.store = s
	if w.tenant, err = s.Tenant(tenantID); err != nil {
		w.t.Fatal(err)
	}
}

const wants = `{"capability":"clock","reason":"a test"},{"capability":"random","reason":"a test"},{"capability":"effect:http","reason":"a test"}`

// module writes a guest beside the manifest.
func (w *world) module(name string, kind abi.Kind, wat string, rules ...string) {
	w.t.Helper()
	var infos []string
	for _, r := range rules {
		infos = append(infos, fmt.Sprintf(`{"rule_id":%q,"severity":"error","randomness":"deterministic","target":"any"}`, r))
	}
	meta := fmt.Sprintf(`{"abi":1,"kind":%q,"name":%q,"version":"0.1.0","description":"a test guest","license":"Apache-2.0","source":"tests","wants":[`+w.wants+`]`, kind, name)
	if len(infos) > 0 {
		meta += `,"rules":[` + strings.Join(infos, ",") + `]`
	}
	wasm, err := abi.AppendMetadata(hosttest.Wat(w.t, wat), []byte(meta+"}"))
	if err != nil {
		w.t.Fatal(err)
	}
	w.file(name+".wasm", string(wasm))
}

func (w *world) file(name, content string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, name), []byte(content), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// says writes an executor that answers message.
func (w *world) says(name, message string) {
	w.module(name, abi.Executor, hosttest.Returning("", "", message))
}

// rules writes a rule module that answers every one of ids with message.
func (w *world) rules(name, message string, ids ...string) {
	w.module(name, abi.Rule, hosttest.Returning("", "", message), ids...)
}

const header = `
manifest: 1
flow_id: trial
tenant_id: demo
flow_state: validated
determinism_level: %s
replay_mode: strict
replay_acceptability: exact_match
`

const strict, bounded = "strict", "bounded"

func (w *world) plan(level, body string) engine.Request {
	w.t.Helper()
	return w.planOf(fmt.Sprintf(header, level) + body)
}

func (w *world) planOf(manifest string) engine.Request {
	w.t.Helper()
	m, err := flow.ParseManifest("flow.yaml", []byte(manifest))
	if err != nil {
		w.t.Fatal(err)
	}
	p, materials, err := flow.Resolve(w.t.Context(), m, flow.Resolver{Root: w.dir, Prepare: engine.Prepare})
	if err != nil {
		w.t.Fatal(err)
	}
	return engine.Request{Manifest: m, Plan: p, Materials: materials}
}

func (w *world) runner() *engine.Runner {
	w.t.Helper()
	r, err := engine.New(engine.Config{Store: w.store, Tenant: w.tenant, TenantID: tenantID, Engine: w.engine,
		Policies: w.policy, Drivers: []effect.Driver{w.driver}, Secrets: w.secrets, Now: w.now, Rand: rand.Reader,
		Principal: engine.Principal{Name: "tester", Kind: "local, unauthenticated"}})
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

func (w *world) run(req engine.Request) engine.Result {
	w.t.Helper()
	res, err := w.runner().Run(w.t.Context(), req)
	if err != nil {
		w.t.Fatal(err)
	}
	return res
}

// fakeDriver answers effects from a script and keeps what it was asked.
type fakeDriver struct {
	mu      sync.Mutex
	asked   []effect.Attempt
	answers []effect.Outcome // the last one repeats; none means ok with {}
	during  func()           // called while an effect is being performed
	covers  error
}

func (d *fakeDriver) Name() string                     { return "http" }
func (d *fakeDriver) Covers(flow.Effect, []byte) error { return d.covers }

func (d *fakeDriver) Perform(_ context.Context, a effect.Attempt) effect.Outcome {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = append(d.asked, a)
	if d.during != nil {
		d.during()
	}
	switch n := len(d.asked) - 1; {
	case len(d.answers) == 0:
		return effect.Outcome{Status: effect.StatusOK, Response: []byte(`{}`)}
	case n >= len(d.answers):
		return d.answers[len(d.answers)-1]
	default:
		return d.answers[n]
	}
}

const (
	emptyOutput = `{"claims":[],"evidence":[],"artifacts":[]}`
	oneClaim    = `{"claims":[{"claim_id":"c1","statement":"it holds","evidence":["e1"]}],"evidence":[{"evidence_id":"e1","kind":"inline","content":"x","digest":"sha256:2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"}],"artifacts":[]}`
	passes      = `{"status":"PASS","violations":[]}`
	fails       = `{"status":"FAIL","violations":[{"rule_id":"r1","subject":"c1","message":"no"}]}`
	escalates   = `{"status":"ESCALATE","violations":[],"reason":"unsure"}`
)

// oneStep is a flow of one claiming step judged by rules.
func oneStep(arbitration string, rules ...string) string {
	body := "steps:\n  - {id: claims, module: claims.wasm, role: reasoning, claims: true}\nverification:\n  rules:\n"
	for _, r := range rules {
		body += fmt.Sprintf("    - {rule_id: %s, module: %s.wasm, targets: [claims]}\n", r, r)
	}
	return body + "  arbitration: {" + arbitration + "}\n"
}
