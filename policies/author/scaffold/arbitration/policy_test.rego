package writ.arbitration_test

import data.writ.arbitration

decided(statuses) := d if {
	d := arbitration.decision.decision with input as {"results": [{"rule_id": "r", "status": s} | some s in statuses]}
}

test_all_must_pass if {
	decided(["PASS", "PASS"]) == "PASS"
	decided(["PASS", "ERROR"]) == "ESCALATE"
	decided(["PASS", "NOT_RUN"]) == "ESCALATE"
}

test_one_failure_fails if decided(["PASS", "FAIL", "ESCALATE"]) == "FAIL"

test_no_result_is_no_pass if decided([]) == "ESCALATE"
