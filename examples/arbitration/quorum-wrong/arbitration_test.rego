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
