package tidy

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// FileBytesMax is how large a file of the repository may be.
const FileBytesMax = 256 << 10

// FileSize reports files of more than [FileBytesMax] bytes.
func FileSize(t *Tree) []Finding {
	var found []Finding
	for _, name := range t.Paths() {
		if n := len(t.Files[name]); n > FileBytesMax {
			found = append(found, Finding{"size", name, 0, fmt.Sprintf("%d bytes are more than %d", n, FileBytesMax)})
		}
	}
	return found
}

// rootFiles and rootFolders are what may lie at the root, beside dotfiles.
var (
	rootFiles   = []string{"README.md", "CHANGELOG.md", "SECURITY.md", "LICENSE", "Makefile", "go.mod", "go.sum"}
	rootFolders = []string{".ci", "cmd", "conformance", "engine", "examples", "guest-abi", "host", "modules", "policies"}
)

// RootEntries reports what does not belong at the root.
func RootEntries(t *Tree) []Finding {
	var found []Finding
	seen := map[string]bool{}
	for _, name := range t.Paths() {
		first, _, inFolder := strings.Cut(name, "/")
		allowed := slices.Contains(rootFiles, first) || strings.HasPrefix(first, ".")
		if inFolder {
			allowed = slices.Contains(rootFolders, first)
		}
		if !allowed && !seen[first] {
			seen[first] = true
			found = append(found, Finding{"root", first, 0, "does not belong at the root"})
		}
	}
	return found
}

// rationaleFolders each say in a RATIONALE.md why they are built as they are.
var rationaleFolders = []string{"cmd", "conformance", "engine", "guest-abi", "host", "modules", "policies"}

// Rationales reports top-level folders without a RATIONALE.md.
func Rationales(t *Tree) []Finding {
	var found []Finding
	for _, folder := range rationaleFolders {
		inUse := slices.ContainsFunc(t.Paths(), func(name string) bool { return under(name, folder) })
		if _, ok := t.Files[folder+"/RATIONALE.md"]; inUse && !ok {
			found = append(found, Finding{"rationale", folder, 0, "has no RATIONALE.md"})
		}
	}
	return found
}

// machinePath matches places that exist on somebody's machine only.
var machinePath = regexp.MustCompile(`(^|[^A-Za-z0-9_.}/-])/(work|home/[a-z]|root|Users/[A-Za-z])[/a-z]*/`)

// MachinePaths reports text that names a place on one machine.
func MachinePaths(t *Tree) []Finding {
	var found []Finding
	for _, name := range t.Paths() {
		data := t.Files[name]
		if bytes.IndexByte(data, 0) >= 0 {
			continue // not text
		}
		for i, line := range bytes.Split(data, []byte("\n")) {
			if m := machinePath.Find(line); m != nil {
				found = append(found, Finding{"machine-paths", name, i + 1, fmt.Sprintf("%q names a place on one machine", bytes.TrimSpace(m))})
			}
		}
	}
	return found
}
