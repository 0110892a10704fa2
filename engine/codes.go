package engine

// CodeDoc says what a code means and what to do about it.
type CodeDoc struct {
	Cause  string
	Remedy string
}

// Codes documents every code this package gives: refusals of admission, what
// ends a step beside a stop by the host, and reasons of decisions.
func Codes() map[string]CodeDoc {
	return map[string]CodeDoc{
		"request_id_reused":          {"The request id was used for a run of another plan.", "Choose another request id, or run the plan of the first request."},
		"tenant_mismatch":            {"The manifest belongs to another tenant than the caller.", "Name the manifest's tenant, or change tenant_id in the manifest."},
		"frozen_needs_plan_file":     {"A frozen flow runs exactly a plan file, never a manifest.", "Make the plan file with writ plan -o flow.plan.json and run that."},
		"dataset_identity":           {"A dataset's id and version were used before with other bytes, or in a later state.", "Give the changed dataset a new version."},
		"dataset_changed_since_plan": {"A file of a dataset changed between the plan and the admission.", "Plan again and run the new plan."},
		"driver_unknown":             {"The plan grants a driver that this program does not have.", "Use a driver the program registers."},
		"secret_missing":             {"A grant binds a secret that was not given.", "Give it with --secret NAME=env:VAR or --secret NAME=file:PATH."},
		"authority_denied":           {"The authority policy does not allow the action.", "Read its reasons; change the request, or have the policy changed."},
		"authority_undecided":        {"The authority policy gave no valid answer, which is never a yes.", "Mend the policy; its error names the place."},
		"undeclared_claims":          {"A step made claims although its manifest says claims: false, so no rule was required to judge them.", "Declare claims: true and name a rule for the step."},
		"unknown_artifact":           {"A step named an artifact that it did not store.", "Store it with artifact_put and use the id that returns."},
		stopEntropy:                  {"A guest reached for a source of entropy that the manifest does not allow.", "Add the source to entropy_budget.allowed_sources, if the flow may draw on it."},
		"invalid_output":             {"A guest returned bytes that are not a message of the ABI.", "Mend the module; the offset says where reading stopped."},
		ReasonNothingEvaluated:       {"No rule gave a result, so there was nothing to decide on.", "Declare rules for what the flow claims."},
		"no_decision":                {"The arbitration policy gave no valid answer.", "See the decision's trace in control with writ inspect RUN --events."},
	}
}
