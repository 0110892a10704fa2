package author

import (
	"errors"
	"fmt"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/writrun/writ/policies"
)

// Finding is one thing that is wrong with a policy. Messages are OPA's where the
// fault is one of Rego.
type Finding struct {
	Code    string
	File    string
	Line    int // from 1; 0 where there is no place in the file
	Column  int // from 1
	Message string
	Hint    string // what to do, "" where the message says it
}

// Error is the finding on one line.
func (f Finding) Error() string {
	place := f.File
	if f.Line > 0 {
		place += fmt.Sprintf(":%d:%d", f.Line, f.Column)
	}
	return place + ": " + f.Message
}

// Findings is everything that is wrong, never empty when it is an error.
type Findings []Finding

// Error returns the findings, one per line.
func (f Findings) Error() string {
	lines := make([]string, 0, len(f))
	for _, one := range f {
		lines = append(lines, one.Error())
	}
	return strings.Join(lines, "\n")
}

// findingsOf turns what OPA says of a file into findings. A v0 file is one
// finding: everything else said of it follows from that.
func findingsOf(err error, file string) Findings {
	var all ast.Errors
	var one *ast.Error
	switch {
	case errors.As(err, &all):
	case errors.As(err, &one):
		all = ast.Errors{one}
	default:
		return Findings{{Code: policies.CodeInvalid, File: file, Message: err.Error()}}
	}
	var found Findings
	for _, e := range all {
		f := Finding{Code: policies.CodeInvalid, File: file, Message: e.Code + ": " + e.Message, Hint: hintFor(e)}
		if e.Location != nil {
			f.Line, f.Column = e.Location.Row, e.Location.Col
			if e.Location.File != "" {
				f.File = e.Location.File
			}
		}
		if e.Details != nil {
			f.Message = strings.Join(append([]string{f.Message}, e.Details.Lines()...), "\n")
		}
		found = append(found, f)
	}
	return found
}

// isV0 reports whether a file that is not Rego v1 is Rego v0.
func isV0(s Source) bool {
	_, err := ast.ParseModuleWithOpts(s.Name, string(s.Text), ast.ParserOptions{RegoVersion: ast.RegoV0})
	return err == nil
}

func v0Finding(s Source, err error) Finding {
	f := findingsOf(err, s.Name)[0]
	f.Code = policies.CodeRegoV0
	f.Message = "the file is Rego v0: " + f.Message
	f.Hint = "rewrite it with: writ policy fmt --v0-v1 --write " + s.Name
	return f
}

func hintFor(e *ast.Error) string {
	switch {
	case strings.Contains(e.Message, "undefined function "):
		name := strings.TrimSpace(e.Message[strings.Index(e.Message, "undefined function ")+len("undefined function "):])
		if why, ok := policies.RefusedBuiltin(name); ok {
			return fmt.Sprintf("%s is no builtin of policies: %s", name, why)
		}
		if opaHas(name) {
			return name + " is a builtin of OPA that policies may not use: nobody has reviewed it"
		}
	case e.Code == ast.TypeErr && strings.Contains(e.Message, "undefined ref: input"):
		return "writ schema prints what a decision is asked over, for instance: writ schema arbitration-input"
	}
	return ""
}

func opaHas(builtin string) bool {
	_, ok := ast.BuiltinMap[builtin]
	return ok
}
