package abi

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestEncodeMessage(t *testing.T) {
	cyclic := map[string]any{}
	cyclic["a"] = cyclic
	half := 0.5
	for _, c := range []struct {
		name  string
		value any
		want  string // or, after "error: ", a part of the error
	}{
		{"nil", nil, `null`},
		{"no HTML escaping", "<a href='x'>&", `"<a href='x'>&"`},
		{"sorted keys", map[string]int{"b": 1, "a": 2, "B": 3}, `{"B":3,"a":2,"b":1}`},
		{"nil slices", StepOutput{}, `{"claims":[],"evidence":[],"artifacts":[]}`},
		{"nil slices inside", map[ID]StepOutput{"s": {Claims: []Claim{{ClaimID: "c"}}}}, `{"s":{"claims":[{"claim_id":"c","statement":"","evidence":[]}],"evidence":[],"artifacts":[]}}`},
		{"pointer", &VerifyResponse{Status: Pass}, `{"status":"PASS","violations":[]}`},
		{"float", Claim{Confidence: &half}, `{"claim_id":"","statement":"","confidence":0.5,"evidence":[]}`},
		{"raw JSON loses its spaces", json.RawMessage(" { \"b\" : 1 ,\n\"a\":\"<\" } "), `{"b":1,"a":"<"}`},
		{"absent error", ExecuteResponse{}, `{"claims":[],"evidence":[],"artifacts":[]}`},
		{"tenant", struct{ T TenantID }{TenantID{"acme"}}, `{"T":"acme"}`},
		{"0xFF", "a\xff", "error: not UTF-8"},
		{"0xFF in a key", map[string]int{"\xff": 1}, "error: not UTF-8"},
		{"0xFF deep inside", StepOutput{Claims: []Claim{{Evidence: []string{"\xff"}}}}, "error: not UTF-8"},
		{"0xFF in raw JSON", StepOutput{Output: json.RawMessage("\"\xff\"")}, "error: not UTF-8"},
		{"raw JSON that is none", json.RawMessage("{"), "error: unexpected end"},
		{"cycle", cyclic, "error: nested deeper"},
		{"channel", make(chan int), "error: unsupported type"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := EncodeMessage(c.value)
			if part, ok := strings.CutPrefix(c.want, "error: "); ok {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("error %v, want %q", err, part)
				}
				return
			}
			if err != nil || string(got) != c.want {
				t.Errorf("got  %s, %v\nwant %s", got, err, c.want)
			}
		})
	}
}

func TestEncodeMessageLeavesItsArgument(t *testing.T) {
	out := StepOutput{Claims: []Claim{{ClaimID: "c"}}}
	if _, err := EncodeMessage(&out); err != nil {
		t.Fatal(err)
	}
	if out.Claims[0].Evidence != nil || out.Evidence != nil {
		t.Error("nil slices of the argument were replaced")
	}
}
