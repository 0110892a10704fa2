package policies

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/types"
)

// Limits of an evaluation beside its time. They give the same answer on every
// machine.
const (
	StepsMax   = 1_000_000 // times that the body of a rule or a comprehension was true, or a value was copied
	ValueBytes = 128 << 20 // of values that an evaluation makes, copies counted
)

// stepName is the call that instrument puts into every body. OPA's own tracing
// would tell the same and takes three times as long as the evaluation.
const stepName = purePrefix + "step"

// instrument makes the rules of a module report what they do: each body ends in
// a call of stepName with the place of its rule, and what is copied into a
// composite value is measured first. OPA copies a value wherever it is put, so
// that a short chain of [x, x] would fill the memory in one step.
func instrument(m *ast.Module) {
	for _, rule := range m.Rules {
		for r := rule; r != nil; r = r.Else {
			instrumentRule(r)
		}
	}
}

func instrumentRule(r *ast.Rule) {
	label := ""
	if r.Location != nil {
		label = fmt.Sprintf("%s:%d %s", r.Location.File, r.Location.Row, r.Head.Ref())
	}
	bound := ast.NewVarSet()
	for _, arg := range r.Head.Args {
		addVars(bound, arg)
	}
	head := copies{}
	for _, t := range append(slices.Clone(r.Head.Reference), r.Head.Key, r.Head.Value) {
		head.add(t)
	}
	r.Body = instrumentBody(r.Body, bound, label, head)
}

// instrumentBody rewrites a body in which the variables of bound have values
// before it begins. Head counts the variables copied once it is true.
func instrumentBody(body ast.Body, bound ast.VarSet, label string, head copies) ast.Body {
	bound = bound.Copy()
	var out ast.Body
	for _, x := range body {
		copied := copies{}
		instrumentExpr(x, bound, copied)
		for _, v := range copied.sorted() {
			if bound.Contains(v) {
				out.Append(stepCall("", ast.NewTerm(v), copied[v], x.Location))
			}
		}
		out.Append(x)
		addBound(bound, x)
	}
	last := body[len(body)-1].Location
	value, times := ast.InternedTerm(0), 0
	for _, v := range head.sorted() {
		if !bound.Contains(v) {
			continue
		}
		if times > 0 {
			out.Append(stepCall("", value, times, last))
		}
		value, times = ast.NewTerm(v), head[v]
	}
	out.Append(stepCall(label, value, times, last))
	return out
}

// instrumentExpr rewrites the bodies inside an expression and counts the
// variables that are copied into composite values of it.
func instrumentExpr(x *ast.Expr, bound ast.VarSet, copied copies) {
	ast.WalkNodes(x, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Every:
			inner := bound.Copy()
			addVars(inner, n.Key)
			addVars(inner, n.Value)
			n.Body = instrumentBody(n.Body, inner, "", nil)
			return true
		case *ast.Term:
			switch v := n.Value.(type) {
			case *ast.ArrayComprehension:
				v.Body = instrumentBody(v.Body, bound, "", copies{}.add(v.Term))
				return true
			case *ast.SetComprehension:
				v.Body = instrumentBody(v.Body, bound, "", copies{}.add(v.Term))
				return true
			case *ast.ObjectComprehension:
				v.Body = instrumentBody(v.Body, bound, "", copies{}.add(v.Key).add(v.Value))
				return true
			case *ast.Array, ast.Object, ast.Set:
				copied.add(n)
			}
		}
		return false
	})
}

// copies counts how often a variable is copied.
type copies map[ast.Var]int

// add counts the variables of a term outside the bodies in it.
func (c copies) add(t *ast.Term) copies {
	if t == nil {
		return c
	}
	ast.WalkTerms(t, func(t *ast.Term) bool {
		switch v := t.Value.(type) {
		case ast.Var:
			c[v]++
		case *ast.ArrayComprehension, *ast.SetComprehension, *ast.ObjectComprehension:
			return true
		}
		return false
	})
	return c
}

func (c copies) sorted() []ast.Var { return slices.Sorted(maps.Keys(c)) }

// addBound adds the variables that have a value once an expression is true.
func addBound(bound ast.VarSet, x *ast.Expr) {
	if x.Negated {
		return
	}
	switch terms := x.Terms.(type) {
	case *ast.Term:
		addVars(bound, terms)
	case []*ast.Term:
		for _, t := range terms[1:] {
			addVars(bound, t)
		}
	}
}

func addVars(bound ast.VarSet, t *ast.Term) {
	for v := range (copies{}).add(t) {
		bound.Add(v)
	}
}

func stepCall(label string, value *ast.Term, times int, at *ast.Location) *ast.Expr {
	x := ast.NewExpr([]*ast.Term{ast.NewTerm((&ast.Builtin{Name: stepName}).Ref()), ast.StringTerm(label), value, ast.InternedTerm(times)})
	x.Location, x.Generated = at, true
	return x
}

func stepFunction() *rego.Function {
	return &rego.Function{Name: stepName, Decl: types.NewFunction(types.Args(types.S, types.A, types.N), types.B)}
}

// step notes a step of the evaluation: the place of a rule that is true, or "",
// and a value that is copied so many times.
func step(bctx rego.BuiltinContext, args []*ast.Term) (*ast.Term, error) {
	c := callOf(bctx.Context)
	if c == nil {
		return ast.InternedTerm(true), nil
	}
	err := c.step(string(args[0].Value.(ast.String)))
	if times, _ := args[2].Value.(ast.Number).Int(); times > 0 && err == nil {
		err = c.copy(args[1].Value, times)
	}
	if err != nil {
		c.over = err
		return nil, rego.NewHaltError(err)
	}
	return ast.InternedTerm(true), nil
}

// call is what one evaluation was given and how much it has used.
type call struct {
	now   int64
	seed  Seed
	steps int
	bytes int
	over  error           // the limit that was run into
	rules map[string]bool // that were true
}

func (c *call) step(label string) error {
	if c.steps++; c.steps > StepsMax {
		return fmt.Errorf("the evaluation took more than %d steps", StepsMax)
	}
	if label != "" && len(c.rules) < RulesFiredMax && !c.rules[label] {
		if c.rules == nil {
			c.rules = map[string]bool{}
		}
		c.rules[label] = true
	}
	return nil
}

// copy takes times copies of a value from what the evaluation may still make.
func (c *call) copy(v ast.Value, times int) error {
	switch v.(type) {
	case ast.Null, ast.Boolean, ast.Number, ast.String:
		return nil // shared, not copied
	}
	left := (ValueBytes - c.bytes) / times
	if !take(v, &left) {
		return errTooMuch
	}
	c.bytes = ValueBytes - left*times
	return nil
}

var errTooMuch = errors.New(fmt.Sprintf("the evaluation made values of more than %d bytes", ValueBytes))

func (c *call) spend(bytes int) bool {
	c.bytes += bytes
	return c.bytes <= ValueBytes
}

// fired names the rules that were true as "file:row name", sorted.
func (c *call) fired() []string { return slices.Sorted(maps.Keys(c.rules)) }

// take takes what a value has in memory from left, all of its parts included.
func take(v ast.Value, left *int) bool {
	if *left -= termBytes; *left < 0 {
		return false
	}
	switch v := v.(type) {
	case *ast.Array:
		for i := range v.Len() {
			if !take(v.Elem(i).Value, left) {
				return false
			}
		}
	case ast.Set:
		for _, t := range v.Slice() {
			if !take(t.Value, left) {
				return false
			}
		}
	case ast.Object:
		keys := v.KeysIterator()
		for k, ok := keys.Next(); ok; k, ok = keys.Next() {
			if !take(k.Value, left) || !take(v.Get(k).Value, left) {
				return false
			}
		}
	}
	return true
}
