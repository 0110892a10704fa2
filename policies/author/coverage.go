package author

import (
	"context"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/cover"
	"github.com/open-policy-agent/opa/v1/rego"

	"github.com/writrun/writ/policies"
)

// Coverage is how much of a policy its tests and cases evaluate. Its JSON is
// that of "opa test --coverage", without the files that are tests.
type Coverage struct {
	Files           map[string]FileCoverage `json:"files"`
	CoveredLines    int                     `json:"covered_lines"`
	NotCoveredLines int                     `json:"not_covered_lines"`
	Percent         float64                 `json:"coverage"` // of lines; 0 where there are none
}

// FileCoverage is the coverage of one file.
type FileCoverage struct {
	Covered         []Range `json:"covered"`
	NotCovered      []Range `json:"not_covered"`
	CoveredLines    int     `json:"covered_lines"`
	NotCoveredLines int     `json:"not_covered_lines"`
	Percent         float64 `json:"coverage"`
}

// Range is a part of a file, both ends included.
type Range struct {
	Start Position `json:"start"`
	End   Position `json:"end"`
}

// Position is a place in a file, from 1.
type Position struct {
	Row    int `json:"row"`
	Column int `json:"col"`
}

// traceCase evaluates a case once more under the tracer of coverage: the
// evaluation that counts has none but its own.
func traceCase(ctx context.Context, c *cover.Cover, entry *policies.Entrypoint, one *Case) {
	// What goes wrong was said when the case was asked.
	_ = entry.Trace(ctx, one.time(), one.Seed, one.Input, rego.EvalQueryTracer(c))
}

// coverageOf leaves out all but the policy's own modules.
func coverageOf(c *cover.Cover, modules map[string]*ast.Module) *Coverage {
	report := c.Report(modules)
	out := &Coverage{Files: map[string]FileCoverage{}}
	for name, f := range report.Files {
		if modules[name] == nil {
			continue
		}
		out.Files[name] = FileCoverage{ranges(f.Covered), ranges(f.NotCovered), f.CoveredLines, f.NotCoveredLines, f.Coverage}
		out.CoveredLines += f.CoveredLines
		out.NotCoveredLines += f.NotCoveredLines
	}
	if lines := out.CoveredLines + out.NotCoveredLines; lines > 0 {
		out.Percent = 100 * float64(out.CoveredLines) / float64(lines)
	}
	return out
}

func ranges(all []cover.Range) []Range {
	out := []Range{}
	for _, r := range all {
		out = append(out, Range{Position{r.Start.Row, r.Start.Col}, Position{r.End.Row, r.End.Col}})
	}
	return out
}
