package wazero_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	wz "github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host"
	"github.com/writrun/writ/host/hosttest"
	"github.com/writrun/writ/host/trace"
	"github.com/writrun/writ/host/wazero"
)

// loops calls body as often as the global says and returns "{}".
func loops(imports, body string, times int) string {
	return hosttest.Returning(imports, fmt.Sprintf(`
    (local.set $a (i32.const %d))
    (loop $again
      %s
      (br_if $again (local.tee $a (i32.sub (local.get $a) (i32.const 1)))))`, times, body), "{}")
}

const (
	importClock  = `(import "writ_v1" "clock_now" (func $clock (result i64)))`
	callClock    = `(drop (call $clock))`
	importRandom = `(import "writ_v1" "random_fill" (func $random (param i32 i32) (result i32)))`
	callRandom   = `(drop (call $random (i32.const 4096) (i32.const 32)))`
)

const benchCalls = 100_000

// BenchmarkHostCallBaseline is an empty host function of the raw module form,
// called by a module that was not prepared. The other BenchmarkHostCall figures
// are compared with it.
func BenchmarkHostCallBaseline(b *testing.B) {
	ctx := context.Background()
	r := wz.NewRuntimeWithConfig(ctx, wz.NewRuntimeConfigCompiler())
	defer r.Close(ctx)
	empty := api.GoModuleFunc(func(context.Context, api.Module, []uint64) {})
	if _, err := r.NewHostModuleBuilder("writ_v1").NewFunctionBuilder().
		WithGoModuleFunction(empty, nil, []api.ValueType{api.ValueTypeI64}).Export("clock_now").Instantiate(ctx); err != nil {
		b.Fatal(err)
	}
	m, err := r.Instantiate(ctx, hosttest.Wat(b, loops(importClock, callClock, benchCalls)))
	if err != nil {
		b.Fatal(err)
	}
	f := m.ExportedFunction(abi.ExportExecute)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := f.Call(ctx, 0, 0); err != nil {
			b.Fatal(err)
		}
	}
	perCall(b, benchCalls)
}

func perCall(b *testing.B, calls int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*calls), "ns/call")
}

func benchmarkCalls(b *testing.B, imports, body string, calls int) {
	e := newEngine(b, wazero.Config{})
	m := hosttest.Compile(b, e, hosttest.Prepared(b, loops(imports, body, calls)))
	b.ReportAllocs()
	for b.Loop() {
		inv := invocation(host.NewRecorder(&hosttest.Discard{}, nil))
		inv.Limits.HostCalls = 100_000_000
		out, err := host.Invoke(context.Background(), m, inv)
		if err != nil || out.Stop != nil || out.HostCalls != uint64(calls) {
			b.Fatalf("%v %+v", err, out)
		}
	}
	perCall(b, calls)
}

// BenchmarkHostCallClock is a recorded clock_now.
func BenchmarkHostCallClock(b *testing.B) { benchmarkCalls(b, importClock, callClock, benchCalls) }

// BenchmarkHostCallRandom32 is a recorded random_fill of 32 bytes.
func BenchmarkHostCallRandom32(b *testing.B) { benchmarkCalls(b, importRandom, callRandom, benchCalls) }

// BenchmarkHostCallFlat shows that the cost of a call does not grow with their
// number: the median time of an invocation, less that of one with a single call,
// by the number of calls.
func BenchmarkHostCallFlat(b *testing.B) {
	e := newEngine(b, wazero.Config{})
	for _, calls := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprint(calls), func(b *testing.B) {
			one := hosttest.Compile(b, e, hosttest.Prepared(b, loops(importClock, callClock, 1)))
			many := hosttest.Compile(b, e, hosttest.Prepared(b, loops(importClock, callClock, calls)))
			var fixed, all []time.Duration
			for b.Loop() {
				start := time.Now()
				invoke(b, one)
				between := time.Now()
				invoke(b, many)
				fixed, all = append(fixed, between.Sub(start)), append(all, time.Since(between))
			}
			b.ReportMetric(float64((median(all)-median(fixed)).Nanoseconds())/float64(calls-1), "ns/call")
		})
	}
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

// BenchmarkHostCallMemory reports how much the heap grows from 10,000 to
// 1,000,000 calls in one invocation.
func BenchmarkHostCallMemory(b *testing.B) {
	e := newEngine(b, wazero.Config{})
	heap := func(calls int) float64 {
		m := hosttest.Compile(b, e, hosttest.Prepared(b, loops(importClock, callClock, calls)))
		inv := invocation(&counting{Boundary: host.NewRecorder(&hosttest.Discard{}, nil), every: calls / 10})
		if _, err := host.Invoke(context.Background(), m, inv); err != nil {
			b.Fatal(err)
		}
		return float64(inv.Boundary.(*counting).most)
	}
	for b.Loop() {
		small := heap(10_000)
		b.ReportMetric((heap(1_000_000)-small)/(1<<20), "MiB-grown")
	}
}

// counting looks at the heap now and then.
type counting struct {
	host.Boundary
	every, seen int
	most        uint64
}

func (c *counting) HostCall(call *trace.Call) error {
	if c.seen++; c.seen%c.every == 0 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		c.most = max(c.most, m.HeapAlloc)
	}
	return c.Boundary.HostCall(call)
}
