package host

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host/trace"
)

func TestEveryHostCallOfTheABIIsImplemented(t *testing.T) {
	functions := Functions()
	if len(functions) != len(abi.HostCalls) {
		t.Fatalf("%d functions, %d in the ABI", len(functions), len(abi.HostCalls))
	}
	for i, f := range functions {
		if f.Call == nil || f.Number != abi.HostCalls[i].Number {
			t.Errorf("function %d of %s is missing or out of place", i, f.Name)
		}
	}
}

func TestClockStartsAtItsStartAndAdvancesAtEachReading(t *testing.T) {
	w := newWorld(t, nil)
	w.want(1_000_001_000, "clock_now null 1000001000", "clock_now")
	w.want(1_000_002_000, "clock_now null 1000002000", "clock_now")
	w.want(0, "clock_time_get 1 1000003000", "clock_time_get", 1, 0, out)
	w.wantMemory(out, "\xb8\xd5\x9a\x3b\x00\x00\x00\x00")
}

func TestClockStandsStillAtTheEndOfTime(t *testing.T) {
	w := newWorld(t, func(i *Invocation) { i.ClockStartNanos = math.MaxInt64 - 1 })
	w.want(math.MaxInt64, "clock_now null 9223372036854775807", "clock_now")
	w.want(math.MaxInt64, "clock_now null 9223372036854775807", "clock_now")
}

func TestInvocationsOutsideTheirBoundsAreRefused(t *testing.T) {
	for name, change := range map[string]func(*Invocation){
		"a clock at zero, at which a Go guest dies": func(i *Invocation) { i.ClockStartNanos = 0 },
		"a clock that runs backwards":               func(i *Invocation) { i.ClockStepNanos = -1 },
		"no boundary":                               func(i *Invocation) { i.Boundary = nil },
		"an entry that is none":                     func(i *Invocation) { i.Entry = "_start" },
		"a limit above its ceiling":                 func(i *Invocation) { i.Limits.Fuel = math.MaxUint64 },
	} {
		inv := Invocation{Entry: abi.ExportVerify, Boundary: &world{t: t}, ClockStartNanos: 1}
		if _, err := newCalls(t.Context(), &inv); err != nil {
			t.Fatal(err)
		}
		change(&inv)
		if _, err := newCalls(t.Context(), &inv); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestRandomFollowsTheVectors(t *testing.T) {
	data, err := os.ReadFile("../guest-abi/vectors/random.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []struct{ Seed, Lane, Bytes, Hash string }
	if err := json.Unmarshal(data, &vectors); err != nil {
		t.Fatal(err)
	}
	for _, v := range vectors {
		seed, err := hex.DecodeString(v.Seed)
		if err != nil {
			t.Fatal(err)
		}
		w := newWorld(t, func(i *Invocation) { i.Seed, i.Lane = [32]byte(seed), trace.Lane(v.Lane) })
		size := len(v.Bytes) / 2
		// One stream for both calls, however it is cut.
		w.want(0, "random_fill 3 0", "random_fill", out, 3)
		w.want(0, "random_get 13 0", "random_get", out+3, 13)
		w.want(0, "random_fill 0 0", "random_fill", out, 0)
		if _, ok := w.do("random_fill", out+16, size-16); !ok {
			t.Fatal("stopped")
		}
		if got := hex.EncodeToString(w.memory[out:][:size]); got != v.Bytes {
			t.Errorf("seed %s lane %s:\n got %s\nwant %s", v.Seed, v.Lane, got, v.Bytes)
		}
		w.want(0, fmt.Sprintf("random_fill %d 0", 100_000-size), "random_fill", out+size, 100_000-size)
		if got := abi.DigestOf(w.memory[out:][:100_000]).Hex(); got != v.Hash {
			t.Errorf("seed %s lane %s: the first 100,000 bytes have digest %s, want %s", v.Seed, v.Lane, got, v.Hash)
		}
	}
}

func TestRandomRefusals(t *testing.T) {
	w := newWorld(t, nil)
	w.want(int64(abi.TooLarge), "random_fill 1048577 -3", "random_fill", out, abi.RandomBytesMax+1)
	w.want(int64(errnoInval), "random_get 1048577 -28", "random_get", out, abi.RandomBytesMax+1)
	w.wantStop(StopBadPointer, "random_fill", outside, 8)
	w.wantStop(StopBadPointer, "random_get", -1, 8)
}

func TestEffect(t *testing.T) {
	var seen []EffectCall
	w := newWorld(t, func(i *Invocation) { i.Effects, i.Limits.Effects = true, 3 })
	w.effects = func(c EffectCall) (EffectReply, error) {
		seen = append(seen, c)
		if c.Driver == "down" {
			return EffectReply{Code: abi.Unavailable}, nil
		}
		return EffectReply{Response: []byte("pong " + string(c.Request))}, nil
	}
	http, down, ping := w.text("http"), w.text("down"), w.text("ping")
	w.want(int64(abi.NotFound), "", "response_read", int64(0), out, 9)
	// A performed effect has its own events; nothing is recorded here.
	w.want(9, "", "effect", http, ping)
	w.want(4, "", "response_read", int64(0), out, 4)
	w.wantMemory(out, "pong")
	w.want(4, "", "response_read", int64(5), out, 100)
	w.wantMemory(out, "ping")
	w.want(0, "", "response_read", int64(9), out, 100)
	w.want(int64(abi.Invalid), "", "response_read", int64(10), out, 1)
	w.want(int64(abi.Invalid), "", "response_read", int64(-1), out, 1)
	w.want(int64(abi.TooLarge), "", "response_read", int64(0), out, big)
	w.want(int64(abi.Unavailable), "", "effect", down, ping)
	w.want(int64(abi.NotFound), "", "response_read", int64(0), out, 9)
	w.want(9, "", "effect", http, ping)
	w.want(int64(abi.BudgetExhausted), `effect ["http","ping"] -2`, "effect", http, ping)
	w.wantStop(StopBadPointer, "effect", outside, 8, ping)
	w.wantStop(StopBadPointer, "effect", http, outside, 8)
	w.wantStop(StopBadPointer, "response_read", int64(0), outside, 8)
	for i, c := range seen {
		if c.Ordinal != uint32(i) || string(c.Request) != "ping" || c.Fuel == 0 {
			t.Errorf("effect %d: %+v", i, c)
		}
	}
	if len(seen) != 3 {
		t.Errorf("%d effects performed, want 3", len(seen))
	}
}

func TestEffectRefusedByTheHostIsRecordedAsACall(t *testing.T) {
	w := newWorld(t, nil)
	w.want(int64(abi.NotGranted), `effect ["http","ping"] -1`, "effect", w.text("http"), w.text("ping"))
	w.want(int64(abi.Invalid), `effect [{"hex":"ff"},""] -5`, "effect", w.text("\xff"), w.text(""))
	w.want(int64(abi.TooLarge), `effect [65,0] -3`, "effect", out, 65, out, 0)
	w.want(int64(abi.TooLarge), `effect [4,67108864] -3`, "effect", w.text("http"), out, big)
	long := strings.Repeat("x", 65)
	w.want(int64(abi.NotGranted), `effect ["http",[65,{"hex":"`+abi.DigestOf([]byte(long)).Hex()+`"}]] -1`, "effect", w.text("http"), w.text(long))
}

func TestEffectFaultsEndTheInvocation(t *testing.T) {
	broken := errors.New("disk full")
	for name, effects := range map[string]func(EffectCall) (EffectReply, error){
		"a driver that panics": func(EffectCall) (EffectReply, error) { panic("oh") },
		"a record that fails":  func(EffectCall) (EffectReply, error) { return EffectReply{}, broken },
		"a code that is none":  func(EffectCall) (EffectReply, error) { return EffectReply{Code: 7}, nil },
		"a response beyond all bounds": func(EffectCall) (EffectReply, error) {
			return EffectReply{Response: make([]byte, responseBytesMax+1)}, nil
		},
	} {
		w := newWorld(t, func(i *Invocation) { i.Effects = true })
		w.effects = effects
		if _, ok := w.do("effect", w.text("http"), w.text("ping")); ok || w.calls.fault == nil || w.calls.stop != nil {
			t.Errorf("%s: fault %v, stop %+v", name, w.calls.fault, w.calls.stop)
		}
		if strings.HasPrefix(name, "a record") && !errors.Is(w.calls.fault, broken) {
			t.Errorf("%s: cause is lost: %v", name, w.calls.fault)
		}
	}
}

func TestLog(t *testing.T) {
	w := newWorld(t, func(i *Invocation) { i.Limits.LogBytes = 16 })
	w.want(0, `log [1,5,false,"hello"] 0`, "log", 1, w.text("hello"))
	w.want(0, `log [0,0,false,""] 0`, "log", 0, w.text(""))
	w.want(0, `log [3,2,false,{"hex":"ff61"}] 0`, "log", 3, w.text("\xffa"))
	w.want(int64(abi.Invalid), `log [4,1] -5`, "log", 4, w.text("x"))
	w.want(int64(abi.Invalid), `log [-1,1] -5`, "log", -1, w.text("x"))
	w.want(int64(abi.TooLarge), `log [1,67108864] -3`, "log", 1, out, big)
	w.wantStop(StopBadPointer, "log", 1, outside, 8)
	// Eight bytes are left; the third euro sign would be cut in two.
	w.want(0, `log [1,1,false,"."] 0`, "log", 1, w.text("."))
	w.want(int64(abi.BudgetExhausted), `log [1,10,true,".€€"] -2`, "log", 1, w.text(".€€€"))
	w.want(int64(abi.BudgetExhausted), `log [1,1,true,""] -2`, "log", 1, w.text("x"))
}

func TestLogKeepsTheBeginningOfALongLine(t *testing.T) {
	w := newWorld(t, nil)
	line := strings.Repeat("x", logLineBytesMax-1) + "€"
	w.want(0, `log [1,65538,true,"`+line[:logLineBytesMax-1]+`"] 0`, "log", 1, w.text(line))
}

func TestHostCallLimit(t *testing.T) {
	w := newWorld(t, func(i *Invocation) { i.Limits.HostCalls = 2 })
	w.want(1_000_001_000, "clock_now null 1000001000", "clock_now")
	w.want(int64(abi.NotFound), "", "response_read", int64(0), out, 1)
	w.wantStop(StopHostCalls, "clock_now")
	if w.calls.count != 2 {
		t.Errorf("%d calls are counted, want the 2 answered", w.calls.count)
	}
}

func TestFuel(t *testing.T) {
	w := newWorld(t, func(i *Invocation) { i.Limits.Fuel = 3*CallFuel + 2 })
	w.want(1_000_001_000, "clock_now null 1000001000", "clock_now")
	if got := w.calls.remaining(); got != 2*CallFuel+2 {
		t.Errorf("%d left, want the fixed cost taken", got)
	}
	w.want(0, "random_fill 65 0", "random_fill", out, 65) // 2 units for 65 bytes
	if got := w.calls.remaining(); got != CallFuel {
		t.Errorf("%d left, want %d", got, CallFuel)
	}
	w.want(1_000_002_000, "clock_now null 1000002000", "clock_now")
	w.record = nil
	if _, ok := w.do("clock_now"); ok || w.calls.stop == nil {
		t.Fatal("a call without fuel was answered")
	}
	if got := *w.calls.stop; got.Cause != string(StopFuel) || got.Limit != "fuel" || got.LimitValue != 3*CallFuel+2 || got.Function != "clock_now" {
		t.Errorf("stop %+v", got)
	}
	if len(w.record) != 1 || w.record[0] != "refill null -64" {
		t.Errorf("record %q, want the stop with what was lacking", w.record)
	}
	if got := w.calls.remaining(); got != 0 {
		t.Errorf("%d left after the end", got)
	}
}

func TestRefill(t *testing.T) {
	for _, tt := range []struct {
		name        string
		held        int64
		rest        uint64
		ok          bool
		wantHeld    int64
		wantRest    uint64
		wantLacking string
	}{
		{"one slice", -5, 3_000_000, true, 999_995, 2_000_000, ""},
		{"as many as needed", -1_000_001, 3_000_000, true, 999_999, 1_000_000, ""},
		{"what is left of the last", -5, 7, true, 2, 0, ""},
		{"exactly enough", -5, 5, true, 0, 0, ""},
		{"not enough", -5, 4, false, -1, 0, "refill null -1"},
		{"called without need", 3, 9, true, 3, 9, ""},
	} {
		w := newWorld(t, nil)
		w.calls.fuel.Set(uint64(tt.held))
		w.calls.rest = tt.rest
		ok := w.calls.Refill()
		if ok != tt.ok || int64(w.calls.fuel.Get()) != tt.wantHeld || w.calls.rest != tt.wantRest || strings.Join(w.record, "") != tt.wantLacking {
			t.Errorf("%s: %v, held %d, rest %d, record %q", tt.name, ok, int64(w.calls.fuel.Get()), w.calls.rest, w.record)
		}
	}
}
