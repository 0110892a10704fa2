package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host/hosttest"
)

// killed is a folder with a flow of two effects, the tool, and a receiver that
// counts what arrives under each idempotency key.
type killed struct {
	t        *testing.T
	dir, bin string
	mu       sync.Mutex
	bodies   map[string][]string // by key
}

func (k *killed) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	k.mu.Lock()
	defer k.mu.Unlock()
	key := r.Header.Get("Idempotency-Key")
	k.bodies[key] = append(k.bodies[key], string(body))
}

func newKilled(t *testing.T) *killed {
	k := &killed{t: t, dir: t.TempDir(), bodies: map[string][]string{}}
	server := httptest.NewServer(k)
	t.Cleanup(server.Close)
	k.bin = filepath.Join(k.dir, "writ")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", k.bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("build the tool: %v\n%s", err, out)
	}
	const meta = `{"abi":1,"kind":%q,"name":%q,"version":"0.1.0","description":"a test guest","license":"Apache-2.0","source":"tests","wants":[{"capability":"effect:http","reason":"a test"}]%s}`
	request := func(n int) string {
		return fmt.Sprintf(`{"method":"POST","url":"%s/","body":"%d"}`, server.URL, n)
	}
	call := fmt.Sprintf(`(drop (call $effect (i32.const 6000) (i32.const 4) (i32.const 6016) (i32.const %d)))
		(drop (call $effect (i32.const 6000) (i32.const 4) (i32.const 6216) (i32.const %d)))`, len(request(1)), len(request(2)))
	wat := hosttest.Returning(`(import "writ_v1" "effect" (func $effect (param i32 i32 i32 i32) (result i64)))`, call,
		`{"claims":[{"claim_id":"c","statement":"posted","evidence":[]}],"evidence":[],"artifacts":[]}`)
	quote := strings.NewReplacer(`"`, `\22`)
	wat = strings.TrimSuffix(wat, "\n)") + fmt.Sprintf("(data (i32.const 6000) \"http\") (data (i32.const 6016) %q) (data (i32.const 6216) %q))", "1", "2")
	wat = strings.Replace(wat, `"1"`, `"`+quote.Replace(request(1))+`"`, 1)
	wat = strings.Replace(wat, `"2"`, `"`+quote.Replace(request(2))+`"`, 1)
	k.module("post", hosttest.Wat(t, wat), fmt.Sprintf(meta, "executor", "post", ""))
	k.module("rule", hosttest.Wat(t, hosttest.Returning("", "", `{"status":"PASS","violations":[]}`)),
		fmt.Sprintf(meta, "rule", "rule", `,"rules":[{"rule_id":"rule","severity":"error","randomness":"deterministic","target":"any"}]`))
	k.write("flow.yaml", `manifest: 1
flow_id: posts
tenant_id: default
flow_state: validated
determinism_level: bounded
replay_mode: strict
replay_acceptability: exact_match
entropy_budget: {allowed_sources: [seeded_rng, data, external_oracle], exhaustion_action: halt}
nondeterminism_intent: [{source: external, justification: a test}]
steps:
  - id: post
    module: post.wasm
    role: agent
    claims: true
    effects:
      - {driver: http, intent: external, allow: [{methods: [POST], url_prefix: "`+server.URL+`/"}], networks: [127.0.0.0/8], delivery: idempotent}
verification:
  rules: [{rule_id: rule, module: rule.wasm, targets: [post]}]
  arbitration: {rule: unanimous}
`)
	return k
}

func (k *killed) write(name, content string) {
	k.t.Helper()
	if err := os.WriteFile(filepath.Join(k.dir, name), []byte(content), 0o600); err != nil {
		k.t.Fatal(err)
	}
}

func (k *killed) module(name string, wasm []byte, meta string) {
	k.t.Helper()
	b, err := abi.AppendMetadata(wasm, []byte(meta))
	if err != nil {
		k.t.Fatal(err)
	}
	k.write(name+".wasm", string(b))
}

// command is the tool or, if words begin with strace, the tool under strace.
func (k *killed) command(words ...string) *exec.Cmd {
	c := exec.Command(words[0], words[1:]...)
	c.Dir = k.dir
	c.Env = append(os.Environ(), "WRIT_STORE=store", "WRIT_KEYS="+filepath.Join(k.dir, "keys"), "WRIT_TENANT=default",
		"XDG_CACHE_HOME="+filepath.Join(k.dir, "cache"))
	return c
}

// must runs the tool and requires one of the exit codes.
func (k *killed) must(codes []int, words ...string) []byte {
	k.t.Helper()
	c := k.command(append([]string{k.bin}, words...)...)
	var stderr strings.Builder
	c.Stderr = &stderr
	out, _ := c.Output()
	for _, code := range codes {
		if c.ProcessState.ExitCode() == code {
			return out
		}
	}
	k.t.Fatalf("writ %q: exit %d, want one of %v\n%s%s", words, c.ProcessState.ExitCode(), codes, out, stderr.String())
	return nil
}

func (k *killed) fresh() {
	k.t.Helper()
	for _, name := range []string{"store", "keys"} {
		if err := os.RemoveAll(filepath.Join(k.dir, name)); err != nil {
			k.t.Fatal(err)
		}
	}
	k.mu.Lock()
	k.bodies = map[string][]string{}
	k.mu.Unlock()
	k.must([]int{0}, "init", "--bare")
}

// check looks at what a killed run left: no damage, nothing done that has no
// record, nothing done twice in two ways, and a store that goes on.
func (k *killed) check(point string) (found string) {
	k.t.Helper()
	found = "absent"
	var list listDocument
	decode(k.t, k.must([]int{0}, "list", "--output", "json"), &list)
	switch len(list.Runs) {
	case 0:
		k.must([]int{0, 8}, "store", "verify")
	case 1:
		k.must([]int{0}, "store", "verify")
	default:
		k.t.Fatalf("%s: one request became %d runs", point, len(list.Runs))
	}
	k.mu.Lock()
	seen := len(k.bodies)
	for key, bodies := range k.bodies {
		for _, b := range bodies {
			if b != bodies[0] {
				k.t.Errorf("%s: key %s came with two bodies: %q", point, key, bodies)
			}
		}
	}
	k.mu.Unlock()
	recorded := 0
	if len(list.Runs) > 0 {
		found = list.Runs[0].State
		var s struct {
			Effects []struct{ Status string }
		}
		decode(k.t, k.must([]int{0}, "inspect", "latest", "--output", "json"), &s)
		recorded = len(s.Effects)
		for _, e := range s.Effects {
			if list.Runs[0].Sealed() && e.Status != "ok" {
				k.t.Errorf("%s: a sealed run has an effect that is %s", point, e.Status)
			}
		}
	}
	if seen > recorded {
		k.t.Errorf("%s: %d effects happened and %d are recorded", point, seen, recorded)
	}
	k.must([]int{0}, "run", "flow.yaml")
	k.must([]int{0}, "store", "verify")
	return found
}

func decode(t *testing.T, b []byte, v any) {
	t.Helper()
	if err := json.Unmarshal(b, v); err != nil {
		t.Fatalf("%v in %s", err, b)
	}
}

// sweepCallsMax bounds how many calls of one kind a sweep goes through.
const sweepCallsMax = 10_000

// wasKilled reports whether a command ended by the kill that was meant for it.
func wasKilled(c *exec.Cmd) bool {
	status, ok := c.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL || c.ProcessState.ExitCode() == 128+int(syscall.SIGKILL)
}

// TestSweepKill kills the tool at the Nth call of each kind that writes, for
// every N, and then at times spread over the run. strace counts by thread, so N
// is that of whichever thread comes to it first; every single step of the
// evidence is taken by TestKillAtEveryStep of package evidence. Without
// WRIT_SWEEP it takes every tenth point.
func TestSweepKill(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("SKIPPED: strace is not installed: apt-get install strace")
	}
	step := 10
	if os.Getenv("WRIT_SWEEP") != "" {
		step = 1
	}
	if out, err := exec.CommandContext(t.Context(), strace, "-f", "-o", "/dev/null", "true").CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: strace cannot trace here: %v %s", err, out)
	}
	k := newKilled(t)
	k.fresh()
	k.must([]int{0}, "run", "flow.yaml") // and compiles the modules into the cache
	k.fresh()
	start := time.Now()
	k.must([]int{0}, "run", "flow.yaml")
	whole := time.Since(start)
	points, states := 0, map[string]int{}
	const calls = "write,writev,pwrite64,openat,linkat,fsync,fdatasync,syncfs,rename,renameat,renameat2,unlink,unlinkat,mkdir,mkdirat,ftruncate"
	for _, call := range strings.Split(calls, ",") {
		for n := 1; n < sweepCallsMax; n += step {
			k.fresh()
			// A call that this machine does not have is none to be killed at.
			c := k.command(strace, "-f", "-qq", "-o", "/dev/null", "--trace=?"+call, "--inject=?"+call+":signal=KILL:when="+fmt.Sprint(n), k.bin, "run", "flow.yaml")
			out, err := c.CombinedOutput()
			if err == nil {
				break // the run has fewer such calls
			}
			if !wasKilled(c) {
				t.Fatalf("%s %d: the run ended by itself: %v\n%s", call, n, err, out)
			}
			states[k.check(fmt.Sprintf("%s %d", call, n))]++
			points++
		}
	}
	for n := range 100 / step {
		k.fresh()
		c := k.command(k.bin, "run", "flow.yaml")
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		at := whole * time.Duration(n*step) / 100
		timer := time.AfterFunc(at, func() { c.Process.Kill() })
		_ = c.Wait() // killed, or done before
		timer.Stop()
		states[k.check(fmt.Sprintf("after %v", at))]++
		points++
	}
	t.Logf("%d points; runs found afterwards: %v", points, states)
}
