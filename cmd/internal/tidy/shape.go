package tidy

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
	"strings"
	"unicode"
)

// FunctionLinesMax is how many lines a function may have, signature and closing
// brace included. Tests are tables and are exempt.
const FunctionLinesMax = 70

// FunctionLength reports functions of more than [FunctionLinesMax] lines.
func FunctionLength(t *Tree) []Finding {
	var found []Finding
	for _, name := range t.GoPaths(false) {
		for _, decl := range t.Go[name].Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Body == nil {
				continue
			}
			if n := t.line(f.End()) - t.line(f.Pos()) + 1; n > FunctionLinesMax {
				found = append(found, Finding{"length", name, t.line(f.Pos()), fmt.Sprintf("%s has %d lines; at most %d", f.Name.Name, n, FunctionLinesMax)})
			}
		}
	}
	return found
}

// Documented reports exported names without a sentence that says what they are.
func Documented(t *Tree) []Finding {
	var found []Finding
	for _, name := range t.GoPaths(false) {
		for _, decl := range t.Go[name].Decls {
			for _, ident := range undocumented(decl) {
				found = append(found, Finding{"documented", name, t.line(ident.Pos()), fmt.Sprintf("exported %s has no comment", ident.Name)})
			}
		}
	}
	return found
}

// undocumented returns the exported names a declaration leaves unexplained.
func undocumented(decl ast.Decl) []*ast.Ident {
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		if decl.Name.IsExported() && receiverExported(decl) && !says(decl.Doc) {
			return []*ast.Ident{decl.Name}
		}
	case *ast.GenDecl:
		var names []*ast.Ident
		for _, spec := range decl.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				if spec.Name.IsExported() && !says(spec.Doc) && !says(decl.Doc) {
					names = append(names, spec.Name)
				}
			case *ast.ValueSpec:
				if says(decl.Doc) || says(spec.Doc) || says(spec.Comment) {
					continue
				}
				for _, ident := range spec.Names {
					if ident.IsExported() {
						names = append(names, ident)
					}
				}
			}
		}
		return names
	}
	return nil
}

func says(doc *ast.CommentGroup) bool { return doc != nil && len(strings.TrimSpace(doc.Text())) > 2 }

// receiverExported reports whether f is a function or a method of an exported type.
func receiverExported(f *ast.FuncDecl) bool {
	if f.Recv == nil {
		return true
	}
	expr := f.Recv.List[0].Type
	for {
		switch e := expr.(type) {
		case *ast.StarExpr:
			expr = e.X
		case *ast.IndexExpr:
			expr = e.X
		case *ast.IndexListExpr:
			expr = e.X
		case *ast.Ident:
			return e.IsExported()
		default:
			return true
		}
	}
}

// PackageComments reports packages of which no file says what the package is for.
func PackageComments(t *Tree) []Finding {
	said, first := map[string]bool{}, map[string]string{}
	for _, name := range t.GoPaths(false) {
		folder := folderOf(name)
		if first[folder] == "" {
			first[folder] = name
		}
		said[folder] = said[folder] || says(t.Go[name].Doc)
	}
	var found []Finding
	for folder, name := range first {
		if !said[folder] {
			found = append(found, Finding{"package-doc", name, 1, "package " + folder + " has no comment"})
		}
	}
	slices.SortFunc(found, func(a, b Finding) int { return strings.Compare(a.Path, b.Path) })
	return found
}

// vagueWords say nothing about what a thing hides.
var vagueWords = []string{"util", "utils", "common", "helper", "helpers", "manager", "impl", "misc"}

// Names reports files, folders and types with a word that says nothing.
func Names(t *Tree) []Finding {
	var found []Finding
	for _, name := range t.Paths() {
		for part := range strings.SplitSeq(name, "/") {
			if word := vague(strings.TrimSuffix(part, path.Ext(part))); word != "" {
				found = append(found, Finding{"names", name, 0, fmt.Sprintf("name it for what it hides; %q says nothing", word)})
			}
		}
	}
	for _, name := range t.GoPaths(true) {
		for _, decl := range t.Go[name].Decls {
			for _, ident := range declaredTypes(decl) {
				if word := vague(ident.Name); word != "" {
					found = append(found, Finding{"names", name, t.line(ident.Pos()), fmt.Sprintf("%s: name it for what it hides; %q says nothing", ident.Name, word)})
				}
			}
		}
	}
	return found
}

func declaredTypes(decl ast.Decl) []*ast.Ident {
	var names []*ast.Ident
	if decl, ok := decl.(*ast.GenDecl); ok {
		for _, spec := range decl.Specs {
			if spec, ok := spec.(*ast.TypeSpec); ok {
				names = append(names, spec.Name)
			}
		}
	}
	return names
}

// vague returns the first word of name that says nothing, or "".
func vague(name string) string {
	for _, word := range words(name) {
		if slices.Contains(vagueWords, word) {
			return word
		}
	}
	return ""
}

// words splits snake-case, kebab-case and CamelCase names into lower-case words.
func words(name string) []string {
	var out []string
	start := 0
	runes := []rune(name)
	for i, r := range runes {
		split := !unicode.IsLetter(r) && !unicode.IsDigit(r)
		upper := i > 0 && unicode.IsUpper(r) && unicode.IsLower(runes[i-1])
		if split || upper {
			out = append(out, string(runes[start:i]))
			start = i
			if split {
				start++
			}
		}
	}
	out = append(out, string(runes[start:]))
	for i := range out {
		out[i] = strings.ToLower(out[i])
	}
	return out
}
