package policies

import "github.com/writrun/writ/guest-abi/abi"

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

// Codes documents every code of a [Refusal].
func Codes() map[string]abi.CodeDoc {
	return map[string]abi.CodeDoc{
		CodeUnreadable: {Cause: "A policy folder cannot be read, is empty, or holds more than its limits allow.", Remedy: "Give a folder with .rego files within the limits."},
		CodeInvalid:    {Cause: "A policy does not compile: a syntax error, an unknown or impure builtin, or a strict-mode error.", Remedy: "Mend what the message names; builtins that read a clock, the network or the process do not exist here."},
		CodeRegoV0:     {Cause: "A policy is written in Rego v0.", Remedy: "Rewrite it with opa fmt --write --v0-v1 FILE."},
		CodeRoot:       {Cause: "A policy's package lies outside the one its folder is for.", Remedy: "Use package writ.authority or writ.arbitration."},
		CodeNoDefault:  {Cause: "A decision has no default, so it could be undefined.", Remedy: "Add a default decision that refuses or escalates."},
		CodeInput:      {Cause: "The document a decision is asked over cannot be made, or is too large.", Remedy: "Make the flow smaller; the limit is in the message."},
		CodeUndefined:  {Cause: "The policy gave no answer.", Remedy: "Add a default, and look for a reference that is undefined."},
		CodeEvaluation: {Cause: "The policy conflicts with itself or a builtin failed.", Remedy: "Read the values and places in the message; guard the builtin's arguments."},
		CodeTooSlow:    {Cause: "The evaluation ran into its time limit.", Remedy: "Make the policy's work depend on less of its input."},
		CodeResult:     {Cause: "The policy's answer has not exactly the published shape.", Remedy: "Return every field of the decision and no other."},
	}
}
