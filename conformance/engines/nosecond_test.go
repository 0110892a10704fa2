//go:build !cgo || writ_nowasmtime

package engines_test

import (
	"context"
	"errors"

	"github.com/writrun/writ/host"
)

const secondEngineBuiltIn = false

func newSecondEngine(context.Context) (host.Engine, error) {
	return nil, errors.New("wasmtime is not built in")
}
