package tidy_test

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/writrun/writ/cmd/internal/tidy"
)

// TestTree applies every rule to the repository.
func TestTree(t *testing.T) {
	tree, err := tidy.Load(root(t))
	if err != nil {
		t.Fatal(err)
	}
	if len(tree.Go) < 10 {
		t.Fatalf("only %d Go files found", len(tree.Go))
	}
	for name, rule := range tidy.Rules() {
		t.Run(name, func(t *testing.T) {
			for _, f := range rule(tree) {
				t.Error(f)
			}
		})
	}
}

func root(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Dir(strings.TrimSpace(string(out)))
}

// TestRules shows for every rule a sample it accepts beside samples it refuses.
func TestRules(t *testing.T) {
	longBody := "package x\n\nfunc f() {\n" + strings.Repeat("\t_ = 1\n", 69) + "}\n"
	tests := []struct {
		rule, note string
		files      map[string]string
		want       []string // parts of the findings' text
	}{
		{"imports", "allowed edge", files("engine/a.go", "package engine\n\nimport _ \"github.com/writrun/writ/host/trace\"\n"), nil},
		{"imports", "standard library", files("guest-abi/abi/a.go", "package abi\n\nimport _ \"net/http\"\n"), nil},
		{"imports", "test is free", files("guest-abi/abi/a_test.go", "package abi\n\nimport _ \"github.com/writrun/writ/engine\"\n"), nil},
		{"imports", "leaf imports ours", files("guest-abi/abi/a.go", "package abi\n\nimport _ \"github.com/writrun/writ/host/trace\"\n"),
			[]string{"guest-abi/abi/a.go:3: guest-abi/abi may not import github.com/writrun/writ/host/trace"}},
		{"imports", "upwards", files("host/a.go", "package host\n\nimport _ \"github.com/writrun/writ/engine\"\n"), []string{"host may not import"}},
		{"imports", "unlisted module", files("engine/a.go", "package engine\n\nimport _ \"github.com/spf13/cobra\"\n"), []string{"may not import github.com/spf13/cobra"}},
		{"imports", "unlisted package of ours", files("tool/a.go", "package tool\n\nimport _ \"github.com/writrun/writ/engine\"\n"), []string{"tool may not import"}},

		{"only-importer", "the one folder", files("policies/a.go", "package policies\n\nimport _ \"github.com/open-policy-agent/opa/v1/rego\"\n"), nil},
		{"only-importer", "another's test", files("engine/a_test.go", "package engine\n\nimport _ \"github.com/open-policy-agent/opa/v1/rego\"\n"), []string{"only policies may import github.com/open-policy-agent/opa"}},
		{"only-importer", "a test that compares engines", files("host/prepare/a_test.go", "package prepare\n\nimport _ \"github.com/tetratelabs/wazero\"\n"), nil},
		{"only-importer", "not a test", files("host/prepare/a.go", "package prepare\n\nimport _ \"github.com/tetratelabs/wazero\"\n"), []string{"only host/wazero"}},
		{"only-importer", "a module of a like name", files("engine/a.go", "package engine\n\nimport _ \"github.com/tetratelabs/wazero-x\"\n"), nil},

		{"bans", "inside cmd", files("cmd/writ/a.go", "package main\n\nimport \"time\"\n\nvar _ = time.Now\n"), nil},
		{"bans", "inside a test", files("engine/a_test.go", "package engine\n\nimport _ \"crypto/rand\"\n"), nil},
		{"bans", "other uses of the package", files("engine/a.go", "package engine\n\nimport \"time\"\n\nvar _ = time.Second\n"), nil},
		{"bans", "clock", files("engine/a.go", "package engine\n\nimport \"time\"\n\nvar _ = time.Now\n"), []string{"engine/a.go:5: take what time.Now gives"}},
		{"bans", "renamed import", files("engine/a.go", "package engine\n\nimport clock \"time\"\n\nvar _ = clock.Since\n"), []string{"time.Since"}},
		{"bans", "randomness", files("engine/a.go", "package engine\n\nimport _ \"crypto/rand\"\nimport _ \"math/rand/v2\"\n"), []string{"crypto/rand", "math/rand/v2"}},
		{"bans", "environment", files("policies/a.go", "package policies\n\nimport \"os\"\n\nvar _ = os.Getenv(\"X\")\n"), []string{"os.Getenv"}},

		{"init", "method named init", files("engine/a.go", "package engine\n\nfunc (x *X) init() {}\n"), nil},
		{"init", "function init", files("engine/a.go", "package engine\n\nfunc init() {}\n"), []string{"importing a package does no work"}},

		{"length", "too long", files("engine/a.go", longBody), []string{"f has 71 lines"}},
		{"length", "just short enough", files("engine/a.go", strings.Replace(longBody, "\t_ = 1\n", "", 1)), nil},
		{"length", "tests are exempt", files("engine/a_test.go", longBody), nil},

		{"documented", "all said", files("engine/a.go", "package engine\n\n// T is one.\ntype T int\n\n// The Ts.\nconst (\n\tA T = 1\n)\n\nvar (\n\tB = 2 // of a kind\n)\n\nfunc g() {}\n\ntype u int\n\nfunc (u) String() string { return \"\" }\n"), nil},
		{"documented", "function, method, type, constant", files("engine/a.go", "package engine\n\ntype T int\n\nconst A = 1\n\nfunc F() {}\n\nfunc (T) M() {}\n"), []string{"T has no", "A has no", "F has no", "M has no"}},

		{"package-doc", "one file says it", map[string]string{"engine/a.go": "// Package engine runs.\npackage engine\n", "engine/b.go": "package engine\n"}, nil},
		{"package-doc", "nobody says it", map[string]string{"engine/a.go": "package engine\n", "engine/b.go": "package engine\n"}, []string{"package engine has no comment"}},

		{"names", "good names", files("engine/commonmark.go", "package engine\n\ntype Utility int\n"), nil},
		{"names", "file", files("engine/http_util.go", "package engine\n"), []string{`"util"`}},
		{"names", "folder", files("engine/common/a.go", "package common\n"), []string{`"common"`}},
		{"names", "types", files("engine/a.go", "package engine\n\ntype storeManager int\n\ntype RunHelper int\n"), []string{"storeManager", "RunHelper"}},

		{"size", "at the limit", files("a.bin", strings.Repeat("x", tidy.FileBytesMax)), nil},
		{"size", "above it", files("a.bin", strings.Repeat("x", tidy.FileBytesMax+1)), []string{"262145 bytes"}},

		{"root", "what belongs", map[string]string{"README.md": "", ".gitignore": "", ".ci/run": "", "engine/x": ""}, nil},
		{"root", "what does not", map[string]string{"notes.txt": "", "pkg/x/y.go": "package y\n", "pkg/z.go": "package z\n"}, []string{"notes.txt", "pkg:"}},

		{"rationale", "there", map[string]string{"host/a.go": "package host\n", "host/RATIONALE.md": "# Why"}, nil},
		{"rationale", "missing", files("host/a.go", "package host\n"), []string{"host: has no RATIONALE.md"}},

		{"machine-paths", "none", files("README.md", "see https://example.org/home/ann/ and ./work/x and $HOME/x\n"), nil},
		{"machine-paths", "a home", files("README.md", "run it\nin /"+"home/ann/src\n"), []string{"README.md:2"}},
		{"machine-paths", "others", files("a.txt", "=/"+"root/x\n\"/"+"work/y/\"\n/"+"Users/Ann/z\n"), []string{"a.txt:1", "a.txt:2", "a.txt:3"}},
		{"machine-paths", "binary", files("a.wasm", "\x00/"+"root/x/\n"), nil},
	}
	covered := map[string]bool{}
	for _, tt := range tests {
		covered[tt.rule] = covered[tt.rule] || tt.want != nil
		t.Run(tt.rule+"/"+tt.note, func(t *testing.T) {
			content := map[string][]byte{}
			for name, text := range tt.files {
				content[name] = []byte(text)
			}
			tree, err := tidy.NewTree(content)
			if err != nil {
				t.Fatal(err)
			}
			got := tidy.Rules()[tt.rule](tree)
			if len(got) != len(tt.want) {
				t.Fatalf("findings: %v; want %d", got, len(tt.want))
			}
			for i, f := range got {
				if !strings.Contains(f.String(), tt.want[i]) {
					t.Errorf("finding %q does not contain %q", f, tt.want[i])
				}
			}
		})
	}
	for name := range tidy.Rules() {
		if !covered[name] {
			t.Errorf("no sample shows what rule %s catches", name)
		}
	}
}

func files(name, text string) map[string]string { return map[string]string{name: text} }

// TestGofmt asks gofmt about every Go file that is not ignored.
func TestGofmt(t *testing.T) {
	dir := root(t)
	tree, err := tidy.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("gofmt", append([]string{"-l"}, tree.GoPaths(true)...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("gofmt: %v\n%s", err, out)
	}
	if diff := cmp.Diff("", string(bytes.TrimSpace(out))); diff != "" {
		t.Errorf("files that gofmt would change (-want +got):\n%s", diff)
	}
}
