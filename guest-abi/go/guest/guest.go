// Package guest is the Go SDK for modules that run under writ, for the standard
// Go toolchain. A module is a package main that exports one or both entry points:
//
//	package main
//
//	import (
//		"github.com/writrun/writ/guest-abi/abi"
//		"github.com/writrun/writ/guest-abi/go/guest"
//	)
//
//	//go:wasmexport writ_execute
//	func writExecute(ptr, size uint32) uint64 { return guest.Execute(ptr, size, greet) }
//
//	func main() {} // a module is a library; main never runs
//
//	type config struct {
//		Name string `json:"name"`
//	}
//
//	func greet(s *guest.Step) (abi.StepOutput, error) {
//		c, err := guest.Config[config](s.Request.Step.Config)
//		if err != nil {
//			return abi.StepOutput{}, err
//		}
//		output, err := abi.EncodeMessage("hello " + c.Name)
//		return abi.StepOutput{Output: output}, err
//	}
//
// A rule exports writ_verify in the same way and calls [Verify]. Build with
//
//	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -o hello.wasm
//
// and add the module's metadata (see guest-abi/README.md).
//
// Everything a module can know comes through its request and through [Calls]:
// there is no other clock, randomness, file or network. The package also compiles
// natively, so a module's functions are tested like any other; package guesttest
// has an in-memory [Host] for that.
//
// A failure the module returns becomes the response {"error"}: an [*abi.GuestError]
// as it is, an [abi.Code] under its name, anything else with code "failed". A panic
// becomes code "panic". Neither ever yields a half-made output.
package guest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/writrun/writ/guest-abi/abi"
)

// Step is one invocation of an executor.
type Step struct {
	Calls
	Request abi.ExecuteRequest
}

// Check is one invocation of a rule.
type Check struct {
	Calls
	Request abi.VerifyRequest
}

// Execute is the body of a writ_execute export: it reads the request, calls run,
// and returns where the response lies.
func Execute(ptr, size uint32, run func(*Step) (abi.StepOutput, error)) uint64 {
	request := take(ptr, size)
	return give(RunExecute(door(), request, run))
}

// Verify is the body of a writ_verify export: it reads the request, calls run,
// and returns where the response lies.
func Verify(ptr, size uint32, run func(*Check) (abi.VerifyResponse, error)) uint64 {
	request := take(ptr, size)
	return give(RunVerify(door(), request, run))
}

// RunExecute answers one request the way [Execute] does, with host calls going
// to h.
func RunExecute(h Host, request []byte, run func(*Step) (abi.StepOutput, error)) []byte {
	return answer(func() ([]byte, error) {
		s := Step{Calls: Calls{h}}
		if err := json.Unmarshal(request, &s.Request); err != nil {
			return nil, &abi.GuestError{Code: "bad_request", Message: err.Error()}
		}
		if err := checkVersion(s.Request.ABI); err != nil {
			return nil, err
		}
		out, err := run(&s)
		if err != nil {
			return nil, err
		}
		return abi.EncodeMessage(out)
	})
}

// RunVerify answers one request the way [Verify] does, with host calls going to h.
func RunVerify(h Host, request []byte, run func(*Check) (abi.VerifyResponse, error)) []byte {
	return answer(func() ([]byte, error) {
		c := Check{Calls: Calls{h}}
		if err := json.Unmarshal(request, &c.Request); err != nil {
			return nil, &abi.GuestError{Code: "bad_request", Message: err.Error()}
		}
		if err := checkVersion(c.Request.ABI); err != nil {
			return nil, err
		}
		out, err := run(&c)
		if err != nil {
			return nil, err
		}
		return abi.EncodeMessage(out)
	})
}

// Rules dispatches to one function per rule id, for modules that implement
// several rules.
func Rules(rules map[abi.ID]func(*Check) (abi.VerifyResponse, error)) func(*Check) (abi.VerifyResponse, error) {
	return func(c *Check) (abi.VerifyResponse, error) {
		rule, ok := rules[c.Request.Rule.ID]
		if !ok {
			return abi.VerifyResponse{}, &abi.GuestError{
				Code: "unknown_rule", Message: fmt.Sprintf("this module has no rule %q", c.Request.Rule.ID),
			}
		}
		return rule(c)
	}
}

// Config reads a step's or rule's configuration into a T. Fields T does not have
// are refused, with code "invalid_config".
func Config[T any](config json.RawMessage) (T, error) {
	var c, none T
	if len(config) == 0 {
		return c, nil
	}
	d := json.NewDecoder(bytes.NewReader(config))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return none, &abi.GuestError{Code: "invalid_config", Message: err.Error()}
	}
	if _, err := d.Token(); err != io.EOF {
		return none, &abi.GuestError{Code: "invalid_config", Message: "more than one JSON value"}
	}
	return c, nil
}

// Fail makes an error of the given code, which is snake_case.
func Fail(code, format string, args ...any) error {
	return &abi.GuestError{Code: code, Message: fmt.Sprintf(format, args...)}
}

func checkVersion(version int) error {
	if version != abi.Version {
		return Fail("abi_version", "the host speaks guest ABI %d, this module %d", version, abi.Version)
	}
	return nil
}

// answer returns run's response, or the error response if it fails or panics.
func answer(run func() ([]byte, error)) (response []byte) {
	defer func() {
		if p := recover(); p != nil {
			response = errorResponse(&abi.GuestError{Code: "panic", Message: fmt.Sprint(p)})
		}
	}()
	response, err := run()
	if err != nil {
		return errorResponse(guestError(err))
	}
	return response
}

func guestError(err error) *abi.GuestError {
	var own *abi.GuestError
	if errors.As(err, &own) && own != nil {
		out := *own
		if out.Code == "" {
			out.Code = "failed"
		}
		return &out
	}
	var code abi.Code
	if errors.As(err, &code) && code.String() != "" {
		return &abi.GuestError{Code: code.String(), Message: err.Error(), Retryable: code == abi.Unavailable}
	}
	return &abi.GuestError{Code: "failed", Message: err.Error()}
}

// errorMessageBytesMax bounds what an error says; the rest is cut.
const errorMessageBytesMax = 4096

func errorResponse(e *abi.GuestError) []byte {
	if len(e.Message) > errorMessageBytesMax {
		e.Message = e.Message[:errorMessageBytesMax]
	}
	e.Message = string(bytes.ToValidUTF8([]byte(e.Message), []byte("\uFFFD")))
	response, err := abi.EncodeMessage(struct {
		Error *abi.GuestError `json:"error"`
	}{e})
	if err != nil {
		// Only a code that is not UTF-8 gets here.
		return []byte(`{"error":{"code":"failed","message":"the module failed and its error code is not UTF-8","retryable":false}}`)
	}
	return response
}
