package flow

import "github.com/writrun/writ/guest-abi/abi"

// Codes of faults.
const (
	CodeTooLarge        = "manifest_too_large"
	CodeSyntax          = "manifest_syntax"
	CodeDuplicateKey    = "duplicate_field"
	CodeUnknownField    = "unknown_field"
	CodeMissingField    = "missing_field"
	CodeWrongType       = "wrong_type"
	CodeNumber          = "number_not_exact"
	CodeBadValue        = "bad_value"
	CodeBadID           = "bad_id"
	CodeBadPath         = "bad_path"
	CodeDuplicateID     = "duplicate_id"
	CodeUnknownStep     = "unknown_step"
	CodeUnknownDataset  = "unknown_dataset"
	CodeCycle           = "steps_in_circle"
	CodeIllegalLevels   = "illegal_levels"
	CodeStrict          = "not_strict"
	CodeIntentMissing   = "intent_missing"
	CodeSource          = "source_not_allowed"
	CodeNotCovered      = "step_not_verified"
	CodeRequiresNothing = "requires_nothing"
	CodeBudgetCeiling   = "budget_above_ceiling"
	CodePolicies        = "policies_unusable"
	CodeMaxCost         = "max_cost_exceeded"
	CodeDatasetState    = "dataset_state"
	CodeDatasetMissing  = "dataset_missing"
	CodeDatasetMismatch = "dataset_mismatch"
	CodeDatasetEntry    = "dataset_entry_refused"
	CodeDatasetLimit    = "dataset_above_limit"
	CodeModuleMissing   = "module_missing"
	CodeModuleTooLarge  = "module_too_large"
	CodeModuleRefused   = "module_refused"
	CodeModuleDigest    = "module_digest_mismatch"
	CodeModuleKind      = "module_kind"
	CodeRuleNotInModule = "rule_not_in_module"
	CodeConfigInvalid   = "config_invalid"
	CodePlanFile        = "plan_file_invalid"
	CodePlanDiffers     = "plan_differs"
	CodeTooManyFaults   = "too_many_faults"
)

// Codes explains every code of this package.
func Codes() map[string]abi.CodeDoc {
	docs := manifestCodes()
	for code, doc := range resolveCodes() {
		docs[code] = doc
	}
	return docs
}

func manifestCodes() map[string]abi.CodeDoc {
	return map[string]abi.CodeDoc{
		CodeTooLarge:        {Cause: "The manifest is larger than a manifest may be.", Remedy: "Put data into datasets; a manifest is at most 1 MiB."},
		CodeSyntax:          {Cause: "The file is not YAML or JSON of the plain kind: UTF-8, one document, no anchors, aliases, tags, merge keys or directives.", Remedy: "Mend the place named; write values out where they are used."},
		CodeDuplicateKey:    {Cause: "A field is given twice in one object, so readers could differ on which one counts.", Remedy: "Keep one of them."},
		CodeUnknownField:    {Cause: "The field is not part of the manifest format. A field without effect is refused rather than ignored.", Remedy: "Use one of the names in the hint, or delete the field."},
		CodeMissingField:    {Cause: "A field that has no default is not there.", Remedy: "Add it; the hint shows its values."},
		CodeWrongType:       {Cause: "The value is of another type than the field takes.", Remedy: "Write the type the message names; quote text that looks like a number."},
		CodeNumber:          {Cause: "The number has no exact meaning everywhere: beyond 2^53-1, not decimal, or not finite.", Remedy: "Write a smaller decimal number, or quote it as text."},
		CodeBadValue:        {Cause: "The value is none of those the field takes.", Remedy: "Use one of the values in the hint or message."},
		CodeBadID:           {Cause: "An id is not [a-z0-9][a-z0-9_-]{0,62}, or is one of run, control, flow, arbitration.", Remedy: "Choose another id."},
		CodeBadPath:         {Cause: "A path is absolute, leads out of the manifest's folder, or is not in its plain form.", Remedy: "Use a relative path with slashes and without .. below the manifest's folder."},
		CodeDuplicateID:     {Cause: "Two things of one kind have one id, or a list names one thing twice.", Remedy: "Rename or remove one."},
		CodeUnknownStep:     {Cause: "A need or target names a step that is not in the manifest.", Remedy: "Mend the name, or add the step."},
		CodeUnknownDataset:  {Cause: "A step names a dataset that is not in the manifest.", Remedy: "Mend the name, or add the dataset."},
		CodeCycle:           {Cause: "Steps need each other in a circle, so none of them could start first.", Remedy: "Remove one of the needs in the circle."},
		CodeIllegalLevels:   {Cause: "Determinism level, replay mode, acceptability and envelope contradict each other.", Remedy: "Strict goes with strict and exact_match; bounded with strict or bounded and exact_match or invariant_preserving; probabilistic with bounded or observational; unconstrained with observational. The envelope is there exactly when the mode is bounded."},
		CodeStrict:          {Cause: "A strict flow has something that is not determined by its plan: an effect, another source of entropy, or a declared intent.", Remedy: "Remove it, or choose determinism_level bounded."},
		CodeIntentMissing:   {Cause: "An effect is not covered by a declared nondeterminism_intent.", Remedy: "Declare the intent with its justification."},
		CodeSource:          {Cause: "Something draws on a source of entropy that the budget does not allow.", Remedy: "Add the source to entropy_budget.allowed_sources, or remove what draws on it."},
		CodeNotCovered:      {Cause: "A step makes claims that no rule verifies.", Remedy: "Make the step the target of a rule, or state claims: false."},
		CodeRequiresNothing: {Cause: "A step waits for a PASS, and no rule looks at anything it needs.", Remedy: "Verify a step it needs, or leave requires out."},
		CodePolicies:        {Cause: "The bundle of policies the flow brings cannot be used, or is not the one that was pinned.", Remedy: "Mend it as the message says, or leave policies out."},
		CodeMaxCost:         {Cause: "The fuel that verification may use in all, max_cost, is less than what its rules' own budgets add up to, or leaves nothing for a rule without one.", Remedy: "Raise max_cost, or lower the rules' budgets."},
		CodeBudgetCeiling:   {Cause: "A budget is zero or above the ceiling this release has.", Remedy: "Choose a value in the range named."},
		CodeDatasetState:    {Cause: "The state of a dataset does not fit the flow: frozen flows read frozen datasets, strict flows no experimental ones.", Remedy: "Freeze the dataset, or change the flow's state or level."},
		CodeTooManyFaults:   {Cause: "More faults were found than are listed.", Remedy: "Mend those listed and try again."},
	}
}

func resolveCodes() map[string]abi.CodeDoc {
	return map[string]abi.CodeDoc{
		CodeDatasetMissing:  {Cause: "A dataset is not at its storage_uri, or cannot be read.", Remedy: "Put it there, or mend the storage_uri; relative ones start at the manifest's folder."},
		CodeDatasetMismatch: {Cause: "A dataset's bytes are not those of the hash the manifest states.", Remedy: "Restore the bytes; or, if they are meant to be new, give the dataset a new version and hash."},
		CodeDatasetEntry:    {Cause: "A dataset holds something besides regular files and folders, an empty folder, or names that some systems take for the same.", Remedy: "Remove or rename the entry named."},
		CodeDatasetLimit:    {Cause: "A dataset has more files or bytes, longer paths or deeper folders than are allowed.", Remedy: "Split it."},
		CodeModuleMissing:   {Cause: "A module file is not there or cannot be read.", Remedy: "Build it, or mend the path; it starts at the manifest's folder."},
		CodeModuleTooLarge:  {Cause: "A module file is larger than 16 MiB.", Remedy: "Strip it; debug sections are not needed."},
		CodeModuleRefused:   {Cause: "The sandbox does not accept the module. Every reason is listed.", Remedy: "Mend the module and build it again."},
		CodeModuleDigest:    {Cause: "The module file is not the one module_digest names.", Remedy: "Restore the file, or state the new digest after looking at what changed."},
		CodeModuleKind:      {Cause: "A rule module stands where an executor is expected, or the other way round.", Remedy: "Use a module of the right kind."},
		CodeRuleNotInModule: {Cause: "The module has no rule of this id, or its rule does not take this target.", Remedy: "Use an id and targets the module's metadata names."},
		CodeConfigInvalid:   {Cause: "The config is not what the module's config_schema asks for.", Remedy: "Mend the config; the message names the place in it."},
		CodePlanFile:        {Cause: "The file is not a plan file of this release, or was changed by hand.", Remedy: "Make it again with: writ plan -o FILE."},
		CodePlanDiffers:     {Cause: "The manifest, modules and data files here give another plan than the file pins.", Remedy: "Restore the files named, or make a new plan with: writ plan -o FILE."},
	}
}
