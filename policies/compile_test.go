package policies

import (
	"strings"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

func TestWhatDoesNotEndIsLeftBehind(t *testing.T) {
	blocked := make(chan struct{})
	defer close(blocked)
	cases := []struct {
		name     string
		f        func()
		panicked any
		ended    bool
	}{
		{"ends", func() {}, nil, true},
		{"panics", func() { panic("no") }, "no", true},
		{"does not end", func() { <-blocked }, nil, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			limit := time.Minute
			if !c.ended {
				limit = time.Millisecond
			}
			panicked, ended := within(limit, c.f)
			if panicked != c.panicked || ended != c.ended {
				t.Errorf("panicked with %v, ended %v", panicked, ended)
			}
		})
	}
}

func TestOwnFunctionsHaveNoOtherNames(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range functions() {
		if !strings.HasPrefix(f.decl.Name, purePrefix) || seen[f.decl.Name] {
			t.Errorf("function %s", f.decl.Name)
		}
		seen[f.decl.Name] = true
	}
	for _, call := range []string{`pure_step("", 1, 0)`, `pure_concat("", ["a"])`, `pure_rand.intn("a", 1)`} {
		m := ast.MustParseModuleWithOpts("package writ.authority\nx := "+call, ast.ParserOptions{RegoVersion: ast.RegoV1})
		err := compileModules(newCompiler(), map[string]*ast.Module{"p.rego": m})
		if err == nil || !strings.Contains(err.Error(), "undefined function") {
			t.Errorf("%s: %v", call, err)
		}
	}
}

func TestValuesAreCanonicalJSON(t *testing.T) {
	cases := []struct{ term, want, wrong string }{
		{`{"b": 1, "a": [true, null, "x"]}`, `{"a":[true,null,"x"],"b":1}`, ""},
		{`{3, 1, 2}`, `[1,2,3]`, ""},
		{`{1: "a", [2]: "b"}`, `{"1":"a","[2]":"b"}`, ""},
		{`{"1": "a", 1: "b"}`, "", "twice"},
		{`"<&\u2028\""`, "\"<&\\u2028\\\"\"", ""},
		{`1e400`, `1e400`, ""},
		{`18446744073709551617`, `18446744073709551617`, ""},
		{`["0123456789", "0123456789", "0123456789", "0123456789", "0123456789", "0123456789"]`, "", "more than the 64 bytes"},
	}
	for _, c := range cases {
		t.Run(c.term, func(t *testing.T) {
			got, err := encodeValue(ast.MustParseTerm(c.term).Value, 64)
			if c.wrong == "" && (err != nil || string(got) != c.want) {
				t.Errorf("%s, %v; want %s", got, err, c.want)
			}
			if c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)) {
				t.Errorf("%s, %v; want an error with %q", got, err, c.wrong)
			}
		})
	}
}

func FuzzFormatsAreEstimatedFromAbove(f *testing.F) {
	for _, seed := range []string{"%s", "%[1]s%[1]q", "%-20v|%x", "%5.3d%%", "%!", "%", "%z%[9]d", "%+q%#q%U", "no verbs"} {
		f.Add(seed, "a\u00e9\x01")
	}
	f.Fuzz(func(t *testing.T, text, argument string) {
		args := []*ast.Term{ast.StringTerm(text), ast.ArrayTerm(ast.StringTerm(argument), ast.IntNumberTerm(7), ast.MustParseTerm(`{"k": [1.5]}`))}
		format, err := scanFormat(text)
		if err != nil || guardSprintf(args) != nil {
			return
		}
		result, err := original("sprintf")(topdown.BuiltinContext{}, args)
		if err != nil {
			return
		}
		sum := 0
		for _, a := range []*ast.Term{ast.StringTerm(argument), ast.IntNumberTerm(7), ast.MustParseTerm(`{"k": [1.5]}`)} {
			n, _ := textBytes(a.Value)
			sum += n + argumentBytes
		}
		bound := format.estimate(len(text), sum, len(argument)+64+argumentBytes)
		if got := len(result.Value.(ast.String)); got > bound {
			t.Errorf("sprintf(%q, %q) has %d bytes, estimated at most %d", text, argument, got, bound)
		}
	})
}
