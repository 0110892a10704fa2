package guest_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/guest-abi/go/guest"
	"github.com/writrun/writ/guest-abi/go/guest/guesttest"
)

func executeRequest(t *testing.T, config string) []byte {
	t.Helper()
	request, err := abi.EncodeMessage(abi.ExecuteRequest{
		ABI: abi.Version, FlowID: "gate", Step: abi.ExecuteStep{ID: "hello", Role: abi.RoleAgent, Config: []byte(config)},
	})
	if err != nil {
		t.Fatal(err)
	}
	return request
}

func TestExecuteAnswers(t *testing.T) {
	type config struct {
		Name string `json:"name"`
	}
	greet := func(s *guest.Step) (abi.StepOutput, error) {
		c, err := guest.Config[config](s.Request.Step.Config)
		if err != nil {
			return abi.StepOutput{}, err
		}
		output, err := abi.EncodeMessage("hello " + c.Name)
		return abi.StepOutput{Output: output}, err
	}
	failing := func(err error) func(*guest.Step) (abi.StepOutput, error) {
		return func(*guest.Step) (abi.StepOutput, error) { return abi.StepOutput{}, err }
	}
	panicking := func(v any) func(*guest.Step) (abi.StepOutput, error) {
		return func(*guest.Step) (abi.StepOutput, error) { panic(v) }
	}
	wrongVersion := []byte(`{"abi":2,"flow_id":"gate","step":{"id":"hello","role":"agent","config":{}}}`)
	for _, c := range []struct {
		name    string
		request []byte
		run     func(*guest.Step) (abi.StepOutput, error)
		code    string // of the error, or ""
		want    string // the output, or the error's message
	}{
		{"output", executeRequest(t, `{"name":"<you>"}`), greet, "", `"hello <you>"`},
		{"config with an unknown field", executeRequest(t, `{"nam":"you"}`), greet, "invalid_config", `json: unknown field "nam"`},
		{"config of the wrong type", executeRequest(t, `{"name":1}`), greet, "invalid_config", "json: cannot unmarshal number into Go struct field config.name of type string"},
		{"own error", executeRequest(t, `{}`), failing(guest.Fail("no_sbom", "no %s", "sbom")), "no_sbom", "no sbom"},
		{"own error, wrapped", executeRequest(t, `{}`), failing(fmt.Errorf("read: %w", &abi.GuestError{Code: "no_sbom", Message: "m"})), "no_sbom", "m"},
		{"own error without code", executeRequest(t, `{}`), failing(&abi.GuestError{Message: "m"}), "failed", "m"},
		{"a host call's code", executeRequest(t, `{}`), failing(fmt.Errorf("post: %w", abi.NotGranted)), "not_granted", "post: host call refused: not_granted"},
		{"any other error", executeRequest(t, `{}`), failing(errors.New("odd")), "failed", "odd"},
		{"an error that is not UTF-8", executeRequest(t, `{}`), failing(errors.New("a\xffb")), "failed", "a\uFFFDb"},
		{"a code that is not UTF-8", executeRequest(t, `{}`), failing(guest.Fail("\xff", "m")), "failed", "the module failed and its error code is not UTF-8"},
		{"panic", executeRequest(t, `{}`), panicking("boom"), "panic", "boom"},
		{"panic with an error", executeRequest(t, `{}`), panicking(errors.New("boom")), "panic", "boom"},
		{"output that is not UTF-8", executeRequest(t, `{}`), func(*guest.Step) (abi.StepOutput, error) {
			return abi.StepOutput{Claims: []abi.Claim{{ClaimID: "\xff"}}}, nil
		}, "failed", `encode message: string "\xff" is not UTF-8`},
		{"a request that is no JSON", []byte("{"), greet, "bad_request", "unexpected end of JSON input"},
		{"no request", nil, greet, "bad_request", "unexpected end of JSON input"},
		{"another ABI", wrongVersion, greet, "abi_version", "the host speaks guest ABI 2, this module 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			raw := guest.RunExecute(&guesttest.Host{}, c.request, c.run)
			r, err := abi.DecodeExecuteResponse(raw)
			if err != nil {
				t.Fatalf("response %s: %v", raw, err)
			}
			if c.code == "" {
				if r.Error != nil || string(r.Output) != c.want {
					t.Errorf("response %s, want output %s", raw, c.want)
				}
				return
			}
			if r.Error == nil || r.Error.Code != c.code || r.Error.Message != c.want {
				t.Errorf("response %s, want error %q: %q", raw, c.code, c.want)
			}
		})
	}
}

func TestErrorMessagesAreBounded(t *testing.T) {
	raw := guest.RunExecute(&guesttest.Host{}, executeRequest(t, `{}`), func(*guest.Step) (abi.StepOutput, error) {
		return abi.StepOutput{}, errors.New(strings.Repeat("é", 1_000_000))
	})
	r, err := abi.DecodeExecuteResponse(raw)
	if err != nil || len(r.Error.Message) > 5000 {
		t.Errorf("a response of %d bytes, %v", len(raw), err)
	}
}

func TestVerifyAnswers(t *testing.T) {
	rules := guest.Rules(map[abi.ID]func(*guest.Check) (abi.VerifyResponse, error){
		"pass":  func(*guest.Check) (abi.VerifyResponse, error) { return abi.VerifyResponse{Status: abi.Pass}, nil },
		"panic": func(*guest.Check) (abi.VerifyResponse, error) { panic("boom") },
	})
	for _, c := range []struct{ rule, status, err string }{
		{"pass", "PASS", ""},
		{"panic", "", "panic: boom"},
		{"other", "", `unknown_rule: this module has no rule "other"`},
	} {
		t.Run(c.rule, func(t *testing.T) {
			request := fmt.Sprintf(`{"abi":1,"rule":{"id":%q,"config":{},"phase":"flow","target":"flow"}}`, c.rule)
			r, err := abi.DecodeVerifyResponse(guest.RunVerify(&guesttest.Host{}, []byte(request), rules))
			got := ""
			if err != nil {
				got = err.Error()
			}
			if string(r.Status) != c.status || got != c.err {
				t.Errorf("status %q, error %q; want %q, %q", r.Status, got, c.status, c.err)
			}
		})
	}
}

func TestCalls(t *testing.T) {
	big := strings.Repeat("0123456789", 1_000_000) // more than one read
	host := &guesttest.Host{
		Clock:  5,
		Random: strings.NewReader("random"),
		Datasets: map[string][]byte{
			"big": []byte(big), "empty": {}, "osv": []byte(`{"files":[{"path":"a.json","executable":false,"size":2,"digest":""}]}`), "osv/a.json": []byte("{}"),
		},
		Effects: func(driver string, request []byte) ([]byte, error) {
			return []byte(driver + " got " + string(request)), nil
		},
	}
	c := guest.Calls{Host: host}
	check := func(what string, got, want any, err error) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", what, err, diff)
		}
	}
	now, err := c.Now()
	check("now", now, int64(5), err)
	random := make([]byte, 6)
	err = c.Fill(random)
	check("fill", string(random), "random", err)
	data, err := c.Dataset("big")
	check("big dataset", string(data) == big, true, err)
	data, err = c.Dataset("empty")
	check("empty dataset", len(data), 0, err)
	listing, err := c.Listing("osv")
	check("listing", listing.Files, []abi.DatasetFile{{Path: "a.json", Size: 2}}, err)
	response, err := c.Effect("http", []byte("{}"))
	check("effect", string(response), "http got {}", err)
	artifact, err := c.PutArtifact("a.txt", "text/plain", []byte("abc"))
	check("put artifact", artifact, abi.Artifact{ArtifactID: abi.DigestOf([]byte("abc")), Name: "a.txt", MediaType: "text/plain", Size: 3}, err)
	data, err = c.Artifact(artifact.ArtifactID)
	check("artifact", string(data), "abc", err)
	c.Logf(guest.Info, "line %d", 1)
	check("log", host.Lines, []string{"line 1"}, nil)

	if _, err := c.Dataset("none"); !errors.Is(err, abi.NotFound) {
		t.Errorf("an unknown dataset: %v", err)
	}
	if _, err := c.Artifact("none"); !errors.Is(err, abi.NotFound) {
		t.Errorf("an unknown artifact: %v", err)
	}
}
