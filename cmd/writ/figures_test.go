package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/writrun/writ/engine"
	"github.com/writrun/writ/engine/effect"
	"github.com/writrun/writ/engine/flow"
	"github.com/writrun/writ/policies"
)

// warmRun is the example laid out in a folder, with a store and a receiver.
type warmRun struct {
	tb   testing.TB
	dir  string
	env  map[string]string
	flow string
	writ string
}

func newWarmRun(tb testing.TB) *warmRun {
	root, err := filepath.Abs("../..")
	if err != nil {
		tb.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusAccepted)
	}))
	tb.Cleanup(server.Close)
	dir := tb.TempDir()
	w := &warmRun{tb: tb, dir: dir, flow: filepath.Join(dir, "gate", "flow.yaml"), writ: filepath.Join(dir, "writ"), env: map[string]string{
		"WRIT_KEYS": filepath.Join(dir, "keys"), "WRIT_STORE": filepath.Join(dir, "store"), "WRIT_TENANT": "demo", "XDG_CACHE_HOME": filepath.Join(dir, "cache")}}
	w.command(root, "go", "build", "-buildvcs=false", "-o", w.writ, "./cmd/writ")
	w.check(os.CopyFS(filepath.Join(dir, "gate"), os.DirFS(filepath.Join(root, "examples", "release-gate"))))
	w.check(os.RemoveAll(filepath.Join(dir, "gate", "modules")))
	w.command(root, "go", "run", "./modules/build", "-o", filepath.Join(dir, "gate", "modules"))
	manifest, err := os.ReadFile(w.flow)
	w.check(err)
	w.check(os.WriteFile(w.flow, bytes.ReplaceAll(manifest, []byte("http://127.0.0.1:8787"), []byte(server.URL)), 0o644))
	w.command(dir, w.writ, "init", "--bare")
	return w
}

func (w *warmRun) check(err error) {
	w.tb.Helper()
	if err != nil {
		w.tb.Fatal(err)
	}
}

func (w *warmRun) command(dir, name string, args ...string) time.Duration {
	w.tb.Helper()
	c := exec.Command(name, args...)
	c.Dir, c.Env = dir, os.Environ()
	for k, v := range w.env {
		if strings.HasPrefix(k, "WRIT_") || name == w.writ {
			c.Env = append(c.Env, k+"="+v)
		}
	}
	start := time.Now()
	if out, err := c.CombinedOutput(); err != nil {
		w.tb.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return time.Since(start)
}

// part is a named stretch of a run.
type part struct {
	name string
	took time.Duration
}

// parts does in this process what `writ run` does, and returns how long each
// part of it took.
func (w *warmRun) parts() (parts []part) {
	ctx := context.Background()
	a := &app{stdin: strings.NewReader(""), stdout: io.Discard, stderr: io.Discard, output: outputText,
		getenv: func(name string) string { return w.env[name] }, now: time.Now, rand: rand.Reader}
	w.check(a.settle())
	last := time.Now()
	lap := func(name string) {
		now := time.Now()
		parts, last = append(parts, part{name, now.Sub(last)}), now
	}
	var preparing time.Duration
	var mu sync.Mutex
	data, err := readInput(w.flow)
	w.check(err)
	manifest, err := flow.ParseManifest(w.flow, data)
	w.check(err)
	plan, materials, err := flow.Resolve(ctx, manifest, flow.Resolver{Root: filepath.Dir(w.flow), Prepare: func(wasm []byte, memory uint64, stack string) (flow.PreparedModule, error) {
		start := time.Now()
		m, err := engine.Prepare(wasm, memory, stack)
		mu.Lock()
		preparing += time.Since(start)
		mu.Unlock()
		return m, err
	}})
	w.check(err)
	lap("resolve")
	parts = append(parts, part{"(of it: prepare modules)", preparing})
	set, err := policies.Default()
	w.check(err)
	lap("policies")
	store, tenant, err := a.openStore(false)
	w.check(err)
	defer store.Close()
	id, err := a.tenant()
	w.check(err)
	lap("open store")
	sandbox, err := a.newEngine(ctx, engineNames()[0])
	w.check(err)
	defer sandbox.Close(ctx)
	lap("sandbox")
	phase := "admission, datasets"
	runner, err := engine.New(engine.Config{Store: store, Tenant: tenant, TenantID: id, Engine: sandbox, Policies: set,
		Drivers: []effect.Driver{effect.NewHTTP(effect.HTTPConfig{})}, Now: a.now, Rand: a.rand, Principal: a.principal(), Provenance: provenance(),
		Progress: func(p engine.Progress) {
			mu.Lock()
			defer mu.Unlock()
			if p.Phase != phase {
				lap(phase)
				phase = p.Phase
			}
		}})
	w.check(err)
	result, err := runner.Run(ctx, engine.Request{Manifest: manifest, Plan: plan, Materials: materials})
	w.check(err)
	if result.Result != engine.ResultPass {
		w.tb.Fatalf("the example came to %q: %v", result.Result, result.Reasons)
	}
	lap(phase)
	return merged(parts)
}

// merged adds up parts of the same name, in the order they came first.
func merged(parts []part) (out []part) {
	for _, p := range parts {
		i := slices.IndexFunc(out, func(o part) bool { return o.name == p.name })
		if i < 0 {
			out = append(out, p)
			continue
		}
		out[i].took += p.took
	}
	return out
}

// BenchmarkFigureWarmRun reports the time of `writ run` of the example as a
// whole process, with compiled modules in the cache, and where the time goes.
// The baseline is `writ version`: what starting the process costs.
func BenchmarkFigureWarmRun(b *testing.B) {
	w := newWarmRun(b)
	w.command(w.dir, w.writ, "run", w.flow)
	var whole, bare []time.Duration
	for range 7 {
		bare = append(bare, w.command(w.dir, w.writ, "version"))
		whole = append(whole, w.command(w.dir, w.writ, "run", w.flow))
	}
	slices.Sort(whole)
	slices.Sort(bare)
	run, start := whole[len(whole)/2], bare[len(bare)/2]
	b.Logf("figure: warm writ run of the example, whole process: %d ms, %.1f times writ version of %d ms (reported)",
		run.Milliseconds(), float64(run)/float64(start), start.Milliseconds())
	for range 4 { // the last is shown
		w.parts()
	}
	var text []string
	for _, p := range w.parts() {
		text = append(text, fmt.Sprintf("%s %d ms", p.name, p.took.Milliseconds()))
	}
	b.Logf("figure: where a warm run's time goes: %s", strings.Join(text, ", "))
}
