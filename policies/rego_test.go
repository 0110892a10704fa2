package policies_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/tester"
)

func TestRegoTestsPass(t *testing.T) {
	for _, folder := range []string{"authority", "arbitration", "replay", "standing"} {
		paths, err := filepath.Glob(filepath.Join(folder, "*.rego"))
		if err != nil || len(paths) < 2 {
			t.Fatalf("%s: %d files, %v", folder, len(paths), err)
		}
		modules, store, err := tester.Load(paths, nil)
		if err != nil {
			t.Fatal(err)
		}
		results, err := tester.NewRunner().SetStore(store).SetModules(modules).RaiseBuiltinErrors(true).RunTests(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		ran := 0
		for r := range results {
			ran++
			if !r.Pass() {
				t.Errorf("%s: %v", r.String(), r.Error)
			}
		}
		if ran == 0 {
			t.Errorf("%s has no test", folder)
		}
	}
}

// TestReadmeNamesEveryFile keeps the page from naming what is not there.
func TestReadmeNamesEveryFile(t *testing.T) {
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"authority/", "arbitration/", "builtins.go", "floor.go"} {
		if _, err := os.Stat(name); err != nil || !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("%s: named %v, %v", name, strings.Contains(string(page), name), err)
		}
	}
}
