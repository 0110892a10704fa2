package flow

import (
	"fmt"

	"github.com/writrun/writ/guest-abi/abi"
)

// apportion divides max_cost among the lanes of rules, one for each rule and
// target: those with a fuel budget of their own have that, the others have equal
// shares of the rest. So the sum of what rules may use is at most max_cost, and
// no two lanes race for it.
func (s *resolution) apportion() {
	most := s.manifest.MaxCost
	if most == 0 {
		return
	}
	s.plan.MaxCost = most
	stated, shares := uint64(0), uint64(0)
	for i := range s.manifest.Rules {
		rule := &s.manifest.Rules[i]
		lanes := uint64(len(rule.Targets))
		if rule.Budget.Fuel == 0 {
			shares += lanes
		} else if stated += lanes * rule.Budget.Fuel; stated > most {
			s.failAt(fmt.Sprintf("verification.rules[%d].budget.fuel", i), CodeMaxCost, "raise max_cost, or lower the rules' budgets",
				"rules up to this one may use %d fuel, which is more than max_cost %d", stated, most)
			return
		}
	}
	if shares == 0 {
		return
	}
	share := (most - stated) / shares
	if share == 0 {
		s.failAt("verification.max_cost", CodeMaxCost, "raise max_cost", "max_cost %d leaves no fuel for %d of the results", most, shares)
		return
	}
	for i := range s.plan.Rules {
		p := &s.plan.Rules[i]
		if rule := s.manifest.rule(p.RuleID); rule != nil && rule.Budget.Fuel == 0 {
			p.Limits.Fuel = min(p.Limits.Fuel, share)
		}
	}
}

// rule returns the rule of that id, or nil.
func (m *Manifest) rule(id abi.ID) *Rule {
	for i := range m.Rules {
		if m.Rules[i].RuleID == id {
			return &m.Rules[i]
		}
	}
	return nil
}

// rulesCost is the most fuel all results of a plan may use.
func (p *Plan) rulesCost() uint64 {
	sum := uint64(0)
	for _, r := range p.Rules {
		sum += uint64(len(r.Targets)) * r.Limits.Fuel
	}
	return sum
}
