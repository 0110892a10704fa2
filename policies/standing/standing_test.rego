package writ.standing_test

import data.writ.standing

facts(states) := {name: {"state": state, "detail": ""} | some i, name in standing.ladder; state := states[i]}

standing_of(states, flags) := s if {
	s := standing.standing with input as {"action": "standing", "facts": facts(states), "flags": flags}
}

all_yes := ["yes", "yes", "yes", "yes", "yes", "yes", "yes", "yes"]

test_all_rungs if {
	s := standing_of(all_yes, {"fork": false})
	s.highest == "certifiable"
	s.narrowed_by == []
}

test_highest_is_before_the_first_missing if {
	s := standing_of(["yes", "yes", "no", "yes", "yes", "yes", "yes", "yes"], {})
	s.highest == "anchored"
	s.rungs.verified == "yes"
	s.narrowed_by == ["retained: no"]
}

test_not_checked_stops if {
	standing_of(["yes", "not_checked", "yes", "yes", "yes", "yes", "yes", "yes"], {}).highest == "recorded"
}

test_nothing_is_none if {
	standing_of(["no", "yes", "yes", "yes", "yes", "yes", "yes", "yes"], {}).highest == "none"
}

test_flags_are_said if {
	standing_of(all_yes, {"redacted": true, "tail_lost": false}).narrowed_by == ["redacted"]
}

test_another_action_claims_nothing if {
	s := standing.standing with input as {"action": "x"}
	s.highest == "none"
}
