package tidy

import (
	"fmt"
	"go/ast"
	"slices"
	"strconv"
	"strings"
)

// bannedImports and bannedCalls bring time, chance or the environment in by the
// back door: outside the folders of bannedExcept they come in as arguments.
var (
	bannedImports = []string{"math/rand", "math/rand/v2", "crypto/rand"}
	bannedCalls   = map[string][]string{
		"time": {"Now", "Since", "Until"},
		"os":   {"Getenv", "LookupEnv", "Environ", "ExpandEnv"},
	}
	bannedExcept = []string{"cmd", "host"}
)

// Bans reports time, randomness and environment taken instead of passed in.
func Bans(t *Tree) []Finding {
	var found []Finding
	for _, name := range t.GoPaths(false) {
		if slices.ContainsFunc(bannedExcept, func(folder string) bool { return under(name, folder) }) {
			continue
		}
		packages := map[string]string{} // by the name used in this file
		for _, spec := range t.Go[name].Imports {
			importPath, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				continue
			}
			if slices.Contains(bannedImports, importPath) {
				found = append(found, Finding{"bans", name, t.line(spec.Pos()), "take randomness as an io.Reader instead of importing " + importPath})
			}
			local := importPath[strings.LastIndexByte(importPath, '/')+1:]
			if spec.Name != nil {
				local = spec.Name.Name
			}
			packages[local] = importPath
		}
		ast.Inspect(t.Go[name], func(n ast.Node) bool {
			selector, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, ok := selector.X.(*ast.Ident)
			if ok && slices.Contains(bannedCalls[packages[x.Name]], selector.Sel.Name) {
				found = append(found, Finding{"bans", name, t.line(n.Pos()), fmt.Sprintf("take what %s.%s gives as an argument", packages[x.Name], selector.Sel.Name)})
			}
			return true
		})
	}
	return found
}

// NoInit reports init functions: importing a package does no work.
func NoInit(t *Tree) []Finding {
	var found []Finding
	for _, name := range t.GoPaths(false) {
		for _, decl := range t.Go[name].Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				found = append(found, Finding{"init", name, t.line(f.Pos()), "importing a package does no work; have the caller construct what is needed"})
			}
		}
	}
	return found
}
