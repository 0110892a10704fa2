package evidence

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host/trace"
)

func admitted(t testing.TB, n int) (*Store, *Tenant, *Journal) {
	t.Helper()
	s := initStore(t, options(t))
	tenant := tenantOf(t, s)
	return s, tenant, must[*Journal](t)(tenant.Admit(admission(n)))
}

func TestAppendRefusals(t *testing.T) {
	_, _, j := admitted(t, 1)
	good := event(t, trace.KindStepStart, stepStart)
	with := func(change func(*trace.Event)) trace.Event {
		e := good
		change(&e)
		return e
	}
	tests := []struct {
		name  string
		lane  trace.Lane
		event trace.Event
		ok    bool
	}{
		{"a step's start", step, good, true},
		{"ill-formed lane", "In ventory", good, false},
		{"core kind in control", trace.LaneControl, good, false},
		{"control kind in a step", step, with(func(e *trace.Event) { e.Kind = trace.KindAdmission }), false},
		{"unknown kind", step, with(func(e *trace.Event) { e.Kind = 40 }), false},
		{"unknown cause", step, with(func(e *trace.Event) { e.Cause = 0 }), false},
		{"no payload", step, with(func(e *trace.Event) { e.Payload = nil }), false},
		{"payload is no CBOR", step, with(func(e *trace.Event) { e.Payload = []byte("{}") }), false},
		{"three calls", step, trace.Event{Kind: trace.KindHostCalls, Cause: 1, Payload: calls(3), Span: 3}, true},
		{"three calls said to be two", step, trace.Event{Kind: trace.KindHostCalls, Cause: 1, Payload: calls(3), Span: 2}, false},
		{"no calls", step, trace.Event{Kind: trace.KindHostCalls, Cause: 1, Payload: calls(0)}, false},
		{"too many calls", step, trace.Event{Kind: trace.KindHostCalls, Cause: 1, Payload: calls(257), Span: 257}, false},
		{"a span for another kind", step, with(func(e *trace.Event) { e.Span = 2 }), false},
	}
	for _, test := range tests {
		if _, err := j.Append(test.lane, test.event); (err == nil) != test.ok {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

func TestAddressesCountCalls(t *testing.T) {
	_, _, j := admitted(t, 1)
	var got []string
	for _, n := range []int{1, 256, 3} {
		a := must[trace.Address](t)(j.Append(step, trace.Event{Kind: trace.KindHostCalls, Cause: 1, Payload: calls(n), Span: uint64(n)}))
		got = append(got, a.String())
	}
	got = append(got, appendEvent(t, j, step, trace.KindStepEnd, trace.StepEnd{}).String())
	if diff := cmp.Diff([]string{"inventory/0", "inventory/1", "inventory/257", "inventory/260"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestEffectKeys(t *testing.T) {
	_, tenant, j := admitted(t, 1)
	other := must[*Journal](t)(tenant.Admit(admission(2)))
	keys := []string{j.EffectKey(step, 0), j.EffectKey(step, 1), j.EffectKey("inventory2", 0), other.EffectKey(step, 0)}
	if slices.Sort(keys); len(slices.Compact(keys)) != 4 {
		t.Errorf("keys are not distinct: %v", keys)
	}
	if j.EffectKey(step, 0) != j.EffectKey(step, 0) {
		t.Error("a key changes")
	}
}

func TestInterruptedRunIsKept(t *testing.T) {
	s, tenant, j := admitted(t, 1)
	appendEvent(t, j, step, trace.KindStepStart, stepStart)
	ok(t, j.Interrupt("cancelled"))
	_, err := j.Append(step, event(t, trace.KindStepStart, stepStart))
	wantCode(t, err, CodeJournalClosed)
	ok(t, j.Close())
	ok(t, s.Close())
	tr := must[*Trace](t)(tenant.OpenJournal(runID(1)))
	defer tr.Close()
	if diff := cmp.Diff([]trace.Lane{step, trace.LaneControl}, tr.Lanes()); diff != "" {
		t.Error(diff)
	}
	headers := tr.Headers(trace.LaneControl)
	_, b, err := tr.Payload(headers[len(headers)-1].Address())
	ok(t, err)
	if got := string(must[[]byte](t)(trace.PayloadJSON(trace.KindExecutionInterrupted, b))); got != `{"reason":"cancelled"}` {
		t.Error(got)
	}
}

// TestReaderOfARunThatEnds opens a run whose seal falls between reading the
// ledger and reading the journal.
func TestReaderOfARunThatEnds(t *testing.T) {
	o := options(t)
	j := must[*Journal](t)(tenantOf(t, initStore(t, o)).Admit(admission(1)))
	smallRun(t, j)
	o.ReadOnly = true
	reader := tenantOf(t, openStore(t, o))
	tr := must[*Trace](t)(reader.OpenJournal(runID(1)))
	defer tr.Close()
	if tr.Sealed() || len(tr.Lanes()) != 5 {
		t.Errorf("lanes of the journal: %v", tr.Lanes())
	}
	sealed := must[Sealed](t)(j.Seal(smallLayout, runEnd))
	// What was opened stays readable: the file is open.
	must[abi.Digest](t)(tr.ExecutionDigest())
	tr = must[*Trace](t)(reader.OpenJournal(runID(1)))
	defer tr.Close()
	if !tr.Sealed() || tr.Summary().TraceRoot != sealed.TraceRoot {
		t.Errorf("opened %+v", tr.Summary())
	}
}

func TestSealRefusals(t *testing.T) {
	notRunEnd := func(d abi.Digest) (trace.Event, error) {
		e, err := runEnd(d)
		e.Kind = trace.KindAdmission
		return e, err
	}
	fails := func(abi.Digest) (trace.Event, error) { return trace.Event{}, fmt.Errorf("no") }
	tests := []struct {
		name   string
		layout []trace.Lane
		end    func(abi.Digest) (trace.Event, error)
	}{
		{"lane left out", slices.Delete(slices.Clone(smallLayout), 1, 2), runEnd},
		{"lane twice", append([]trace.Lane{trace.LaneRun}, smallLayout...), runEnd},
		{"control not last", []trace.Lane{trace.LaneRun, trace.LaneControl, step, smallLayout[2], smallLayout[3]}, runEnd},
		{"no layout", nil, runEnd},
		{"not RUN_END", smallLayout, notRunEnd},
		{"end fails", smallLayout, fails},
	}
	s, tenant, j := admitted(t, 1)
	_, err := j.Seal([]trace.Lane{trace.LaneRun, trace.LaneControl}, runEnd)
	if err == nil {
		t.Error("sealed without EXECUTION_END")
	}
	smallRun(t, j)
	for _, test := range tests {
		if _, err := j.Seal(test.layout, test.end); err == nil {
			t.Fatalf("%s: sealed", test.name)
		}
	}
	must[Sealed](t)(j.Seal(smallLayout, runEnd))
	_, err = j.Append(step, event(t, trace.KindStepStart, stepStart))
	wantCode(t, err, CodeJournalClosed)
	_, err = tenant.OpenJournal(runID(1))
	wantCode(t, err, CodeRunMissing)
	if report := must[Report](t)(s.Verify(context.Background(), nil)); len(report.Problems) > 0 {
		t.Error(report.Problems)
	}
}

// TestSealAgainAfterAFullDisk fails each write of a seal once: called again, or
// left to the next open, it ends with the same trace.
func TestSealAgainAfterAFullDisk(t *testing.T) {
	for _, again := range []bool{true, false} {
		for n := 0; ; n++ {
			o := options(t)
			s := initStore(t, o)
			j := must[*Journal](t)(tenantOf(t, s).Admit(admission(1)))
			smallRun(t, j)
			writes := 0
			s.disk.fault = func(op, _ string) error {
				if op == "write" {
					if writes++; writes == n+1 {
						return fullDisk
					}
				}
				return nil
			}
			_, err := j.Seal(smallLayout, runEnd)
			if err == nil {
				if n < 3 {
					t.Errorf("only %d writes seen", n)
				}
				break
			}
			wantCode(t, err, CodeFull)
			if again {
				must[Sealed](t)(j.Seal(smallLayout, runEnd))
			} else {
				ok(t, j.Interrupt("no room"))
			}
			ok(t, s.Close())
			s = openStore(t, o)
			if run := must[RunSummary](t)(tenantOf(t, s).Run(runID(1))); !run.Sealed() {
				t.Errorf("write %d: run %+v is not sealed", n, run)
			}
			if report := must[Report](t)(s.Verify(context.Background(), nil)); len(report.Problems) > 0 {
				t.Errorf("write %d: %v", n, report.Problems)
			}
			ok(t, s.Close())
		}
	}
}

// TestLanesAtOnce appends from many lanes and checks that each keeps its order
// and that syncs are shared.
func TestLanesAtOnce(t *testing.T) {
	s, tenant, j := admitted(t, 1)
	var syncs atomic.Int64
	s.disk.fault = func(op, path string) error {
		if op == "sync" {
			syncs.Add(1)
			runtime.Gosched()
		}
		return nil
	}
	const lanes, events = 8, 40
	layout := []trace.Lane{trace.LaneRun}
	var all sync.WaitGroup
	for i := range lanes {
		lane := trace.StepLane(abi.ID(fmt.Sprintf("step-%d", i)))
		layout = append(layout, lane)
		all.Go(func() {
			w := j.Lane(lane)
			for n := range events {
				a, err := w.Append(trace.Event{Kind: trace.KindHostCalls, Cause: 1, Payload: calls(100), Span: 100})
				if err == nil {
					err = w.Sync()
				}
				if err != nil || a.Seq != uint64(n*100) {
					t.Errorf("event %d of %s: %v, %v", n, lane, a, err)
				}
			}
		})
	}
	all.Wait()
	s.disk.fault = nil
	if n := syncs.Load(); n > lanes*events {
		t.Errorf("%d fsyncs for %d syncs", n, lanes*events)
	}
	appendEvent(t, j, trace.LaneRun, trace.KindExecutionEnd, trace.ExecutionEnd{State: "failed", Result: "failed"})
	must[Sealed](t)(j.Seal(append(layout, trace.LaneControl), runEnd))
	tr := must[*Trace](t)(tenant.OpenTrace(runID(1)))
	defer tr.Close()
	call := must[trace.Call](t)(tr.Call(trace.Address{Lane: "step-7", Seq: 100*events - 1}))
	if call.Result != 99 {
		t.Errorf("last call answered %d", call.Result)
	}
	_, err := tr.Call(trace.Address{Lane: "step-7", Seq: 100 * events})
	wantCode(t, err, CodeEventUnknown)
	if report := must[Report](t)(s.Verify(context.Background(), nil)); len(report.Problems) > 0 {
		t.Error(report.Problems)
	}
}

// TestFullDiskInTheMiddle lets writes fail for a while: no event is lost, the
// journal does not grow in memory without bound, and all is there afterwards.
func TestFullDiskInTheMiddle(t *testing.T) {
	s, tenant, j := admitted(t, 1)
	full := true
	s.disk.fault = func(op, path string) error {
		if full && op == "write" {
			return fullDisk
		}
		return nil
	}
	accepted := 0
	for {
		_, err := j.Append(step, trace.Event{Kind: trace.KindHostCalls, Cause: 1, Payload: calls(200), Span: 200})
		if err != nil {
			wantCode(t, err, CodeFull)
			break
		}
		if accepted++; accepted > 1000 {
			t.Fatal("memory grows while the disk is full")
		}
		wantCode(t, j.Sync(), CodeFull)
	}
	full = false
	a := must[trace.Address](t)(j.Append(step, event(t, trace.KindStepEnd, trace.StepEnd{})))
	if a.Seq != uint64(accepted*200) {
		t.Errorf("next event is %v after %d batches", a, accepted)
	}
	appendEvent(t, j, trace.LaneRun, trace.KindExecutionEnd, trace.ExecutionEnd{State: "failed", Result: "failed"})
	must[Sealed](t)(j.Seal([]trace.Lane{trace.LaneRun, step, trace.LaneControl}, runEnd))
	tr := must[*Trace](t)(tenant.OpenTrace(runID(1)))
	defer tr.Close()
	if got := len(tr.Headers(step)); got != accepted+1 {
		t.Errorf("%d events, want %d", got, accepted+1)
	}
}

// TestMemoryIsFlatInCalls seals runs of 10,000 and of 1,000,000 host calls.
func TestMemoryIsFlatInCalls(t *testing.T) {
	if testing.Short() {
		t.Skip("short")
	}
	small, large := heapOfSeal(t, 10_000), heapOfSeal(t, 1_000_000)
	t.Logf("heap in use at seal: %d KiB for 10,000 calls, %d KiB for 1,000,000", small>>10, large>>10)
	if large > small+32<<20 {
		t.Errorf("memory grows by %d MiB", (large-small)>>20)
	}
}

func heapOfSeal(t *testing.T, n int) uint64 {
	_, tenant, j := admitted(t, 1)
	batch := calls(250)
	for range n / 250 {
		must[trace.Address](t)(j.Append(step, trace.Event{Kind: trace.KindHostCalls, Cause: 1, Payload: batch, Span: 250}))
	}
	appendEvent(t, j, trace.LaneRun, trace.KindExecutionEnd, trace.ExecutionEnd{State: "succeeded", Result: "pass"})
	var peak uint64
	tenant.disk.fault = func(op, path string) error {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		peak = max(peak, m.HeapInuse)
		return nil
	}
	must[Sealed](t)(j.Seal([]trace.Lane{trace.LaneRun, step, trace.LaneControl}, runEnd))
	return peak
}

// TestRunsAtOnce takes several runs of one tenant from admission to seal at the
// same time, refuses a request for each, and verifies meanwhile.
func TestRunsAtOnce(t *testing.T) {
	o := options(t)
	s := initStore(t, o)
	tenant := tenantOf(t, s)
	const runs = 8
	var all sync.WaitGroup
	for n := range runs {
		all.Go(func() {
			j, err := tenant.Admit(admission(n))
			if err == nil {
				r := &recorder{j: j}
				r.small()
				err = r.err
			}
			if err == nil {
				_, err = j.Seal(smallLayout, runEnd)
			}
			if err == nil {
				err = tenant.Refuse(AdmissionRefused{Action: "run", Code: "x", Reasons: []string{fmt.Sprint(n)}})
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	o.ReadOnly = true
	reader := openStore(t, o)
	for range 3 {
		if report := must[Report](t)(reader.Verify(context.Background(), nil)); len(report.Problems) > 0 {
			t.Errorf("verify while runs go on: %v", report.Problems)
		}
	}
	all.Wait()
	report := must[Report](t)(s.Verify(context.Background(), nil))
	if got := report.Tenants[0]; len(report.Problems) > 0 || got.Sealed != runs || got.Records != 3*runs || got.Unanchored != 0 {
		t.Errorf("report %+v", report)
	}
}

// Salts are drawn many at a time; each event still has one of its own, and an
// event for which none can be drawn is not appended.
func TestSaltsAreDrawnForEachEvent(t *testing.T) {
	_, _, j := admitted(t, 1)
	seen := map[[trace.SaltBytes]byte]bool{}
	for range 3*saltsDrawn + 1 {
		var salt [trace.SaltBytes]byte
		ok(t, j.salt(&salt))
		if seen[salt] || salt == [trace.SaltBytes]byte{} {
			t.Fatalf("salt %x was used before or is empty", salt)
		}
		seen[salt] = true
	}
	j.tenant.disk.rand = bytes.NewReader(nil)
	j.salts = nil
	if _, err := j.Append(step, trace.Event{Kind: trace.KindHostCalls, Cause: trace.CauseEnvironment, Attempt: 1, Payload: calls(1), Span: 1}); err == nil {
		t.Error("an event was appended without a salt")
	}
	if got := j.lanes[step]; got != 0 {
		t.Errorf("the lane has %d events, want none", got)
	}
}

// TestFailedWriteBesideOthers has other lanes append all they can while a write
// fails, and writes again once there is room: no group may be longer than a
// reader takes.
func TestFailedWriteBesideOthers(t *testing.T) {
	s, tenant, j := admitted(t, 1)
	fill := func(lane trace.Lane) {
		for range 1000 {
			j.mu.Lock()
			room := len(j.buf)+j.inFlight < trace.GroupBytesMax
			j.mu.Unlock()
			if !room {
				return
			}
			if _, err := j.Append(lane, trace.Event{Kind: trace.KindHostCalls, Cause: 1, Payload: calls(100), Span: 100}); err != nil {
				t.Error(err)
				return
			}
		}
	}
	fill("first")
	failed := false
	s.disk.fault = func(op, _ string) error {
		if op != "write" || failed {
			return nil
		}
		failed = true
		fill("second")
		return syscall.ENOSPC
	}
	wantCode(t, j.Sync(), CodeFull)
	fill("second")
	ok(t, j.Sync())
	tr := must[*Trace](t)(tenant.OpenJournal(runID(1)))
	defer tr.Close()
	if d := tr.Damage(); d != nil {
		t.Errorf("the journal is damaged: %v", d)
	}
	if report := must[Report](t)(s.Verify(context.Background(), nil)); len(report.Problems) > 0 {
		t.Error(report.Problems)
	}
}
