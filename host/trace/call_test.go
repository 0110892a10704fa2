package trace

import (
	"bytes"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func someCalls() []Call {
	return []Call{
		{Fn: 1, Result: 0, Fuel: 0},
		{Fn: 23, Request: AppendUint(nil, 23), Result: 23, Fuel: 24},
		{Fn: 24, Request: AppendText(nil, "sbom/é"), Result: -1, Fuel: 255},
		{Fn: 255, Request: AppendBytes(nil, []byte{0xff, 0}), Result: math.MinInt64, Fuel: math.MaxUint64},
		{Fn: 141, Request: AppendInt(AppendArrayHead(nil, 1), -25), Result: math.MaxInt64, Fuel: 1 << 32},
		{Fn: math.MaxUint16, Request: AppendInt(nil, math.MinInt64), Result: -257, Fuel: 65536},
	}
}

func TestAppendCallIsWhatTheLibraryWrites(t *testing.T) {
	for _, c := range someCalls() {
		want, err := encoding().Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		if got := AppendCall(nil, &c); !bytes.Equal(got, want) {
			t.Errorf("AppendCall(%+v) = %x, want %x", c, got, want)
		}
	}
}

func TestHostCallsRoundTrip(t *testing.T) {
	want := HostCalls{Calls: someCalls()}
	b, err := EncodePayload(want)
	if err != nil {
		t.Fatal(err)
	}
	var got HostCalls
	if err := DecodePayload(b, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAppendCallDoesNotAllocate(t *testing.T) {
	buf := make([]byte, 0, 1024)
	c := someCalls()[3]
	if n := testing.AllocsPerRun(100, func() { buf = AppendCall(buf[:0], &c) }); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

func TestHostCallsRefusals(t *testing.T) {
	one := AppendCall(nil, &Call{Fn: 1})
	tests := map[string][]byte{
		"no calls":         AppendCallsHead(nil, 0),
		"too many calls":   append(AppendCallsHead(nil, 257), bytes.Repeat(one, 257)...),
		"cut":              append(AppendCallsHead(nil, 2), one...),
		"trailing":         append(append(AppendCallsHead(nil, 1), one...), 0),
		"three members":    {0x81, 0x83, 1, 0xf6, 0},
		"long number":      {0x81, 0x84, 0x18, 1, 0xf6, 0, 0},
		"negative fuel":    {0x81, 0x84, 1, 0xf6, 0, 0x20},
		"big function":     {0x81, 0x84, 0x1a, 0, 1, 0, 0, 0xf6, 0, 0},
		"request is float": {0x81, 0x84, 1, 0xf9, 0, 0, 0, 0},
		"request is a tag": {0x81, 0x84, 1, 0xc0, 0x60, 0, 0},
		"not an array":     {0xa0},
		"empty":            nil,
	}
	for name, b := range tests {
		var h HostCalls
		if err := DecodePayload(b, &h); err == nil {
			t.Errorf("%s: accepted %x", name, b)
		}
	}
}
