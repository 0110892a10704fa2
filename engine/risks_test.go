package engine_test

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestRisksNamesTestsThatExist keeps RISKS.md from resting on a test that was
// renamed or never written. A name that ends in * stands for every test it
// begins.
func TestRisksNamesTestsThatExist(t *testing.T) {
	page, err := os.ReadFile("RISKS.md")
	if err != nil {
		t.Fatal(err)
	}
	tree := os.DirFS("..")
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	var tests []string
	err = fs.WalkDir(tree, ".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := fs.ReadFile(tree, path)
		for _, m := range declared.FindAllSubmatch(text, -1) {
			tests = append(tests, string(m[1]))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`(Test\\w+)(\\*?)`").FindAllStringSubmatch(string(page), -1)
	if len(named) < 10 {
		t.Fatalf("RISKS.md names %d tests", len(named))
	}
	for _, m := range named {
		found := false
		for _, name := range tests {
			found = found || name == m[1] || m[2] == "*" && strings.HasPrefix(name, m[1])
		}
		if !found {
			t.Errorf("RISKS.md names %s%s, and there is no such test", m[1], m[2])
		}
	}
}
