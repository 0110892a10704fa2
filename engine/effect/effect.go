// Package effect performs what guests ask of the outside world, and tells what
// is known of the outcome.
//
// A driver reaches only what a grant names, never guesses whether something
// happened, and lets no secret into anything that is recorded: secrets are put
// into a request after it was recorded, and masked in everything that comes
// back.
package effect

import (
	"context"

	"github.com/writrun/writ/engine/flow"
	"github.com/writrun/writ/guest-abi/abi"
)

// Driver performs the effects of one kind. It must be safe for concurrent use.
type Driver interface {
	// Name is what grants and guests call the driver.
	Name() string
	// Covers returns nil if the grant covers the request, else why not; an
	// abi.Code in the error's chain is what the guest is shown instead of
	// not_granted. The
	// answer depends on its arguments only.
	Covers(g flow.Effect, request []byte) error
	// Perform tries a covered effect once. It tells failures in the outcome.
	Perform(ctx context.Context, a Attempt) Outcome
}

// Status is what is known of an effect.
type Status string

// The far side answered; it did not get the request; or nobody here can know.
const (
	StatusOK      Status = "ok"
	StatusFailed  Status = "failed"
	StatusUnknown Status = "unknown"
)

// Attempt is one try of an effect.
type Attempt struct {
	Grant   flow.Effect
	Request []byte            // as the guest gave it and as it was recorded
	Key     string            // idempotency key, the same for every try
	Secrets map[string]Secret // those the grant binds, by name
	Number  uint32            // from 1
}

// Outcome is how a try ended. What it holds is free of secrets.
type Outcome struct {
	Status   Status
	Response []byte   // what the guest is shown; nil beside a Code
	Code     abi.Code // 0, or why the guest is shown no response
	Withheld bool     // there was a response that could not be freed of secrets
	Details  Details
}

// Details is what is recorded of a try beside what the guest sees.
type Details struct {
	Peer        string // address the driver talked to
	Certificate string // SHA-256 of the peer's certificate, "" without TLS
	HTTPStatus  int
	Error       string
}

// failed is an outcome of which it is known that nothing was done.
func failed(code abi.Code, err error) Outcome {
	return Outcome{Status: StatusFailed, Code: code, Details: Details{Error: err.Error()}}
}

// coded is an error with the code that the guest is shown.
type coded struct {
	code abi.Code
	err  error
}

// Error says why.
func (c *coded) Error() string { return c.err.Error() }

// Unwrap returns the code, an [abi.Code].
func (c *coded) Unwrap() error { return c.code }
