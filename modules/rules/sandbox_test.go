//go:build !race

// Nothing here is concurrent, and under the race detector an engine takes minutes
// to compile a Go module.

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"testing"

	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/guest-abi/go/guest"
	"github.com/writrun/writ/guest-abi/go/guest/guesttest"
	"github.com/writrun/writ/host"
	"github.com/writrun/writ/host/hosttest"
	"github.com/writrun/writ/host/prepare"
	"github.com/writrun/writ/host/wazero"
)

// sandboxFuelMax is what the dearest of ruleCases may cost.
const sandboxFuelMax = 2_000_000_000

// TestRulesInTheSandbox gives the built module the requests of TestRules. It must
// answer them with the same bytes as the same code does natively.
func TestRulesInTheSandbox(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles a module")
	}
	prepared, err := prepare.Prepare(hosttest.Guest(t, "rules"), prepare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	engine, err := wazero.New(context.Background(), wazero.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := engine.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	m := hosttest.Compile(t, engine, prepared)
	native := &guesttest.Host{
		Datasets:  map[string][]byte{"osv/a.json": []byte("{}"), "big": []byte(bigFile)},
		Artifacts: map[abi.Digest][]byte{abi.DigestOf([]byte("kept")): []byte("kept")},
	}
	for _, c := range ruleCases {
		t.Run(c.rule+"/"+c.name, func(t *testing.T) {
			c.request.ABI = abi.Version
			c.request.Rule = abi.VerifyRule{ID: abi.ID(c.rule), Config: json.RawMessage(c.config), Phase: abi.PhaseFlow, Target: "flow"}
			request, err := abi.EncodeMessage(c.request)
			if err != nil {
				t.Fatal(err)
			}
			out, err := host.Invoke(t.Context(), m, host.Invocation{
				Lane: "r@flow", Entry: abi.ExportVerify, Input: request, ClockStartNanos: 1_000_000, ClockStepNanos: 1000,
				Datasets:  []host.Dataset{dataset("big", "", bigFile), dataset("osv", "a.json", "{}")},
				Artifacts: hosttest.Artifacts(native.Artifacts), Boundary: host.NewRecorder(&hosttest.Discard{}, nil),
			})
			if err != nil || out.Stop != nil {
				t.Fatalf("%v, stop %+v", err, out.Stop)
			}
			if want := guest.RunVerify(native, request, verify); !bytes.Equal(out.Output, want) {
				t.Errorf("sandbox %s\nnative  %s", out.Output, want)
			}
			if out.FuelUsed > sandboxFuelMax {
				t.Errorf("%d fuel used", out.FuelUsed)
			}
		})
	}
}

// dataset makes a dataset of one file, a folder unless path is empty.
func dataset(id abi.ID, path, content string) host.Dataset {
	digest := abi.DigestOf([]byte(content))
	return host.Dataset{
		Handle:       abi.DatasetHandle{ID: id, Size: int64(len(content)), Digest: digest, Folder: path != ""},
		Listing:      abi.DatasetListing{Files: []abi.DatasetFile{{Path: path, Size: int64(len(content)), Digest: digest}}},
		ListingBytes: []byte("{}"),
		Open: func(abi.Digest) (io.ReaderAt, int64, error) {
			return bytes.NewReader([]byte(content)), int64(len(content)), nil
		},
	}
}
