package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host/prepare"
)

func repository(t *testing.T) string {
	t.Helper()
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	root, err := findRoot(wd)
	if err != nil {
		t.Fatal(err)
	}
	return root
}

func writeFile(t *testing.T, file, content string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestBuildIsReproducible builds one module under two environments.
func TestBuildIsReproducible(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles a module twice")
	}
	root := repository(t)
	first, err := build(t.Context(), root, "forbidden-licence")
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"GOFLAGS": "-tags=other", "GOOS": "plan9", "GOARCH": "arm64", "CGO_ENABLED": "1", "GOWASM": "satconv"} {
		t.Setenv(name, value)
	}
	second, err := build(t.Context(), root, "forbidden-licence")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, second) {
		t.Errorf("built as %s and %s", sumOf(first), sumOf(second))
	}
	raw, err := abi.FindMetadata(first)
	if err != nil {
		t.Fatal(err)
	}
	if m, err := abi.ParseMetadata(raw); err != nil || m.Name != "forbidden-licence" {
		t.Errorf("metadata %+v, %v", m, err)
	}
	for _, own := range []string{root, os.TempDir(), "writ-module-"} {
		if bytes.Contains(first, []byte(own)) {
			t.Errorf("the module contains %q", own)
		}
	}
}

// TestModulesAreAdmitted builds every module and reads it as a host does.
func TestModulesAreAdmitted(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles every module")
	}
	root := repository(t)
	names, err := moduleNames(filepath.Join(root, "modules"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			wasm, err := build(t.Context(), root, name)
			if err != nil {
				t.Fatal(err)
			}
			p, err := prepare.Prepare(wasm, prepare.Options{})
			if err != nil {
				t.Fatal(err)
			}
			m, err := abi.ParseMetadata(p.Info.Metadata)
			if err != nil {
				t.Fatal(err)
			}
			var calls []string
			for _, i := range p.Info.Imports {
				if i.Module == abi.ModuleWrit {
					calls = append(calls, i.Name)
				}
			}
			if err := m.CheckImports(calls); err != nil {
				t.Error(err)
			}
			want := map[abi.Kind]string{abi.Executor: abi.ExportExecute, abi.Rule: abi.ExportVerify}[m.Kind]
			for _, e := range p.Info.Exports {
				if e.Name == abi.ExportExecute || e.Name == abi.ExportVerify {
					if e.Name != want {
						t.Errorf("a module of kind %s exports %s", m.Kind, e.Name)
					}
				}
			}
		})
	}
}

func TestSumsNameEveryModule(t *testing.T) {
	modules := filepath.Join(repository(t), "modules")
	names, err := moduleNames(modules)
	if err != nil {
		t.Fatal(err)
	}
	sums, err := readSums(filepath.Join(modules, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if sums[name] == "" {
			t.Errorf("SHA256SUMS does not name %s.wasm; run with -update", name)
		}
		if _, err := readMetadata(filepath.Join(modules, name, "module.json"), name); err != nil {
			t.Error(err)
		}
		delete(sums, name)
	}
	if len(sums) > 0 {
		t.Errorf("SHA256SUMS names what is not here: %v", sums)
	}
}

func TestReadMetadataRefusals(t *testing.T) {
	const good = `{"abi":1,"kind":"executor","name":"hello","version":"1.0.0","description":"d","license":"MIT","source":"s","wants":[]}`
	for _, c := range []struct{ name, content, fault string }{
		{"good", good, ""},
		{"no file", "", "no module of this name"},
		{"not JSON", "{", "text ends"},
		{"another name", strings.Replace(good, "hello", "other", 1), `name is "other" and the folder is "hello"`},
		{"no description", strings.Replace(good, `"d"`, `""`, 1), "description is empty"},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "module.json")
			if c.content != "" {
				writeFile(t, file, c.content)
			}
			got, err := readMetadata(file, "hello")
			if c.fault == "" && (err != nil || string(got) != good) {
				t.Errorf("read as %s, %v", got, err)
			}
			if c.fault != "" && (err == nil || !strings.Contains(err.Error(), c.fault)) {
				t.Errorf("error %v, want %q", err, c.fault)
			}
		})
	}
}

func TestBuildRefusesOddNames(t *testing.T) {
	for _, name := range []string{"", "..", "../modules/rules", "-o", "a b"} {
		if _, err := build(t.Context(), t.TempDir(), name); err == nil || !strings.Contains(err.Error(), "id") {
			t.Errorf("module %q: %v", name, err)
		}
	}
}

func TestSums(t *testing.T) {
	sum := strings.Repeat("0123456789abcdef", 4)
	for _, c := range []struct {
		name, content string
		want          sumTable
		fault         string
	}{
		{"no file", "", sumTable{}, ""},
		{"two", sum + "  a.wasm\n" + sum + "  b.wasm\n", sumTable{"a": sum, "b": sum}, ""},
		{"one space", sum + " a.wasm\n", nil, ":1: not a digest"},
		{"short digest", sum[1:] + "  a.wasm\n", nil, ":1: not a digest"},
		{"another kind of file", sum + "  a.txt\n", nil, ":1: not a digest"},
		{"twice", sum + "  a.wasm\n" + sum + "  a.wasm\n", nil, ":2: a.wasm appears twice"},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "SHA256SUMS")
			if c.content != "" {
				writeFile(t, file, c.content)
			}
			got, err := readSums(file)
			if c.fault != "" {
				if err == nil || !strings.Contains(err.Error(), c.fault) {
					t.Errorf("error %v, want %q", err, c.fault)
				}
				return
			}
			if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
				t.Fatalf("%v\n%s", err, diff)
			}
			if err := got.write(file); err != nil {
				t.Fatal(err)
			}
			if again, err := os.ReadFile(file); err != nil || string(again) != c.content {
				t.Errorf("written again as %q, %v", again, err)
			}
		})
	}
}

func TestSettle(t *testing.T) {
	wasm := []byte("wasm")
	for _, c := range []struct {
		name  string
		sums  sumTable
		o     options
		fault string
	}{
		{"no check", sumTable{}, options{}, ""},
		{"check, equal", sumTable{"a": sumOf(wasm)}, options{check: true}, ""},
		{"check, other", sumTable{"a": sumOf(nil)}, options{check: true}, "run with -update"},
		{"check, none", sumTable{}, options{check: true}, "run with -update"},
		{"update", sumTable{"a": sumOf(nil)}, options{update: true}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := settle(c.sums, "a", wasm, c.o)
			if c.fault == "" && err != nil || c.fault != "" && (err == nil || !strings.Contains(err.Error(), c.fault)) {
				t.Errorf("error %v, want %q", err, c.fault)
			}
			if c.o.update && c.sums["a"] != sumOf(wasm) {
				t.Error("the digest is not noted")
			}
		})
	}
}

func TestFindRoot(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "go.mod"), "module example.org/other\n")
	if root, err := findRoot(dir); err == nil {
		t.Errorf("found %q above another module", root)
	}
}
