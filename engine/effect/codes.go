package effect

import "github.com/writrun/writ/guest-abi/abi"

// Codes documents what a guest is told in place of a response, and the states of
// an outcome.
func Codes() map[string]abi.CodeDoc {
	return map[string]abi.CodeDoc{
		"not_granted": {Cause: "No grant of the step covers the request, or its address is not public and no network of the grant holds it.", Remedy: "Add the method and url_prefix to the step's effects, or the address to networks, if the flow is to reach it."},
		"too_large":   {Cause: "A request or response is above the grant's byte limit.", Remedy: "Raise request_bytes_max or response_bytes_max of the grant."},
		"unavailable": {Cause: "The far side could not be reached, did not prove who it is, or its response was withheld because a secret could not be removed from it.", Remedy: "See the attempts with writ inspect RUN --effects."},
		"unknown":     {Cause: "The request was sent and no answer came: it may or may not have been acted on.", Remedy: "With delivery: idempotent it is tried again with the same key; otherwise a person has to find out."},
	}
}
