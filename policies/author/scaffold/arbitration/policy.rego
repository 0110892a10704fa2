# What do the verification results come to? One failure fails, and all must
# pass for a pass. Anything else is for a person.
package writ.arbitration

default decision := {"decision": "ESCALATE", "reasons": ["not every rule came to a result"], "permissive": false}

decision := {"decision": "FAIL", "reasons": reasons, "permissive": false} if count(failed) > 0

decision := {"decision": "PASS", "reasons": ["every rule passed"], "permissive": false} if {
	count(input.results) > 0
	every result in input.results {
		result.status == "PASS"
	}
}

failed contains result.rule_id if {
	some result in input.results
	result.status == "FAIL"
}

reasons := [sprintf("%s failed", [rule]) | some rule in sort(failed)]
