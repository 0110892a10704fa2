package policies_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/writrun/writ/policies"
)

// chain is a body in which each variable is made of the one before, n times.
func chain(n int, first, step string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "a0 := %s\n", first)
	for i := range n {
		fmt.Fprintf(&b, "a%d := %s\n", i+1, strings.ReplaceAll(step, "X", fmt.Sprintf("a%d", i)))
	}
	return b.String()
}

// TestShortTextsDoNotFillTheMemory has policies of a few lines whose values
// would have up to 2^60 parts.
func TestShortTextsDoNotFillTheMemory(t *testing.T) {
	const same = "same(v) := v\n"
	answer := func(body string) string {
		return same + "decision := {\"allow\": true, \"reasons\": [\"done\"]} if {\n" + body + "count(a60) > 0\n}"
	}
	cases := []struct{ name, rego string }{
		{"arrays in a body", answer(chain(60, "[1]", "[same(X), same(X)]"))},
		{"objects in a body", answer(chain(60, "[1]", `{"a": same(X), "b": same(X)}`))},
		{"sets in a body", answer(chain(60, "[1]", `{[1, same(X)], [2, same(X)]}`))},
		{"comprehensions in a body", answer(chain(60, "[1]", "[same(X) | some i in [1, 2]; i > 0]"))},
		{"object comprehensions in a body", answer(chain(60, "[1]", "{i: same(X) | some i in [1, 2]}"))},
		{"one value in many places", answer(chain(60, "[1]", "[same(X)"+strings.Repeat(", same(X)", 40)+"]"))},
		{"functions", "pair(v) := [v, v]\n" + answer(chain(60, "[1]", "pair(X)"))},
		{"nested in one literal", answer(chain(60, "[1]", "[[[same(X)], [same(X)]]]"))},
		{"a body of every", same + `decision := {"allow": true, "reasons": ["done"]} if { every i in [1] { ` + strings.ReplaceAll(chain(60, "[i]", "[same(X), same(X)]"), "\n", "; ") + ` count(a60) > 0 } }`},
		{"kept by a loop", `big := numbers.range(1, 50000)
decision := {"allow": true, "reasons": ["done"]} if { count([[i, big] | some i in big]) > 0 }`},
		{"kept by a rule", `big := numbers.range(1, 50000)
all contains [i, big] if some i in big
decision := {"allow": true, "reasons": ["done"]} if { count(all) > 0 }`},
		{"steps", `big := numbers.range(1, 2000)
decision := {"allow": true, "reasons": ["done"]} if { count([1 | some i in big; some j in big]) > 0 }`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := asking(t, t.Context(), 1, c.rego)
			var r *policies.Refusal
			if !errors.As(err, &r) || r.Code != policies.CodeTooSlow {
				t.Errorf("%q, %v; want %s", got, err, policies.CodeTooSlow)
			}
		})
	}
}

func TestRulesThatFired(t *testing.T) {
	set, err := policies.Load(policies.Config{Authority: folder(fired)})
	if err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		mode string
		want []string
	}{
		{"live", []string{"p.rego:11 kind", "p.rego:14 reasons", "p.rego:5 decision", "p.rego:7 reasons"}},
		{"dry-run", []string{"p.rego:3 decision"}},
	}
	for _, c := range cases {
		d, err := set.Authority(t.Context(), policies.AuthorityInput{Action: "run", Tenant: "demo", Mode: c.mode})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, d.Record.RulesFired); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.mode, diff)
		}
	}
}

const fired = `package writ.authority

default decision := {"allow": false, "reasons": []}

decision := {"allow": true, "reasons": reasons} if input.mode == "live"

reasons contains "first" if input.tenant == "demo"

reasons contains "second" if input.tenant == "other"

kind(x) := "live" if x == "live"
else := "other"

reasons contains kind(input.mode) if input.action == "run"
`
