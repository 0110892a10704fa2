package writ.arbitration_test

import data.writ.arbitration

decided(needed, statuses) := d if {
	d := arbitration.decision.decision with input as {
		"rule": "quorum",
		"quorum_threshold": 0.6,
		"quorum_needed": needed,
		"results": [{"rule_id": sprintf("rule-%d", [i]), "status": s} | some i, s in statuses],
	}
}

test_three_of_five_pass if decided(3, ["PASS", "PASS", "PASS", "FAIL", "FAIL"]) == "PASS"

test_three_of_five_fail if decided(3, ["FAIL", "PASS", "FAIL", "PASS", "FAIL"]) == "FAIL"

test_nothing_judged_escalates if decided(2, ["ESCALATE", "ERROR"]) == "ESCALATE"

# Who does not judge does not agree: two of five are no quorum, whatever the other
# two say.
test_silence_is_not_agreement if decided(3, ["PASS", "PASS", "FAIL", "ESCALATE", "ESCALATE"]) == "ESCALATE"

test_another_rule_is_not_ours if {
	arbitration.decision.reasons == ["no_rule"] with input as {"rule": "unanimous", "results": []}
}

test_no_results_escalate if decided(0, []) == "ESCALATE"

test_reasons_name_the_rules if {
	arbitration.decision.reasons == ["b: FAIL"] with input as {"rule": "quorum", "quorum_needed": 2, "results": [{"rule_id": "a", "status": "PASS"}, {"rule_id": "b", "status": "FAIL"}]}
}
