//go:build !cgo || writ_nowasmtime

package wasmtime_test

import (
	"strings"
	"testing"

	"github.com/writrun/writ/host"
	"github.com/writrun/writ/host/prepare"
	"github.com/writrun/writ/host/wasmtime"
)

func TestABuildWithoutTheEngineSaysSo(t *testing.T) {
	e, err := wasmtime.New(t.Context(), wasmtime.Config{})
	if e != nil || wasmtime.Available || err == nil {
		t.Fatalf("engine %v, available %v, error %v", e, wasmtime.Available, err)
	}
	for _, want := range []string{"no wasmtime", "CGO_ENABLED=1", "writ_nowasmtime"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %q", want, err)
		}
	}
	var none host.Engine = &wasmtime.Engine{}
	if _, err := none.Compile(t.Context(), &prepare.Prepared{}); err == nil {
		t.Error("an engine that is not there compiled a module")
	}
}
