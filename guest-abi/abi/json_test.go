package abi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// What is accepted and refused, and at which offset, is in ../vectors/json.json.

func TestCheckJSONBounds(t *testing.T) {
	keys := []byte(`{"":0`)
	for i := range ObjectKeysMax {
		keys = append(strconv.AppendInt(append(keys, ',', '"'), int64(i), 36), '"', ':', '0')
	}
	for _, c := range []struct {
		name   string
		data   []byte
		depth  int
		reason string // "" for accepted
	}{
		{"depth 1000000 without a limit that stops it", bytes.Repeat([]byte("["), 1_000_000), 2_000_000, "text ends"},
		{"deep and closed", append(bytes.Repeat([]byte("["), 100_000), bytes.Repeat([]byte("]"), 100_000)...), 100_000, ""},
		{"a scalar needs no depth", []byte("1"), 0, ""},
		{"an array needs one", []byte("[]"), 0, "deeper than 0"},
		{"one key too many", append(keys, '}'), 1, fmt.Sprintf("byte %d: object has more than", bytes.LastIndexByte(keys, ',')+1)},
		{"a number of a million digits", []byte("0." + strings.Repeat("1", 1_000_000)), 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := CheckJSON(c.data, c.depth)
			if c.reason == "" && err != nil || c.reason != "" && (err == nil || !strings.Contains(err.Error(), c.reason)) {
				t.Errorf("error %v, want %q", err, c.reason)
			}
		})
	}
}

func TestJSONErrorText(t *testing.T) {
	err := CheckJSON([]byte(`{"a":1,"a":2}`), 4)
	if got, want := err.Error(), `invalid JSON at byte 7: key "a" appears twice`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func FuzzCheckJSON(f *testing.F) {
	for _, s := range []string{``, `null`, `{"a":[1,-2.5e3,"\ud83d\ude00é"],"b":{}}`, `{"a":1,"\u0061":2}`, `[[[[`, `9007199254740993`, "\"\xff\"", `"\ud800"`, `1e400`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		err := CheckJSON(data, 16)
		if err == nil {
			var v any
			if err := json.Unmarshal(data, &v); err != nil {
				t.Fatalf("accepted what encoding/json refuses: %v", err)
			}
			again, err := EncodeMessage(v)
			if err != nil {
				t.Fatalf("accepted what cannot be encoded: %v", err)
			}
			if err := CheckJSON(again, 16); err != nil && !strings.Contains(err.Error(), "integer is beyond") {
				t.Fatalf("refused its own canonical form %s: %v", again, err)
			}
			return
		}
		var fault *JSONError
		if !errors.As(err, &fault) || fault.Offset < 0 || fault.Offset > len(data) || fault.Reason == "" {
			t.Fatalf("error %#v has no offset in the %d bytes", err, len(data))
		}
	})
}

func FuzzDecodeExecuteResponse(f *testing.F) {
	f.Add([]byte(`{"claims":[{"claim_id":"c","statement":"s","value":1,"confidence":1,"evidence":["e"]}],"output":{}}`))
	f.Add([]byte(`{"error":{"code":"x","message":"m","retryable":true}}`))
	f.Fuzz(func(t *testing.T, data []byte) { roundTrip(t, data, DecodeExecuteResponse) })
}

func FuzzDecodeVerifyResponse(f *testing.F) {
	f.Add([]byte(`{"status":"FAIL","violations":[{"rule_id":"r","subject":"s","message":"m"}],"reason":"r"}`))
	f.Add([]byte(`{"error":{"code":"x","message":"m","retryable":true}}`))
	f.Fuzz(func(t *testing.T, data []byte) { roundTrip(t, data, DecodeVerifyResponse) })
}

func FuzzDecodeExecuteRequest(f *testing.F) {
	f.Add([]byte(`{"abi":1,"flow_id":"f","step":{"id":"s","role":"agent","config":{}},"inputs":{"a":{}},"datasets":[]}`))
	f.Fuzz(func(t *testing.T, data []byte) { roundTrip(t, data, DecodeExecuteRequest) })
}

func FuzzDecodeVerifyRequest(f *testing.F) {
	f.Add([]byte(`{"abi":1,"rule":{"id":"r","config":{},"phase":"flow","target":"flow"},"outputs":[{"step_id":"s","output":1}]}`))
	f.Fuzz(func(t *testing.T, data []byte) { roundTrip(t, data, DecodeVerifyRequest) })
}

func FuzzParseMetadata(f *testing.F) {
	f.Add([]byte(goodMetadata))
	f.Add([]byte(`{"abi":1,"kind":"rule","rules":[{"rule_id":"r"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) { roundTrip(t, data, ParseMetadata) })
}

// roundTrip checks that what decodes also encodes, to a form that decodes to the
// same bytes again.
func roundTrip[T any](t *testing.T, data []byte, decode func([]byte) (T, error)) {
	v, err := decode(data)
	if err != nil {
		if err.Error() == "" {
			t.Fatal("an error without text")
		}
		return
	}
	first, err := EncodeMessage(v)
	if err != nil {
		t.Fatalf("accepted what cannot be encoded: %v", err)
	}
	v, err = decode(first)
	if err != nil {
		t.Fatalf("refused its own canonical form %s: %v", first, err)
	}
	second, err := EncodeMessage(v)
	if err != nil || !bytes.Equal(first, second) {
		t.Fatalf("canonical form %s became %s, %v", first, second, err)
	}
}

func BenchmarkDecodeExecuteResponse(b *testing.B) {
	var out StepOutput
	for i := range 1000 {
		id := fmt.Sprint("advisory-", i)
		out.Claims = append(out.Claims, Claim{ClaimID: id, Statement: "component X version V is not affected by A", Subject: "pkg:golang/example.org/x@v1.2.3", Predicate: "affected_by:A", Value: json.RawMessage("false"), Evidence: []string{id, "sbom"}})
	}
	data, err := EncodeMessage(out)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := DecodeExecuteResponse(data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCheckJSON(b *testing.B) {
	data := []byte("[" + strings.Repeat(`{"claim_id":"c","n":[1,2.5,-3e10],"text":"some \u00e9 text é"},`, 10_000) + "0]")
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if err := CheckJSON(data, 8); err != nil {
			b.Fatal(err)
		}
	}
}
