package writ.authority_test

import data.writ.authority

test_local_use_is_allowed if {
	authority.decision.allow with input as {"action": "run", "flow_state": "validated", "allow_deprecated": false, "modules": []}
}

test_replays_are_allowed if {
	authority.decision.allow with input as {"action": "replay", "flow_state": "validated", "allow_deprecated": true, "modules": []}
}

test_other_actions_are_refused if {
	not authority.decision.allow with input as {"action": "redact"}
}

test_deprecated_flow_is_refused if {
	not authority.decision.allow with input as {"action": "run", "flow_state": "deprecated", "allow_deprecated": false, "modules": []}
}

test_deprecated_flow_runs_where_allowed if {
	authority.decision.allow with input as {"action": "run", "flow_state": "deprecated", "allow_deprecated": true, "modules": []}
}

test_bundles_of_flows_are_allowed_with_a_note if {
	d := authority.decision with input as {"action": "run", "flow_state": "validated", "allow_deprecated": false, "modules": [], "policy": {"signed": false, "digest": "d"}}
	d == {"allow": true, "reasons": ["the flow's policy bundle is not signed; it is pinned by its digest"]}
}

test_signed_bundles_are_allowed if {
	d := authority.decision with input as {"action": "run", "flow_state": "validated", "allow_deprecated": false, "modules": [], "policy": {"signed": true, "digest": "d"}}
	d == {"allow": true, "reasons": []}
}
