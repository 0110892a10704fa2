package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/guest-abi/go/guest"
	"github.com/writrun/writ/guest-abi/go/guest/guesttest"
)

const address = "http://127.0.0.1:8787/release-gate"

// run posts with a driver that answers response or fails, and returns what the
// driver was asked.
func run(t *testing.T, config, response string, fails error) (abi.ExecuteResponse, []string) {
	t.Helper()
	var asked []string
	host := &guesttest.Host{Effects: func(driver string, request []byte) ([]byte, error) {
		asked = append(asked, driver+" "+string(request))
		return []byte(response), fails
	}}
	request, err := abi.EncodeMessage(abi.ExecuteRequest{ABI: abi.Version, FlowID: "release-gate",
		Step: abi.ExecuteStep{ID: "notify", Role: abi.RoleAgent, Config: json.RawMessage(config)},
		Inputs: map[abi.ID]abi.StepOutput{
			"advisories": {Claims: make([]abi.Claim, 2), Evidence: make([]abi.Evidence, 1), Output: json.RawMessage(`{"counts":{"affected":0}}`)},
			"silent":     {},
		}})
	if err != nil {
		t.Fatal(err)
	}
	var out abi.ExecuteResponse
	if err := json.Unmarshal(guest.RunExecute(host, request, notify), &out); err != nil {
		t.Fatal(err)
	}
	return out, asked
}

func TestNotify(t *testing.T) {
	got, asked := run(t, `{"url":"`+address+`"}`, `{"status":202,"headers":{},"body":"ok"}`, nil)
	if got.Error != nil {
		t.Fatal(got.Error)
	}
	const body = `{"flow_id":"release-gate","step_id":"notify","results":{"advisories":{"claims":2,"evidence":1,"output":{"counts":{"affected":0}}},"silent":{"claims":0,"evidence":0,"output":null}}}`
	quoted, err := abi.EncodeMessage(body)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{`http {"method":"POST","url":"` + address + `","headers":{"content-type":"application/json"},"body":` + string(quoted) + `}`}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Error(diff)
	}
	var output struct {
		Status     int        `json:"status"`
		BodyDigest abi.Digest `json:"body_digest"`
	}
	if err := json.Unmarshal(got.Output, &output); err != nil {
		t.Fatal(err)
	}
	if output.Status != 202 || output.BodyDigest != abi.DigestOf([]byte(body)) {
		t.Errorf("output %s", got.Output)
	}
}

func TestNotifyFails(t *testing.T) {
	const ok = `{"url":"` + address + `"}`
	tests := []struct {
		name, config, response string
		fails                  error
		code, has              string
		retryable              bool
	}{
		{"answered 404", ok, `{"status":404}`, nil, "not_accepted", "status 404", false},
		{"answered 301", ok, `{"status":301}`, nil, "not_accepted", "status 301", false},
		{"answered 503", ok, `{"status":503}`, nil, "not_accepted", "status 503", true},
		{"answered 429", ok, `{"status":429}`, nil, "not_accepted", "status 429", true},
		{"answered no status", ok, `{}`, nil, "not_accepted", "status 0", false},
		{"answered no JSON", ok, `<html>`, nil, "bad_response", "no JSON", false},
		{"not granted", ok, ``, abi.NotGranted, "not_granted", "not_granted", false},
		{"far side gone", ok, ``, abi.Unavailable, "unavailable", "unavailable", true},
		{"no address", `{}`, ``, nil, "invalid_config", "config.url", false},
		{"another scheme", `{"url":"ftp://example.org/"}`, ``, nil, "invalid_config", "config.url", false},
		{"unknown field", `{"uri":"` + address + `"}`, ``, nil, "invalid_config", "unknown field", false},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			got, asked := run(t, tc.config, tc.response, tc.fails)
			if got.Error == nil || got.Error.Code != tc.code || got.Error.Retryable != tc.retryable || !strings.Contains(got.Error.Message, tc.has) {
				t.Fatalf("got %+v, want %s (retryable %t) with %q", got.Error, tc.code, tc.retryable, tc.has)
			}
			if tc.code == "invalid_config" && len(asked) > 0 {
				t.Errorf("posted all the same: %s", asked)
			}
		})
	}
}
