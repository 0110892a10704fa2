package wazero_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	wz "github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/writrun/writ/engine/evidence"
	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host"
	"github.com/writrun/writ/host/hosttest"
	"github.com/writrun/writ/host/trace"
	"github.com/writrun/writ/host/wazero"
)

// figureRuns makes runs in a store of its own, each recorded in a journal.
type figureRuns struct {
	tb     testing.TB
	engine host.Engine
	tenant *evidence.Tenant
	made   int
}

func newFigureRuns(tb testing.TB) *figureRuns {
	dir := tb.TempDir()
	store, err := evidence.Init(evidence.Options{Dir: filepath.Join(dir, "store"), KeyDir: filepath.Join(dir, "keys"),
		Host: "here", Now: time.Now, Rand: rand.Reader})
	figureOK(tb, err)
	tb.Cleanup(func() { _ = store.Close() })
	id, err := abi.ParseTenantID("acme")
	figureOK(tb, err)
	tenant, err := store.Tenant(id)
	figureOK(tb, err)
	ctx := context.Background()
	engine, err := wazero.New(ctx, wazero.Config{})
	figureOK(tb, err)
	tb.Cleanup(func() { _ = engine.Close(ctx) })
	return &figureRuns{tb: tb, engine: engine, tenant: tenant}
}

func figureOK(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// run invokes m once in a run of its own, seals the run, and returns how long
// the invocation and the seal took. Wrap, if any, stands before the recorder.
func (f *figureRuns) run(m host.Compiled, calls int, wrap func(host.Boundary) host.Boundary) (calling, sealing time.Duration) {
	f.made++
	j, err := f.tenant.Admit(evidence.Admission{FlowID: "gate", Admission: trace.Admission{
		RunID: abi.NewRunID([16]byte{byte(f.made >> 8), byte(f.made)})}})
	figureOK(f.tb, err)
	recorder := host.NewRecorder(j.Lane("inventory"), nil)
	var boundary host.Boundary = recorder
	if wrap != nil {
		boundary = wrap(recorder)
	}
	start := time.Now()
	out, err := host.Invoke(context.Background(), m, host.Invocation{Lane: "inventory", Entry: abi.ExportExecute, Input: []byte("{}"),
		Boundary: boundary, ClockStartNanos: 1_000_000_000, ClockStepNanos: 1_000, Limits: abi.Limits{HostCalls: 100_000_000}})
	if err != nil || out.Stop != nil || out.HostCalls != uint64(calls) {
		f.tb.Fatalf("%v %+v", err, out)
	}
	figureOK(f.tb, recorder.Flush())
	between := time.Now()
	end, err := trace.EncodePayload(trace.ExecutionEnd{State: "succeeded", Result: "pass"})
	figureOK(f.tb, err)
	_, err = j.Append(trace.LaneRun, trace.Event{Kind: trace.KindExecutionEnd, Cause: trace.CauseRuntime, Attempt: 1, Payload: end})
	figureOK(f.tb, err)
	_, err = j.Seal([]trace.Lane{trace.LaneRun, "inventory", trace.LaneControl}, func(d abi.Digest) (trace.Event, error) {
		payload, err := trace.EncodePayload(trace.RunEnd{ExecutionDigest: d, Result: "pass"})
		return trace.Event{Kind: trace.KindRunEnd, Cause: trace.CauseRuntime, Attempt: 1, Payload: payload}, err
	})
	figureOK(f.tb, err)
	return between.Sub(start), time.Since(between)
}

// emptyCalls returns what invokes a module that was not prepared and calls an
// empty host function of wazero's raw form.
func emptyCalls(tb testing.TB, times int) func() time.Duration {
	ctx := context.Background()
	r := wz.NewRuntimeWithConfig(ctx, wz.NewRuntimeConfigCompiler())
	tb.Cleanup(func() { _ = r.Close(ctx) })
	_, err := r.NewHostModuleBuilder("writ_v1").NewFunctionBuilder().
		WithGoModuleFunction(api.GoModuleFunc(func(context.Context, api.Module, []uint64) {}), nil, []api.ValueType{api.ValueTypeI64}).
		Export("clock_now").Instantiate(ctx)
	figureOK(tb, err)
	m, err := r.Instantiate(ctx, hosttest.Wat(tb, loops(importClock, callClock, times)))
	figureOK(tb, err)
	f := m.ExportedFunction(abi.ExportExecute)
	return func() time.Duration {
		start := time.Now()
		_, err := f.Call(ctx, 0, 0)
		figureOK(tb, err)
		return time.Since(start)
	}
}

// BenchmarkFigureRecordedCall compares calls recorded in a journal, with all
// that goes with them, with empty calls, taken in turns.
func BenchmarkFigureRecordedCall(b *testing.B) {
	const calls, rounds = 100_000, 25
	f, empty := newFigureRuns(b), emptyCalls(b, calls)
	for _, c := range []struct{ name, imports, call string }{
		{"clock_now", importClock, callClock}, {"random_fill(32)", importRandom, callRandom}} {
		m := hosttest.Compile(b, f.engine, hosttest.Prepared(b, loops(c.imports, c.call, calls)))
		var ours, theirs []time.Duration
		for range rounds {
			theirs = append(theirs, empty())
			calling, _ := f.run(m, calls, nil)
			ours = append(ours, calling)
		}
		a, e := float64(median(ours))/calls, float64(median(theirs))/calls
		b.Logf("figure: recorded %s: %.1f ns, %.2f times an empty wazero call of %.1f ns (at most 3)", c.name, a, a/e, e)
	}
}

// BenchmarkFigureFlat compares the cost of a call, sealing included, in runs of
// 1,000 to 100,000 calls, less that of a run with one call, taken in turns.
func BenchmarkFigureFlat(b *testing.B) {
	const rounds, share = 21, 100_000 // calls of each size in a round, in at most ten runs
	f := newFigureRuns(b)
	sizes := []int{1, 1_000, 10_000, 100_000}
	modules := make([]host.Compiled, len(sizes))
	for i, n := range sizes {
		modules[i] = hosttest.Compile(b, f.engine, hosttest.Prepared(b, loops(importClock, callClock, n)))
	}
	calling, sealing := make([][]time.Duration, len(sizes)), make([][]time.Duration, len(sizes))
	for range rounds {
		for i, n := range sizes {
			for range min(max(share/n, 1), 10) {
				c, s := f.run(modules[i], n, nil)
				calling[i], sealing[i] = append(calling[i], c), append(sealing[i], s)
			}
		}
	}
	var alone, whole []float64
	var text string
	for i, n := range sizes[1:] {
		c := float64(median(calling[i+1])-median(calling[0])) / float64(n-1)
		s := float64(median(sealing[i+1])-median(sealing[0])) / float64(n-1)
		alone, whole = append(alone, c), append(whole, c+s)
		text += fmt.Sprintf(" %d calls %.1f ns + %.1f ns to seal;", n, c, s)
	}
	b.Logf("figure: cost per recorded call:%s largest/smallest %.2f with the seal, %.2f without (at most 1.2)",
		text, slices.Max(whole)/slices.Min(whole), slices.Max(alone)/slices.Min(alone))
}

// heapLooks looks at the heap every so many calls.
type heapLooks struct {
	host.Boundary
	every, seen int
	most        uint64
}

func (h *heapLooks) HostCall(c *trace.Call) error {
	if h.seen++; h.seen%h.every == 0 {
		h.look()
	}
	return h.Boundary.HostCall(c)
}

func (h *heapLooks) look() {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	h.most = max(h.most, m.HeapAlloc)
}

// BenchmarkFigureMemory compares the heap of a run of 1,000,000 calls, sealed,
// with that of one of 10,000.
func BenchmarkFigureMemory(b *testing.B) {
	f := newFigureRuns(b)
	heap := func(calls int) float64 {
		m := hosttest.Compile(b, f.engine, hosttest.Prepared(b, loops(importClock, callClock, calls)))
		looks := &heapLooks{every: calls / 10}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f.run(m, calls, func(inner host.Boundary) host.Boundary { looks.Boundary = inner; return looks })
		runtime.ReadMemStats(&after) // what sealing left, collected or not
		return float64(max(looks.most, after.HeapAlloc))
	}
	small := heap(10_000)
	large := heap(1_000_000)
	b.Logf("figure: heap of a run of 1,000,000 calls, sealed: %.1f MiB more than %.1f MiB of one of 10,000 (at most 32)", (large-small)/(1<<20), small/(1<<20))
}
