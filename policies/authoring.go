package policies

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// Question is one of the decisions that policies are asked for.
type Question struct {
	Name    string // the last part of its package: arbitration
	Rule    string // the rule that answers: decision
	Default string // a default that claims nothing, as a Rego term
	result  func() any
}

const noRungs = `{"recorded": "not_checked", "anchored": "not_checked", "retained": "not_checked", "sourced": "not_checked", ` +
	`"verified": "not_checked", "reproduced": "not_checked", "replayed": "not_checked", "certifiable": "not_checked"}`

// Questions returns the decisions policies can be asked for.
func Questions() []Question {
	return []Question{
		{"authority", "decision", `{"allow": false, "reasons": ["no_rule"]}`, func() any { return &authorityResult{} }},
		{"arbitration", "decision", `{"decision": "ESCALATE", "reasons": ["no_rule"], "permissive": false}`, func() any { return &arbitrationResult{} }},
		{"replay", "verdict", `{"verdict": "unacceptable", "blocking": [], "acceptable": [], "reasons": ["no_rule"]}`, func() any { return &replayResult{} }},
		{"standing", "standing", `{"rungs": ` + noRungs + `, "highest": "none", "narrowed_by": ["no_rule"]}`, func() any { return &standingResult{} }},
	}
}

// CheckResult reports how an answer differs from the published shape.
func (q Question) CheckResult(result []byte) error {
	out := q.result()
	if err := decodeResult(result, out); err != nil {
		return err
	}
	wrong := func(format string, args ...any) error {
		return &Refusal{Code: CodeResult, Detail: fmt.Sprintf(format, args...)}
	}
	switch r := out.(type) {
	case *arbitrationResult:
		if severity(r.Decision) < 0 {
			return wrong("decision %.40q is not PASS, FAIL or ESCALATE", r.Decision)
		}
	case *replayResult:
		if verdictRank(r.Verdict) < 0 {
			return wrong("verdict %.40q is none of acceptable, acceptable_with_warnings, non_certifiable, unacceptable", r.Verdict)
		}
	case *standingResult:
		if name, state, ok := r.Rungs.wrong(); ok {
			return wrong("rung %s is %.40q, not yes, no or not_checked", name, state)
		}
		if rungRank(r.Highest) < 0 {
			return wrong("highest %.40q is no rung", r.Highest)
		}
	}
	return nil
}

// RefusedBuiltin says why policies may not use a builtin of OPA's, if the reason
// is on record.
func RefusedBuiltin(name string) (why string, ok bool) {
	if why, ok = refused[name]; ok {
		return why, true
	}
	for _, prefix := range refusedFamilies {
		if strings.HasPrefix(name, prefix) {
			return "none of " + prefix + "* has been reviewed", true
		}
	}
	return "", false
}

// ParserOptions are those every policy is parsed with.
func ParserOptions() ast.ParserOptions {
	return ast.ParserOptions{RegoVersion: ast.RegoV1, Capabilities: capabilities(), ProcessAnnotation: true}
}

// NewCompiler returns a compiler as every policy is compiled with, before it
// compiles anything.
func NewCompiler() *ast.Compiler { return newCompiler() }

// Compile compiles within [CompileTime]. What is wrong with the modules is in
// c.Errors, and in the error.
func Compile(c *ast.Compiler, modules map[string]*ast.Module) error {
	return compileModules(c, modules)
}

// PureFunctions returns an option that gives one evaluator the builtins as a
// decision has them. Each time it is applied, the evaluator gets a call of its
// own: the time and seed, and a fresh measure of what builtins may make.
func PureFunctions(now int64, seed Seed) func(*rego.Rego) {
	all := functions()
	return func(r *rego.Rego) {
		c := &call{now: now, seed: seed}
		for _, f := range all {
			function{f.decl, func(bctx rego.BuiltinContext, args []*ast.Term) (*ast.Term, error) {
				bctx.Context = withCall(bctx.Context, c)
				return f.call(bctx, args)
			}}.option()(r)
		}
	}
}

// Readable is Rego's text with OPA's names of builtins.
func Readable(err error) string { return readable(err) }

// Entrypoint is one decision of compiled modules, to be asked as a run asks it.
type Entrypoint struct{ p policy }

// PrepareEntrypoint prepares a decision for asking, for instance
// "data.writ.arbitration.decision". Options may give it data.
func PrepareEntrypoint(c *ast.Compiler, path string, options ...func(*rego.Rego)) (*Entrypoint, error) {
	query, err := prepare(c, path, options...)
	if err != nil {
		return nil, &Refusal{Code: CodeInvalid, Detail: err.Error()}
	}
	return &Entrypoint{policy{entrypoint: path, query: query}}, nil
}

// Ask returns the answer to an input document, as canonical JSON and before the
// floor, and the rules that were true on the way. Errors are of type *[Refusal]
// unless ctx ended.
func (e *Entrypoint) Ask(ctx context.Context, now int64, seed Seed, input []byte) (result []byte, fired []string, err error) {
	if len(input) > InputBytesMax {
		return nil, nil, &Refusal{Code: CodeInput, Detail: fmt.Sprintf("the input has %d bytes; at most %d are allowed", len(input), InputBytesMax)}
	}
	return e.p.answer(ctx, &call{now: now, seed: seed}, input)
}

// Trace evaluates for the sake of a tracer. It has the limits of Ask but for the
// steps, and no result.
func (e *Entrypoint) Trace(ctx context.Context, now int64, seed Seed, input []byte, options ...rego.EvalOption) error {
	value, err := ast.ValueFromReader(bytes.NewReader(input))
	if err != nil {
		return &Refusal{Code: CodeInput, Detail: err.Error()}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, EvaluationTime, errTooSlow)
	defer cancel()
	stop := topdown.NewCancel()
	defer context.AfterFunc(ctx, stop.Cancel)()
	options = append(options, rego.EvalParsedInput(value), rego.EvalTime(time.Unix(0, now).UTC()), rego.EvalSeed(noSeed{}), rego.EvalExternalCancel(stop), rego.EvalGenerateJSON(asTerm))
	_, err = e.p.query.Eval(withCall(ctx, &call{now: now, seed: seed}), options...)
	return err
}

// InputTime is the time a decision over an input is asked at: its field now, if
// it has one.
func InputTime(input []byte) (now int64, ok bool) {
	var doc struct {
		Now *int64 `json:"now"`
	}
	if err := json.Unmarshal(input, &doc); err != nil || doc.Now == nil {
		return 0, false
	}
	return *doc.Now, true
}

// Canonical writes a JSON document as results are written, for comparing.
func Canonical(doc []byte) ([]byte, error) {
	value, err := ast.ValueFromReader(bytes.NewReader(doc))
	if err != nil {
		return nil, err
	}
	return encodeValue(value, InputBytesMax)
}
