package author

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/writrun/writ/policies"
)

// clausesMax bounds how many clauses of a rule are evaluated one by one.
const clausesMax = 100

// Clash is one of the values of a rule that has more than one.
type Clash struct {
	File  string
	Line  int
	Value string // as Rego writes it
}

// Conflict is a rule that gave more than one value.
type Conflict struct {
	Rule    string // with its arguments, where it is a function
	Clashes []Clash
}

// String shows every value with its place.
func (c *Conflict) String() string {
	lines := []string{c.Rule + " has more than one value:"}
	for _, one := range c.Clashes {
		lines = append(lines, fmt.Sprintf("  %s:%d: %s", one.File, one.Line, one.Value))
	}
	return strings.Join(lines, "\n")
}

// ConflictOf says which values came into conflict, if that is what err says.
// OPA stops at the second one and names only its place; here the clauses it did
// not come to are evaluated each by itself. The trace is that of the evaluation
// that failed, with local variables.
func (p *Policy) ConflictOf(ctx context.Context, err error, trace []*topdown.Event) *Conflict {
	var e *topdown.Error
	if !errors.As(err, &e) || e.Code != topdown.ConflictErr || e.Location == nil {
		return nil
	}
	last := lastExit(trace, e.Location)
	if last == nil {
		return nil
	}
	rule := last.Node.(*ast.Rule)
	args := plugArgs(rule.Head.Args, last.Locals)
	c := &Conflict{Rule: call(rule.Ref(), args)}
	seen := map[*ast.Location]bool{}
	for _, event := range trace {
		r, ok := event.Node.(*ast.Rule)
		if !ok || event.Op != topdown.ExitOp || event.ParentID != last.ParentID || !r.Ref().Equal(rule.Ref()) || r.Head.Value == nil {
			continue
		}
		if !slices.Equal(plugArgs(r.Head.Args, event.Locals), args) {
			continue
		}
		seen[r.Location] = true
		c.add(r.Location, plug(r.Head.Value, event.Locals).String())
	}
	for _, location := range p.clauses(rule.Ref()) {
		if len(seen) < clausesMax && !slices.ContainsFunc(slices.Collect(maps.Keys(seen)), func(l *ast.Location) bool { return sameLocation(l, location) }) {
			seen[location] = true
			if value := p.alone(ctx, rule.Ref(), args, location, last.Input()); value != "" {
				c.add(location, value)
			}
		}
	}
	return c
}

func (c *Conflict) add(l *ast.Location, value string) {
	one := Clash{l.File, l.Row, value}
	if !slices.Contains(c.Clashes, one) {
		c.Clashes = append(c.Clashes, one)
	}
}

func sameLocation(a, b *ast.Location) bool {
	return a != nil && b != nil && a.File == b.File && a.Row == b.Row && a.Col == b.Col
}

// lastExit is the last time the rule at a place was true.
func lastExit(trace []*topdown.Event, l *ast.Location) *topdown.Event {
	for _, event := range slices.Backward(trace) {
		if r, ok := event.Node.(*ast.Rule); ok && event.Op == topdown.ExitOp && sameLocation(r.Location, l) {
			return event
		}
	}
	return nil
}

func plug(t *ast.Term, locals *ast.ValueMap) *ast.Term {
	if locals == nil {
		return t
	}
	plugged, err := ast.TransformVars(t.Copy(), func(v ast.Var) (ast.Value, error) {
		if value := locals.Get(v); value != nil {
			return value, nil
		}
		return v, nil
	})
	if out, ok := plugged.(*ast.Term); ok && err == nil {
		return out
	}
	return t
}

func plugArgs(args ast.Args, locals *ast.ValueMap) []string {
	var out []string
	for _, a := range args {
		out = append(out, plug(a, locals).String())
	}
	return out
}

func call(ref ast.Ref, args []string) string {
	if args == nil {
		return ref.String()
	}
	return ref.String() + "(" + strings.Join(args, ", ") + ")"
}

// clauses are the places where a rule is defined, its default aside.
func (p *Policy) clauses(ref ast.Ref) []*ast.Location {
	var all []*ast.Location
	for _, modules := range []map[string]*ast.Module{p.modules, p.tests} {
		for _, name := range slices.Sorted(maps.Keys(modules)) {
			for _, r := range modules[name].Rules {
				if !r.Default && r.Ref().Equal(ref) {
					all = append(all, r.Location)
				}
			}
		}
	}
	return all
}

// alone is the value of a rule if it had the clause at one place alone, or ""
// where that has none.
func (p *Policy) alone(ctx context.Context, ref ast.Ref, args []string, place *ast.Location, input *ast.Term) string {
	modules := map[string]*ast.Module{}
	for _, all := range []map[string]*ast.Module{p.modules, p.tests} {
		for name, m := range all {
			m = m.Copy()
			m.Rules = slices.DeleteFunc(m.Rules, func(r *ast.Rule) bool { return r.Ref().Equal(ref) && !sameLocation(r.Location, place) })
			modules[name] = m
		}
	}
	c := policies.NewCompiler()
	if policies.Compile(c, modules) != nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, policies.EvaluationTime)
	defer cancel()
	options := []func(*rego.Rego){rego.Query("value := " + call(ref, args)), rego.Compiler(c), rego.Store(inmem.NewFromObject(p.Folder.Data)), policies.PureFunctions(TestTime, policies.Seed{})}
	if input != nil {
		options = append(options, rego.ParsedInput(input.Value))
	}
	options = append(options, rego.GenerateJSON(func(t *ast.Term, _ *rego.EvalContext) (any, error) { return t, nil }))
	results, err := rego.New(options...).Eval(ctx)
	if err != nil || len(results) == 0 {
		return ""
	}
	term, ok := results[0].Bindings["value"].(*ast.Term)
	if !ok {
		return ""
	}
	return term.String()
}
