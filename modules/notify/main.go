// Notify is an executor that posts the outputs of the steps it needs to an
// address, once, as JSON. It makes no claims.
package main

import (
	"encoding/json"
	"net/url"
	"strconv"

	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/guest-abi/go/guest"
)

//go:wasmexport writ_execute
func writExecute(ptr, size uint32) uint64 { return guest.Execute(ptr, size, notify) }

func main() {} // a module is a library; main never runs

// driver performs the post; the plan must grant it.
const driver = "http"

type config struct {
	URL string `json:"url"`
}

// message is the body that is posted.
type message struct {
	FlowID  abi.ID            `json:"flow_id"`
	StepID  abi.ID            `json:"step_id"`
	Results map[abi.ID]result `json:"results"` // by needed step
}

// result is what one needed step came to.
type result struct {
	Claims   int             `json:"claims"`   // how many it made
	Evidence int             `json:"evidence"` // how many it gave
	Output   json.RawMessage `json:"output"`   // null if it has none
}

type httpRequest struct {
	Method  string            `json:"method"`
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
}

func notify(s *guest.Step) (abi.StepOutput, error) {
	c, err := guest.Config[config](s.Request.Step.Config)
	if err != nil {
		return abi.StepOutput{}, err
	}
	if u, err := url.Parse(c.URL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return abi.StepOutput{}, guest.Fail("invalid_config", "config.url %.200q is no http or https address", c.URL)
	}
	body, err := abi.EncodeMessage(compose(s.Request))
	if err != nil {
		return abi.StepOutput{}, err
	}
	status, err := post(s, c.URL, body)
	if err != nil {
		return abi.StepOutput{}, err
	}
	output, err := abi.EncodeMessage(struct {
		Status    int        `json:"status"`
		BodyBytes int        `json:"body_bytes"`
		Body      abi.Digest `json:"body_digest"`
	}{status, len(body), abi.DigestOf(body)})
	return abi.StepOutput{Output: output}, err
}

func compose(r abi.ExecuteRequest) message {
	m := message{FlowID: r.FlowID, StepID: r.Step.ID, Results: map[abi.ID]result{}}
	for id, input := range r.Inputs {
		res := result{Claims: len(input.Claims), Evidence: len(input.Evidence), Output: input.Output}
		if len(res.Output) == 0 {
			res.Output = json.RawMessage("null")
		}
		m.Results[id] = res
	}
	return m
}

// post sends body and returns the status, which is one of success. The host adds
// the idempotency key, so that a repeated post can be told by its receiver.
func post(s *guest.Step, address string, body []byte) (int, error) {
	request, err := abi.EncodeMessage(httpRequest{
		Method: "POST", URL: address, Headers: map[string]string{"content-type": "application/json"}, Body: string(body),
	})
	if err != nil {
		return 0, err
	}
	raw, err := s.Effect(driver, request)
	if err != nil {
		return 0, err
	}
	var response struct {
		Status int `json:"status"`
	}
	if err := json.Unmarshal(raw, &response); err != nil {
		return 0, guest.Fail("bad_response", "the %s driver answered no JSON: %v", driver, err)
	}
	if response.Status < 200 || response.Status > 299 {
		return 0, &abi.GuestError{
			Code:      "not_accepted",
			Message:   "POST " + address + " was answered with status " + strconv.Itoa(response.Status),
			Retryable: response.Status == 429 || response.Status >= 500,
		}
	}
	return response.Status, nil
}
