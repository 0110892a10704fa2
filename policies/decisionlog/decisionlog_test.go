package decisionlog_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/policies/decisionlog"
)

// buffer is a writer that several goroutines may look at.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (w *buffer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}

func decision() decisionlog.Decision {
	input := []byte(`{"principal":{"name":"alice","kind":"local"},"effects":[{"reach":["GET https://a"]},{"reach":[]}],"now":9007199254740993}`)
	return decisionlog.Decision{
		ID: "r1/arbitration@flow/0", Entrypoint: "data.writ.arbitration.decision", Policy: "sha256:aa", RunID: "r1", Address: "arbitration@flow/0",
		FlowID: "trial", InputDigest: abi.DigestOf(input), Input: input, At: time.Unix(1_800_000_000, 0).UTC(),
		Result: map[string]any{"decision": "PASS", "reasons": []string{"ok"}},
	}
}

// logged is what one decision becomes.
func logged(t *testing.T, c decisionlog.Config, d decisionlog.Decision) (map[string]any, decisionlog.Report) {
	t.Helper()
	var w buffer
	c.Sink = decisionlog.Lines{W: &w}
	l, err := decisionlog.New(c)
	if err != nil {
		t.Fatal(err)
	}
	l.Add(d)
	r := l.Close(t.Context())
	if r.Delivered == 0 {
		return nil, r
	}
	decoder := json.NewDecoder(&w.b)
	decoder.UseNumber()
	var doc map[string]any
	if err := decoder.Decode(&doc); err != nil {
		t.Fatal(err)
	}
	return doc, r
}

func TestEventHasOPAsForm(t *testing.T) {
	doc, r := logged(t, decisionlog.Config{Labels: map[string]string{"id": "store"}}, decision())
	want := map[string]any{
		"labels": map[string]any{"id": "store"}, "decision_id": "r1/arbitration@flow/0", "path": "writ/arbitration/decision",
		"bundles": map[string]any{"policy": map[string]any{"revision": "sha256:aa"}},
		"result":  map[string]any{"decision": "PASS", "reasons": []any{"ok"}}, "timestamp": "2027-01-15T08:00:00Z",
		"custom": map[string]any{"run_id": "r1", "address": "arbitration@flow/0", "flow_id": "trial", "input_digest": string(decision().InputDigest)},
	}
	if diff := cmp.Diff(want, doc); diff != "" {
		t.Errorf("event (-want +got):\n%s", diff)
	}
	if r.Added != 1 || r.Delivered != 1 || r.Dropped != 0 || r.Inputs != 0 || r.Digest == "" || r.Err != nil {
		t.Errorf("report %+v", r)
	}
}

func TestEventOfAFlowsOwnPolicy(t *testing.T) {
	d := decision()
	d.Entrypoint, d.Error = `data.flow["my-flow"].arbitration.decision`, "it conflicts"
	doc, _ := logged(t, decisionlog.Config{}, d)
	if doc["path"] != "flow/my-flow/arbitration/decision" || doc["error"].(map[string]any)["message"] != "it conflicts" {
		t.Errorf("event %v", doc)
	}
}

func TestInputsLeaveOnlyWhenAskedFor(t *testing.T) {
	cases := []struct {
		name   string
		config decisionlog.Config
		input  string
		erased []any
		inputs uint64
	}{
		{"not asked for", decisionlog.Config{}, "null", nil, 0},
		{"asked for", decisionlog.Config{IncludeInput: true}, `{"effects":[{"reach":["GET https://a"]},{"reach":[]}],"now":9007199254740993,"principal":{"kind":"local","name":"alice"}}`, nil, 1},
		{"a name erased", decisionlog.Config{IncludeInput: true, Erase: []string{"/input/principal/name"}}, `{"effects":[{"reach":["GET https://a"]},{"reach":[]}],"now":9007199254740993,"principal":{"kind":"local"}}`, []any{"/input/principal/name"}, 1},
		{"every element", decisionlog.Config{IncludeInput: true, Erase: []string{"/input/effects/*/reach", "/input/absent"}}, `{"effects":[{},{}],"now":9007199254740993,"principal":{"kind":"local","name":"alice"}}`, []any{"/input/effects/*/reach"}, 1},
		{"all of it", decisionlog.Config{IncludeInput: true, Erase: []string{"/input"}}, "null", []any{"/input"}, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			doc, r := logged(t, c.config, decision())
			input, err := json.Marshal(doc["input"])
			if err != nil || string(input) != c.input {
				t.Errorf("input %s (%v), want %s", input, err, c.input)
			}
			erased, _ := doc["erased"].([]any)
			if diff := cmp.Diff(c.erased, erased); diff != "" || r.Inputs != c.inputs {
				t.Errorf("%d inputs, erased (-want +got):\n%s", r.Inputs, diff)
			}
		})
	}
}

func TestErasePathsAreChecked(t *testing.T) {
	many := make([]string, decisionlog.ErasePathsMax+1)
	for i := range many {
		many[i] = "/input"
	}
	for _, paths := range [][]string{{""}, {"input"}, {"/"}, {"/labels"}, {"/input/"}, {"/input//x"}, {"/input/%zz"}, {"/input/" + strings.Repeat("x", decisionlog.ErasePathBytesMax)}, many} {
		if l, err := decisionlog.New(decisionlog.Config{Sink: decisionlog.Lines{W: io.Discard}, Erase: paths}); err == nil {
			l.Close(t.Context())
			t.Errorf("%.100q was accepted", paths)
		}
	}
}

func TestLargeDecisions(t *testing.T) {
	d := decision()
	d.Input = []byte(`{"x":"` + strings.Repeat("x", decisionlog.EventBytesMax) + `"}`)
	doc, r := logged(t, decisionlog.Config{IncludeInput: true}, d)
	if diff := cmp.Diff([]any{"/input"}, doc["erased"]); diff != "" || r.Inputs != 0 || r.Delivered != 1 {
		t.Errorf("a large input: %+v, erased (-want +got):\n%s", r, diff)
	}
	d.Result = strings.Repeat("x", decisionlog.EventBytesMax)
	if _, r := logged(t, decisionlog.Config{}, d); r.Dropped != 1 || r.Delivered != 0 {
		t.Errorf("a large result: %+v", r)
	}
}

// hanging is a sink that answers nobody, and tells when it was asked.
type hanging struct{ asked, release chan struct{} }

func (s hanging) Send(context.Context, [][]byte) error {
	select {
	case s.asked <- struct{}{}:
	default:
	}
	<-s.release
	return nil
}

func TestNothingWaitsForASinkThatHangs(t *testing.T) {
	s := hanging{make(chan struct{}, 1), make(chan struct{})}
	defer close(s.release)
	l, err := decisionlog.New(decisionlog.Config{Sink: s, IncludeInput: true})
	if err != nil {
		t.Fatal(err)
	}
	d := decision()
	l.Add(d)
	<-s.asked
	d.Input = []byte(`"` + strings.Repeat("x", decisionlog.EventBytesMax/2) + `"`)
	n := uint64(decisionlog.BufferBytesMax/(decisionlog.EventBytesMax/2)) + 2
	for range n {
		l.Add(d) // memory is bounded: the last do not fit
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := l.Close(ctx)
	if r.Added != n+1 || r.Delivered != 0 || r.Dropped != n+1 || r.Err == nil {
		t.Errorf("report %+v", r)
	}
	l.Add(d) // after the end: dropped, and no panic
}

func TestFailuresAreCounted(t *testing.T) {
	l, err := decisionlog.New(decisionlog.Config{Sink: decisionlog.Lines{W: failing{}}})
	if err != nil {
		t.Fatal(err)
	}
	l.Add(decision())
	if r := l.Close(t.Context()); r.Dropped != 1 || r.Delivered != 0 || r.Digest != "" || r.Err == nil || r.Err.Error() != "no space" {
		t.Errorf("report %+v", r)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("no space") }

// collector is a service that gives answers in turn.
type collector struct {
	mu      sync.Mutex
	answers []int
	posts   int
	ids     []string
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	answer := http.StatusOK
	if c.posts < len(c.answers) {
		answer = c.answers[c.posts]
	}
	c.posts++
	w.WriteHeader(answer)
	if answer != http.StatusOK || r.Header.Get("Content-Encoding") != "gzip" || r.Header.Get("Content-Type") != "application/json" {
		return
	}
	z, err := gzip.NewReader(r.Body)
	if err != nil {
		return
	}
	var events []struct {
		DecisionID string `json:"decision_id"`
	}
	if json.NewDecoder(z).Decode(&events) == nil {
		for _, e := range events {
			c.ids = append(c.ids, e.DecisionID)
		}
	}
}

func TestHTTP(t *testing.T) {
	cases := []struct {
		name                      string
		answers                   []int
		posts                     int
		delivered, dropped, added uint64
	}{
		{"one chunk", nil, 1, 3, 0, 3},
		{"a failure that passes", []int{503, 429}, 3, 3, 0, 3},
		{"a refusal", []int{403}, 1, 0, 3, 3},
		{"a redirect is no delivery", []int{304}, 1, 0, 3, 3},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			service := &collector{answers: c.answers}
			server := httptest.NewServer(service)
			defer server.Close()
			sink, err := decisionlog.NewHTTP(server.URL+"/logs", server.Client())
			if err != nil {
				t.Fatal(err)
			}
			l, err := decisionlog.New(decisionlog.Config{Sink: sink, Linger: time.Hour})
			if err != nil {
				t.Fatal(err)
			}
			var want []string
			for i := range c.added {
				d := decision()
				d.ID = fmt.Sprint(i)
				want = append(want, d.ID)
				l.Add(d)
			}
			r := l.Close(t.Context())
			if r.Added != c.added || r.Delivered != c.delivered || r.Dropped != c.dropped || (r.Err != nil) != (c.dropped > 0) {
				t.Errorf("report %+v", r)
			}
			if service.posts != c.posts {
				t.Errorf("%d posts, want %d", service.posts, c.posts)
			}
			if c.delivered > 0 {
				if diff := cmp.Diff(want, service.ids); diff != "" {
					t.Errorf("events that arrived (-want +got):\n%s", diff)
				}
			}
		})
	}
	for _, address := range []string{"", "ftp://x/y", "http:///x", "x"} {
		if _, err := decisionlog.NewHTTP(address, http.DefaultClient); err == nil {
			t.Errorf("%q was accepted", address)
		}
	}
}

// FuzzErase requires that any paths and inputs end in a line of JSON or a refusal.
func FuzzErase(f *testing.F) {
	f.Add("/input/principal/name", `{"principal":{"name":1}}`)
	f.Add("/input/*", `[1]`)
	f.Add("/result/%2f", `{`)
	f.Fuzz(func(t *testing.T, path, input string) {
		var w buffer
		l, err := decisionlog.New(decisionlog.Config{Sink: decisionlog.Lines{W: &w}, IncludeInput: true, Erase: []string{path}})
		if err != nil {
			return
		}
		l.Add(decisionlog.Decision{Input: []byte(input), Result: 1})
		if r := l.Close(t.Context()); r.Delivered == 1 && !json.Valid(w.b.Bytes()) {
			t.Errorf("not JSON: %s", w.b.Bytes())
		}
	})
}
