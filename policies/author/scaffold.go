package author

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/writrun/writ/policies"
)

// scaffold holds one policy per decision, whose check, tests and case pass.
//
//go:embed scaffold
var scaffold embed.FS

// Scaffold is a new policy that passes its own tests.
type Scaffold struct {
	Package    string
	Entrypoint string
	Files      []Source // names are relative, with slashes
}

// NewScaffold makes the files of a policy for one decision. With a flow's id it
// is one that the flow brings, else one of the operator's.
func NewScaffold(name, decision, flowID string) (*Scaffold, error) {
	if !regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,63}$`).MatchString(name) {
		return nil, fmt.Errorf("name %.80q is not a letter and up to 63 letters, digits, - and _", name)
	}
	q := question(decision)
	if q == nil {
		return nil, fmt.Errorf("decision %.40q is none of %s", decision, questionNames())
	}
	root := ast.Ref{ast.DefaultRootDocument, ast.StringTerm("writ"), ast.StringTerm(q.Name)}
	if flowID != "" {
		root = ast.Ref{ast.DefaultRootDocument, ast.StringTerm("flow"), ast.StringTerm(flowID), ast.StringTerm(q.Name)}
	}
	s := &Scaffold{Package: strings.TrimPrefix(root.String(), "data."), Entrypoint: root.String() + "." + q.Rule}
	fill := strings.NewReplacer("writ."+q.Name, s.Package, "{{name}}", name, "{{entrypoint}}", s.Entrypoint, "{{decision}}", q.Name)
	from := path.Join("scaffold", q.Name)
	err := fs.WalkDir(scaffold, from, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		return s.add(fill, file, strings.Replace(strings.TrimPrefix(file, from+"/"), "policy", q.Name, 1))
	})
	if err != nil {
		return nil, err
	}
	return s, s.add(fill, "scaffold/README.md", "README.md")
}

func (s *Scaffold) add(fill *strings.Replacer, from, name string) error {
	text, err := scaffold.ReadFile(from)
	s.Files = append(s.Files, Source{name, []byte(fill.Replace(string(text)))})
	return err
}

// Names are the decisions a policy can be for.
func Names() []string {
	var names []string
	for _, q := range policies.Questions() {
		names = append(names, q.Name)
	}
	return names
}
