package evidence

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host/trace"
)

// options for a store in a new directory.
func options(t testing.TB) Options {
	t.Helper()
	dir := t.TempDir()
	return Options{Dir: filepath.Join(dir, "store"), KeyDir: filepath.Join(dir, "keys"), Host: "here", Now: time.Now, Rand: rand.Reader}
}

func must[T any](t testing.TB) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantCode(t testing.TB, err error, code string) {
	t.Helper()
	if got := CodeOf(err); got != code {
		t.Fatalf("error %v has code %q, want %q", err, got, code)
	}
}

func initStore(t testing.TB, o Options) *Store {
	t.Helper()
	s := must[*Store](t)(Init(o))
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func openStore(t testing.TB, o Options) *Store {
	t.Helper()
	s := must[*Store](t)(Open(o))
	t.Cleanup(func() { _ = s.Close() })
	return s
}

var acme = func() abi.TenantID {
	id, err := abi.ParseTenantID("acme")
	if err != nil {
		panic(err)
	}
	return id
}()

func tenantOf(t testing.TB, s *Store) *Tenant {
	t.Helper()
	return must[*Tenant](t)(s.Tenant(acme))
}

// runID is the n-th run id of a test.
func runID(n int) abi.RunID { return abi.NewRunID([16]byte{byte(n >> 8), byte(n)}) }

var (
	digestA = abi.DigestOf([]byte("a"))
	digestB = abi.DigestOf([]byte("b"))
)

func admission(n int) Admission {
	return Admission{FlowID: "gate", Admission: trace.Admission{RunID: runID(n), RequestID: fmt.Sprintf("request-%d", n),
		Principal: "someone", Identity: trace.Identity{Plan: digestA}, Provenance: map[string]string{"engine": "none"}}}
}

func payload(t testing.TB, v any) []byte {
	t.Helper()
	return must[[]byte](t)(trace.EncodePayload(v))
}

func appendEvent(t testing.TB, j *Journal, lane trace.Lane, kind trace.Kind, v any) trace.Address {
	t.Helper()
	return must[trace.Address](t)(j.Append(lane, trace.Event{Kind: kind, Cause: trace.CauseRuntime, Attempt: 1, Payload: payload(t, v)}))
}

func calls(n int) (b []byte) {
	b = trace.AppendCallsHead(nil, n)
	for i := range n {
		b = trace.AppendCall(b, &trace.Call{Fn: 1, Result: int64(i), Fuel: 1000})
	}
	return b
}

const step = trace.Lane("inventory")

// recorder appends to a journal until something fails.
type recorder struct {
	j   *Journal
	err error
}

func (r *recorder) add(lane trace.Lane, kind trace.Kind, v any) {
	b, err := trace.EncodePayload(v)
	if r.err == nil {
		r.err = err
	}
	r.raw(lane, trace.Event{Kind: kind, Cause: trace.CauseRuntime, Attempt: 1, Payload: b})
}

func (r *recorder) raw(lane trace.Lane, e trace.Event) {
	if r.err == nil {
		_, r.err = r.j.Append(lane, e)
	}
}

func (r *recorder) sync() {
	if r.err == nil {
		r.err = r.j.Sync()
	}
}

var stepStart = trace.StepStart{StepID: "inventory"}

// small appends what a small run records, up to EXECUTION_END.
func (r *recorder) small() {
	r.add(trace.LaneRun, trace.KindRunStart, trace.RunStart{FlowID: "gate", Mode: "live", Seed: make([]byte, 32)})
	r.add(step, trace.KindStepStart, stepStart)
	r.raw(step, trace.Event{Kind: trace.KindHostCalls, Cause: trace.CauseAgent, Attempt: 1, Payload: calls(3), Span: 3})
	r.sync()
	r.add(step, trace.KindStepEnd, trace.StepEnd{Output: make([]byte, 10_000)})
	r.add(trace.RuleLane("known", "inventory"), trace.KindVerificationResult, trace.VerificationResult{RuleID: "known", Target: "inventory", Status: abi.Pass})
	r.add(trace.ArbitrationLane("inventory"), trace.KindVerificationArbitration, trace.VerificationArbitration{Target: "inventory", Decision: "PASS"})
	r.add(trace.LaneRun, trace.KindExecutionEnd, trace.ExecutionEnd{State: "succeeded", Decision: "PASS", Result: "pass"})
	r.sync()
}

func smallRun(t testing.TB, j *Journal) {
	t.Helper()
	r := &recorder{j: j}
	r.small()
	ok(t, r.err)
}

// scanBytes scans a journal of run 1 that is not in a file.
func scanBytes(t testing.TB, b, key []byte) *scan {
	t.Helper()
	return must[*scan](t)(scanJournal(bytes.NewReader(b), int64(len(b)), key, runID(1)))
}

var smallLayout = []trace.Lane{trace.LaneRun, step, trace.RuleLane("known", "inventory"), trace.ArbitrationLane("inventory"), trace.LaneControl}

func runEnd(d abi.Digest) (trace.Event, error) {
	b, err := trace.EncodePayload(trace.RunEnd{ExecutionDigest: d, Result: "pass"})
	return trace.Event{Kind: trace.KindRunEnd, Cause: trace.CauseRuntime, Attempt: 1, Payload: b}, err
}

// sealedRun takes run n from admission to its seal.
func sealedRun(t testing.TB, tenant *Tenant, n int) Sealed {
	t.Helper()
	j := must[*Journal](t)(tenant.Admit(admission(n)))
	smallRun(t, j)
	return must[Sealed](t)(j.Seal(smallLayout, runEnd))
}

// adoptCopy makes a copied store believe that it was made where it is.
func adoptCopy(t testing.TB, dir string) {
	t.Helper()
	path := filepath.Join(dir, descriptionName)
	b, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return
	}
	ok(t, err)
	var d description
	ok(t, json.Unmarshal(b, &d))
	d.place = must[place](t)(placeOf(dir, d.Host))
	ok(t, os.WriteFile(path, must[[]byte](t)(json.Marshal(d)), fileMode))
}

func copyTree(t testing.TB, from string) string {
	t.Helper()
	to := t.TempDir()
	ok(t, os.CopyFS(to, os.DirFS(from)))
	for _, dir := range []string{"keys"} {
		// os.CopyFS keeps modes but not below the umask's; keys need theirs exactly.
		_ = filepath.WalkDir(filepath.Join(to, dir), func(path string, e os.DirEntry, err error) error {
			if err == nil && !e.IsDir() {
				err = os.Chmod(path, fileMode)
			}
			return err
		})
	}
	return to
}

func TestRunFromAdmissionToTrace(t *testing.T) {
	o := options(t)
	s := initStore(t, o)
	tenant := tenantOf(t, s)
	sealed := sealedRun(t, tenant, 1)
	if sealed.Events != 9 {
		t.Errorf("%d events, want 9", sealed.Events)
	}
	ok(t, s.Close())

	o.ReadOnly = true
	tenant = tenantOf(t, openStore(t, o))
	run := must[RunSummary](t)(tenant.Run(runID(1)))
	if run.State != "succeeded" || run.Result != "pass" || run.TraceRoot != sealed.TraceRoot {
		t.Errorf("summary %+v", run)
	}
	tr := must[*Trace](t)(tenant.OpenTrace(runID(1)))
	defer tr.Close()
	if got := must[abi.Digest](t)(tr.ExecutionDigest()); got != sealed.ExecutionDigest {
		t.Errorf("execution digest %s, want %s", got, sealed.ExecutionDigest)
	}
	call := must[trace.Call](t)(tr.Call(trace.Address{Lane: step, Seq: 3}))
	if call.Result != 2 {
		t.Errorf("third call answered %d, want 2", call.Result)
	}
	_, _, err := tr.Payload(trace.Address{Lane: step, Seq: 5})
	wantCode(t, err, CodeEventUnknown)
	h, b, err := tr.Payload(trace.Address{Lane: step, Seq: 4})
	ok(t, err)
	if h.Kind != trace.KindStepEnd || len(b) < 10_000 {
		t.Errorf("event 4 is %s of %d bytes", h.Kind, len(b))
	}
}
