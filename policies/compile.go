package policies

import (
	"context"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
)

// newCompiler returns a compiler for the policies of one decision: strict, with
// the builtins of builtins.go alone, and with those this package guards or
// replaces put in.
func newCompiler() *ast.Compiler {
	return ast.NewCompiler().WithCapabilities(capabilities()).WithStrict(true).
		WithStageAfterID(ast.StageBuildRequiredCapabilities, ast.CompilerStageDefinition{Name: "Purify", MetricName: "compile_stage_purify", Stage: purify})
}

// prepare makes the query of an entrypoint over what a compiler compiled.
func prepare(c *ast.Compiler, entrypoint string, options ...func(*rego.Rego)) (rego.PreparedEvalQuery, error) {
	options = append(options, rego.Query(entrypoint), rego.Compiler(c), rego.Capabilities(capabilities()), rego.StrictBuiltinErrors(true))
	return rego.New(append(options, pureFunctions()...)...).PrepareForEval(context.Background())
}
