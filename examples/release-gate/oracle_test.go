package releasegate

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/modfile"

	"github.com/writrun/writ/modules/advisories/osv"
	"github.com/writrun/writ/modules/inventory/sbom"
)

func TestPainted(t *testing.T) {
	events := []map[string]any{{"introduced": "0"}, {"fixed": "1.2.4"}, {"introduced": "1.3.0-0"}, {"fixed": "1.3.7"}}
	for version, want := range map[string]bool{
		"v0.0.0-20200124225646-8b5121be2f68": true, "v1.2.3": true, "v1.2.4": false, "v1.2.9": false, "v1.3.0-0": true, "v1.3.0-rc.1": true, "v1.3.6": true, "v1.3.7": false, "v2.0.0+incompatible": false,
	} {
		if got := painted(events, version); got != want {
			t.Errorf("%s: got %t", version, got)
		}
	}
}

// TestExecutorsAgree holds the executors' own functions against the oracle,
// every pair: over the example's data and, where it is present, over a released
// program and the whole Go vulnerability database.
func TestExecutorsAgree(t *testing.T) {
	t.Run("example", func(t *testing.T) {
		bill, err := os.ReadFile("data/writ.cdx.json")
		if err != nil {
			t.Fatal(err)
		}
		pairs := compare(t, bill, os.DirFS("data/osv"))
		if len(pairs) < 8 {
			t.Errorf("only %d pairs; are the records still about modules of the graph?", len(pairs))
		}
		for pair, affected := range pairs {
			if affected {
				t.Errorf("%s is affected by %s: raise the dependency", pair[0], pair[1])
			}
		}
	})
	t.Run("released program", func(t *testing.T) {
		bill, records := realData(t)
		pairs := compare(t, bill, records)
		affected := 0
		for _, a := range pairs {
			if a {
				affected++
			}
		}
		if len(pairs) < 70 || affected < 10 || affected == len(pairs) {
			t.Errorf("%d pairs, %d affected: not what this data is known for", len(pairs), affected)
		}
		t.Logf("%d pairs, %d affected", len(pairs), affected)
	})
}

// compare returns the oracle's pairs after finding the executors' equal.
func compare(t *testing.T, bill []byte, records fs.FS) map[[2]string]bool {
	t.Helper()
	want, err := Affected(bill, records)
	if err != nil {
		t.Fatal(err)
	}
	inventory, err := sbom.Read(bill)
	if err != nil {
		t.Fatal(err)
	}
	components := inventory.Components
	if inventory.Main != nil {
		components = append(components, *inventory.Main)
	}
	got := map[[2]string]bool{}
	files, err := fs.Glob(records, "*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		data, err := fs.ReadFile(records, name)
		if err != nil {
			t.Fatal(err)
		}
		record, err := osv.Parse(data)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if record.Withdrawn != "" {
			continue
		}
		for _, module := range record.Modules() {
			for _, c := range components {
				path, version, ok := osv.Canonical(c.Name, c.Version)
				if c.Type != "golang" || path != module || !ok {
					continue
				}
				verdict := record.Judge(module, version)
				if verdict == osv.Undecided {
					t.Errorf("%s beside %s is undecided", c.PURL, record.ID)
				}
				got[[2]string{c.PURL, record.ID}] = verdict == osv.IsAffected
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("oracle (-) and executors (+) differ:\n%s", diff)
	}
	return want
}

// realData returns a released program's bill of materials and the Go
// vulnerability database, or skips.
func realData(t *testing.T) ([]byte, fs.FS) {
	t.Helper()
	dir := os.Getenv("WRIT_DATA")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "data")
	}
	bill, err := os.ReadFile(filepath.Join(dir, "proton-bridge-1.8.0.cdx.json"))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("SKIPPED: no real data in %s; set WRIT_DATA to the folder that has it", dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(filepath.Join(dir, "osv-go.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	records := fstest.MapFS{}
	for archive := tar.NewReader(z); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return bill, records
		}
		if err != nil {
			t.Fatal(err)
		}
		name, inFolder := strings.CutPrefix(h.Name, "osv/")
		if !inFolder || name == "" {
			continue
		}
		data, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		records[name] = &fstest.MapFile{Data: data}
	}
}

// TestBillOfMaterialsIsCurrent keeps the example true: the versions it has of
// writ's own dependencies must be those go.mod requires.
func TestBillOfMaterialsIsCurrent(t *testing.T) {
	bill, err := os.ReadFile("data/writ.cdx.json")
	if err != nil {
		t.Fatal(err)
	}
	inventory, err := sbom.Read(bill)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	mod, err := modfile.Parse("go.mod", data, nil)
	if err != nil {
		t.Fatal(err)
	}
	required := map[string]string{}
	for _, r := range mod.Require {
		required[r.Mod.Path] = r.Mod.Version
	}
	for _, c := range inventory.Components {
		if c.Name != "std" && required[c.Name] != c.Version {
			t.Errorf("%s: the bill has %s, go.mod %q; run data/make-sbom.sh", c.Name, c.Version, required[c.Name])
		}
	}
	if inventory.Main == nil || inventory.Main.Name != mod.Module.Mod.Path {
		t.Errorf("main component %+v", inventory.Main)
	}
}
