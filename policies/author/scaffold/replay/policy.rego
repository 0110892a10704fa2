# What does a replay or a rerun show? Nothing may differ.
package writ.replay

default verdict := {"verdict": "unacceptable", "blocking": [], "acceptable": [], "reasons": ["no rule applies"]}

verdict := {"verdict": worst, "blocking": blocking, "acceptable": [], "reasons": reasons} if {
	input.action in {"replay", "rerun"}
}

blocking := sort([difference.name | some difference in input.differences])

worst := "acceptable" if {
	count(blocking) == 0
} else := "unacceptable"

reasons := [sprintf("%s differs", [name]) | some name in blocking]
