# May this run or replay happen? Local use is allowed. What a flow says of
# itself, that it is deprecated, is heeded unless the caller says otherwise.
package writ.authority

default decision := {"allow": false, "reasons": ["no rule allows this action"]}

decision := {"allow": count(denials) == 0, "reasons": sort(denials | notes)} if {
	input.action in {"run", "replay"}
}

denials contains "the flow is deprecated; --allow-deprecated lets it run" if {
	input.flow_state == "deprecated"
	not input.allow_deprecated
}

notes contains "the flow is deprecated and was allowed to run" if {
	input.flow_state == "deprecated"
	input.allow_deprecated
}

notes contains sprintf("%d of %d modules are not signed; each is pinned by its digest", [unsigned, count(input.modules)]) if {
	unsigned := count([m | some m in input.modules; not m.signed])
	unsigned > 0
}

notes contains "the flow's policy bundle is not signed; it is pinned by its digest" if {
	not input.policy.signed
	input.policy.digest
}
