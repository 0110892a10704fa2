package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/writrun/writ/engine/evidence"
)

// sandboxed is the tool in a folder of its own.
type sandboxed struct {
	t   *testing.T
	env map[string]string
	out bytes.Buffer
	err bytes.Buffer
}

func newSandboxed(t *testing.T) *sandboxed {
	dir := t.TempDir()
	return &sandboxed{t: t, env: map[string]string{"WRIT_KEYS": filepath.Join(dir, "keys"), "WRIT_STORE": filepath.Join(dir, "store"),
		"XDG_CACHE_HOME": filepath.Join(dir, "cache"), "FLOW": filepath.Join(dir, "demo", "flow.yaml"), "DEMO": filepath.Join(dir, "demo")}}
}

func (s *sandboxed) app() *app {
	return &app{stdin: strings.NewReader(""), stdout: &s.out, stderr: &s.err, getenv: func(name string) string { return s.env[name] }, now: time.Now, rand: rand.Reader}
}

// writ runs the tool and requires its exit code.
func (s *sandboxed) writ(ctx context.Context, want int, args ...string) {
	s.t.Helper()
	s.out.Reset()
	s.err.Reset()
	if got := s.app().main(ctx, args); got != want {
		s.t.Fatalf("writ %q: exit code %d, want %d\n%s%s", args, got, want, s.out.String(), s.err.String())
	}
}

func TestDecisionLogReachesAService(t *testing.T) {
	var mu sync.Mutex
	paths, inputs := []string{}, 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		var events []struct {
			Path  string          `json:"path"`
			Input json.RawMessage `json:"input"`
		}
		if err := json.NewDecoder(z).Decode(&events); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		for _, e := range events {
			paths = append(paths, e.Path)
			if len(e.Input) > 0 {
				inputs++
			}
		}
	}))
	defer server.Close()
	s := newSandboxed(t)
	s.writ(t.Context(), 0, "init", s.env["DEMO"])
	s.writ(t.Context(), 0, "run", s.env["FLOW"], "--decision-log", server.URL+"/logs?key=k", "--decision-log-include-input")
	if s.err.Len() > 0 {
		t.Errorf("stderr: %s", s.err.String())
	}
	if diff := cmp.Diff([]string{"writ/authority/decision", "writ/arbitration/decision", "writ/arbitration/decision"}, paths); diff != "" || inputs != 3 {
		t.Errorf("%d inputs, decisions (-want +got):\n%s", inputs, diff)
	}
	a := s.app()
	a.output = outputText
	if err := a.settle(); err != nil {
		t.Fatal(err)
	}
	store, tenant, err := a.openStore(true)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	var receipts []evidence.Record
	err = tenant.Ledger(func(_ uint64, r evidence.Record) error {
		if r.Egress != nil {
			receipts = append(receipts, r)
		}
		return nil
	})
	if err != nil || len(receipts) != 1 {
		t.Fatalf("receipts %+v, %v", receipts, err)
	}
	if e := receipts[0].Egress; e.Items != 3 || e.Result != evidence.EgressDone || !cmp.Equal(receipts[0].Reasons, []string{server.URL + "/logs"}) {
		t.Errorf("receipt %+v for %q", e, receipts[0].Reasons)
	}
}

func TestPolicyReplayStopsWhenToldTo(t *testing.T) {
	s := newSandboxed(t)
	s.writ(t.Context(), 0, "init", s.env["DEMO"])
	s.writ(t.Context(), 0, "run", s.env["FLOW"])
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s.writ(ctx, 130, "policy", "replay")
	if s.out.Len() > 0 || !strings.Contains(s.err.String(), "interrupted") {
		t.Errorf("stdout %q, stderr %q", s.out.String(), s.err.String())
	}
	s.writ(t.Context(), 0, "policy", "replay")
}
