// Package tidy holds the rules that keep this repository in shape: who imports
// whom, what is banned where, how long a function and how large a file may be,
// what is documented and how things are named. Its tests apply every rule to
// the whole tree and show that each rule catches a bad sample.
//
// It reads the files that git tracks or would track, never what is ignored, and
// changes nothing.
package tidy

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Module is the path of this repository's Go module.
const Module = "github.com/writrun/writ"

// Tree is what the rules look at: every file, and the syntax of those in Go.
type Tree struct {
	Files map[string][]byte // by slash-separated path from the root
	Go    map[string]*ast.File
	Set   *token.FileSet
}

// Finding is one place where a rule is broken.
type Finding struct {
	Rule string
	Path string
	Line int // 0 where the whole file is meant
	Text string
}

// String returns path:line: text (rule).
func (f Finding) String() string {
	if f.Line == 0 {
		return fmt.Sprintf("%s: %s (%s)", f.Path, f.Text, f.Rule)
	}
	return fmt.Sprintf("%s:%d: %s (%s)", f.Path, f.Line, f.Text, f.Rule)
}

// Rule looks at a tree and reports where it is broken.
type Rule func(*Tree) []Finding

// Rules returns every rule by name.
func Rules() map[string]Rule {
	return map[string]Rule{
		"imports":       Imports,
		"only-importer": OnlyImporters,
		"bans":          Bans,
		"init":          NoInit,
		"length":        FunctionLength,
		"documented":    Documented,
		"package-doc":   PackageComments,
		"names":         Names,
		"size":          FileSize,
		"root":          RootEntries,
		"rationale":     Rationales,
		"machine-paths": MachinePaths,
	}
}

// NewTree parses files, which are named by their path from the root.
func NewTree(files map[string][]byte) (*Tree, error) {
	t := &Tree{Files: files, Go: map[string]*ast.File{}, Set: token.NewFileSet()}
	for _, name := range t.Paths() {
		if !strings.HasSuffix(name, ".go") {
			continue
		}
		f, err := parser.ParseFile(t.Set, name, files[name], parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("parse %s: %w", name, err)
		}
		t.Go[name] = f
	}
	return t, nil
}

// Load reads the repository in root.
func Load(root string) (*Tree, error) {
	names, err := list(root)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, name := range names {
		info, err := os.Lstat(filepath.Join(root, name))
		if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
			continue // deleted and not committed, or a link
		}
		if err != nil {
			return nil, err
		}
		if files[name], err = os.ReadFile(filepath.Join(root, name)); err != nil {
			return nil, err
		}
	}
	return NewTree(files)
}

// list names the files of the repository: as git sees them, or, in a copy
// without git, all but what git would ignore at the root.
func list(root string) ([]string, error) {
	cmd := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = root
	if out, err := cmd.Output(); err == nil && len(out) > 0 {
		return strings.Split(string(bytes.TrimSuffix(out, []byte{0})), "\x00"), nil
	}
	skip := []string{".git", ".writ", "bin", "build", "modules/out", "examples/release-gate/modules"}
	var names []string
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains(skip, name):
			return fs.SkipDir
		case d.Type().IsRegular():
			names = append(names, name)
		}
		return nil
	})
	return names, err
}

// Paths returns the files of the tree in order.
func (t *Tree) Paths() []string {
	var names []string
	for name := range t.Files {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// GoPaths returns the Go files of the tree in order, tests only if asked for.
func (t *Tree) GoPaths(tests bool) []string {
	return slices.DeleteFunc(t.Paths(), func(name string) bool {
		return t.Go[name] == nil || !tests && isTest(name)
	})
}

func (t *Tree) line(pos token.Pos) int { return t.Set.Position(pos).Line }

// isTest reports whether a Go file is only for tests.
func isTest(name string) bool {
	return strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "host/hosttest/") || strings.Contains(name, "/testdata/")
}

// under reports whether name lies in folder.
func under(name, folder string) bool { return name == folder || strings.HasPrefix(name, folder+"/") }

func folderOf(name string) string { return path.Dir(name) }
