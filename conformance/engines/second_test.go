//go:build cgo && !writ_nowasmtime

package engines_test

import (
	"context"

	"github.com/writrun/writ/host"
	"github.com/writrun/writ/host/wasmtime"
)

const secondEngineBuiltIn = true

func newSecondEngine(ctx context.Context) (host.Engine, error) {
	return wasmtime.New(ctx, wasmtime.Config{})
}
