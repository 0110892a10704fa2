package wazero_test

import (
	"context"
	"testing"

	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host"
	"github.com/writrun/writ/host/wazero"
)

func newEngine(t testing.TB, cfg wazero.Config) *wazero.Engine {
	t.Helper()
	e, err := wazero.New(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return e
}

func invocation(b host.Boundary) host.Invocation {
	return host.Invocation{Lane: "test", Entry: abi.ExportExecute, Input: []byte("{}"), Boundary: b,
		ClockStartNanos: 1_000_000_000, ClockStepNanos: 1_000}
}
