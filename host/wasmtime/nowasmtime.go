//go:build !cgo || writ_nowasmtime

package wasmtime

import (
	"context"
	"errors"

	"github.com/writrun/writ/host"
	"github.com/writrun/writ/host/prepare"
)

// Available says whether this build has the engine.
const Available = false

// errUnavailable is what every way to an engine ends in.
var errUnavailable = errors.New("make wasmtime engine: this build has no wasmtime: build with CGO_ENABLED=1, a C compiler, and without the tag writ_nowasmtime")

// Engine stands for the engine this build does not have. There is no way to make
// one that works.
type Engine struct{}

// New returns an error that says how to get a build with wasmtime.
func New(context.Context, Config) (*Engine, error) { return nil, errUnavailable }

// Name is "wasmtime".
func (e *Engine) Name() string { return engineName }

// Version returns [Version].
func (e *Engine) Version() string { return Version }

// Compile returns the error of [New].
func (e *Engine) Compile(context.Context, *prepare.Prepared) (host.Compiled, error) {
	return nil, errUnavailable
}

// Kept is false.
func (e *Engine) Kept(*prepare.Prepared) bool { return false }

// Close does nothing.
func (e *Engine) Close(context.Context) error { return nil }
