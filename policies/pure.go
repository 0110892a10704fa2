package policies

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/topdown"
	"github.com/open-policy-agent/opa/v1/types"
)

// purePrefix is put before the name of each builtin that this package guards or
// replaces. OPA finds a builtin of its own by name first, so a replacement needs
// another name; policies are compiled, checked and explained under OPA's.
const purePrefix = "pure."

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
	_, isBoolean := result.(types.Boolean)
	return !isBoolean
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
		var halt topdown.Halt
		if errors.As(err, &halt) {
			return nil, rego.NewHaltError(halt.Err)
		}
		var wrong *topdown.Error
		if errors.As(err, &wrong) {
			return nil, errors.New(strings.TrimPrefix(wrong.Message, name+": "))
		}
		return result, err
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
			return nil, rego.NewHaltError(fmt.Errorf("builtins made more than %d bytes in one evaluation", BuiltinBytesMax))
		}
		return result, nil
	}
}

// pureFunctions declares the calls to one evaluator.
func pureFunctions() []func(*rego.Rego) {
	calls := pureCalls()
	var options []func(*rego.Rego)
	for _, b := range capabilities().Builtins {
		if call, ok := calls[b.Name]; ok {
			arity := b.Decl.Arity()
			options = append(options, rego.FunctionDyn(&rego.Function{Name: purePrefix + b.Name, Decl: b.Decl}, func(bctx rego.BuiltinContext, terms []*ast.Term) (*ast.Term, error) {
				return call(bctx, terms[:arity]) // OPA adds the variable of the result
			}))
		}
	}
	return options
}

// purify is the last stage of a compiler: it turns calls and mocks of builtins
// that have a replacement into calls of it. Rules of the same name were resolved
// to their full path by then, so what is left of the name is the builtin.
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
	name := ast.MustParseRef(purePrefix + ref.String())
	return ast.NewTerm(name).SetLocation(t.Location)
}

// call is what one evaluation was given and how much it has used.
type call struct {
	now   int64
	seed  Seed
	bytes int
}

func (c *call) spend(bytes int) bool {
	c.bytes += bytes
	return c.bytes <= BuiltinBytesMax
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
