package engine

import "github.com/writrun/writ/guest-abi/abi"

// Codes documents every code this package gives: refusals of admission, what
// ends a step beside a stop by the host, and reasons of decisions.
func Codes() map[string]abi.CodeDoc {
	return map[string]abi.CodeDoc{
		"request_id_reused":          {Cause: "The request id was used for a run of another plan.", Remedy: "Choose another request id, or run the plan of the first request."},
		"tenant_mismatch":            {Cause: "The manifest belongs to another tenant than the caller.", Remedy: "Name the manifest's tenant, or change tenant_id in the manifest."},
		"frozen_needs_plan_file":     {Cause: "A frozen flow runs exactly a plan file, never a manifest.", Remedy: "Make the plan file with writ plan -o flow.plan.json and run that."},
		"dataset_identity":           {Cause: "A dataset's id and version were used before with other bytes, or in a later state.", Remedy: "Give the changed dataset a new version."},
		"dataset_changed_since_plan": {Cause: "A file of a dataset changed between the plan and the admission.", Remedy: "Plan again and run the new plan."},
		"driver_unknown":             {Cause: "The plan grants a driver that this program does not have.", Remedy: "Use a driver the program registers."},
		"secret_missing":             {Cause: "A grant binds a secret that was not given.", Remedy: "Give it with --secret NAME=env:VAR or --secret NAME=file:PATH."},
		"not_sealed":                 {Cause: "The run has not ended, so there is no sealed record to replay.", Remedy: "Replay a run that has ended; writ list shows them."},
		"identity_changed":           {Cause: "What the run rested on is not what is here now: another build, other policies, or another manifest or plan.", Remedy: "Replay with the build and policies of the run, or run the flow again and compare."},
		DivergedEvent:                {Cause: "A replay did something else than is recorded at this address.", Remedy: "Look at the event with writ inspect RUN --events. Something outside the record had a part in the run or in the replay."},
		DivergedExtra:                {Cause: "A replay went on where the record of the lane ends.", Remedy: "Look at the lane with writ inspect RUN --events. Something outside the record had a part in the run or in the replay."},
		DivergedMissing:              {Cause: "A replay ended before this event of the record.", Remedy: "Look at the lane with writ inspect RUN --events. Something outside the record had a part in the run or in the replay."},
		"compile":                    {Cause: "The engine could not compile a module within the bounds of time and memory that a compilation has.", Remedy: "Split its largest functions, or choose another engine."},
		"policies_missing":           {Cause: "The plan pins policies the flow brings, and they are not at hand.", Remedy: "Plan the flow again where its bundle is."},
		"policies_refused":           {Cause: "The policies the flow brings cannot be used: a fault in them, or no signature of a configured key.", Remedy: "Mend the bundle, or sign it with a key that is configured."},
		"authority_denied":           {Cause: "The authority policy does not allow the action.", Remedy: "Read its reasons; change the request, or have the policy changed."},
		"authority_undecided":        {Cause: "The authority policy gave no valid answer, which is never a yes.", Remedy: "Mend the policy; its error names the place."},
		"undeclared_claims":          {Cause: "A step made claims although its manifest says claims: false, so no rule was required to judge them.", Remedy: "Declare claims: true and name a rule for the step."},
		"unknown_artifact":           {Cause: "A step named an artifact that it did not store.", Remedy: "Store it with artifact_put and use the id that returns."},
		stopEntropy:                  {Cause: "A guest reached for a source of entropy that the manifest does not allow.", Remedy: "Add the source to entropy_budget.allowed_sources, if the flow may draw on it."},
		"invalid_output":             {Cause: "A guest returned bytes that are not a message of the ABI.", Remedy: "Mend the module; the offset says where reading stopped."},
		ReasonNothingEvaluated:       {Cause: "No rule gave a result, so there was nothing to decide on.", Remedy: "Declare rules for what the flow claims."},
		"no_decision":                {Cause: "The arbitration policy gave no valid answer.", Remedy: "See the decision's trace in control with writ inspect RUN --events."},
	}
}
