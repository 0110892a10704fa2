//go:build cgo && !writ_nowasmtime

package guests_test

import (
	"context"

	"github.com/writrun/writ/host"
	"github.com/writrun/writ/host/wasmtime"
)

func newSecondEngine(ctx context.Context) (host.Engine, error) {
	return wasmtime.New(ctx, wasmtime.Config{})
}
