# A quorum whose reasons name the rules that did not pass.
#
# It is one of all results: a rule that could not judge is on neither side, and is
# still one that has not agreed. How many are needed comes with the input, computed
# exactly; 0.6 times a count is not exact in every language that computes it.
package writ.arbitration

default decision := {"decision": "ESCALATE", "reasons": ["no_rule"], "permissive": false}

decision := {"decision": outcome, "reasons": reasons, "permissive": permissive} if input.rule == "quorum"

tally(status) := count([r | some r in input.results; r.status == status])

outcome := "ESCALATE" if {
	count(input.results) == 0
} else := "PASS" if {
	tally("PASS") >= input.quorum_needed
} else := "FAIL" if {
	tally("FAIL") >= input.quorum_needed
} else := "ESCALATE"

permissive if {
	outcome == "PASS"
	tally("PASS") < count(input.results)
} else := false

reasons := sort({sprintf("%s: %s", [r.rule_id, r.status]) | some r in input.results; r.status != "PASS"})
