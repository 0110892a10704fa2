package writ.standing_test

import data.writ.standing

ladder := ["recorded", "anchored", "retained", "sourced", "verified", "reproduced", "replayed", "certifiable"]

# facts are yes for the first n rungs.
facts(n) := {name: {"state": state(i, n), "detail": ""} | some i, name in ladder}

state(i, n) := "yes" if i < n

state(i, n) := "no" if i >= n

test_the_ladder_ends_at_what_is_missing if {
	standing.standing.highest == "retained" with input as {"action": "standing", "facts": facts(3)}
	standing.standing.narrowed_by == ["sourced: no"] with input as {"action": "standing", "facts": facts(3)}
}

test_all_rungs if {
	standing.standing.highest == "certifiable" with input as {"action": "standing", "facts": facts(8)}
	standing.standing.narrowed_by == [] with input as {"action": "standing", "facts": facts(8)}
}

test_no_rung if {
	standing.standing.highest == "none" with input as {"action": "standing", "facts": facts(0)}
}

test_other_questions_are_not_answered if {
	standing.standing.highest == "none" with input as {"action": "run", "facts": facts(8)}
}
