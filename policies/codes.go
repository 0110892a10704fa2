package policies

import "github.com/writrun/writ/guest-abi/abi"

// Codes of refusals.
const (
	CodeUnreadable    = "policy_unreadable"
	CodeInvalid       = "policy_invalid"
	CodeRegoV0        = "policy_rego_v0"
	CodeRoot          = "policy_outside_root"
	CodeNoDefault     = "policy_no_default"
	CodeInput         = "policy_input"
	CodeUndefined     = "policy_undefined"
	CodeEvaluation    = "policy_evaluation"
	CodeTooSlow       = "policy_too_slow"
	CodeResult        = "policy_result"
	CodeNotReproduced = "policy_not_reproduced"

	CodeBundleRoot           = "policy_bundle_root"
	CodeBundleFile           = "policy_bundle_file"
	CodeBundleTooLarge       = "policy_bundle_too_large"
	CodeBundleUnsigned       = "policy_bundle_unsigned"
	CodeBundleForeignKey     = "policy_bundle_foreign_key"
	CodeBundleScope          = "policy_bundle_scope"
	CodeBundleMismatch       = "policy_bundle_mismatch"
	CodeBundleSignature      = "policy_bundle_signature"
	CodeBundleStraySignature = "policy_bundle_stray_signature"
	CodeBundleFlow           = "policy_bundle_flow"
	CodeBundleKey            = "policy_bundle_key"
)

// Codes documents every code of a [Refusal].
func Codes() map[string]abi.CodeDoc {
	return map[string]abi.CodeDoc{
		CodeUnreadable:    {Cause: "A policy folder cannot be read, is empty, or holds more than its limits allow.", Remedy: "Give a folder with .rego files within the limits."},
		CodeInvalid:       {Cause: "A policy does not compile: a syntax error, an unknown or impure builtin, or a strict-mode error.", Remedy: "Mend what the message names; builtins that read a clock, the network or the process do not exist here."},
		CodeRegoV0:        {Cause: "A policy is written in Rego v0.", Remedy: "Rewrite it with opa fmt --write --v0-v1 FILE."},
		CodeRoot:          {Cause: "A policy's package lies outside the one its folder is for.", Remedy: "Use package writ.authority or writ.arbitration."},
		CodeNoDefault:     {Cause: "A decision has no default, so it could be undefined.", Remedy: "Add a default decision that refuses or escalates."},
		CodeInput:         {Cause: "The document a decision is asked over cannot be made, or is too large.", Remedy: "Make the flow smaller; the limit is in the message."},
		CodeUndefined:     {Cause: "The policy gave no answer.", Remedy: "Add a default, and look for a reference that is undefined."},
		CodeEvaluation:    {Cause: "The policy conflicts with itself or a builtin failed.", Remedy: "Read the values and places in the message; guard the builtin's arguments."},
		CodeTooSlow:       {Cause: "The evaluation ran into its time limit.", Remedy: "Make the policy's work depend on less of its input."},
		CodeResult:        {Cause: "The policy's answer has not exactly the published shape.", Remedy: "Return every field of the decision and no other."},
		CodeNotReproduced: {Cause: "A recorded decision, asked again under the recorded policy, comes to another answer, or the policy at hand is another one.", Remedy: "Give the policy the record names; if it is the same, compare the versions of OPA, and report the difference."},

		CodeBundleRoot:           {Cause: "A package, a document, a declared root or a reference of a flow's bundle lies outside flow.<flow_id>.", Remedy: "Move it under package flow.<flow_id>; a flow id with a hyphen is written flow[\"my-flow\"]."},
		CodeBundleFile:           {Cause: "A bundle holds a file that may not be there: a link, a path that leads out of it, the same path twice, compiled policies or a delta.", Remedy: "Build the bundle from .rego files, data.json or data.yaml, and one .manifest at its top."},
		CodeBundleTooLarge:       {Cause: "A bundle has more files or bytes than are read.", Remedy: "Keep in it what decisions need; the limit is in the message."},
		CodeBundleUnsigned:       {Cause: "Keys that may sign bundles are configured, and the bundle has no signature.", Remedy: "Sign it with opa sign, or configure no keys."},
		CodeBundleForeignKey:     {Cause: "A bundle was signed with a key that is not configured, or was not signed with the key it names.", Remedy: "Ask its author for the key, or configure the public key under the id the signature names."},
		CodeBundleScope:          {Cause: "A bundle was signed by a configured key for another scope.", Remedy: "Sign it for the scope the key is configured with."},
		CodeBundleMismatch:       {Cause: "A file of a bundle is not what was signed, was not signed, or is missing.", Remedy: "Get the bundle again from its author, or sign it again after the change."},
		CodeBundleSignature:      {Cause: "The signature of a bundle cannot be read, needs a plugin, or rests on a digest too weak.", Remedy: "Sign the bundle again with opa sign; exactly one signature with SHA-256 or better is read."},
		CodeBundleStraySignature: {Cause: "A bundle has a signature file elsewhere than at its top.", Remedy: "Remove it: only .signatures.json at the top is the signature."},
		CodeBundleKey:            {Cause: "A key that is to verify bundles cannot: it has no id or one that is taken, an unknown algorithm, a short secret, or is no public key.", Remedy: "Mend the key the message names; give a public key in PEM, or a secret of 32 bytes or more."},
		CodeBundleFlow:           {Cause: "A bundle was given to a flow it was not loaded for.", Remedy: "Load it with the id of the flow that brings it."},
	}
}
