# A quorum whose reasons name the rules that did not pass.
#
# It is wrong: it asks for a quorum of the rules that judged something. Two rules
# that say nothing leave fewer to convince.
package writ.arbitration

default decision := {"decision": "ESCALATE", "reasons": ["no_rule"], "permissive": false}

decision := {"decision": outcome, "reasons": reasons, "permissive": permissive} if input.rule == "quorum"

tally(status) := count([r | some r in input.results; r.status == status])

judged := tally("PASS") + tally("FAIL")

outcome := "ESCALATE" if {
	judged == 0
} else := "PASS" if {
	tally("PASS") >= input.quorum_threshold * judged
} else := "FAIL" if {
	tally("FAIL") >= input.quorum_threshold * judged
} else := "ESCALATE"

permissive if {
	outcome == "PASS"
	tally("PASS") < count(input.results)
} else := false

reasons := sort({sprintf("%s: %s", [r.rule_id, r.status]) | some r in input.results; r.status != "PASS"})
