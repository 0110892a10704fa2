//go:build cgo && !writ_nowasmtime

package wasmtime_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host"
	"github.com/writrun/writ/host/hosttest"
	"github.com/writrun/writ/host/prepare"
	"github.com/writrun/writ/host/trace"
	"github.com/writrun/writ/host/wasmtime"
	"github.com/writrun/writ/host/wazero"
)

// pair is the engine under test and the one it is compared with.
type pair struct {
	wasmtime *wasmtime.Engine
	wazero   *wazero.Engine
}

func newPair(t testing.TB) pair {
	t.Helper()
	other, err := wazero.New(context.Background(), wazero.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := other.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return pair{newEngine(t, wasmtime.Config{}), other}
}

// ended is all that an invocation leaves.
type ended struct {
	Outcome host.Outcome
	Err     string
	Events  []trace.Event
}

func run(t testing.TB, m host.Compiled, change func(*host.Invocation)) ended {
	t.Helper()
	sink := &hosttest.Sink{Lane: "test"}
	inv := invocation(host.NewRecorder(sink, nil))
	inv.Limits.Fuel = 2_500_000
	if change != nil {
		change(&inv)
	}
	out, err := host.Invoke(t.Context(), m, inv)
	e := ended{Outcome: out, Events: sink.Events}
	if err != nil {
		e.Err = err.Error()
	}
	return e
}

// runBoth runs p on both engines, which must leave the same, and returns it.
func (both pair) runBoth(t *testing.T, p *prepare.Prepared, change func(*host.Invocation)) ended {
	t.Helper()
	want := run(t, hosttest.Compile(t, both.wazero, p), change)
	m := hosttest.Compile(t, both.wasmtime, p)
	for range 2 {
		if got := run(t, m, change); !reflect.DeepEqual(want, got) {
			t.Errorf("the engines leave different things (-wazero +wasmtime):\n%s", cmp.Diff(want, got))
		}
	}
	return want
}

const loop = `(loop $l (br $l))`

func TestStopsAndFuelAreThoseOfTheOtherEngine(t *testing.T) {
	imports := `
  (import "writ_v1" "random_fill" (func $random (param i32 i32) (result i32)))
  (import "writ_v1" "clock_now" (func $clock (result i64)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))`
	execute := func(body string) string { return hosttest.Returning(imports, body, "{}") }
	table := func(body string) string {
		return hosttest.With(execute(body), `(table $t 2 funcref) (elem $e funcref (ref.func $answer)) (data $d "12345678")`)
	}
	both := newPair(t)
	for _, tt := range []struct {
		name, src string
		want      host.StopCause // "" for none
	}{
		{"nothing", execute(``), ""},
		{"unreachable", execute(`unreachable`), host.StopUnreachable},
		{"unreachable after a loop", execute(`(local.set $a (i32.const 300000))
		    (loop $l (br_if $l (local.tee $a (i32.sub (local.get $a) (i32.const 1))))) unreachable`), host.StopUnreachable},
		{"unreachable in the start function", hosttest.With(execute(""), `(func $s unreachable)(start $s)`), host.StopUnreachable},
		{"load past memory", execute(`(drop (i32.load (i32.const -1)))`), host.StopMemoryBounds},
		{"load past memory by its offset", execute(`(drop (i32.load offset=4294967295 (i32.const -1)))`), host.StopMemoryBounds},
		{"store past memory", execute(`(i64.store (i32.const 65529) (i64.const 0))`), host.StopMemoryBounds},
		{"fill past memory", execute(`(memory.fill (i32.const 65000) (i32.const 0) (i32.const 1000))`), host.StopMemoryBounds},
		{"copy past memory", execute(`(memory.copy (i32.const 0) (i32.const 65000) (i32.const 1000))`), host.StopMemoryBounds},
		{"init past memory", table(`(memory.init $d (i32.const 65535) (i32.const 0) (i32.const 8))`), host.StopMemoryBounds},
		{"init past a segment", table(`(memory.init $d (i32.const 0) (i32.const 1) (i32.const 8))`), host.StopMemoryBounds},
		{"init from a dropped segment", table(`(data.drop $d) (memory.init $d (i32.const 0) (i32.const 0) (i32.const 8))`), host.StopMemoryBounds},
		{"table.get past the table", table(`(drop (table.get $t (i32.const 2)))`), host.StopTableAccess},
		{"table.set past the table", table(`(table.set $t (i32.const -1) (ref.null func))`), host.StopTableAccess},
		{"table.fill past the table", table(`(table.fill $t (i32.const 1) (ref.null func) (i32.const 2))`), host.StopTableAccess},
		{"table.copy past the table", table(`(table.copy $t $t (i32.const 0) (i32.const 1) (i32.const 2))`), host.StopTableAccess},
		{"table.init past the table", table(`(table.init $t $e (i32.const 2) (i32.const 0) (i32.const 1))`), host.StopTableAccess},
		{"call of an empty entry", table(`(call_indirect $t (local.get $b))`), host.StopTableAccess},
		{"call past the table", table(`(call_indirect $t (i32.const 9))`), host.StopTableAccess},
		{"call of another type", table(`(table.set $t (i32.const 0) (ref.func $answer)) (call_indirect $t (i32.const 0))`), host.StopIndirectCallType},
		{"division by zero", execute(`(drop (i32.div_s (i32.const 1) (local.get $b)))`), host.StopDivideByZero},
		{"remainder by zero", execute(`(drop (i64.rem_u (i64.const 1) (local.get $c)))`), host.StopDivideByZero},
		{"division that overflows", execute(`(drop (i64.div_s (i64.const 0x8000000000000000) (i64.sub (local.get $c) (i64.const 1))))`), host.StopIntegerOverflow},
		{"remainder that does not", execute(`(drop (i64.rem_s (i64.const 0x8000000000000000) (i64.sub (local.get $c) (i64.const 1))))`), ""},
		{"truncation that overflows", execute(`(drop (i64.trunc_f64_u (f64.const 1e300)))`), host.StopIntegerOverflow},
		{"truncation of NaN", execute(`(drop (i32.trunc_f32_s (f32.const nan)))`), host.StopInvalidConversion},
		{"truncation that saturates", execute(`(drop (i32.trunc_sat_f32_s (f32.const nan)))`), ""},
		{"recursion", hosttest.With(execute(`(call $deep)`), `(func $deep (call $deep))`), host.StopStackOverflow},
		{"endless loop", execute(loop), host.StopFuel},
		{"loop of host calls", execute(`(loop $l (drop (call $clock)) (br $l))`), host.StopFuel},
		{"exit", execute(`(call $exit (i32.const 3))`), host.StopExit},
		{"exit in _initialize", hosttest.With(execute(""), `(func (export "_initialize") (call $exit (i32.const 0)))`), host.StopExit},
		{"bad pointer in a host call", execute(`(drop (call $random (i32.const 65530) (i32.const 7)))`), host.StopBadPointer},
		{"no entry", hosttest.Module("", `(func (export "writ_verify") (param i32 i32) (result i64) (i64.const 0))`), host.StopMissingExport},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := both.runBoth(t, hosttest.Prepared(t, tt.src), nil)
			cause := ""
			if got.Outcome.Stop != nil {
				cause = got.Outcome.Stop.Cause
			}
			if got.Err != "" || cause != string(tt.want) {
				t.Errorf("stop %+v, error %q, want cause %q", got.Outcome.Stop, got.Err, tt.want)
			}
		})
	}
}

func TestCallsEndAtTheBudgetOfTheProfile(t *testing.T) {
	both := newPair(t)
	repeat := func(n int, s string) string { return strings.Repeat(s+" ", n) }
	gets := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "(local.get %d) ", i)
		}
		return b.String()
	}
	entry := func(call string) string { return hosttest.Returning("", call, "{}") }
	for name, src := range map[string]string{
		"no values":     hosttest.With(entry(`(call $f)`), `(func $f (call $f) (call $f))`),
		"64 parameters": hosttest.With(entry(repeat(64, `(i64.const 1)`)+`(call $f)`), `(func $f (param `+repeat(64, "i64")+`) `+gets(64)+` (call $f) `+gets(64)+` (call $f))`),
		"64 vectors": hosttest.With(entry(repeat(64, `(v128.const i64x2 1 2)`)+`(call $f)`),
			`(func $f (param `+repeat(64, "v128")+`) `+gets(64)+` (call $f) `+gets(64)+` (call $f))`),
		"16 results": hosttest.With(entry(`(call $f) `+repeat(16, "drop")), `(func $f (result `+repeat(16, "i64")+`) (call $f) (call $f) `+repeat(16, "drop")+`)`),
		"6 values kept over a call": hosttest.With(entry(`(i64.const 1) (i64.const 2) (i64.const 3) (i64.const 4) (i64.const 5) (i64.const 6) (call $f) (drop)`),
			`(func $f (param i64 i64 i64 i64 i64 i64) (result i64) `+gets(6)+` (call $f) `+gets(6)+` (i64.add) (i64.add) (i64.add) (i64.add) (i64.add) (i64.add))`),
		"indirect": hosttest.With(entry(`(i64.const 1) (call $f) (drop)`), `(table 1 funcref) (elem (i32.const 0) func $f) (type $t (func (param i64) (result i64)))
		  (func $f (param i64) (result i64) (i64.add (local.get 0) (call_indirect (type $t) (local.get 0) (i32.const 0))))`),
	} {
		for _, profile := range []string{prepare.ProfilePortable, prepare.ProfileDeep} {
			t.Run(profile+" "+name, func(t *testing.T) {
				p, err := prepare.Prepare(hosttest.Wat(t, src), prepare.Options{Profile: profile})
				if err != nil {
					t.Fatal(err)
				}
				got := both.runBoth(t, p, func(i *host.Invocation) { i.Limits.Fuel = 10_000_000_000 })
				if s := got.Outcome.Stop; s == nil || s.Cause != string(host.StopStackOverflow) || s.Limit == "" {
					t.Errorf("stop %+v, error %q, want the budget's end", s, got.Err)
				}
			})
		}
	}
}

func TestGrowthStaysInItsBudget(t *testing.T) {
	both := newPair(t)
	fail := func(grow string) string {
		return `(if (i32.ne ` + grow + ` (i32.const -1)) (then unreachable))`
	}
	const declare = `(table $t 1 funcref) (elem declare func $answer)`
	for _, tt := range []struct {
		name, body string
		pages      uint64
	}{
		{"table by 2^32-1", fail(`(table.grow $t (ref.null func) (i32.const -1))`), 1},
		{"table by 2^31", fail(`(table.grow $t (ref.func $answer) (i32.const 0x80000000))`), 1},
		{"table past its bound by one", fail(`(table.grow $t (ref.null func) (i32.const 131072))`), 1},
		{"table to its bound", `(if (i32.ne (table.grow $t (ref.null func) (i32.const 131071)) (i32.const 1)) (then unreachable))`, 1},
		{"memory by 65,535 pages", fail(`(memory.grow (i32.const 65535))`), 1},
		{"memory by 2^32-1 pages", fail(`(memory.grow (i32.const -1))`), 1},
		{"memory past its budget by one", fail(`(memory.grow (i32.const 128))`), 1},
		{"memory to its budget", `(if (i32.ne (memory.grow (i32.const 127)) (i32.const 1)) (then unreachable)) (i32.store (i32.const 8388604) (i32.const 1))`, 128},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := prepare.Prepare(hosttest.Wat(t, hosttest.With(hosttest.Returning("", tt.body, "{}"), declare)), prepare.Options{MemoryBytesMax: 8 << 20})
			if err != nil {
				t.Fatal(err)
			}
			got := both.runBoth(t, p, func(i *host.Invocation) { i.Limits.Fuel, i.Limits.MemoryBytes = 10_000_000_000, 8<<20 })
			if got.Err != "" || got.Outcome.Stop != nil || got.Outcome.MemoryBytes != tt.pages*abi.PageBytes {
				t.Errorf("%d bytes, stop %+v, error %q", got.Outcome.MemoryBytes, got.Outcome.Stop, got.Err)
			}
		})
	}
}

func TestRecordsAreThoseOfTheOtherEngine(t *testing.T) {
	both := newPair(t)
	bill := `{"bomFormat":"CycloneDX","specVersion":"1.5","components":[{"type":"library","name":"b","version":"v1.0.0","purl":"pkg:golang/b@v1.0.0"}]}`
	digest, size := abi.DigestOf([]byte(bill)), int64(len(bill))
	wasi := hosttest.Returning(`
  (import "writ_v1" "clock_now" (func $clock (result i64)))
  (import "writ_v1" "random_fill" (func $random (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "random_get" (func $get (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "clock_time_get" (func $time (param i32 i64 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_seek" (func $seek (param i32 i64 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))`, `
    (drop (call $clock)) (drop (call $random (i32.const 2048) (i32.const 100))) (drop (call $get (i32.const 3000) (i32.const 9)))
    (drop (call $time (i32.const 1) (i64.const -1) (i32.const 4000)))
    (drop (call $seek (i32.const -1) (i64.const 0x8000000000000000) (i32.const 2) (i32.const 4000)))
    (i32.store (i32.const 1024) (i32.const 2048)) (i32.store (i32.const 1028) (i32.const 60))
    (drop (call $write (i32.const 1) (i32.const 1024) (i32.const 1) (i32.const 1032)))`, "{}")
	for _, tt := range []struct {
		name   string
		wasm   func() []byte
		calls  int // at least
		change func(*host.Invocation)
	}{
		{"echo of 1 MiB", func() []byte { return hosttest.Wat(t, hosttest.Echo()) }, 0,
			func(i *host.Invocation) { i.Input = []byte(strings.Repeat("x", 1<<20)) }},
		{"WASI and clocks", func() []byte { return hosttest.Wat(t, wasi) }, 6, nil},
		{"a Go guest", func() []byte { return hosttest.Guest(t, "inventory") }, 10, func(i *host.Invocation) {
			i.Lane, i.Limits.Fuel = "inventory", 0
			i.Datasets = []host.Dataset{{
				Handle:  abi.DatasetHandle{ID: "sbom", Size: size, Digest: digest},
				Listing: abi.DatasetListing{Files: []abi.DatasetFile{{Size: size, Digest: digest}}},
				Open:    func(abi.Digest) (io.ReaderAt, int64, error) { return strings.NewReader(bill), size, nil },
			}}
			i.Input = fmt.Appendf(nil, `{"abi":1,"flow_id":"f","step":{"id":"inventory","role":"retrieval","config":{}},`+
				`"inputs":{},"datasets":[{"id":"sbom","size":%d,"digest":%q,"folder":false}]}`, size, digest)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := prepare.Prepare(tt.wasm(), prepare.Options{})
			if err != nil {
				t.Fatal(err)
			}
			got := both.runBoth(t, p, tt.change)
			if got.Err != "" || got.Outcome.Stop != nil || got.Outcome.HostCalls < uint64(tt.calls) {
				t.Errorf("%d calls, stop %+v, error %q, output %.300s", got.Outcome.HostCalls, got.Outcome.Stop, got.Err, got.Outcome.Output)
			}
		})
	}
}

const effectImports = `
  (import "writ_v1" "effect" (func $effect (param i32 i32 i32 i32) (result i64)))
  (import "writ_v1" "clock_now" (func $clock (result i64)))`

// panicking is a boundary that panics, as a defect of the host would.
type panicking struct{ host.Boundary }

func (panicking) HostCall(*trace.Call) error { panic("defect") }

// faulty is a boundary that uses what is not there, so that the processor faults
// while a guest is below on the stack.
type faulty struct {
	host.Boundary
	nothing *int
}

func (f faulty) HostCall(*trace.Call) error {
	*f.nothing = 1
	return nil
}

func TestFaultsOfTheHostAreErrors(t *testing.T) {
	errDoubt, errDisk := errors.New("in doubt"), errors.New("no space left")
	e := newEngine(t, wasmtime.Config{})
	m := hosttest.Compile(t, e, hosttest.Prepared(t, hosttest.Returning(effectImports, `
    (drop (call $clock)) (drop (call $effect (i32.const 16) (i32.const 4) (i32.const 16) (i32.const 4)))`, "http")))
	driver := func(f func() (host.EffectReply, error)) host.Boundary {
		return host.NewRecorder(&hosttest.Sink{}, func(context.Context, host.EffectCall) (host.EffectReply, error) { return f() })
	}
	for _, tt := range []struct {
		name     string
		boundary host.Boundary
		want     string
		is       error
	}{
		{"a driver panics", driver(func() (host.EffectReply, error) { panic("driver") }), "driver panicked", nil},
		{"a driver fails", driver(func() (host.EffectReply, error) { return host.EffectReply{}, errDoubt }), "in doubt", errDoubt},
		{"the record panics", panicking{}, "host call clock_now panicked", nil},
		{"the record faults", faulty{}, "host call clock_now panicked", nil},
		{"the record fails", host.NewRecorder(&hosttest.Sink{Err: errDisk}, nil), "no space left", errDisk},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inv := invocation(tt.boundary)
			inv.Effects = true
			out, err := host.Invoke(t.Context(), m, inv)
			if err == nil || out.Stop != nil || !strings.Contains(err.Error(), tt.want) || tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("%+v %v, want an error with %q", out, err, tt.want)
			}
			if got := run(t, m, nil); got.Err != "" {
				t.Errorf("the next invocation: %s", got.Err)
			}
		})
	}
}

func TestCancellationEndsAGuestAndRecordsNothing(t *testing.T) {
	cause := errors.New("interrupted")
	m := hosttest.Compile(t, newEngine(t, wasmtime.Config{}), hosttest.Prepared(t, hosttest.Returning(effectImports, `(drop (call $clock))`+loop, "{}")))
	ctx, cancel := context.WithCancelCause(t.Context())
	sink := &hosttest.Sink{}
	inv := invocation(&cancelling{Boundary: host.NewRecorder(sink, nil), cancel: func() { cancel(cause) }})
	inv.Limits.Fuel = 10_000_000_000_000
	start := time.Now()
	if _, err := host.Invoke(ctx, m, inv); err != cause {
		t.Errorf("%v, want the cause of the cancellation", err)
	}
	if took := time.Since(start); took > 10*time.Second || len(sink.Events) > 0 {
		t.Errorf("the guest went on for %s and left %d events", took, len(sink.Events))
	}
}

// cancelling cancels at the first call.
type cancelling struct {
	host.Boundary
	cancel func()
}

func (c *cancelling) HostCall(call *trace.Call) error {
	c.cancel()
	return c.Boundary.HostCall(call)
}

func TestManyGuestsAtOnce(t *testing.T) {
	const modules, workers, rounds = 5, 20, 20
	e := newEngine(t, wasmtime.Config{})
	var compiled []host.Compiled
	for i := range modules {
		compiled = append(compiled, hosttest.Compile(t, e, hosttest.Prepared(t,
			hosttest.Returning(`(import "writ_v1" "random_fill" (func $random (param i32 i32) (result i32)))`,
				`(drop (call $random (i32.const 2048) (i32.const 64)))`, fmt.Sprintf(`{"module":%d}`, i)))))
	}
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for r := range rounds {
				n := (w + r) % modules
				out, err := host.Invoke(context.Background(), compiled[n], invocation(host.NewRecorder(&hosttest.Sink{}, nil)))
				if want := fmt.Sprintf(`{"module":%d}`, n); err != nil || string(out.Output) != want {
					t.Errorf("%q %v, want %s", out.Output, err, want)
				}
			}
		})
	}
	wg.Wait()
}
