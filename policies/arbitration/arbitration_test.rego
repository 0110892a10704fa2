package writ.arbitration_test

import data.writ.arbitration

decided(rule, needed, statuses) := d if {
	d := arbitration.decision.decision with input as {"rule": rule, "quorum_needed": needed, "results": [{"status": s} | some s in statuses]}
}

test_unanimous if {
	decided("unanimous", 0, ["PASS", "PASS"]) == "PASS"
	decided("unanimous", 0, ["PASS", "FAIL", "ERROR"]) == "FAIL"
	decided("unanimous", 0, ["PASS", "ERROR"]) == "ESCALATE"
	decided("unanimous", 0, []) == "ESCALATE"
}

test_quorum if {
	decided("quorum", 2, ["PASS", "PASS", "FAIL"]) == "PASS"
	decided("quorum", 2, ["FAIL", "PASS", "FAIL"]) == "FAIL"
	decided("quorum", 2, ["PASS", "FAIL", "NOT_RUN"]) == "ESCALATE"
	decided("quorum", 0, []) == "ESCALATE"
}

test_strict_first_failure if {
	decided("strict_first_failure", 0, ["PASS", "ERROR", "ESCALATE"]) == "FAIL"
	decided("strict_first_failure", 0, ["PASS", "NOT_RUN", "FAIL"]) == "ESCALATE"
	decided("strict_first_failure", 0, ["PASS"]) == "PASS"
	decided("strict_first_failure", 0, []) == "ESCALATE"
}

test_unknown_rule_escalates if {
	decided("majority", 0, ["PASS"]) == "ESCALATE"
}
