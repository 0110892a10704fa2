package effect

// CodeDoc says what a code means and what to do about it.
type CodeDoc struct {
	Cause  string
	Remedy string
}

// Codes documents what a guest is told in place of a response, and the states of
// an outcome.
func Codes() map[string]CodeDoc {
	return map[string]CodeDoc{
		"not_granted": {"No grant of the step covers the request, or its address is not public and no network of the grant holds it.", "Add the method and url_prefix to the step's effects, or the address to networks, if the flow is to reach it."},
		"too_large":   {"A request or response is above the grant's byte limit.", "Raise request_bytes_max or response_bytes_max of the grant."},
		"unavailable": {"The far side could not be reached, did not prove who it is, or its response was withheld because a secret could not be removed from it.", "See the attempts with writ inspect RUN --effects."},
		"unknown":     {"The request was sent and no answer came: it may or may not have been acted on.", "With delivery: idempotent it is tried again with the same key; otherwise a person has to find out."},
	}
}
