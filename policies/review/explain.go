package review

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/writrun/writ/policies/author"
)

// Limits of an explanation.
const (
	TraceEventsMax  = 1_000_000 // of the evaluation, looked at
	FactsMax        = 1000      // shown
	RulesMax        = 1000      // shown, of those that were true and of the others each
	ValueBytesShown = 200       // of a value
)

// Explanation tells how a decision came about, in the order of the evaluation.
type Explanation struct {
	Entrypoint string   `json:"entrypoint"`
	Facts      []Fact   `json:"facts"`    // what was read of the input, in the order it was first read
	True       []Step   `json:"true"`     // rules that were true, in the order they first were
	NotTrue    []Step   `json:"not_true"` // rules that were tried and never true
	Reasons    []string `json:"reasons"`  // of the answer
	Answer     Answer   `json:"answer"`
	Cut        bool     `json:"cut"` // a limit of what is shown was reached
}

// Fact is one part of the input that the policy read.
type Fact struct {
	Path  string `json:"path"`  // input.rule
	Value string `json:"value"` // as Rego writes it; "undefined" where the input has none
}

// Step is one rule.
type Step struct {
	Place string `json:"place"`           // file:row
	Name  string `json:"name"`            // with the arguments of a function
	Value string `json:"value,omitempty"` // of a rule that was true
	Why   string `json:"why,omitempty"`   // the expression that was not true, with its row
}

// Explain asks a decision and follows the evaluation. Every rule is tried, also
// those that an index over the input would pass over.
func (p *Policy) Explain(ctx context.Context, d *author.Decision, q Question) (*Explanation, error) {
	entry, err := p.prepare(d)
	if err != nil {
		return nil, err
	}
	x := &Explanation{Entrypoint: d.Entrypoint, Reasons: []string{}}
	if x.Answer, err = ask(ctx, entry, d, q); err != nil {
		return nil, err
	}
	var result struct{ Reasons, NarrowedBy []string }
	if json.Unmarshal(x.Answer.Result, &result) == nil && result.Reasons != nil {
		x.Reasons = result.Reasons
	}
	input, err := ast.ValueFromReader(bytes.NewReader(q.Input))
	if err != nil {
		return nil, err
	}
	t := &follower{input: input, entered: map[uint64]*ast.Rule{}, facts: map[string]bool{}, steps: map[string]bool{}, passed: map[*ast.Rule]bool{}, failed: map[*ast.Rule]*ast.Expr{}}
	// How the evaluation ended is in the answer.
	_ = entry.Trace(ctx, q.Now, q.Seed, q.Input, rego.EvalQueryTracer(t), rego.EvalRuleIndexing(false))
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	t.tell(x)
	return x, nil
}

// follower notes what an evaluation reads and which rules come true.
type follower struct {
	input   ast.Value
	events  int
	entered map[uint64]*ast.Rule // by query
	facts   map[string]bool
	steps   map[string]bool
	order   []*ast.Rule // by first entry
	passed  map[*ast.Rule]bool
	failed  map[*ast.Rule]*ast.Expr // the last expression a rule came to and failed at

	read []Fact
	done []Step
	cut  bool
}

// Enabled reports that events are wanted.
func (*follower) Enabled() bool { return true }

// Config asks for no variables: they are looked up when needed.
func (*follower) Config() topdown.TraceConfig { return topdown.TraceConfig{} }

// TraceEvent takes up one event.
func (t *follower) TraceEvent(e topdown.Event) {
	if t.events++; t.events > TraceEventsMax {
		t.cut = true
		return
	}
	switch node := e.Node.(type) {
	case *ast.Rule:
		switch e.Op {
		case topdown.EnterOp:
			t.entered[e.QueryID] = node
			if _, again := t.failed[node]; !again && !t.passed[node] {
				t.failed[node] = nil
				t.order = append(t.order, node)
			}
		case topdown.ExitOp:
			t.passed[node] = true
			t.step(e, node)
		}
	case *ast.Expr:
		switch rule := t.entered[e.QueryID]; {
		case e.Op == topdown.EvalOp:
			t.refs(e, node)
		case e.Op == topdown.FailOp && rule != nil:
			if last := t.failed[rule]; last == nil || node.Index >= last.Index {
				t.failed[rule] = node
			}
		}
	}
}

// refs notes the parts of the input that an expression reads.
func (t *follower) refs(e topdown.Event, expr *ast.Expr) {
	ast.WalkRefs(expr, func(ref ast.Ref) bool {
		if !ref.HasPrefix(ast.InputRootRef) {
			return false
		}
		plugged, ok := e.Plug(ast.NewTerm(ref)).Value.(ast.Ref)
		if !ok {
			return false
		}
		path := plugged.GroundPrefix()
		name := path.String()
		if t.facts[name] || len(path) == 1 {
			return false
		}
		if len(t.read) == FactsMax {
			t.cut = true
			return false
		}
		t.facts[name] = true
		value := "undefined"
		if v, err := t.input.Find(path[1:]); err == nil {
			value = shown(v)
		}
		t.read = append(t.read, Fact{name, value})
		return false
	})
}

// step notes that a rule was true.
func (t *follower) step(e topdown.Event, rule *ast.Rule) {
	s := Step{Place: place(rule.Location), Name: rule.Head.Ref().String()}
	switch {
	case rule.Head.Value != nil:
		s.Value = shown(e.Plug(rule.Head.Value).Value)
	case rule.Head.Key != nil:
		s.Value = shown(e.Plug(rule.Head.Key).Value)
	}
	if len(rule.Head.Args) > 0 {
		var args []string
		for _, a := range rule.Head.Args {
			args = append(args, shown(e.Plug(a).Value))
		}
		s.Name += "(" + strings.Join(args, ", ") + ")"
	}
	key := fmt.Sprint(s)
	switch {
	case t.steps[key]:
	case len(t.done) == RulesMax:
		t.cut = true
	default:
		t.steps[key] = true
		t.done = append(t.done, s)
	}
}

func (t *follower) tell(x *Explanation) {
	x.Facts, x.True, x.NotTrue, x.Cut = append([]Fact{}, t.read...), append([]Step{}, t.done...), []Step{}, t.cut
	for _, rule := range t.order {
		if t.passed[rule] {
			continue
		}
		if len(x.NotTrue) == RulesMax {
			x.Cut = true
			return
		}
		s := Step{Place: place(rule.Location), Name: rule.Head.Ref().String()}
		if e := t.failed[rule]; e != nil && e.Location != nil {
			text, _, _ := strings.Cut(string(e.Location.Text), "\n")
			s.Why = fmt.Sprintf("row %d: %s", e.Location.Row, cut(text))
		}
		x.NotTrue = append(x.NotTrue, s)
	}
}

func place(l *ast.Location) string {
	if l == nil {
		return ""
	}
	return fmt.Sprintf("%s:%d", l.File, l.Row)
}

func shown(v ast.Value) string { return cut(v.String()) }

func cut(s string) string {
	if len(s) > ValueBytesShown {
		return strings.ToValidUTF8(s[:ValueBytesShown], "") + "…"
	}
	return s
}
