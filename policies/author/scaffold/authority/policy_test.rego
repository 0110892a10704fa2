package writ.authority_test

import data.writ.authority

test_signed_modules_run if {
	authority.decision.allow with input as {"action": "run", "modules": [{"name": "count", "signed": true}]}
}

test_unsigned_modules_do_not if {
	not authority.decision.allow with input as {"action": "run", "modules": [{"name": "count", "signed": false}]}
}

test_other_actions_are_refused if {
	not authority.decision.allow with input as {"action": "redact", "modules": []}
}
