# What do verification results come to? One of three rules, named by the flow.
package writ.arbitration

default decision := {"decision": "ESCALATE", "reasons": ["no_rule"], "permissive": false}

decision := {"decision": unanimous, "reasons": reasons, "permissive": false} if input.rule == "unanimous"

decision := {"decision": quorum, "reasons": reasons, "permissive": permissive} if input.rule == "quorum"

decision := {"decision": first_failure, "reasons": reasons, "permissive": false} if input.rule == "strict_first_failure"

tally(status) := count([r | some r in input.results; r.status == status])

# Any FAIL fails; anything else that is not PASS is for a person.
unanimous := "FAIL" if {
	tally("FAIL") > 0
} else := "ESCALATE" if {
	tally("PASS") < count(input.results)
} else := "ESCALATE" if {
	count(input.results) == 0
} else := "PASS"

# Errors and rules that were not run count in the denominator and for neither side.
quorum := "ESCALATE" if {
	count(input.results) == 0
} else := "PASS" if {
	tally("PASS") >= input.quorum_needed
} else := "FAIL" if {
	tally("FAIL") >= input.quorum_needed
} else := "ESCALATE"

permissive if {
	quorum == "PASS"
	tally("PASS") < count(input.results)
} else := false

# The first result that is not PASS decides.
first_failure := "ESCALATE" if {
	count(input.results) == 0
} else := verdict[input.results[first].status] if {
	first := min([i | some i, r in input.results; r.status != "PASS"])
} else := "PASS"

verdict := {"FAIL": "FAIL", "ERROR": "FAIL", "ESCALATE": "ESCALATE", "NOT_RUN": "ESCALATE"}

reasons := [sprintf("%s: %d PASS, %d FAIL, %d ESCALATE, %d ERROR, %d NOT_RUN", [input.rule, tally("PASS"), tally("FAIL"), tally("ESCALATE"), tally("ERROR"), tally("NOT_RUN")])]
