# What may a run claim now? The facts as they are, up to the first that is
# missing. A policy can only take rungs away.
package writ.standing

default standing := {
	"rungs": {
		"recorded": "not_checked", "anchored": "not_checked", "retained": "not_checked", "sourced": "not_checked",
		"verified": "not_checked", "reproduced": "not_checked", "replayed": "not_checked", "certifiable": "not_checked",
	},
	"highest": "none",
	"narrowed_by": ["no rule applies"],
}

standing := {"rungs": rungs, "highest": highest, "narrowed_by": narrowed_by} if input.action == "standing"

ladder := ["recorded", "anchored", "retained", "sourced", "verified", "reproduced", "replayed", "certifiable"]

rungs[name] := fact.state if some name, fact in input.facts

missing := [name | some name in ladder; rungs[name] != "yes"]

reached := [name | some i, name in ladder; every j in numbers.range(0, i) { rungs[ladder[j]] == "yes" }]

highest := reached[count(reached) - 1] if {
	count(reached) > 0
} else := "none"

narrowed_by := [sprintf("%s: %s", [missing[0], rungs[missing[0]]])] if {
	count(missing) > 0
} else := []
