package releasegate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host"
	"github.com/writrun/writ/host/hosttest"
	"github.com/writrun/writ/host/prepare"
	"github.com/writrun/writ/host/trace"
	"github.com/writrun/writ/host/wazero"
)

// TestClaimsInTheSandbox runs the executors as the guests they are and holds
// every claim of advisories against the oracle.
func TestClaimsInTheSandbox(t *testing.T) {
	s := newSandbox(t, "inventory", "advisories", "licences")
	t.Run("example", func(t *testing.T) {
		bill, err := os.ReadFile("data/writ.cdx.json")
		if err != nil {
			t.Fatal(err)
		}
		first := s.gate(t, bill, os.DirFS("data/osv"), [32]byte{1})
		second := s.gate(t, bill, os.DirFS("data/osv"), [32]byte{2})
		if diff := cmp.Diff(first, second); diff != "" {
			t.Errorf("an output depends on the seed:\n%s", diff)
		}
	})
	t.Run("released program", func(t *testing.T) {
		bill, records := realData(t)
		s.gate(t, bill, records, [32]byte{1})
	})
}

// sandbox holds the executors, compiled.
type sandbox struct{ modules map[string]host.Compiled }

func newSandbox(t *testing.T, names ...string) sandbox {
	t.Helper()
	engine, err := wazero.New(t.Context(), wazero.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := engine.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	s := sandbox{map[string]host.Compiled{}}
	for _, name := range names {
		p, err := prepare.Prepare(hosttest.Guest(t, name), prepare.Options{})
		if err != nil {
			t.Fatal(err)
		}
		s.modules[name] = hosttest.Compile(t, engine, p)
	}
	return s
}

// gate runs inventory, advisories and licences with default limits and returns
// what each gave back.
func (s sandbox) gate(t *testing.T, bill []byte, records fs.FS, seed [32]byte) map[string]string {
	t.Helper()
	outputs := map[string]string{}
	step := func(id string, inputs map[abi.ID]abi.StepOutput, datasets ...host.Dataset) abi.StepOutput {
		raw := s.execute(t, id, inputs, seed, datasets)
		outputs[id] = string(raw)
		response, err := abi.DecodeExecuteResponse(raw)
		if err != nil {
			t.Fatalf("%s: %v", id, err)
		}
		if response.Error != nil {
			t.Fatalf("%s: %v", id, response.Error)
		}
		return response.StepOutput
	}
	inventory := map[abi.ID]abi.StepOutput{"inventory": step("inventory", nil, fileDataset("sbom", bill))}
	advisories := step("advisories", inventory, folderDataset(t, "advisories-db", records))
	licences := step("licences", inventory)

	want, err := Affected(bill, records)
	if err != nil {
		t.Fatal(err)
	}
	got := map[[2]string]bool{}
	for _, c := range advisories.Claims {
		got[[2]string{c.Subject, strings.TrimPrefix(c.Predicate, "affected_by:")}] = string(c.Value) == "true"
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("oracle (-) and claims (+) differ:\n%s", diff)
	}
	var listed struct{ Components []json.RawMessage }
	if err := json.Unmarshal(inventory["inventory"].Output, &listed); err != nil {
		t.Fatal(err)
	}
	if len(licences.Claims) != len(listed.Components) || len(listed.Components) == 0 {
		t.Errorf("%d licence claims for %d components", len(licences.Claims), len(listed.Components))
	}
	return outputs
}

func (s sandbox) execute(t *testing.T, id string, inputs map[abi.ID]abi.StepOutput, seed [32]byte, datasets []host.Dataset) []byte {
	t.Helper()
	request := abi.ExecuteRequest{ABI: abi.Version, FlowID: "release-gate", Inputs: inputs,
		Step: abi.ExecuteStep{ID: abi.ID(id), Role: abi.RoleReasoning, Config: json.RawMessage(`{}`)}}
	for _, d := range datasets {
		request.Datasets = append(request.Datasets, d.Handle)
	}
	input, err := abi.EncodeMessage(request)
	if err != nil {
		t.Fatal(err)
	}
	limits, err := abi.Limits{}.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	lane := trace.StepLane(abi.ID(id))
	outcome, err := host.Invoke(t.Context(), s.modules[id], host.Invocation{
		Lane: lane, Entry: abi.ExportExecute, Input: input, Limits: limits, Seed: seed,
		ClockStartNanos: 1, ClockStepNanos: 1, Datasets: datasets,
		Boundary: host.NewRecorder(&hosttest.Sink{Lane: lane}, nil),
	})
	if err != nil {
		t.Fatal(err)
	}
	if outcome.Stop != nil {
		t.Fatalf("%s was stopped: %+v", id, *outcome.Stop)
	}
	t.Logf("%s: %d bytes in, %d out, %d fuel of %d, %d bytes of memory, %d host calls",
		id, len(input), len(outcome.Output), outcome.FuelUsed, limits.Fuel, outcome.MemoryBytes, outcome.HostCalls)
	return outcome.Output
}

func fileDataset(id abi.ID, data []byte) host.Dataset {
	size, digest := int64(len(data)), abi.DigestOf(data)
	return host.Dataset{
		Handle:  abi.DatasetHandle{ID: id, Size: size, Digest: digest},
		Listing: abi.DatasetListing{Files: []abi.DatasetFile{{Size: size, Digest: digest}}},
		Open:    func(abi.Digest) (io.ReaderAt, int64, error) { return bytes.NewReader(data), size, nil },
	}
}

func folderDataset(t *testing.T, id abi.ID, files fs.FS) host.Dataset {
	t.Helper()
	d := host.Dataset{Handle: abi.DatasetHandle{ID: id, Folder: true}}
	content := map[abi.Digest][]byte{}
	names, err := fs.Glob(files, "*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		data, err := fs.ReadFile(files, name)
		if err != nil {
			t.Fatal(err)
		}
		f := abi.DatasetFile{Path: name, Size: int64(len(data)), Digest: abi.DigestOf(data)}
		content[f.Digest] = data
		d.Listing.Files = append(d.Listing.Files, f)
		d.Handle.Size += f.Size
	}
	if d.ListingBytes, err = abi.EncodeMessage(d.Listing); err != nil {
		t.Fatal(err)
	}
	d.Handle.Digest = abi.DigestOf(d.ListingBytes)
	d.Open = func(digest abi.Digest) (io.ReaderAt, int64, error) {
		data, ok := content[digest]
		if !ok {
			return nil, 0, errors.New("no such file")
		}
		return bytes.NewReader(data), int64(len(data)), nil
	}
	return d
}
