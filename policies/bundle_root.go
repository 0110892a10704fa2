package policies

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/bundle"
)

// flowRoot is where everything of a flow's bundle lies: data.flow.<flow_id>.
func flowRoot(flowID string) ast.Ref {
	return ast.Ref{ast.DefaultRootDocument, ast.StringTerm("flow"), ast.StringTerm(flowID)}
}

// packageName writes a path as a package clause has it.
func packageName(path ast.Ref) string { return strings.TrimPrefix(path.String(), "data.") }

// checkRoots refuses a package, a document or a declared root outside
// data.flow.<flow_id>.
func checkRoots(flowID string, content *bundle.Bundle, modules map[string]*ast.Module) error {
	root := flowRoot(flowID)
	outside := func(what string) error {
		return &Refusal{Code: CodeBundleRoot, Detail: fmt.Sprintf("%s lies outside %s, the root of this flow's bundle", what, root)}
	}
	for _, path := range slices.Sorted(maps.Keys(modules)) {
		if pkg := modules[path].Package; !pkg.Path.HasPrefix(root) {
			return outside(fmt.Sprintf("%s: package %s", pkg.Location, packageName(pkg.Path)))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(content.Data)) {
		if key != "flow" {
			return outside(fmt.Sprintf("data: %.100q", key))
		}
	}
	flows, ok := content.Data["flow"].(map[string]any)
	if _, any := content.Data["flow"]; any && !ok {
		return outside("data: a value at data.flow")
	}
	for _, key := range slices.Sorted(maps.Keys(flows)) {
		if key != flowID {
			return outside(fmt.Sprintf("data: flow[%.100q]", key))
		}
	}
	if content.Manifest.Roots != nil {
		for _, declared := range *content.Manifest.Roots {
			// OPA reads a manifest without roots as having the root "".
			if d := strings.Trim(declared, "/"); d != "" && !bundle.RootPathsContain([]string{"flow/" + flowID}, d) {
				return outside(fmt.Sprintf(".manifest: root %.100q", declared))
			}
		}
	}
	return nil
}

// checkReads refuses a reference to documents that are not there for a flow's
// policy: they would be undefined without a word.
func checkReads(flowID string, compiled map[string]*ast.Module) error {
	root := flowRoot(flowID)
	var found *Refusal
	for _, path := range slices.Sorted(maps.Keys(compiled)) {
		ast.WalkRefs(compiled[path], func(r ast.Ref) bool {
			if found == nil && r.HasPrefix(root[:1]) && !mayLieUnder(r, root) {
				found = &Refusal{Code: CodeBundleRoot, Detail: fmt.Sprintf("%s: %s is read; a flow's policy sees only what lies under %s", r[0].Location, r, root)}
			}
			return found != nil
		})
	}
	if found != nil {
		return found
	}
	return nil
}

// mayLieUnder reports whether no constant part of r differs from root.
func mayLieUnder(r, root ast.Ref) bool {
	for i, want := range root[:min(len(root), len(r))] {
		if _, constant := r[i].Value.(ast.String); i > 0 && constant && !r[i].Equal(want) {
			return false
		}
	}
	return true
}

// holds reports whether a document has a value at path.
func holds(document any, path []string) bool {
	for _, key := range path {
		object, ok := document.(map[string]any)
		if !ok {
			return false
		}
		if document, ok = object[key]; !ok {
			return false
		}
	}
	return true
}
