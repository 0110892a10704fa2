package tidy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// graph says what each package of ours may import beside the standard library.
// A line is "folder: what ...", where a word with a dot in its first part is
// another module and its packages, any other word a folder of this repository,
// and "folder/..." means a folder and all below it. The first line that matches
// a package counts. An edge that is not here needs a reason in a RATIONALE.md.
const graph = `
guest-abi/abi:
guest-abi/vectors:         guest-abi/abi
guest-abi/go/guest:        guest-abi/abi
guest-abi/...:             guest-abi/abi guest-abi/go/guest

host/trace:                guest-abi/abi github.com/fxamacker/cbor/v2 github.com/transparency-dev/merkle
host/prepare:              guest-abi/abi
host/codecache:
host/wazero:               guest-abi/abi host host/codecache host/prepare host/trace github.com/tetratelabs/wazero
host/wasmtime:             guest-abi/abi host host/codecache host/prepare host/trace github.com/bytecodealliance/wasmtime-go
host/hosttest:             guest-abi/abi host host/prepare host/trace host/wazero
host:                      guest-abi/abi host/prepare host/trace golang.org/x/crypto

policies/...:              guest-abi/abi policies/... github.com/open-policy-agent/opa oras.land/oras-go/v2 github.com/opencontainers/image-spec github.com/opencontainers/go-digest

engine/flow:               guest-abi/abi github.com/goccy/go-yaml github.com/santhosh-tekuri/jsonschema/v6 golang.org/x/text
engine/effect:             guest-abi/abi engine/flow
engine/evidence:           guest-abi/abi host/trace golang.org/x/sys golang.org/x/mod github.com/transparency-dev/formats github.com/transparency-dev/merkle
engine/store:              guest-abi/abi host/trace github.com/duckdb/duckdb-go/v2
engine:                    guest-abi/abi host host/prepare host/trace engine/flow engine/effect engine/evidence policies github.com/santhosh-tekuri/jsonschema/v6

modules/build:             guest-abi/abi
modules/...:               guest-abi/abi guest-abi/go/guest modules/... golang.org/x/mod github.com/santhosh-tekuri/jsonschema/v6
conformance/...:           guest-abi/abi host host/prepare host/trace host/wazero host/wasmtime engine/... policies
examples/...:              guest-abi/abi golang.org/x/mod

cmd/internal/tidy:
cmd/...:                   guest-abi/abi guest-abi/schema host host/prepare host/trace host/wazero host/wasmtime engine engine/flow engine/effect engine/evidence engine/store policies/... conformance cmd/internal/... github.com/fsnotify/fsnotify github.com/rogpeppe/go-internal github.com/spf13/cobra github.com/schollz/progressbar/v3 github.com/santhosh-tekuri/jsonschema/v6 golang.org/x/sys golang.org/x/term golang.org/x/text
`

// soleImporters names the one folder that may import a large dependency, tests
// included, so that exchanging it touches one package.
var soleImporters = map[string]string{
	"github.com/tetratelabs/wazero":                     "host/wazero",
	"github.com/bytecodealliance/wasmtime-go":           "host/wasmtime",
	"github.com/open-policy-agent/opa":                  "policies",
	"github.com/duckdb/duckdb-go":                       "engine/store",
	"github.com/goccy/go-yaml":                          "engine/flow",
	"github.com/spf13/cobra":                            "cmd",
	"github.com/schollz/progressbar":                    "cmd",
	"github.com/secure-systems-lab/go-securesystemslib": "engine/evidence",
}

// mayImport are further folders whose tests may import what has a sole
// importer: they compare our way with the bare one.
var mayImport = map[string][]string{
	"github.com/tetratelabs/wazero":           {"host/prepare", "host/hosttest", "host", "conformance/kernels", "conformance/engines"},
	"github.com/bytecodealliance/wasmtime-go": {"host/prepare", "conformance/kernels", "conformance/engines"},
}

type edges struct {
	from string
	to   []string
}

// parseGraph reads the form of [graph].
func parseGraph(text string) ([]edges, error) {
	var out []edges
	for i, line := range strings.Split(text, "\n") {
		if strings.TrimSpace(line) == "" {
			continue
		}
		from, to, ok := strings.Cut(line, ":")
		if !ok || from == "" || strings.TrimSpace(from) != from {
			return nil, fmt.Errorf("line %d: %q is not \"folder: what ...\"", i+1, line)
		}
		out = append(out, edges{from, strings.Fields(to)})
	}
	return out, nil
}

// matches reports whether a package folder or import path is meant by pattern.
func matches(pattern, name string) bool {
	if folder, ok := strings.CutSuffix(pattern, "/..."); ok {
		return under(name, folder)
	}
	if isModulePath(pattern) {
		return under(name, pattern)
	}
	return name == pattern
}

// isModulePath reports whether an import path begins with a host name.
func isModulePath(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	return strings.Contains(first, ".")
}

// Imports reports import edges that the graph does not allow. Tests are free in
// what they import, except for what [OnlyImporters] guards.
func Imports(t *Tree) []Finding {
	allowed, err := parseGraph(graph)
	if err != nil {
		return []Finding{{Rule: "imports", Path: "graph", Text: err.Error()}}
	}
	var found []Finding
	for _, name := range t.GoPaths(false) {
		for _, spec := range t.Go[name].Imports {
			importPath, err := strconv.Unquote(spec.Path.Value)
			if err != nil || !isModulePath(importPath) {
				continue
			}
			if !edgeAllowed(allowed, folderOf(name), strings.TrimPrefix(importPath, Module+"/")) {
				found = append(found, Finding{"imports", name, t.line(spec.Pos()), fmt.Sprintf("%s may not import %s", folderOf(name), importPath)})
			}
		}
	}
	return found
}

func edgeAllowed(graph []edges, from, to string) bool {
	for _, e := range graph {
		if matches(e.from, from) {
			return slices.ContainsFunc(e.to, func(pattern string) bool { return matches(pattern, to) })
		}
	}
	return false
}

// OnlyImporters reports imports of a guarded dependency outside its one folder.
func OnlyImporters(t *Tree) []Finding {
	var found []Finding
	for _, name := range t.GoPaths(true) {
		for _, spec := range t.Go[name].Imports {
			importPath, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				continue
			}
			for dependency, folder := range soleImporters {
				if !under(importPath, dependency) || under(folderOf(name), folder) {
					continue
				}
				if isTest(name) && slices.Contains(mayImport[dependency], folderOf(name)) {
					continue
				}
				found = append(found, Finding{"only-importer", name, t.line(spec.Pos()), fmt.Sprintf("only %s may import %s", folder, dependency)})
			}
		}
	}
	return found
}
