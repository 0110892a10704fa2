package policies

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
)

// CompileTime is how long a policy may take to compile.
const CompileTime = 20 * time.Second

// newCompiler returns a compiler for the policies of one decision: strict, with
// the builtins of builtins.go alone, and with those this package guards or
// replaces put in.
func newCompiler() *ast.Compiler {
	c := capabilities()
	for _, f := range functions() {
		c.Builtins = append(c.Builtins, &ast.Builtin{Name: f.decl.Name, Decl: f.decl.Decl})
	}
	return ast.NewCompiler().WithCapabilities(c).WithStrict(true).
		WithStageAfterID(ast.StageBuildRequiredCapabilities, ast.CompilerStageDefinition{Name: "Purify", MetricName: "compile_stage_purify", Stage: purify})
}

// compileModules compiles, checks what the modules read of their input, and
// gives up on modules whose types OPA takes too long to check: it has no
// deadline of its own. What is wrong is in c.Errors, and in the error.
func compileModules(c *ast.Compiler, modules map[string]*ast.Module) error {
	panicked, ended := within(CompileTime, func() {
		decisions := byDecision(modules)
		for decision := range decisions {
			if len(decisions) == 1 && decision != "" {
				c.WithSchemas(inputSchemas(decision))
			}
		}
		c.Compile(modules)
		if !c.Failed() && len(decisions) > 1 {
			c.Errors = checkInputs(modules)
		}
	})
	switch {
	case !ended:
		return &Refusal{Code: CodeInvalid, Detail: fmt.Sprintf("compiling takes longer than %s; nest values less deeply", CompileTime)}
	case panicked != nil:
		return &Refusal{Code: CodeInvalid, Detail: fmt.Sprintf("the compiler panicked: %v", panicked)}
	case c.Failed():
		return &Refusal{Code: CodeInvalid, Detail: withColumns(c.Errors)}
	}
	return nil
}

// withColumns lists errors as OPA does, with the column of each.
func withColumns(errs ast.Errors) string {
	var b strings.Builder
	for i, err := range errs {
		if i > 0 {
			b.WriteByte('\n')
		}
		text := err.Error()
		if at := err.Location; at != nil {
			place := fmt.Sprintf("%s:%d", at.File, at.Row)
			text = strings.Replace(text, place+":", fmt.Sprintf("%s:%d:", place, at.Col), 1)
		}
		b.WriteString(text)
	}
	return b.String()
}

// within calls f and reports what it panicked with, and whether it ended in
// time. One that did not is left behind.
func within(d time.Duration, f func()) (panicked any, ended bool) {
	done := make(chan any, 1)
	go func() {
		defer func() { done <- recover() }()
		f()
	}()
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case panicked = <-done:
		return panicked, true
	case <-t.C:
		return nil, false
	}
}

// prepare makes the query of an entrypoint over what a compiler compiled.
func prepare(c *ast.Compiler, entrypoint string, options ...func(*rego.Rego)) (rego.PreparedEvalQuery, error) {
	options = append(options, rego.Query(entrypoint), rego.Compiler(c), rego.Capabilities(capabilities()), rego.StrictBuiltinErrors(true))
	return rego.New(append(options, pureFunctions()...)...).PrepareForEval(context.Background())
}
