# What does a replay or a rerun show? A replay has every input served, so any
# difference is unacceptable. A rerun is judged by the original manifest:
# strict allows no difference; bounded allows what its acceptability and its
# envelope allow, with a warning; observational is never better than with
# warnings when anything differs.
package writ.replay

default verdict := {"verdict": "unacceptable", "blocking": [], "acceptable": [], "reasons": ["no_rule_applies"]}

verdict := {"verdict": worst, "blocking": blocking, "acceptable": acceptable, "reasons": sort([r | some [_, r] in findings])} if {
	input.action in {"replay", "rerun"}
}

all_block if input.action == "replay"

all_block if input.mode == "strict"

blocks(_) if all_block

blocks(difference) if {
	not all_block
	difference.blocking
}

blocking := sort([d.name | some d in input.differences; blocks(d)])

acceptable := sort([d.name | some d in input.differences; not blocks(d)])

findings contains ["unacceptable", "differences_in_a_replay"] if {
	input.action == "replay"
	count(blocking) > 0
}

findings contains ["unacceptable", "blocking_differences"] if {
	input.action == "rerun"
	input.mode != "observational"
	count(blocking) > 0
}

findings contains ["non_certifiable", "blocking_differences_observed"] if {
	input.action == "rerun"
	input.mode == "observational"
	count(blocking) > 0
}

findings contains ["acceptable_with_warnings", "acceptable_differences"] if count(acceptable) > 0

findings contains ["unacceptable", "claim_overlap_below_envelope"] if {
	judged_by_envelope
	input.measured.claim_overlap < input.envelope.min_claim_overlap
}

findings contains ["unacceptable", "contradictions_beyond_envelope"] if {
	judged_by_envelope
	input.measured.contradictions_checked
	input.measured.contradiction_delta > input.envelope.max_contradiction_delta
}

findings contains ["non_certifiable", "contradictions_not_checked"] if {
	judged_by_envelope
	not input.measured.contradictions_checked
}

findings contains ["non_certifiable", "entropy_exhausted"] if input.entropy.original.exhausted

findings contains ["non_certifiable", "entropy_exhausted"] if input.entropy.replayed.exhausted

findings contains ["non_certifiable", concat(": ", ["never_certifiable", flag])] if {
	some flag, up in input.flags
	up
}

judged_by_envelope if {
	input.action == "rerun"
	input.envelope.declared
}

worst := [v |
	some v in ["unacceptable", "non_certifiable", "acceptable_with_warnings", "acceptable"]
	v in levels
][0]

levels := {"acceptable"} | {level | some [level, _] in findings}
