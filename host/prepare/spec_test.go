package prepare

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// specScript is one script of the specification's test suite.
type specScript struct {
	Commands []specCommand `json:"commands"`
}

type specCommand struct {
	Type       string      `json:"type"`
	Line       int         `json:"line"`
	Name       string      `json:"name"`
	As         string      `json:"as"`
	Filename   string      `json:"filename"`
	ModuleType string      `json:"module_type"`
	Action     specAction  `json:"action"`
	Expected   []specValue `json:"expected"`
	Text       string      `json:"text"`
}

type specAction struct {
	Type   string      `json:"type"`
	Module string      `json:"module"`
	Field  string      `json:"field"`
	Args   []specValue `json:"args"`
}

type specValue struct {
	Type     string          `json:"type"`
	LaneType string          `json:"lane_type"`
	Value    json.RawMessage `json:"value"`
}

var specFiles = sync.OnceValues(func() (map[string][]byte, error) {
	path := os.Getenv("WRIT_SPEC_TESTS")
	if path == "" {
		path = filepath.Join("..", "..", "..", "shared", "spec", "core2.tar.gz")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		if files[filepath.Base(h.Name)], err = io.ReadAll(r); err != nil {
			return nil, err
		}
	}
})

// eachScript calls visit for every script, in order of name.
func eachScript(t *testing.T, visit func(name string, s specScript, files map[string][]byte)) {
	t.Helper()
	files, err := specFiles()
	if errors.Is(err, os.ErrNotExist) {
		t.Skipf("SKIPPED, the specification's test suite is not there (set WRIT_SPEC_TESTS): %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if !strings.HasSuffix(name, ".json") {
			continue
		}
		var s specScript
		if err := json.Unmarshal(files[name], &s); err != nil {
			t.Fatal(name, err)
		}
		visit(strings.TrimSuffix(name, ".json"), s, files)
	}
}

// ownRules are the codes with which admission may refuse a valid module: rules
// beyond those of the specification.
func ownRule(code string) bool {
	return strings.HasPrefix(code, "feature_") || code == codeAboveLimit || code == codeOutOfBounds
}

func codesOf(err error) []string {
	var refusal *Refusal
	if !errors.As(err, &refusal) {
		return nil
	}
	var codes []string
	for _, f := range refusal.Faults {
		codes = append(codes, f.Code)
	}
	return codes
}

// TestSpecificationAdmission: what the specification calls invalid or malformed is
// refused; what it calls valid is admitted, or refused by one of our own rules.
func TestSpecificationAdmission(t *testing.T) {
	counts := map[string]int{}
	eachScript(t, func(name string, s specScript, files map[string][]byte) {
		for _, c := range s.Commands {
			wasm, ok := files[c.Filename]
			if !ok {
				continue
			}
			_, err := prepare(wasm, anything)
			at := fmt.Sprintf("%s:%d %s", name, c.Line, c.Filename)
			if c.Type == "assert_invalid" || c.Type == "assert_malformed" {
				counts[c.Type+" refused"]++
				if err == nil {
					t.Errorf("%s: %s was admitted", at, c.Type)
				}
				continue
			}
			if err == nil {
				counts["valid admitted"]++
				continue
			}
			codes := codesOf(err)
			counts["valid refused by "+codes[0]]++
			if !slices.ContainsFunc(codes, ownRule) || slices.ContainsFunc(codes, func(c string) bool { return !ownRule(c) }) {
				t.Errorf("%s: a valid module was refused: %v", at, err)
			}
		}
	})
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("%6d %s", counts[what], what)
	}
}
