package policies

// Codes of refusals.
const (
	CodeUnreadable = "policy_unreadable"
	CodeInvalid    = "policy_invalid"
	CodeRegoV0     = "policy_rego_v0"
	CodeRoot       = "policy_outside_root"
	CodeNoDefault  = "policy_no_default"
	CodeInput      = "policy_input"
	CodeUndefined  = "policy_undefined"
	CodeEvaluation = "policy_evaluation"
	CodeTooSlow    = "policy_too_slow"
	CodeResult     = "policy_result"
)

// CodeDoc says what a code means and what to do about it.
type CodeDoc struct {
	Cause  string
	Remedy string
}

// Codes documents every code of a [Refusal].
func Codes() map[string]CodeDoc {
	return map[string]CodeDoc{
		CodeUnreadable: {"A policy folder cannot be read, is empty, or holds more than its limits allow.", "Give a folder with .rego files within the limits."},
		CodeInvalid:    {"A policy does not compile: a syntax error, an unknown or impure builtin, or a strict-mode error.", "Mend what the message names; builtins that read a clock, the network or the process do not exist here."},
		CodeRegoV0:     {"A policy is written in Rego v0.", "Rewrite it with opa fmt --write --v0-v1 FILE."},
		CodeRoot:       {"A policy's package lies outside the one its folder is for.", "Use package writ.authority or writ.arbitration."},
		CodeNoDefault:  {"A decision has no default, so it could be undefined.", "Add a default decision that refuses or escalates."},
		CodeInput:      {"The document a decision is asked over cannot be made, or is too large.", "Make the flow smaller; the limit is in the message."},
		CodeUndefined:  {"The policy gave no answer.", "Add a default, and look for a reference that is undefined."},
		CodeEvaluation: {"The policy conflicts with itself or a builtin failed.", "Read the values and places in the message; guard the builtin's arguments."},
		CodeTooSlow:    {"The evaluation ran into its time limit.", "Make the policy's work depend on less of its input."},
		CodeResult:     {"The policy's answer has not exactly the published shape.", "Return every field of the decision and no other."},
	}
}
