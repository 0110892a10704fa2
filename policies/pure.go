package policies

import (
	"context"
	"errors"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/topdown"
	"github.com/open-policy-agent/opa/v1/types"
)

// purePrefix is put before the name of each builtin that this package guards or
// replaces. OPA finds a builtin of its own by name first, so a replacement needs
// another name; policies are compiled, checked and explained under OPA's.
const purePrefix = "pure_"

// builtin is a call with evaluated arguments; a nil term is an undefined result.
type builtin func(bctx rego.BuiltinContext, args []*ast.Term) (*ast.Term, error)

// pureCalls returns what runs in place of OPA's builtins, by OPA's name.
func pureCalls() map[string]builtin {
	calls := ownBuiltins()
	for name, check := range guards() {
		own := calls[name]
		if own == nil {
			own = original(name)
		}
		calls[name] = guarded(check, own)
	}
	for _, name := range []string{"json.unmarshal", "yaml.unmarshal", "to_number", "units.parse", "units.parse_bytes"} {
		calls[name] = measured(calls[name])
	}
	for _, b := range capabilities().Builtins {
		if calls[b.Name] == nil && makesValues(b) {
			calls[b.Name] = original(b.Name)
		}
	}
	for name, call := range calls {
		calls[name] = charged(call)
	}
	return calls
}

// makesValues reports whether a builtin's results can be large. Those of a
// relation are steps of the evaluation; those of rego.metadata were put in by
// the compiler.
func makesValues(b *ast.Builtin) bool {
	result := b.Decl.Result()
	if result == nil || b.Relation || strings.HasPrefix(b.Name, "rego.") {
		return false
	}
	switch result.(type) {
	case types.Boolean, types.Number:
		return false
	}
	return true
}

// original is OPA's own builtin.
func original(name string) builtin {
	f := topdown.GetBuiltin(name)
	return func(bctx rego.BuiltinContext, args []*ast.Term) (*ast.Term, error) {
		var result *ast.Term
		err := f(bctx, args, func(t *ast.Term) error {
			result = t
			return nil
		})
		if err == nil {
			return result, nil
		}
		var halt topdown.Halt
		if errors.As(err, &halt) {
			return nil, rego.NewHaltError(halt.Err)
		}
		var wrong *topdown.Error
		if errors.As(err, &wrong) {
			return nil, errors.New(strings.TrimPrefix(wrong.Message, name+": "))
		}
		return nil, err
	}
}

// guarded refuses arguments before the call does its work.
func guarded(check guard, call builtin) builtin {
	return func(bctx rego.BuiltinContext, args []*ast.Term) (*ast.Term, error) {
		if err := check(args); err != nil {
			return nil, err
		}
		return call(bctx, args)
	}
}

// measured refuses a result with numbers that take long to compare: text can
// hold some that no document of ours does.
func measured(call builtin) builtin {
	return func(bctx rego.BuiltinContext, args []*ast.Term) (*ast.Term, error) {
		result, err := call(bctx, args)
		if err != nil || result == nil {
			return nil, err
		}
		return result, values([]*ast.Term{result})
	}
}

// charged takes the size of the result from what the evaluation may still make.
func charged(call builtin) builtin {
	return func(bctx rego.BuiltinContext, args []*ast.Term) (*ast.Term, error) {
		result, err := call(bctx, args)
		if err != nil || result == nil {
			return nil, err
		}
		if c := callOf(bctx.Context); c != nil && !c.spend(shallowBytes(result.Value)) {
			c.over = errTooMuch
			return nil, rego.NewHaltError(errTooMuch)
		}
		return result, nil
	}
}

// function is a builtin that takes the place of one of OPA's.
type function struct {
	decl *rego.Function
	call builtin
}

// functions returns every function that compiled policies may call.
func functions() []function {
	calls := pureCalls()
	all := []function{{stepFunction(), step}}
	for _, b := range capabilities().Builtins {
		if call, ok := calls[b.Name]; ok {
			all = append(all, function{&rego.Function{Name: purePrefix + b.Name, Decl: b.Decl}, call})
		}
	}
	return all
}

// option gives the function to one evaluator. OPA's calls have the variable of
// the result behind the arguments.
func (f function) option() func(*rego.Rego) {
	arity := f.decl.Decl.Arity()
	return rego.FunctionDyn(f.decl, func(bctx rego.BuiltinContext, terms []*ast.Term) (*ast.Term, error) {
		return f.call(bctx, terms[:arity])
	})
}

// pureFunctions gives one evaluator every function.
func pureFunctions() []func(*rego.Rego) {
	var options []func(*rego.Rego)
	for _, f := range functions() {
		options = append(options, f.option())
	}
	return options
}

// purify is the last stage of a compiler: it turns calls and mocks of builtins
// that have a replacement into calls of it. Rules of the same name were resolved
// to their full path by then, so what is left of the name is the builtin. It
// also puts in what the limits of an evaluation are held by.
func purify(c *ast.Compiler) *ast.Error {
	calls := pureCalls()
	var direct *ast.Error
	for _, m := range c.Modules {
		ast.WalkExprs(m, func(x *ast.Expr) bool {
			if x.IsCall() && strings.HasPrefix(x.Operator().String(), purePrefix) && direct == nil {
				direct = ast.NewError(ast.TypeErr, x.Location, "undefined function %v", x.Operator())
			}
			if terms, ok := x.Terms.([]*ast.Term); ok {
				terms[0] = purified(calls, terms[0])
			}
			for _, w := range x.With {
				w.Target, w.Value = purified(calls, w.Target), purified(calls, w.Value)
			}
			return false
		})
		instrument(m)
	}
	return direct
}

func purified(calls map[string]builtin, t *ast.Term) *ast.Term {
	ref, ok := t.Value.(ast.Ref)
	if !ok || !ref.IsGround() {
		return t
	}
	if _, ok := calls[ref.String()]; !ok {
		return t
	}
	return ast.NewTerm((&ast.Builtin{Name: purePrefix + ref.String()}).Ref()).SetLocation(t.Location)
}

type callKey struct{}

func withCall(ctx context.Context, c *call) context.Context {
	return context.WithValue(ctx, callKey{}, c)
}

func callOf(ctx context.Context) *call {
	if ctx == nil {
		return nil
	}
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}
