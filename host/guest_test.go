package host_test

import (
	"context"
	"errors"
	"fmt"
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
	"github.com/writrun/writ/host/wazero"
)

// engines are the compiler and the interpreter, which must agree.
func engines(t testing.TB) map[string]host.Engine {
	t.Helper()
	all := map[string]host.Engine{}
	for _, cfg := range []wazero.Config{{}, {Interpreter: true}} {
		e, err := wazero.New(context.Background(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := e.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
		all[e.Name()] = e
	}
	return all
}

const fuelMax = 2_500_000

func invocation(b host.Boundary) host.Invocation {
	return host.Invocation{Lane: "test", Entry: abi.ExportExecute, Input: []byte("{}"), Boundary: b,
		Limits: abi.Limits{Fuel: fuelMax}, ClockStartNanos: 1_000_000_000, ClockStepNanos: 1_000}
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

// runBoth runs a module twice on each engine; every time must leave the same.
func runBoth(t *testing.T, on map[string]host.Engine, src string, change func(*host.Invocation)) ended {
	t.Helper()
	p := hosttest.Prepared(t, src)
	var first *ended
	for name, e := range on {
		m := hosttest.Compile(t, e, p)
		for range 2 {
			got := run(t, m, change)
			if first == nil {
				first = &got
			} else if !reflect.DeepEqual(*first, got) {
				t.Errorf("%s leaves something else (-one +other):\n%s", name, cmp.Diff(*first, got))
			}
		}
	}
	return *first
}

const loop = `(loop $l (br $l))`

// tree is 45 functions of which each calls the next twice.
func tree() string {
	var b strings.Builder
	for i := range 45 {
		fmt.Fprintf(&b, "(func $f%d (call $f%d) (call $f%d))\n", i, i+1, i+1)
	}
	return b.String() + "(func $f45)\n"
}

func TestHostileGuestsAreStopped(t *testing.T) {
	imports := `
  (import "writ_v1" "random_fill" (func $random (param i32 i32) (result i32)))
  (import "writ_v1" "clock_now" (func $clock (result i64)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))`
	execute := func(body string) string { return hosttest.Returning(imports, body, "{}") }
	returns := func(ptr, size string) string {
		return hosttest.Module(imports, `(func (export "writ_execute") (param i32 i32) (result i64)
		  (i64.or (i64.shl (i64.const `+ptr+`) (i64.const 32)) (i64.const `+size+`)))`)
	}
	on := engines(t)
	plain := hosttest.Returning("", "", "{}")
	fuel := trace.StopInfo{Cause: "fuel_exhausted", Limit: "fuel", LimitValue: fuelMax}
	trap := func(cause string) trace.StopInfo { return trace.StopInfo{Cause: cause} }
	for _, tt := range []struct {
		name, src, phase, function string
		want                       trace.StopInfo // without phase, function and detail
	}{
		{"loop in the start function", hosttest.With(plain, `(func $s `+loop+`)(start $s)`), "start", "writ_det_start", fuel},
		{"loop in _initialize", hosttest.With(plain, `(func (export "_initialize") `+loop+`)`), "initialize", "_initialize", fuel},
		{"loop in writ_alloc", hosttest.Only(loop + ` unreachable`), "alloc", "writ_alloc", fuel},
		{"loop in writ_execute", execute(loop), "execute", "writ_execute", fuel},
		{"loop of host calls", execute(`(loop $l (drop (call $clock)) (br $l))`), "execute", "clock_now", fuel},
		{"call tree of 2^45 leaves", hosttest.With(execute(`(call $f0)`), tree()), "execute", "writ_execute", fuel},
		{"unreachable in the start function", hosttest.With(plain, `(func $s unreachable)(start $s)`), "start", "writ_det_start", trap("unreachable")},
		{"unreachable in _initialize", hosttest.With(plain, `(func (export "_initialize") unreachable)`), "initialize", "_initialize", trap("unreachable")},
		{"unreachable", execute(`unreachable`), "execute", "writ_execute", trap("unreachable")},
		{"load past memory", execute(`(drop (i32.load (i32.const -1)))`), "execute", "writ_execute", trap("memory_out_of_bounds")},
		{"fill past memory", execute(`(memory.fill (i32.const 65000) (i32.const 0) (i32.const 1000))`), "execute", "writ_execute", trap("memory_out_of_bounds")},
		{"division by zero", execute(`(drop (i32.div_s (i32.const 1) (local.get $b)))`), "execute", "writ_execute", trap("integer_divide_by_zero")},
		{"division that overflows", execute(`(drop (i32.div_s (i32.const 0x80000000) (i32.sub (local.get $b) (i32.const 1))))`), "execute", "writ_execute", trap("integer_overflow")},
		{"truncation that overflows", execute(`(drop (i32.trunc_f64_s (f64.const 1e300)))`), "execute", "writ_execute", trap("integer_overflow")},
		{"truncation of NaN", execute(`(drop (i32.trunc_f64_s (f64.const nan)))`), "execute", "writ_execute", trap("invalid_conversion")},
		{"call of an empty entry", hosttest.With(execute(`(call_indirect (local.get $b))`), `(table 2 funcref) `), "execute", "writ_execute", trap("invalid_table_access")},
		{"call past the table", hosttest.With(execute(`(call_indirect (i32.const 9))`), `(table 2 funcref) `), "execute", "writ_execute", trap("invalid_table_access")},
		{"call of another type", hosttest.With(execute(`(call_indirect (local.get $b))`), `(table 2 funcref) (elem (i32.const 0) func $answer) `), "execute", "writ_execute", trap("indirect_call_type")},
		{"exit in _initialize", hosttest.With(execute(""), `(func (export "_initialize") (call $exit (i32.const 0)))`), "initialize", "proc_exit", trap("exit")},
		{"exit", execute(`(call $exit (i32.const 3))`), "execute", "proc_exit", trap("exit")},
		{"bad pointer in a host call", execute(`(drop (call $random (i32.const 65530) (i32.const 7)))`), "execute", "random_fill", trap("bad_pointer")},
		{"request put outside memory", hosttest.Only(`(i32.const 65535)`), "alloc", "writ_alloc", trap("bad_pointer")},
		{"no memory for the request", hosttest.Only(`(i32.const 0)`), "alloc", "writ_alloc",
			trace.StopInfo{Cause: "memory", Limit: "memory_bytes", LimitValue: 256 << 20}},
		{"no entry", hosttest.Module("", `(func (export "writ_verify") (param i32 i32) (result i64) (i64.const 0))`), "execute", "writ_execute", trap("missing_export")},
		{"message of no bytes", returns("16", "0"), "execute", "writ_execute", trap("invalid_output_pointer")},
		{"message past memory", returns("65530", "7"), "execute", "writ_execute", trap("invalid_output_pointer")},
		{"result of -1", returns("-1", "0xffffffff"), "execute", "writ_execute", trace.StopInfo{Cause: "output_too_large", Limit: "output_bytes", LimitValue: 16 << 20}},
		{"message far past memory", returns("0xffffffff", "2"), "execute", "writ_execute", trap("invalid_output_pointer")},
		{"message of 4 GiB", returns("16", "0xffffffff"), "execute", "writ_execute", trace.StopInfo{Cause: "output_too_large", Limit: "output_bytes", LimitValue: 16 << 20}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := runBoth(t, on, tt.src, nil)
			if got.Err != "" || got.Outcome.Stop == nil || got.Outcome.Output != nil {
				t.Fatalf("not stopped: %+v", got)
			}
			stop := *got.Outcome.Stop
			stop.Detail = ""
			tt.want.Phase, tt.want.Function = tt.phase, tt.function
			if diff := cmp.Diff(tt.want, stop); diff != "" {
				t.Errorf("stop (-want +got):\n%s", diff)
			}
			if tt.want.Cause == "fuel_exhausted" && got.Outcome.FuelUsed != fuelMax {
				t.Errorf("used %d fuel of %d", got.Outcome.FuelUsed, fuelMax)
			}
		})
	}
}

func TestAStopForFuelIsRecorded(t *testing.T) {
	p := hosttest.Prepared(t, hosttest.Returning("", loop, "{}"))
	for name, e := range engines(t) {
		sink := &hosttest.Sink{}
		if _, err := host.Invoke(t.Context(), hosttest.Compile(t, e, p), invocation(host.NewRecorder(sink, nil))); err != nil {
			t.Fatal(err)
		}
		calls := sink.Calls(t)
		if len(calls) != 1 || calls[0].Fn != abi.CallRefill || calls[0].Result >= 0 || calls[0].Fuel != 0 {
			t.Errorf("%s: record %+v, want the refill that was refused", name, calls)
		}
	}
}

func TestStackOverflowIsStopped(t *testing.T) {
	// How deep calls go is the engine's under this profile, so only the cause is.
	p := hosttest.Prepared(t, hosttest.With(hosttest.Returning("", `(call $deep)`, "{}"), `(func $deep (call $deep))`))
	for name, e := range engines(t) {
		got := run(t, hosttest.Compile(t, e, p), func(i *host.Invocation) { i.Limits.Fuel = 1_000_000_000_000 })
		if got.Outcome.Stop == nil || got.Outcome.Stop.Cause != string(host.StopStackOverflow) {
			t.Errorf("%s: %+v %s", name, got.Outcome.Stop, got.Err)
		}
	}
}

func TestGoodGuests(t *testing.T) {
	p := hosttest.Prepared(t, hosttest.Echo())
	for name, e := range engines(t) {
		m := hosttest.Compile(t, e, p)
		for _, input := range []string{"{}", strings.Repeat("x", 1<<20), " "} {
			got := run(t, m, func(i *host.Invocation) { i.Input = []byte(input) })
			if got.Err != "" || got.Outcome.Stop != nil || string(got.Outcome.Output) != input || got.Outcome.FuelUsed == 0 {
				t.Errorf("%s: echo of %d bytes: %+v %s", name, len(input), got.Outcome.Stop, got.Err)
			}
		}
		got := run(t, m, func(i *host.Invocation) { i.Limits.OutputBytes = 1 })
		if got.Outcome.Stop == nil || got.Outcome.Stop.Cause != string(host.StopOutputBytes) || got.Outcome.Stop.LimitValue != 1 {
			t.Errorf("%s: %+v", name, got.Outcome.Stop)
		}
	}
}

func TestRulesAreEnteredByVerify(t *testing.T) {
	got := runBoth(t, engines(t), hosttest.Returning("", "", `{"status":"PASS"}`), func(i *host.Invocation) { i.Entry = abi.ExportVerify })
	if string(got.Outcome.Output) != `{"status":"PASS"}` {
		t.Errorf("%+v", got)
	}
	got = runBoth(t, engines(t), hosttest.Returning("", "unreachable", "{}"), func(i *host.Invocation) { i.Entry = abi.ExportVerify })
	if s := got.Outcome.Stop; s == nil || s.Phase != "verify" || s.Function != "writ_verify" {
		t.Errorf("%+v", s)
	}
}

func TestMemoryAndTableBombsStayInTheirBudget(t *testing.T) {
	src := hosttest.With(hosttest.Returning("", `
    (drop (memory.grow (i32.const 65535)))
    (block $full (loop $l (br_if $full (i32.eq (memory.grow (i32.const 16)) (i32.const -1))) (br $l)))
    (if (i32.ne (table.grow $t (ref.null func) (i32.const 100000000)) (i32.const -1)) (then unreachable))`, "{}"), `(table $t 1 funcref) (elem declare func $answer)`)
	p, err := prepare.Prepare(hosttest.Wat(t, src), prepare.Options{MemoryBytesMax: 8 << 20})
	if err != nil {
		t.Fatal(err)
	}
	for name, e := range engines(t) {
		got := run(t, hosttest.Compile(t, e, p), func(i *host.Invocation) { i.Limits.Fuel, i.Limits.MemoryBytes = 1_000_000_000, 8<<20 })
		if got.Err != "" || got.Outcome.Stop != nil || got.Outcome.MemoryBytes > 8<<20 || got.Outcome.MemoryBytes < 7<<20 {
			t.Errorf("%s: %d bytes, %+v %s", name, got.Outcome.MemoryBytes, got.Outcome.Stop, got.Err)
		}
	}
}

func TestStdoutFloodIsBounded(t *testing.T) {
	const budget = 100_001 // inside a euro sign
	src := hosttest.Returning(`(import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))`, `
    (drop (memory.grow (i32.const 32)))
    (local.set $a (i32.const 131072))
    (loop $fill (i32.store (local.get $a) (i32.const 0x00ac82e2)) (local.set $a (i32.add (local.get $a) (i32.const 3)))
      (br_if $fill (i32.lt_u (local.get $a) (i32.const 1131072))))
    (i32.store (i32.const 1024) (i32.const 131072)) (i32.store (i32.const 1028) (i32.const 999999))
    (local.set $b (i32.const 100))
    (loop $l (if (call $write (i32.const 1) (i32.const 1024) (i32.const 1) (i32.const 1032)) (then unreachable))
      (br_if $l (local.tee $b (i32.sub (local.get $b) (i32.const 1)))))`, "{}")
	got := runBoth(t, engines(t), src, func(i *host.Invocation) { i.Limits.LogBytes, i.Limits.Fuel = budget, 1_000_000_000 })
	if got.Err != "" || got.Outcome.Stop != nil {
		t.Fatalf("%+v %s", got.Outcome.Stop, got.Err)
	}
	sink := &hosttest.Sink{Events: got.Events}
	total, truncated := 0, false
	for _, c := range sink.Calls(t) {
		line := decodeLine(t, c.Request)
		total += len(line.text)
		truncated = truncated || line.truncated
		if !line.isText && len(line.text) > 0 {
			t.Errorf("a line of %d bytes is cut inside a character", len(line.text))
		}
	}
	if total > budget || total < budget-3 || !truncated {
		t.Errorf("%d bytes kept of a budget of %d, truncation flagged: %v", total, budget, truncated)
	}
}

type line struct {
	text              string
	truncated, isText bool
}

func decodeLine(t *testing.T, item []byte) line {
	t.Helper()
	b, err := trace.Item(item).MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	var fd, size int
	var l line
	rest := string(b)
	if _, err := fmt.Sscanf(rest, "[%d,%d,%t,", &fd, &size, &l.truncated); err != nil {
		t.Fatalf("%s: %v", rest, err)
	}
	text := rest[strings.IndexByte(rest, 'e')+2 : len(rest)-1]
	l.isText = strings.HasPrefix(text, `"`)
	l.text = strings.Trim(text, `"`)
	return l
}

func TestHostCallsAreBounded(t *testing.T) {
	src := hosttest.Returning(`(import "writ_v1" "clock_now" (func $clock (result i64)))`, `(loop $l (drop (call $clock)) (br $l))`, "{}")
	got := runBoth(t, engines(t), src, func(i *host.Invocation) { i.Limits.HostCalls = 300 })
	if s := got.Outcome.Stop; s == nil || s.Cause != string(host.StopHostCalls) || s.LimitValue != 300 || got.Outcome.HostCalls != 300 {
		t.Errorf("%+v %+v", got.Outcome, s)
	}
	// 256 calls end a batch; the rest is in another.
	if len(got.Events) != 2 || got.Events[0].Span != 256 || got.Events[1].Span != 44 {
		t.Errorf("%d events", len(got.Events))
	}
}

func TestAnInstanceIsNotUsedAgain(t *testing.T) {
	// The guest leaves a mark in memory and traps; the next invocation sees none.
	src := hosttest.Returning("", `
    (if (i32.load (i32.const 2048)) (then (return (i64.const 0x1000000001))))
    (i32.store (i32.const 2048) (i32.const 1)) unreachable`, "{}")
	got := runBoth(t, engines(t), src, nil)
	if got.Outcome.Stop == nil || got.Outcome.Stop.Cause != string(host.StopUnreachable) {
		t.Errorf("%+v", got.Outcome)
	}
}

const effectImports = `
  (import "writ_v1" "effect" (func $effect (param i32 i32 i32 i32) (result i64)))
  (import "writ_v1" "clock_now" (func $clock (result i64)))
  (import "writ_v1" "response_read" (func $read (param i64 i32 i32) (result i64)))`

// effectGuest reads the clock, asks for an effect, and reads the clock.
func effectGuest() string {
	return hosttest.Returning(effectImports, `
    (drop (call $clock)) (drop (call $clock))
    (local.set $c (call $effect (i32.const 16) (i32.const 4) (i32.const 16) (i32.const 4)))
    (if (i64.ne (call $read (i64.const 0) (i32.const 2048) (i32.const 100)) (local.get $c)) (then unreachable))
    (drop (call $clock))`, "http")
}

func TestEffectsStandBetweenBatches(t *testing.T) {
	p := hosttest.Prepared(t, effectGuest())
	for name, e := range engines(t) {
		sink := &hosttest.Sink{}
		effect := func(_ context.Context, c host.EffectCall) (host.EffectReply, error) {
			_, err := sink.Append(trace.Event{Kind: trace.KindEffectIntent, Payload: c.Request})
			return host.EffectReply{Response: []byte("pong")}, err
		}
		inv := invocation(host.NewRecorder(sink, effect))
		inv.Effects = true
		out, err := host.Invoke(t.Context(), hosttest.Compile(t, e, p), inv)
		if err != nil || out.Stop != nil || out.Effects != 1 || out.HostCalls != 5 {
			t.Fatalf("%s: %+v %v", name, out, err)
		}
		var order []string
		for _, ev := range sink.Events {
			order = append(order, fmt.Sprint(ev.Kind, " ", ev.Span))
		}
		if diff := cmp.Diff([]string{"HOST_CALLS 2", "EFFECT_INTENT 0", "HOST_CALLS 1"}, order); diff != "" {
			t.Errorf("%s: events (-want +got):\n%s", name, diff)
		}
	}
}

func TestDriverFaultsHarmNobody(t *testing.T) {
	errDoubt := errors.New("in doubt")
	p := hosttest.Prepared(t, effectGuest())
	for name, e := range engines(t) {
		m := hosttest.Compile(t, e, p)
		for _, effect := range []func() (host.EffectReply, error){
			func() (host.EffectReply, error) { panic("driver") },
			func() (host.EffectReply, error) { return host.EffectReply{}, errDoubt },
		} {
			inv := invocation(host.NewRecorder(&hosttest.Sink{}, func(context.Context, host.EffectCall) (host.EffectReply, error) { return effect() }))
			inv.Effects = true
			out, err := host.Invoke(t.Context(), m, inv)
			if err == nil || out.Stop != nil {
				t.Errorf("%s: %+v %v, want an error", name, out, err)
			}
			if !errors.Is(err, errDoubt) && !strings.Contains(err.Error(), "panicked") {
				t.Errorf("%s: %v", name, err)
			}
		}
		if got := run(t, m, nil); got.Err != "" {
			t.Errorf("%s: after a driver's fault: %s", name, got.Err)
		}
	}
}

// panicking is a boundary that panics, as a defect of the host would.
type panicking struct{ host.Boundary }

func (panicking) HostCall(*trace.Call) error { panic("defect") }

func TestHostFaultsAreErrors(t *testing.T) {
	errDisk := errors.New("no space left")
	p := hosttest.Prepared(t, effectGuest())
	for name, e := range engines(t) {
		m := hosttest.Compile(t, e, p)
		_, err := host.Invoke(t.Context(), m, invocation(panicking{}))
		if err == nil || !strings.Contains(err.Error(), "host call clock_now panicked") {
			t.Errorf("%s: a panicking boundary: %v", name, err)
		}
		_, err = host.Invoke(t.Context(), m, invocation(host.NewRecorder(&hosttest.Sink{Err: errDisk}, nil)))
		if !errors.Is(err, errDisk) {
			t.Errorf("%s: a failing record: %v", name, err)
		}
	}
}

func TestCancellationEndsAGuestAndRecordsNothing(t *testing.T) {
	cause := errors.New("interrupted")
	p := hosttest.Prepared(t, hosttest.Returning(effectImports, `(drop (call $clock))`+loop, "{}"))
	for name, e := range engines(t) {
		m := hosttest.Compile(t, e, p)
		ctx, cancel := context.WithCancelCause(t.Context())
		sink := &hosttest.Sink{}
		b := &cancelling{Boundary: host.NewRecorder(sink, nil), cancel: func() { cancel(cause) }}
		inv := invocation(b)
		inv.Limits.Fuel = 10_000_000_000_000
		start := time.Now()
		_, err := host.Invoke(ctx, m, inv)
		if err != cause {
			t.Errorf("%s: %v, want the cause of the cancellation", name, err)
		}
		if len(sink.Events) > 0 {
			t.Errorf("%s: %d events of a batch that is not complete", name, len(sink.Events))
		}
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("%s: the guest went on for %s", name, took)
		}
		if _, err := host.Invoke(ctx, m, invocation(host.NewRecorder(sink, nil))); err != cause {
			t.Errorf("%s: a cancelled context: %v", name, err)
		}
		cancel(nil)
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
	const modules, workers, rounds = 10, 20, 20
	for name, e := range engines(t) {
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
						t.Errorf("%s: %q %v, want %s", name, out.Output, err, want)
					}
				}
			})
		}
		wg.Wait()
	}
}
