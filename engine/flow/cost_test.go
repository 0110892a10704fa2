package flow

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestMaxCost states how the fuel of all results is divided: the rule evidence
// of the example has the targets judge and flow and a budget of 2,000 each.
func TestMaxCost(t *testing.T) {
	second := `    - rule_id: steps-only
      module: modules/rules.wasm
      targets: [judge, inventory, notify]
`
	for _, c := range []struct {
		name      string
		cost      string
		own       string // fuel budget of the rule evidence; "" for none
		second    bool   // whether there is a second rule, without a budget
		want      []uint64
		wantFault string
	}{
		{"no bound", "", "{fuel: 2000}", false, []uint64{2000}, ""},
		{"as much as the budgets", "4000", "{fuel: 2000}", false, []uint64{2000}, ""},
		{"less than the budgets", "3999", "{fuel: 2000}", false, nil, "rules up to this one may use 4000 fuel, which is more than max_cost 3999"},
		{"what is left is shared", "4300", "{fuel: 2000}", true, []uint64{2000, 100}, ""},
		{"a rest is given to nobody", "4302", "{fuel: 2000}", true, []uint64{2000, 100}, ""},
		{"nothing is left", "4002", "{fuel: 2000}", true, nil, "max_cost 4002 leaves no fuel for 3 of the results"},
		{"all share", "1000", "", true, []uint64{200, 200}, ""},
		{"a share is no more than the default", "9000000000000000", "", true, []uint64{20_000_000_000, 20_000_000_000}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := resolvable(t)
			if c.own == "" {
				text = change(t, text, "      budget: {fuel: 2000}\n", "")
			}
			more := ""
			if c.second {
				more = second
			}
			if c.cost != "" {
				more += "  max_cost: " + c.cost + "\n"
			}
			text = change(t, text, "  arbitration: {rule: quorum", more+"  arbitration: {rule: quorum")
			p, _, err := Resolve(t.Context(), mustParse(t, text), Resolver{Root: checkout(t), Prepare: prepareForTest})
			if c.wantFault != "" {
				if err == nil || !strings.Contains(err.Error(), c.wantFault) {
					t.Fatalf("error %v, want %q", err, c.wantFault)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []uint64
			for _, r := range p.Rules {
				got = append(got, r.Limits.Fuel)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("fuel of the rules (-want +got):\n%s", diff)
			}
			if p.MaxCost > 0 && p.rulesCost() > p.MaxCost || p.inconsistent() != "" {
				t.Errorf("rules may use %d of %d: %s", p.rulesCost(), p.MaxCost, p.inconsistent())
			}
			p.Rules[0].Limits.Fuel = 1 << 53
			if p.MaxCost > 0 && p.inconsistent() == "" {
				t.Error("a plan file whose rules may use more than max_cost is accepted")
			}
		})
	}
}
