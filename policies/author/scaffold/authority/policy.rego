# May this action happen? Runs may, of modules that are signed. Everything else
# is refused: what the policy does not know of, it does not allow.
package writ.authority

default decision := {"allow": false, "reasons": ["no rule allows this action"]}

decision := {"allow": count(unsigned) == 0, "reasons": reasons} if input.action == "run"

unsigned contains module.name if {
	some module in input.modules
	not module.signed
}

reasons := [sprintf("module %s is not signed", [name]) | some name in sort(unsigned)]
