//go:build !race

// Nothing here is concurrent, and under the race detector an engine takes minutes
// to compile a Go module.

package guest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host"
	"github.com/writrun/writ/host/hosttest"
	"github.com/writrun/writ/host/prepare"
	"github.com/writrun/writ/host/wazero"
)

// module builds testdata/calls and compiles it for the sandbox.
func module(t *testing.T) host.Compiled {
	t.Helper()
	if testing.Short() {
		t.Skip("compiles a module")
	}
	file := filepath.Join(t.TempDir(), "calls.wasm")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-buildmode=c-shared", "-ldflags=-s -w", "-o", file, "./testdata/calls")
	cmd.Env = append(cmd.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	wasm, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	prepared, err := prepare.Prepare(wasm, prepare.Options{MemoryBytesMax: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	engine, err := wazero.New(context.Background(), wazero.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := engine.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return hosttest.Compile(t, engine, prepared)
}

// TestSandbox runs the SDK where it is meant to run.
func TestSandbox(t *testing.T) {
	m := module(t)
	big := bytes.Repeat([]byte("0123456789abcdef"), 300_000) // more than one read
	file := abi.DatasetFile{Path: "a.txt", Size: 2, Digest: abi.DigestOf([]byte("hi"))}
	listing := abi.DatasetListing{Files: []abi.DatasetFile{file}}
	listingBytes, err := abi.EncodeMessage(listing)
	if err != nil {
		t.Fatal(err)
	}
	invoke := func(t *testing.T, entry, request string) host.Outcome {
		t.Helper()
		effect := func(_ context.Context, c host.EffectCall) (host.EffectReply, error) {
			if c.Driver == "refuse" {
				return host.EffectReply{Code: abi.Unavailable}, nil
			}
			return host.EffectReply{Response: bytes.Repeat(c.Request, 1_000_000)}, nil
		}
		out, err := host.Invoke(t.Context(), m, host.Invocation{
			Lane: "hello", Entry: entry, Input: []byte(request), ClockStartNanos: 1_000_000, ClockStepNanos: 1000,
			Datasets: []host.Dataset{
				{
					Handle:  abi.DatasetHandle{ID: "big", Size: int64(len(big)), Digest: abi.DigestOf(big)},
					Listing: abi.DatasetListing{Files: []abi.DatasetFile{{Size: int64(len(big)), Digest: abi.DigestOf(big)}}},
					Open:    func(abi.Digest) (io.ReaderAt, int64, error) { return bytes.NewReader(big), int64(len(big)), nil },
				},
				{Handle: abi.DatasetHandle{ID: "folder", Size: 2, Digest: abi.DigestOf(listingBytes), Folder: true}, Listing: listing, ListingBytes: listingBytes},
			},
			Artifacts: hosttest.Artifacts{}, Effects: true,
			Boundary: host.NewRecorder(&hosttest.Discard{}, effect),
		})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	request := func(do string) string {
		return fmt.Sprintf(`{"abi":1,"flow_id":"gate","step":{"id":"hello","role":"agent","config":{"do":%q}},"inputs":{},"datasets":[]}`, do)
	}

	t.Run("every call", func(t *testing.T) {
		out := invoke(t, abi.ExportExecute, request("call"))
		if out.Stop != nil {
			t.Fatalf("stopped: %+v", out.Stop)
		}
		r, err := abi.DecodeExecuteResponse(out.Output)
		if err != nil || r.Error != nil {
			t.Fatalf("%v, %+v", err, r.Error)
		}
		checkSeen(t, r, abi.DigestOf(big), file)
	})
	t.Run("panic", func(t *testing.T) {
		out := invoke(t, abi.ExportExecute, request("panic"))
		r, err := abi.DecodeExecuteResponse(out.Output)
		if err != nil || r.Error == nil || r.Error.Code != "panic" || !strings.Contains(r.Error.Message, "index out of range") {
			t.Errorf("%v, %+v", err, r.Error)
		}
	})
	t.Run("out of memory", func(t *testing.T) {
		// The Go runtime gives up: there is no response, rather than half a one.
		if out := invoke(t, abi.ExportExecute, request("allocate")); out.Stop == nil || out.Output != nil {
			t.Errorf("stop %+v, output %s", out.Stop, out.Output)
		}
	})
	t.Run("verify", func(t *testing.T) {
		out := invoke(t, abi.ExportVerify, `{"abi":1,"rule":{"id":"r","config":{},"phase":"flow","target":"flow"},"claims":[{"claim_id":"c","statement":"s"}]}`)
		if r, err := abi.DecodeVerifyResponse(out.Output); err != nil || r.Status != abi.Pass {
			t.Errorf("%v, %+v", err, r)
		}
	})
}

func checkSeen(t *testing.T, r abi.ExecuteResponse, big abi.Digest, file abi.DatasetFile) {
	t.Helper()
	var seen struct {
		Now      []int64
		Random   int `json:"random_bytes_not_zero"`
		Effect   int `json:"effect_bytes"`
		Big      abi.Digest
		Files    []abi.DatasetFile
		Artifact string
		Errors   map[string]string
	}
	if err := json.Unmarshal(r.Output, &seen); err != nil {
		t.Fatal(err)
	}
	if len(seen.Now) != 2 || seen.Now[1] != seen.Now[0]+1000 {
		t.Errorf("clock readings %v", seen.Now)
	}
	if share := float64(seen.Random) / (abi.RandomBytesMax + 100); share < 0.99 || share == 1 {
		t.Errorf("%v of random bytes are not zero", share)
	}
	if seen.Effect != 7_000_000 || seen.Big != big || seen.Artifact != "kept" {
		t.Errorf("effect of %d bytes, dataset %s, artifact %q", seen.Effect, seen.Big, seen.Artifact)
	}
	if diff := cmp.Diff([]abi.DatasetFile{file}, seen.Files); diff != "" {
		t.Errorf("listing:\n%s", diff)
	}
	want := map[string]string{
		"dataset":  `read dataset "none": host call refused: not_found`,
		"file":     `read dataset "folder/none": host call refused: not_found`,
		"artifact": `read artifact ` + string(abi.DigestOf(nil)) + `: host call refused: not_found`,
		"id":       `read artifact none: host call refused: invalid`,
		"effect":   `host call refused: unavailable`,
		"log":      `host call refused: invalid`,
	}
	if diff := cmp.Diff(want, seen.Errors); diff != "" {
		t.Errorf("errors:\n%s", diff)
	}
	if a := r.Artifacts[0]; a.ArtifactID != abi.DigestOf([]byte("kept")) || a.Size != 4 {
		t.Errorf("artifact %+v", a)
	}
}
