package policies_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/writrun/writ/policies"
)

// asking returns what a policy answers in reasons[0] when it prints an
// expression, or the refusal.
func asking(t *testing.T, ctx context.Context, now int64, rego string) (string, error) {
	t.Helper()
	set, err := policies.Load(policies.Config{Authority: folder(fmt.Sprintf(`package writ.authority
default decision := {"allow": false, "reasons": ["undefined"]}
%s`, rego))})
	if err != nil {
		return "", err
	}
	d, err := set.Authority(ctx, policies.AuthorityInput{Action: "run", Tenant: "demo", Now: now})
	if err != nil {
		return "", err
	}
	return d.Reasons[0], nil
}

// printing is a policy whose reason is an expression as JSON.
func printing(expression string) string {
	return fmt.Sprintf(`decision := {"allow": true, "reasons": [json.marshal(%s)]}`, expression)
}

func TestEveryBuiltinOfOPAWasReviewed(t *testing.T) {
	replaced := []string{"rand.intn", "time.now_ns", "uuid.rfc4122"}
	known := map[string]bool{}
	for _, b := range ast.CapabilitiesForThisVersion().Builtins {
		known[b.Name] = true
		isAllowed, isRefused := policies.Reviewed(b.Name)
		if isAllowed == isRefused {
			t.Errorf("builtin %s: allowed %v, refused %v; write it into exactly one list of builtins.go", b.Name, isAllowed, isRefused)
		}
		if isAllowed && b.IsNondeterministic() && !slices.Contains(replaced, b.Name) {
			t.Errorf("builtin %s is nondeterministic, allowed and not replaced", b.Name)
		}
	}
	for _, name := range policies.GuardedBuiltins() {
		if isAllowed, _ := policies.Reviewed(name); !isAllowed || !known[name] {
			t.Errorf("builtin %s has a guard; allowed %v, known to OPA %v", name, isAllowed, known[name])
		}
	}
}

func TestTimeIsTheRecordedOne(t *testing.T) {
	for _, now := range []int64{0, 1, 1_700_000_000_123_456_789, -5} {
		got, err := asking(t, t.Context(), now, printing("time.now_ns()"))
		if err != nil || got != fmt.Sprint(now) {
			t.Errorf("at %d: %s, %v", now, got, err)
		}
	}
}

func TestRandomnessFollowsFromSeedAndArguments(t *testing.T) {
	ask := func(seed byte, rego string) string {
		got, err := asking(t, policies.WithSeed(t.Context(), policies.Seed{seed}), 1, rego)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	t.Run("the stream is fixed", func(t *testing.T) {
		cases := []struct{ expression, want string }{
			{`rand.intn("a", 1000000)`, "604687"},
			{`rand.intn("a", 0)`, "0"},
			{`uuid.rfc4122("a")`, `"93713712-e1b7-491e-ae45-02cffb912d99"`},
		}
		for _, c := range cases {
			if got := ask(7, printing(c.expression)); got != c.want {
				t.Errorf("%s is %s, want %s", c.expression, got, c.want)
			}
		}
	})
	t.Run("order of evaluation does not matter", func(t *testing.T) {
		ab := ask(1, printing(`[rand.intn("a", 1000), rand.intn("b", 1000), uuid.rfc4122("a")]`))
		ba := ask(1, `decision := {"allow": true, "reasons": [json.marshal([a, b, u])]} if { u := uuid.rfc4122("a"); b := rand.intn("b", 1000); a := rand.intn("a", 1000) }`)
		if ab != ba {
			t.Errorf("%s and %s", ab, ba)
		}
	})
	t.Run("equal arguments give equal values", func(t *testing.T) {
		if got := ask(1, printing(`[rand.intn("a", 10) == rand.intn("a", -10), uuid.rfc4122("x") == uuid.rfc4122("x"), uuid.rfc4122("x") == uuid.rfc4122("y")]`)); got != "[true,true,false]" {
			t.Error(got)
		}
	})
	t.Run("another seed gives others", func(t *testing.T) {
		x := printing(`[rand.intn("a", 1000000), uuid.rfc4122("a")]`)
		if ask(1, x) == ask(2, x) {
			t.Error("equal")
		}
	})
	t.Run("within its bounds", func(t *testing.T) {
		if got := ask(3, printing(`{n | some i in numbers.range(1, 200); n := rand.intn(sprintf("%d", [i]), 3)}`)); got != "[0,1,2]" {
			t.Error(got)
		}
	})
	t.Run("a version 4 UUID", func(t *testing.T) {
		if got := ask(3, printing(`[uuid.parse(uuid.rfc4122("a")).version, uuid.parse(uuid.rfc4122("a")).variant]`)); got != `[4,"RFC4122"]` {
			t.Error(got)
		}
	})
	t.Run("the streams of a run's policies are its own", func(t *testing.T) {
		if policies.PolicySeed([32]byte{1}) == policies.PolicySeed([32]byte{2}) || policies.PolicySeed([32]byte{1}) == (policies.Seed{1}) {
			t.Error("seeds coincide")
		}
	})
}

func TestNumbersAreExactOrRefused(t *testing.T) {
	cases := []struct{ expression, want, refused string }{
		{"18446744073709551617 + 1", "18446744073709551618", ""},
		{"9007199254740993 + 1", "9007199254740994", ""},
		{"3.14159 - 3", "0.14159", ""},
		{"0.1 + 0.2", "0.3", ""},
		{"1.5 * 1.5", "2.25", ""},
		{"9007199254740993.5 - 0.25", "9007199254740993.25", ""},
		{"1e-30 + 1", "1.000000000000000000000000000001", ""},
		{"{1, 2} - {2}", "[1]", ""},
		{"1e400", "1e400", ""},
		{"1e400 - 1e400 + 1", "1", ""},
		{"1e400 == 10e399", "true", ""},
		{`to_number("1e100000000")`, "", "out of range"},
		{`json.unmarshal("[1e100000000]")`, "", "number too big"},
		{`json.unmarshal("1e9") + 1`, "1000000001", ""},
		{"1 / 4", "0.25", ""},
		{"1 / 0", "", "divide by zero"},
		{`to_number("x")`, "", "to_number"},
		{`to_number("12")`, "12", ""},
		{`1 + input.action`, "", "plus"},
	}
	for _, c := range cases {
		t.Run(c.expression, func(t *testing.T) {
			for range 2 {
				got, err := asking(t, t.Context(), 1, printing(c.expression))
				if c.refused == "" && (err != nil || got != c.want) {
					t.Errorf("%s, %v; want %s", got, err, c.want)
				}
				if c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)) {
					t.Errorf("%s, %v; want a refusal with %q", got, err, c.refused)
				}
			}
		})
	}
}

// doubled builds a value of 2^times parts, each step from the one before.
func doubled(start, step string, times int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "x0 := %s\n", start)
	for i := range times {
		fmt.Fprintf(&b, "x%d := %s\n", i+1, strings.ReplaceAll(step, "X", fmt.Sprintf("x%d", i)))
	}
	return b.String()
}

func TestBuiltinsStopWithinTheirLimits(t *testing.T) {
	pair := "pair(v) := [v, v]\nmany(v) := [v" + strings.Repeat(", v", 99) + "]\n"
	long := `s := concat("", ["0123456789abcdef" | some i in numbers.range(1, 60000)])` + "\n"
	const time = "the evaluation took longer than" // a busy machine may get there first
	cases := []struct{ name, rego, says string }{
		{"bits.lsh", printing("bits.lsh(1, 50000000)"), "bits.lsh: a shift by 50000000 bits"},
		{"bits.lsh by a large number", printing("bits.lsh(1, 18446744073709551617)"), "bits.lsh: a shift"},
		{"numbers.range", printing("count(numbers.range(1, 100000000))"), "numbers.range: a range of more than"},
		{"numbers.range downwards", printing("count(numbers.range(100000000, 1))"), "numbers.range: a range of more than"},
		{"numbers.range of large numbers", printing("count(numbers.range(0, 18446744073709551617))"), "numbers.range: a range of more than"},
		{"numbers.range_step", printing("count(numbers.range_step(1, 100000000, 3))"), "numbers.range_step: a range of more than"},
		{"concat doubled", doubled(`"0123456789abcdef"`, `concat("", [X, X])`, 27) + printing("count(x27)"), "concat: the result could have more than"},
		{"sprintf doubled", doubled(`"0123456789abcdef"`, `sprintf("%s%s", [X, X])`, 27) + printing("count(x27)"), "sprintf: the result could have more than"},
		{"sprintf by index", doubled(`"0123456789abcdef"`, `sprintf("%[1]s%[1]s", [X])`, 27) + printing("count(x27)"), "sprintf: the result could have more than"},
		{"sprintf with a width", printing(`sprintf("%1000000000d", [1])`), "sprintf: a width of 1000000000"},
		{"sprintf with a precision", printing(`sprintf("%.99999999f", [1.5])`), "sprintf: a width of 99999999"},
		{"sprintf with a width given", printing(`sprintf("%*d", [1000000000, 1])`), "sprintf: a format whose width is an argument"},
		{"template doubled", doubled(`"0123456789abcdef"`, `$"{X}{X}"`, 27) + printing("count(x27)"), "the result could have more than"},
		{"replace", long + printing(`count(replace(s, "a", s))`), "replace: the result could have more than"},
		{"replace of nothing", long + printing(`count(replace(s, "", s))`), "replace: the result could have more than"},
		{"strings.replace_n", long + printing(`count(strings.replace_n({"a": s, "b": s}, s))`), "strings.replace_n: the result could have more than"},
		{"regex.replace", long + printing(`count(regex.replace(s, ".", "$0$0$0$0$0$0$0$0$0$0"))`), "regex.replace: the result could have more than"},
		{"array.concat doubled", doubled(`[1]`, `array.concat(X, X)`, 27) + printing("count(x27)"), "made values of more than"},
		{"multiplied by itself", doubled(`123456789`, `X * X`, 27) + printing("x27 > 1"), "digits"},
		{"an array of itself as JSON", pair + doubled(`pair(1)`, `pair(X)`, 12) + printing("many(x12)"), "json.marshal: an argument of more than"},
		{"an array of itself as the answer", pair + doubled(`pair(1)`, `pair(X)`, 12) + `decision := {"allow": true, "reasons": many(x12)}`, "made values of more than"},
		{"a long string parsed", long + doubled("s", `concat("", [X, X])`, 2) + printing("count(split(x2, \"\"))"), "split: a string of"},
		{"many long strings", long + printing(`count([x | some i in numbers.range(1, 5000); x := concat("", [s, sprintf("%d", [i])])])`), "made values of more than"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := asking(t, t.Context(), 1, c.rego)
			var r *policies.Refusal
			if !errors.As(err, &r) || !strings.Contains(r.Detail, c.says) && !strings.HasPrefix(r.Detail, time) {
				t.Errorf("%.100s, error %.300v; want a refusal with %q", got, err, c.says)
			}
		})
	}
}

func TestUsesWithinTheLimitsWork(t *testing.T) {
	cases := []struct{ expression, want string }{
		{"bits.lsh(1, 10)", "1024"},
		{"numbers.range(3, 1)", "[3,2,1]"},
		{"numbers.range_step(0, 10, 5)", "[0,5,10]"},
		{`count(numbers.range(1, 100000))`, "100000"},
		{`concat("-", ["a", "b"])`, `"a-b"`},
		{`sprintf("%-5s|%05.1f|%[1]q|%[3]v", ["a", 1.25, {"k": [1]}])`, `"a    |001.2|\"a\"|{\"k\": [1]}"`},
		{`$"{input.action}!"`, `"run!"`},
		{`replace("aXbX", "X", "--")`, `"a--b--"`},
		{`strings.replace_n({"a": "1", "b": "2"}, "ab")`, `"12"`},
		{`regex.replace("ab", "a", "$0$0")`, `"aab"`},
		{`split("a,b", ",")`, `["a","b"]`},
		{`json.unmarshal("{\"a\": [1]}").a`, "[1]"},
		{`1 in {1, 2}`, "true"},
		{`object.union({"a": 1}, {"b": 2})`, `{"a":1,"b":2}`},
	}
	for _, c := range cases {
		t.Run(c.expression, func(t *testing.T) {
			got, err := asking(t, t.Context(), 1, printing(c.expression))
			if err != nil || got != c.want {
				t.Errorf("%s, %v; want %s", got, err, c.want)
			}
		})
	}
}

func TestRulesKeepTheirNamesBesideBuiltins(t *testing.T) {
	cases := []struct{ name, rego, want string }{
		{"a rule named like a builtin", "concat(_, _) := \"own\"\n" + printing(`concat("", ["a"])`), `"own"`},
		{"a variable with a builtin's path", `decision := {"allow": true, "reasons": [json.marshal(rand.intn)]} if { rand := {"intn": 5} }`, "5"},
		{"a mock of a builtin", "t := time.now_ns()\n" + `decision := {"allow": true, "reasons": [json.marshal(x)]} if { x := t with time.now_ns as 42 }`, "42"},
		{"a mock by a builtin", "t(x) := abs(x)\n" + `decision := {"allow": true, "reasons": [json.marshal(x)]} if { x := t(-1.5) with abs as ceil }`, "-1"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := asking(t, t.Context(), 1, c.rego)
			if err != nil || got != c.want {
				t.Errorf("%s, %v; want %s", got, err, c.want)
			}
		})
	}
}

// folder is a policy folder with one file.
func folder(text string) fstest.MapFS { return fstest.MapFS{"p.rego": {Data: []byte(text)}} }
