package author

import (
	"bytes"
	"os"
	"path/filepath"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/format"

	"github.com/writrun/writ/policies"
)

// Formatted is a file and how OPA's formatter writes it.
type Formatted struct {
	Source
	Want []byte
}

// Changed reports whether the file is written another way.
func (f Formatted) Changed() bool { return !bytes.Equal(f.Text, f.Want) }

// Sources are the .rego files of a folder, tests too, or the one file that path
// names.
func Sources(path string) ([]Source, error) {
	if filepath.Ext(path) != ".rego" {
		f, err := Open(path)
		if err != nil {
			return nil, err
		}
		return f.Sources, nil
	}
	text, err := readFile(os.DirFS(filepath.Dir(path)), filepath.Base(path), policies.SourceBytesMax)
	if err != nil {
		return nil, unreadable(path, err)
	}
	return []Source{{path, text}}, nil
}

// Format formats files, and says which cannot be. With fromV0 they are read as Rego v0 where they are not Rego v1, and written as v1.
func Format(sources []Source, fromV0 bool) ([]Formatted, Findings) {
	var all []Formatted
	var found Findings
	for _, s := range sources {
		want, err := format.SourceWithOpts(s.Name, s.Text, format.Opts{RegoVersion: ast.RegoV1})
		if err != nil && isV0(s) {
			if !fromV0 {
				found = append(found, v0Finding(s, err))
				continue
			}
			want, err = format.SourceWithOpts(s.Name, s.Text, format.Opts{RegoVersion: ast.RegoV1,
				ParserOptions: &ast.ParserOptions{RegoVersion: ast.RegoV0}, DropRedundantDirectiveImports: true})
		}
		if err != nil {
			found = append(found, findingsOf(err, s.Name)...)
			continue
		}
		all = append(all, Formatted{s, want})
	}
	return all, found
}
