package trace

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/writrun/writ/guest-abi/abi"
)

// kinds are all kinds with their numbers, which records hold for ever.
var kinds = map[Kind]string{
	1: "RUN_START", 2: "DATASET_PINNED", 3: "STEP_START", 4: "STEP_END", 5: "STEP_FAILED", 6: "STEP_SKIPPED", 7: "HOST_CALLS",
	8: "EFFECT_INTENT", 9: "EFFECT_OUTCOME", 10: "VERIFICATION_START", 11: "VERIFICATION_RESULT", 12: "VERIFICATION_ARBITRATION",
	13: "ENTROPY_EXHAUSTED", 14: "SEMANTIC_VIOLATION", 15: "EXECUTION_END",
	64: "ADMISSION", 65: "AUTHORITY_DECISION", 66: "DECISION_TRACE", 67: "EXECUTION_INTERRUPTED", 68: "EFFECT_ATTEMPT", 69: "RUN_END",
}

func TestKinds(t *testing.T) {
	for k := range 256 {
		kind, want := Kind(k), kinds[Kind(k)]
		if kind.String() != want || kind.Core() != (want != "" && k < 64) || (NewPayload(kind) == nil) != (want == "") {
			t.Errorf("kind %d: name %q, core %v, want %q", k, kind, kind.Core(), want)
		}
	}
}

func TestCauses(t *testing.T) {
	var names []string
	for c := range 256 {
		if name := Cause(c).String(); name != "" {
			names = append(names, fmt.Sprintf("%d %s", c, name))
		}
	}
	if got := strings.Join(names, " "); got != "1 agent 2 tool 3 dataset 4 environment 5 human 6 policy 7 runtime" {
		t.Error(got)
	}
}

func TestLanes(t *testing.T) {
	for s, want := range map[string]bool{
		"run": true, "control": true, "advisories": true, "known@advisories": true, "known@flow": true,
		"arbitration@advisories": true, "arbitration@flow": true,
		"": false, "flow": false, "arbitration": false, "Run": false, "known@": false, "@flow": false, "known@run": false,
		"arbitration@control": false, "arbitration@": false, "a@b@c": false, "run@flow": false, "a/b": false, "a\n": false,
		strings.Repeat("a", 63): true, strings.Repeat("a", 64): false,
	} {
		if _, err := ParseLane(s); (err == nil) != want {
			t.Errorf("lane %q: %v, want accepted: %v", s, err, want)
		}
	}
	for _, lane := range []Lane{StepLane("a"), RuleLane("r", "a"), RuleLane("r", TargetFlow), ArbitrationLane("a"), ArbitrationLane(TargetFlow)} {
		if _, err := ParseLane(string(lane)); err != nil {
			t.Error(err)
		}
	}
}

func TestAddresses(t *testing.T) {
	for s, want := range map[string]bool{
		"run/0": true, "advisories/17": true, "known@flow/1099511627775": true,
		"run": false, "run/": false, "run/-1": false, "run/+1": false, "run/01": false, "run/1/2": false, "/1": false,
		"run/1099511627776": false, "run/18446744073709551616": false, "run/ 1": false,
	} {
		a, err := ParseAddress(s)
		if (err == nil) != want || err == nil && a.String() != s {
			t.Errorf("address %q: %v, %v, want accepted: %v", s, a, err, want)
		}
	}
}

func header() Header {
	return Header{Lane: "advisories", Seq: 17, Kind: KindStepEnd, Cause: CauseAgent, Attempt: 1, AtNanos: -5, PayloadSize: 300,
		Commitment: sha256.Sum256([]byte("c"))}
}

// TestHeaderBytes fixes the encoding: these bytes are hashed into trace roots.
func TestHeaderBytes(t *testing.T) {
	sum := header().Commitment
	want := "a8016a61647669736f72696573021103040401050106240719012c085820" + hex.EncodeToString(sum[:])
	if got := hex.EncodeToString(header().Encode()); got != want {
		t.Errorf("header encodes as\n%s, want\n%s", got, want)
	}
	library, err := encoding().Marshal(header())
	if err != nil || !bytes.Equal(library, header().Encode()) {
		t.Errorf("the library encodes it as %x, %v", library, err)
	}
	got, err := DecodeHeader(header().Encode())
	if err != nil || got != header() {
		t.Errorf("decoded %+v, %v", got, err)
	}
}

func TestDecodeHeaderRefusals(t *testing.T) {
	change := func(f func(*Header)) []byte {
		h := header()
		f(&h)
		return h.Encode()
	}
	good := header().Encode()
	tests := map[string][]byte{
		"empty":              nil,
		"cut":                good[:len(good)-1],
		"trailing byte":      append(bytes.Clone(good), 0),
		"seven fields":       append([]byte{0xa7}, good[1:len(good)-35]...),
		"unknown key":        append(append([]byte{0xa9}, good[1:]...), 9, 0),
		"long form of a key": append([]byte{0xa8, 0x18, 1}, good[2:]...),
		"keys out of order":  append(append([]byte{0xa8}, good[13:15]...), append(bytes.Clone(good[1:13]), good[15:]...)...),
		"ill-formed lane":    change(func(h *Header) { h.Lane = "../x" }),
		"unknown kind":       change(func(h *Header) { h.Kind = 16 }),
		"unknown cause":      change(func(h *Header) { h.Cause = 8 }),
		"core in control":    change(func(h *Header) { h.Lane = LaneControl }),
		"control elsewhere":  change(func(h *Header) { h.Kind = KindAdmission }),
		"number too large":   change(func(h *Header) { h.Seq = LaneEventsMax }),
		"payload too large":  change(func(h *Header) { h.PayloadSize = PayloadBytesMax + 1 }),
		"array":              {0x80},
		"huge length":        {0x5b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
	}
	for name, b := range tests {
		if h, err := DecodeHeader(b); err == nil {
			t.Errorf("%s: accepted as %+v", name, h)
		}
	}
}

func TestCommit(t *testing.T) {
	for _, n := range []int{0, 1, 993, 994, 995, 5000} {
		payload := strings.Repeat("p", n)
		got := Commit([16]byte{1}, []byte(payload))
		want := sha256.Sum256([]byte("writ/payload/1\x01" + strings.Repeat("\x00", 15) + payload))
		if got != want {
			t.Errorf("commitment to %d bytes is %x, want %x", n, got, want)
		}
	}
}

// TestRootIsRFC6962 uses the tree of the empty log and of one and two leaves,
// computed from the RFC's definition.
func TestRootIsRFC6962(t *testing.T) {
	leaf := func(s string) []byte { h := sha256.Sum256([]byte("\x00" + s)); return h[:] }
	var r RootBuilder
	if got := r.Root(); got != abi.DigestOf(nil) {
		t.Errorf("empty root %s", got)
	}
	r.Append([]byte("a"))
	if got := r.Root(); got != abi.DigestOf([]byte("\x00a")) {
		t.Errorf("root of one %s", got)
	}
	r.Append([]byte("b"))
	if got := r.Root(); got != abi.DigestOf(slicesOf("\x01", leaf("a"), leaf("b"))) || r.Size() != 2 {
		t.Errorf("root of two %s", got)
	}
}

func slicesOf(prefix string, parts ...[]byte) []byte {
	return append([]byte(prefix), bytes.Join(parts, nil)...)
}

func TestExecutionDigestDependsOnEveryPart(t *testing.T) {
	base := func(h *ExecutionHasher) { h.Add("a", 1, KindStepEnd, [32]byte{1}) }
	variants := []func(h *ExecutionHasher){
		base,
		func(h *ExecutionHasher) {},
		func(h *ExecutionHasher) { h.Add("b", 1, KindStepEnd, [32]byte{1}) },
		func(h *ExecutionHasher) { h.Add("a", 2, KindStepEnd, [32]byte{1}) },
		func(h *ExecutionHasher) { h.Add("a", 1, KindStepFailed, [32]byte{1}) },
		func(h *ExecutionHasher) { h.Add("a", 1, KindStepEnd, [32]byte{2}) },
		func(h *ExecutionHasher) { base(h); base(h) },
	}
	seen := map[abi.Digest]int{}
	for i, v := range variants {
		var h ExecutionHasher
		v(&h)
		if first, twice := seen[h.Digest()]; twice {
			t.Errorf("variants %d and %d have one digest", first, i)
		}
		seen[h.Digest()] = i
	}
	var h ExecutionHasher
	base(&h)
	item := slicesOf("writ/execution/1\x84\x61a\x01\x04\x58\x20\x01", make([]byte, 31))
	if got := h.Digest(); got != abi.DigestOf(item) {
		t.Errorf("digest %s, want %s", got, abi.DigestOf(item))
	}
}

func TestPayloadJSON(t *testing.T) {
	offset := int64(7)
	tests := []struct {
		kind Kind
		v    any
		want string
	}{
		{KindStepEnd, StepEnd{Output: Bytes(`{"claims": []}`), FuelUsed: 5}, `{"output":{"claims":[]},"fuel_used":5,"memory_bytes":0,"host_calls":0,"clock_end_ns":0}`},
		{KindStepEnd, StepEnd{Output: Bytes("\xff")}, `{"output":{"base64":"/w=="},"fuel_used":0,"memory_bytes":0,"host_calls":0,"clock_end_ns":0}`},
		{KindStepSkipped, StepSkipped{Reason: "not_passed"}, `{"because":[],"reason":"not_passed"}`},
		{KindHostCalls, HostCalls{Calls: []Call{{Fn: 10, Request: AppendText(AppendInt(AppendArrayHead(nil, 2), -1), "\x1b[31m<"), Result: -1}}},
			`{"calls":[{"fn":10,"request":[-1,"\u001b[31m\u003c"],"result":-1,"fuel":0}]}`},
		{KindStepFailed, StepFailed{Stop: &StopInfo{Cause: "invalid_output", Offset: &offset}},
			`{"stop":{"cause":"invalid_output","phase":"","function":"","limit":"","limit_value":0,"offset":7,"detail":""},"error":null,"output":null,"fuel_used":0,"memory_bytes":0,"host_calls":0,"clock_end_ns":0}`},
		{KindRunStart, RunStart{Seed: Hex{0xab}}, `{"flow_id":"","mode":"","manifest":"","plan":"","datasets":"","environment":"","policy":"","seed":"ab","clock_start_ns":0,"clock_step_ns":0,"determinism_level":""}`},
	}
	for _, test := range tests {
		b, err := EncodePayload(test.v)
		if err != nil {
			t.Fatal(err)
		}
		got, err := PayloadJSON(test.kind, b)
		if err != nil {
			t.Errorf("%s: %v", test.kind, err)
		}
		if diff := cmp.Diff(test.want, string(got)); diff != "" {
			t.Errorf("%s: %s", test.kind, diff)
		}
	}
	if _, err := PayloadJSON(16, []byte{0xa0}); err == nil {
		t.Error("an unknown kind has JSON")
	}
	if _, err := PayloadJSON(KindRunEnd, []byte{0xa0}); err == nil {
		t.Error("a payload without its fields has JSON")
	}
}

// TestEveryPayloadRoundTrips encodes each kind's empty struct: nil and empty
// lists are one, and what is decoded encodes again to the same bytes.
func TestEveryPayloadRoundTrips(t *testing.T) {
	for kind := range kinds {
		v := NewPayload(kind)
		if kind == KindHostCalls {
			v = &HostCalls{Calls: []Call{{Fn: 1}}}
		}
		b, err := EncodePayload(v)
		if err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		if err := DecodePayload(b, NewPayload(kind)); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

func TestPayloadRefusals(t *testing.T) {
	for name, v := range map[string]any{
		"text that is not UTF-8": SemanticViolation{Message: "\xff"},
		"floating point":         1.5,
		"too deep":               deep(NestingMax + 2),
	} {
		if b, err := EncodePayload(v); err == nil {
			t.Errorf("%s: encoded as %x", name, b)
		}
	}
	end, err := EncodePayload(RunEnd{ExecutionDigest: "d", Result: "pass"})
	if err != nil {
		t.Fatal(err)
	}
	field := func(name, value string) []byte { return AppendText(AppendText(nil, name), value) }
	result, digest := field("result", "pass"), field("execution_digest", "d")
	tests := map[string][]byte{
		"as written":       slicesOf("\xa2", result, digest),
		"cut":              end[:len(end)-1],
		"trailing":         append(bytes.Clone(end), 0xf6),
		"field missing":    slicesOf("\xa1", result),
		"unknown field":    slicesOf("\xa3", field("a", "b"), result, digest),
		"field twice":      slicesOf("\xa3", result, result, digest),
		"out of order":     slicesOf("\xa2", digest, result),
		"other case":       slicesOf("\xa2", field("Result", "pass"), digest),
		"null":             {0xf6},
		"bytes for text":   slicesOf("\xa2\x66result\x44pass", digest),
		"indefinite":       slicesOf("\xbf", result, digest, []byte{0xff}),
		"tagged":           slicesOf("\xc1\xa2", result, digest),
		"text not UTF-8":   slicesOf("\xa2\x66result\x61\xff", digest),
		"longer than data": {0x7b, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
	}
	for name, b := range tests {
		var got RunEnd
		if err := DecodePayload(b, &got); (err == nil) != (name == "as written") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func deep(n int) any {
	var v any
	for range n {
		v = []any{v}
	}
	return v
}
