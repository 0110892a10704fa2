package policies

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/writrun/writ/guest-abi/abi"
)

const (
	errorBytesMax    = 64 << 10 // of Rego's text, kept
	resultBytesShown = 200      // of a wrong result, in a message
)

// Record is what is kept of one decision. Entrypoint, Input, Now and Seed are
// all that the result follows from, besides the policy.
type Record struct {
	Entrypoint  string
	Policy      abi.Digest
	InputDigest abi.Digest
	Input       []byte   // the document the policy got, canonical JSON
	Now         int64    // nanoseconds since 1970 that time.now_ns gave
	Seed        Seed     // that rand.intn and uuid.rfc4122 drew from
	Result      []byte   // the policy's answer before the floor, canonical JSON; nil where there is none
	RulesFired  []string // "file:row name" of every rule that was true, sorted
}

// decide evaluates the entrypoint over input and decodes its one result into
// out, which is a pointer to a struct; every field of it is required.
func (p *policy) decide(ctx context.Context, now int64, input, out any) (Record, error) {
	record := Record{Entrypoint: p.entrypoint, Policy: p.digest, Now: now, Seed: seedOf(ctx)}
	doc, err := abi.EncodeMessage(input)
	if err != nil {
		return record, &Refusal{Code: CodeInput, Detail: err.Error()}
	}
	if len(doc) > InputBytesMax {
		return record, &Refusal{Code: CodeInput, Detail: fmt.Sprintf("the input has %d bytes; at most %d are allowed", len(doc), InputBytesMax)}
	}
	record.Input, record.InputDigest = doc, abi.DigestOf(doc)
	record.Result, record.RulesFired, err = p.answer(ctx, &call{now: now, seed: record.Seed}, doc)
	if err != nil {
		return record, err
	}
	return record, decodeResult(record.Result, out)
}

// answer is the policy's one value over a document, as canonical JSON, and the
// rules that were true on the way.
func (p *policy) answer(ctx context.Context, c *call, doc []byte) (result []byte, fired []string, err error) {
	value, err := parseValue(doc)
	if err != nil {
		return nil, nil, &Refusal{Code: CodeInput, Detail: err.Error()}
	}
	o, err := p.evaluate(ctx, c, value)
	if err != nil {
		return nil, o.fired, err
	}
	if len(o.results) != 1 || len(o.results[0].Expressions) != 1 {
		return nil, o.fired, &Refusal{Code: CodeUndefined, Detail: "the decision is undefined"}
	}
	term, ok := o.results[0].Expressions[0].Value.(*ast.Term)
	if !ok {
		return nil, o.fired, &Refusal{Code: CodeUndefined, Detail: "the decision is undefined"}
	}
	result, err = encodeValue(term.Value, ResultBytesMax)
	if err != nil {
		return nil, o.fired, &Refusal{Code: CodeResult, Detail: err.Error()}
	}
	return result, o.fired, nil
}

// outcome is what an evaluation left.
type outcome struct {
	results rego.ResultSet
	fired   []string
	over    error // the limit it ran into
	err     error
}

// evaluate gives the evaluation its time and its limits. It runs on the caller's
// goroutine: Rego needs a deep stack, which a new one would have to grow.
func (p *policy) evaluate(ctx context.Context, c *call, input ast.Value) (outcome, error) {
	if ctx.Err() != nil {
		return outcome{}, context.Cause(ctx)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, EvaluationTime, errTooSlow)
	defer cancel()
	stop := topdown.NewCancel()
	defer context.AfterFunc(ctx, stop.Cancel)()
	o := p.run(ctx, c, input, stop)
	switch {
	case o.over != nil:
		return o, &Refusal{Code: CodeTooSlow, Detail: o.over.Error()}
	case o.err == nil:
		return o, nil
	case ctx.Err() != nil:
		return o, ended(ctx)
	}
	return o, &Refusal{Code: CodeEvaluation, Detail: readable(o.err)}
}

// run evaluates. A panic of the evaluator is an error of this policy alone.
func (p *policy) run(ctx context.Context, c *call, input ast.Value, stop topdown.Cancel) (o outcome) {
	defer func() {
		o.fired, o.over = c.fired(), c.over
		if r := recover(); r != nil {
			o.err = fmt.Errorf("the evaluator panicked: %v", r)
		}
	}()
	o.results, o.err = p.query.Eval(withCall(ctx, c), rego.EvalParsedInput(input), rego.EvalTime(time.Unix(0, c.now).UTC()), rego.EvalSeed(noSeed{}),
		rego.EvalExternalCancel(stop), rego.EvalGenerateJSON(asTerm))
	return o
}

// ended says why an evaluation was stopped from outside.
func ended(ctx context.Context) error {
	if errors.Is(context.Cause(ctx), errTooSlow) {
		return &Refusal{Code: CodeTooSlow, Detail: errTooSlow.Error()}
	}
	return context.Cause(ctx)
}

var errTooSlow = fmt.Errorf("the evaluation took longer than %s", EvaluationTime)

// readable is Rego's text with OPA's names of builtins.
func readable(err error) string {
	text := strings.ReplaceAll(err.Error(), "_error: "+purePrefix, "_error: ")
	return text[:min(len(text), errorBytesMax)]
}

// asTerm keeps Rego's value: made into Go values, a small one can be huge.
func asTerm(t *ast.Term, _ *rego.EvalContext) (any, error) { return t, nil }

// noSeed is the randomness OPA itself gets: none, since no allowed builtin is
// to draw on it.
type noSeed struct{}

// Read fails.
func (noSeed) Read([]byte) (int, error) { return 0, errNoCall }

// decodeResult reads the value of a decision strictly.
func decodeResult(b []byte, out any) error {
	var got map[string]json.RawMessage
	if err := json.Unmarshal(b, &got); err != nil {
		return &Refusal{Code: CodeResult, Detail: fmt.Sprintf("the result is not an object but %s", shown(b))}
	}
	want := fieldNames(reflect.TypeOf(out).Elem())
	for _, name := range want {
		if v, ok := got[name]; !ok || string(v) == "null" {
			return &Refusal{Code: CodeResult, Detail: fmt.Sprintf("the result has no %q: %s", name, shown(b))}
		}
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(out); err != nil {
		return &Refusal{Code: CodeResult, Detail: fmt.Sprintf("%v: %s", err, shown(b))}
	}
	for name := range got {
		if !slices.Contains(want, name) {
			// The decoder folds case; a policy must not depend on that.
			return &Refusal{Code: CodeResult, Detail: fmt.Sprintf("the result has a field %q that is none of a decision's", name)}
		}
	}
	return nil
}

// fieldNames are the names of a result's fields, as JSON has them.
func fieldNames(t reflect.Type) []string {
	var names []string
	for f := range t.Fields() {
		names = append(names, f.Tag.Get("json"))
	}
	return names
}

func shown(b []byte) string { return fmt.Sprintf("%.*s", resultBytesShown, b) }

// Refusal is a policy that cannot be used or that gave no valid answer.
type Refusal struct {
	Code   string
	Detail string
}

// Error says what is wrong, with the place Rego names.
func (r *Refusal) Error() string {
	return "policy: " + r.Code + ": " + strings.TrimSpace(r.Detail)
}
