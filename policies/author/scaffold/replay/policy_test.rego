package writ.replay_test

import data.writ.replay

test_no_difference_is_acceptable if {
	replay.verdict.verdict == "acceptable" with input as {"action": "rerun", "differences": []}
}

test_any_difference_is_unacceptable if {
	replay.verdict.verdict == "unacceptable" with input as {"action": "rerun", "differences": [{"name": "outputs of count"}]}
}

test_what_is_not_known_is_unacceptable if {
	replay.verdict.verdict == "unacceptable" with input as {"action": "resume", "differences": []}
}
