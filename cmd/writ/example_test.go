package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/writrun/writ/engine"
	releasegate "github.com/writrun/writ/examples/release-gate"
	"github.com/writrun/writ/host/wasmtime"
)

// receiver stands for the release system of the example.
type receiver struct {
	mu     sync.Mutex
	posts  []string
	keys   []string
	server *httptest.Server
}

// receiverKey finds a script's receiver among its values.
type receiverKey struct{}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{}
	r.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(io.LimitReader(request.Body, 1<<20))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.posts = append(r.posts, string(body))
		r.keys = append(r.keys, request.Header.Get("Idempotency-Key"))
		w.WriteHeader(http.StatusAccepted)
	}))
	t.Cleanup(r.server.Close)
	return r
}

// scriptReceived requires how many posts arrived since it was asked last, each
// with an idempotency key: received COUNT
func scriptReceived(ts *testscript.TestScript, neg bool, args []string) {
	r := ts.Value(receiverKey{}).(*receiver)
	if neg || len(args) != 1 {
		ts.Fatalf("usage: received COUNT")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if got := len(r.posts); args[0] != string(rune('0'+got)) {
		ts.Fatalf("%d posts arrived, want %s", got, args[0])
	}
	for i, key := range r.keys {
		if len(key) < 16 || !strings.Contains(r.posts[i], `"flow_id":"release-gate`) {
			ts.Fatalf("post with key %q: %s", key, r.posts[i])
		}
	}
	r.posts, r.keys = nil, nil
}

// TestReleaseGate runs the example as its README describes it, and makes it
// fail in each way the README lists.
func TestReleaseGate(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: -short")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	modules, cache := t.TempDir(), t.TempDir()
	build := exec.Command("go", "run", "./modules/build", "-o", modules)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the guest modules: %v\n%s", err, out)
	}
	data := os.Getenv("WRIT_DATA")
	if data == "" {
		data = filepath.Join(root, "..", "shared", "data")
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/example",
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			r := newReceiver(t) // of one script: they run at the same time
			address, err := url.Parse(r.server.URL)
			if err != nil {
				return err
			}
			env.Values[receiverKey{}] = r
			for name, value := range map[string]string{
				"WRIT_KEYS": filepath.Join(env.WorkDir, "keys"), "WRIT_STORE": filepath.Join(env.WorkDir, "store"), "WRIT_TENANT": "demo",
				"XDG_CACHE_HOME": cache, "ROOT": root, "MODULES": modules, "PORT": address.Port(), "DATA": data, "SEED": strings.Repeat("07", 32),
				"HOME": os.Getenv("HOME"), "GOMODCACHE": os.Getenv("GOMODCACHE"), "GOCACHE": os.Getenv("GOCACHE"),
			} {
				env.Setenv(name, value)
			}
			return nil
		},
		Condition: func(name string) (bool, error) {
			switch name {
			case "data":
				_, err := os.Stat(filepath.Join(data, "osv-go.tar.gz"))
				return err == nil, nil
			case "qemu":
				_, err := exec.LookPath("qemu-aarch64-static")
				return err == nil, nil
			case "wasmtime":
				return wasmtime.Available, nil
			}
			return false, fmt.Errorf("unknown condition %q", name)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"status":    scriptStatus,
			"schema":    scriptSchema,
			"received":  scriptReceived,
			"oracle":    scriptOracle,
			"execution": scriptExecution,
		},
	})
}

// scriptExecution requires that two outputs of run name the same execution
// digest: execution FILE FILE
func scriptExecution(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: execution FILE FILE")
	}
	line := regexp.MustCompile(`(?m)^execution +sha256:[0-9a-f]{64}$`)
	first, second := line.FindString(ts.ReadFile(args[0])), line.FindString(ts.ReadFile(args[1]))
	if first == "" || first != second {
		ts.Fatalf("%s: %q, %s: %q", args[0], first, args[1], second)
	}
}

// scriptOracle compares the claims of the last run's record with an independent
// calculation over its data: oracle INSPECTED SBOM RECORDS.
func scriptOracle(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: oracle INSPECTED SBOM RECORDS")
	}
	var record engine.Summary
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &record))
	want, err := releasegate.Affected([]byte(ts.ReadFile(args[1])), os.DirFS(ts.MkAbs(args[2])))
	ts.Check(err)
	got := map[[2]string]bool{}
	for _, c := range record.Claims {
		if id, ok := strings.CutPrefix(c.Predicate, "affected_by:"); ok {
			got[[2]string{c.Subject, id}] = string(c.Value) == "true"
		}
	}
	if diff := cmp.Diff(want, got); diff != "" || len(got) == 0 {
		ts.Fatalf("%d claims in the record; oracle (-) and record (+) differ:\n%s", len(got), diff)
	}
}
