package writ.replay_test

import data.writ.replay

base := {
	"action": "rerun", "mode": "bounded", "differences": [],
	"envelope": {"declared": false, "min_claim_overlap": 0, "max_contradiction_delta": 0},
	"measured": {"claim_overlap": 1, "contradictions_checked": true, "contradiction_delta": 0},
	"entropy": {"original": {"exhausted": false}, "replayed": {"exhausted": false}},
	"flags": {"fork": false},
}

judged(change) := v if {
	v := replay.verdict with input as object.union(base, change)
}

a := {"name": "a", "blocking": false}

b := {"name": "b", "blocking": true}

test_no_difference_is_acceptable if {
	every mode in ["strict", "bounded", "observational"] {
		judged({"mode": mode}).verdict == "acceptable"
	}
}

test_strict_allows_nothing if {
	v := judged({"mode": "strict", "differences": [a]})
	v.verdict == "unacceptable"
	v.blocking == ["a"]
}

test_bounded_warns_or_blocks if {
	judged({"differences": [a]}).verdict == "acceptable_with_warnings"
	v := judged({"differences": [b, a]})
	v.verdict == "unacceptable"
	v.blocking == ["b"]
	v.acceptable == ["a"]
}

test_observational_is_never_better_than_with_warnings if {
	judged({"mode": "observational", "differences": [a]}).verdict == "acceptable_with_warnings"
	judged({"mode": "observational", "differences": [b]}).verdict == "non_certifiable"
}

test_replay_allows_nothing if {
	judged({"action": "replay", "mode": "observational", "differences": [a]}).verdict == "unacceptable"
}

test_envelope if {
	envelope := {"declared": true, "min_claim_overlap": 0.8, "max_contradiction_delta": 1}
	judged({"envelope": envelope, "measured": {"claim_overlap": 0.8, "contradiction_delta": 1}}).verdict == "acceptable"
	judged({"envelope": envelope, "measured": {"claim_overlap": 0.79}}).verdict == "unacceptable"
	judged({"envelope": envelope, "measured": {"contradiction_delta": 2}}).verdict == "unacceptable"
	judged({"envelope": envelope, "measured": {"contradictions_checked": false}}).verdict == "non_certifiable"
}

test_flags_and_exhaustion_are_not_certifiable if {
	v := judged({"flags": {"fork": true}})
	v.verdict == "non_certifiable"
	v.reasons == ["never_certifiable: fork"]
	judged({"entropy": {"replayed": {"exhausted": true}}}).verdict == "non_certifiable"
}

test_another_action_is_unacceptable if {
	judged({"action": "resume"}).verdict == "unacceptable"
}
