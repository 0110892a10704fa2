package policies

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"github.com/open-policy-agent/opa/v1/test/cases"
	"github.com/open-policy-agent/opa/v1/test/cases/testdata"
	"github.com/open-policy-agent/opa/v1/util"
)

// fewCases is how many of OPA's cases there is one in the short tier of.
const fewCases = 6

// TestInstrumentedPoliciesAnswerAsOPA runs OPA's own cases twice: as OPA does,
// and with the builtins and the steps of this package put in.
func TestInstrumentedPoliciesAnswerAsOPA(t *testing.T) {
	ran := 0
	for i, c := range opaCases(t) {
		if os.Getenv("WRIT_LONG") == "" && i%fewCases != 0 {
			continue
		}
		if strings.HasPrefix(c.Note, "jwtdecodeverify/") {
			continue // reads the clock past time.now_ns; policies have no such builtin
		}
		ran++
		plain, plainErr := evaluateCase(c, nil)
		ours, oursErr := evaluateCase(c, functions())
		if (plainErr == nil) != (oursErr == nil) {
			t.Errorf("%s: OPA says %v, we say %v", c.Note, plainErr, oursErr)
		} else if diff := cmp.Diff(plain, ours); plainErr == nil && diff != "" {
			t.Errorf("%s (-OPA +ours):\n%s", c.Note, diff)
		}
	}
	if ran < 300 {
		t.Errorf("only %d cases", ran)
	}
}

func opaCases(t *testing.T) []cases.TestCase {
	t.Helper()
	var all cases.Set
	err := fs.WalkDir(testdata.V1, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := testdata.V1.ReadFile(path)
		if err != nil {
			return err
		}
		var s cases.Set
		if err := util.Unmarshal(text, &s); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		all.Cases = append(all.Cases, s.Cases...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.Sorted().Cases
}

// evaluateCase compiles and evaluates a case with own functions put in, if any.
func evaluateCase(c cases.TestCase, own []function) (bindings []map[string]any, err error) {
	modules := map[string]*ast.Module{}
	for i, text := range c.Modules {
		name := fmt.Sprintf("m%d.rego", i)
		m, err := ast.ParseModuleWithOpts(name, text, ast.ParserOptions{RegoVersion: ast.RegoV1, ProcessAnnotation: true})
		if err != nil {
			return nil, err
		}
		modules[name] = m
	}
	caps := ast.CapabilitiesForThisVersion()
	options := []func(*rego.Rego){rego.Query(c.Query), rego.StrictBuiltinErrors(c.StrictError)}
	compiler := ast.NewCompiler()
	for _, f := range own {
		caps.Builtins = append(caps.Builtins, &ast.Builtin{Name: f.decl.Name, Decl: f.decl.Decl})
		options = append(options, f.option())
	}
	if own != nil {
		compiler.WithStageAfterID(ast.StageBuildRequiredCapabilities, ast.CompilerStageDefinition{Name: "Purify", MetricName: "purify", Stage: purify})
	}
	compiler.WithCapabilities(caps)
	if compiler.Compile(modules); compiler.Failed() {
		return nil, compiler.Errors
	}
	data := map[string]any{}
	if c.Data != nil {
		data = *c.Data
	}
	query, err := rego.New(append(options, rego.Compiler(compiler), rego.Store(inmem.NewFromObject(data)))...).PrepareForEval(context.Background())
	if err != nil {
		return nil, err
	}
	var with []rego.EvalOption
	switch {
	case c.InputTerm != nil:
		with = append(with, rego.EvalParsedInput(ast.MustParseTerm(*c.InputTerm).Value))
	case c.Input != nil:
		with = append(with, rego.EvalInput(*c.Input))
	}
	results, err := query.Eval(withCall(context.Background(), &call{now: 1_700_000_000_000_000_000}), with...)
	for _, r := range results {
		bindings = append(bindings, map[string]any(r.Bindings))
	}
	return bindings, err
}
