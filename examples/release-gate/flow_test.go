package releasegate

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/writrun/writ/engine/flow"
	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host/hosttest"
	"github.com/writrun/writ/host/prepare"
)

// TestFlowResolves makes a plan of the flow, as it is here and as real.sh lays it
// out: modules keep their contracts, configurations fit them, datasets are there.
func TestFlowResolves(t *testing.T) {
	t.Run("example", func(t *testing.T) {
		dir := t.TempDir()
		if err := os.CopyFS(filepath.Join(dir, "data"), os.DirFS("data")); err != nil {
			t.Fatal(err)
		}
		manifest, err := os.ReadFile("flow.yaml")
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, "flow.yaml"), manifest)
		for _, name := range []string{"inventory", "advisories", "licences", "notify", "rules", "forbidden-licence"} {
			write(t, filepath.Join(dir, "modules", name+".wasm"), hosttest.Guest(t, name))
		}
		p := resolve(t, dir)
		if p.FlowID != "release-gate" {
			t.Errorf("flow %s", p.FlowID)
		}
	})
	t.Run("released program", func(t *testing.T) {
		realData(t)
		dir := filepath.Join(t.TempDir(), "real")
		if out, err := exec.CommandContext(t.Context(), "./real.sh", dir).CombinedOutput(); err != nil {
			t.Fatalf("real.sh: %v\n%s", err, out)
		}
		p := resolve(t, dir)
		files := map[abi.ID]int64{}
		for _, d := range p.Datasets {
			files[d.ID] = d.Files
		}
		if p.FlowID != "release-gate-real" || files["sbom"] != 1 || files["advisories-db"] != 4291 {
			t.Errorf("flow %s with files %v", p.FlowID, files)
		}
	})
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func resolve(t *testing.T, dir string) *flow.Plan {
	t.Helper()
	path := filepath.Join(dir, "flow.yaml")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	m, err := flow.ParseManifest(path, data)
	if err != nil {
		t.Fatal(err)
	}
	p, _, err := flow.Resolve(t.Context(), m, flow.Resolver{Root: dir, Prepare: func(wasm []byte, memory uint64, _ string) (flow.PreparedModule, error) {
		p, err := prepare.Prepare(wasm, prepare.Options{MemoryBytesMax: memory})
		if err != nil {
			return flow.PreparedModule{}, err
		}
		metadata, err := abi.ParseMetadata(p.Info.Metadata)
		return flow.PreparedModule{Original: p.Original, Prepared: p.Digest, OriginalBytes: wasm, PreparedBytes: p.Wasm, Metadata: metadata}, err
	}})
	if err != nil {
		t.Fatal(err)
	}
	if want := []abi.ID{"inventory", "advisories", "licences", "notify"}; !slices.Equal(p.Order, want) || len(p.Warnings) > 0 {
		t.Errorf("order %v, warnings %q", p.Order, p.Warnings)
	}
	return p
}
