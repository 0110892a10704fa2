//go:build !cgo || writ_nowasmtime

package guests_test

import (
	"context"

	"github.com/writrun/writ/host"
)

// newSecondEngine returns nil: this build has no second engine.
func newSecondEngine(context.Context) (host.Engine, error) { return nil, nil }
