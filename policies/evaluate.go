package policies

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/writrun/writ/guest-abi/abi"
)

// Record is what is kept of one decision.
type Record struct {
	Entrypoint  string
	Policy      abi.Digest
	InputDigest abi.Digest
	Input       []byte   // the document the policy got, canonical JSON
	RulesFired  []string // "file:row name" of every rule that was true, sorted
}

// decide evaluates the entrypoint over input and decodes its one result into
// out, which is a pointer to a struct; every field of it is required.
func (p *policy) decide(ctx context.Context, now int64, input, out any) (Record, error) {
	record := Record{Entrypoint: p.entrypoint, Policy: p.digest}
	doc, err := abi.EncodeMessage(input)
	if err != nil {
		return record, &Refusal{Code: CodeInput, Detail: err.Error()}
	}
	if len(doc) > InputBytesMax {
		return record, &Refusal{Code: CodeInput, Detail: fmt.Sprintf("the input has %d bytes; at most %d are allowed", len(doc), InputBytesMax)}
	}
	record.Input, record.InputDigest = doc, abi.DigestOf(doc)
	value, err := ast.ValueFromReader(bytes.NewReader(doc))
	if err != nil {
		return record, &Refusal{Code: CodeInput, Detail: err.Error()}
	}
	fired := &firedRules{seen: map[string]bool{}}
	results, err := p.evaluate(ctx, now, value, fired)
	record.RulesFired = fired.sorted()
	if err != nil {
		return record, err
	}
	return record, decodeResult(results, out)
}

func (p *policy) evaluate(ctx context.Context, now int64, input ast.Value, fired *firedRules) (rego.ResultSet, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, EvaluationTime, errTooSlow)
	defer cancel()
	// A zero time would mean the wall clock to OPA. No builtin that reads it is
	// allowed; the decision's own time is given all the same.
	at := time.Unix(0, max(now, fallbackWallTime)).UTC()
	results, err := p.query.Eval(ctx, rego.EvalParsedInput(input), rego.EvalTime(at), rego.EvalSeed(zeros{}), rego.EvalQueryTracer(fired))
	switch {
	case err == nil:
		return results, nil
	case errors.Is(context.Cause(ctx), errTooSlow):
		return nil, &Refusal{Code: CodeTooSlow, Detail: errTooSlow.Error()}
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	return nil, &Refusal{Code: CodeEvaluation, Detail: err.Error()}
}

var errTooSlow = fmt.Errorf("the evaluation took longer than %s", EvaluationTime)

// zeros is the seed of evaluations: no allowed builtin draws on it.
type zeros struct{}

// Read fills b with zeros.
func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// decodeResult reads the one value of a decision strictly.
func decodeResult(results rego.ResultSet, out any) error {
	if len(results) != 1 || len(results[0].Expressions) != 1 {
		return &Refusal{Code: CodeUndefined, Detail: "the decision is undefined"}
	}
	b, err := json.Marshal(results[0].Expressions[0].Value)
	if err != nil {
		return &Refusal{Code: CodeResult, Detail: err.Error()}
	}
	if len(b) > ResultBytesMax {
		return &Refusal{Code: CodeResult, Detail: fmt.Sprintf("the result has %d bytes; at most %d are allowed", len(b), ResultBytesMax)}
	}
	var got, want map[string]json.RawMessage
	empty, err := json.Marshal(out)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, &got); err != nil {
		return &Refusal{Code: CodeResult, Detail: fmt.Sprintf("the result is not an object but %.200s", b)}
	}
	if err := json.Unmarshal(empty, &want); err != nil {
		return err
	}
	for name := range want {
		if v, ok := got[name]; !ok || string(v) == "null" {
			return &Refusal{Code: CodeResult, Detail: fmt.Sprintf("the result has no %q: %.200s", name, b)}
		}
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(out); err != nil {
		return &Refusal{Code: CodeResult, Detail: fmt.Sprintf("%v: %.200s", err, b)}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			// The decoder folds case; a policy must not depend on that.
			return &Refusal{Code: CodeResult, Detail: fmt.Sprintf("the result has a field %q that is none of a decision's", name)}
		}
	}
	return nil
}

// firedRules notes the rules that were true.
type firedRules struct{ seen map[string]bool }

// Enabled reports that events are wanted.
func (*firedRules) Enabled() bool { return true }

// Config asks for no variables.
func (*firedRules) Config() topdown.TraceConfig { return topdown.TraceConfig{} }

// TraceEvent notes the exit of a rule, which OPA reports if it was true.
func (f *firedRules) TraceEvent(e topdown.Event) {
	rule, ok := e.Node.(*ast.Rule)
	if !ok || e.Op != topdown.ExitOp || rule.Location == nil || len(f.seen) >= RulesFiredMax {
		return
	}
	f.seen[fmt.Sprintf("%s:%d %s", rule.Location.File, rule.Location.Row, rule.Head.Ref())] = true
}

func (f *firedRules) sorted() []string {
	return slices.Sorted(maps.Keys(f.seen))
}

// Refusal is a policy that cannot be used or that gave no valid answer.
type Refusal struct {
	Code   string
	Detail string
}

// Error says what is wrong, with the place Rego names.
func (r *Refusal) Error() string {
	return "policy: " + r.Code + ": " + strings.TrimSpace(r.Detail)
}
