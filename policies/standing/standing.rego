# What may a run claim now? The facts as they are: Go computed them from what is
# retained, and a policy can only take rungs away.
package writ.standing

ladder := ["recorded", "anchored", "retained", "sourced", "verified", "reproduced", "replayed", "certifiable"]

default standing := {
	"rungs": {
		"recorded": "not_checked", "anchored": "not_checked", "retained": "not_checked", "sourced": "not_checked",
		"verified": "not_checked", "reproduced": "not_checked", "replayed": "not_checked", "certifiable": "not_checked",
	},
	"highest": "none",
	"narrowed_by": ["no_rule_applies"],
}

standing := {"rungs": rungs, "highest": highest, "narrowed_by": sort(narrowed_by)} if {
	input.action == "standing"
}

rungs[name] := fact.state if some name, fact in input.facts

reached := [name | some i, name in ladder; every j in numbers.range(0, i) { rungs[ladder[j]] == "yes" }]

highest := reached[count(reached) - 1] if count(reached) > 0

highest := "none" if count(reached) == 0

# Every flag is said; the first rung that is missing says where the ladder ends.
narrowed_by contains flag if {
	some flag, up in input.flags
	up
}

narrowed_by contains sprintf("%s: %s", [name, rungs[name]]) if {
	count(reached) < count(ladder)
	name := ladder[count(reached)]
}
