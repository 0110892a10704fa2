package flow

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

// CodeDoc explains a code to the person who met it.
type CodeDoc struct {
	Cause  string // what was found
	Remedy string // what to do
}

// CodeDocs explains every code of this package.
func CodeDocs() map[string]CodeDoc {
	docs := manifestCodeDocs()
	for code, doc := range resolveCodeDocs() {
		docs[code] = doc
	}
	return docs
}

func manifestCodeDocs() map[string]CodeDoc {
	return map[string]CodeDoc{
		CodeTooLarge:        {"The manifest is larger than a manifest may be.", "Put data into datasets; a manifest is at most 1 MiB."},
		CodeSyntax:          {"The file is not YAML or JSON of the plain kind: UTF-8, one document, no anchors, aliases, tags, merge keys or directives.", "Mend the place named; write values out where they are used."},
		CodeDuplicateKey:    {"A field is given twice in one object, so readers could differ on which one counts.", "Keep one of them."},
		CodeUnknownField:    {"The field is not part of the manifest format. A field without effect is refused rather than ignored.", "Use one of the names in the hint, or delete the field."},
		CodeMissingField:    {"A field that has no default is not there.", "Add it; the hint shows its values."},
		CodeWrongType:       {"The value is of another type than the field takes.", "Write the type the message names; quote text that looks like a number."},
		CodeNumber:          {"The number has no exact meaning everywhere: beyond 2^53-1, not decimal, or not finite.", "Write a smaller decimal number, or quote it as text."},
		CodeBadValue:        {"The value is none of those the field takes.", "Use one of the values in the hint or message."},
		CodeBadID:           {"An id is not [a-z0-9][a-z0-9_-]{0,62}, or is one of run, control, flow, arbitration.", "Choose another id."},
		CodeBadPath:         {"A path is absolute, leads out of the manifest's folder, or is not in its plain form.", "Use a relative path with slashes and without .. below the manifest's folder."},
		CodeDuplicateID:     {"Two things of one kind have one id, or a list names one thing twice.", "Rename or remove one."},
		CodeUnknownStep:     {"A need or target names a step that is not in the manifest.", "Mend the name, or add the step."},
		CodeUnknownDataset:  {"A step names a dataset that is not in the manifest.", "Mend the name, or add the dataset."},
		CodeCycle:           {"Steps need each other in a circle, so none of them could start first.", "Remove one of the needs in the circle."},
		CodeIllegalLevels:   {"Determinism level, replay mode, acceptability and envelope contradict each other.", "Strict goes with strict and exact_match; bounded with strict or bounded and exact_match or invariant_preserving; probabilistic with bounded or observational; unconstrained with observational. The envelope is there exactly when the mode is bounded."},
		CodeStrict:          {"A strict flow has something that is not determined by its plan: an effect, another source of entropy, or a declared intent.", "Remove it, or choose determinism_level bounded."},
		CodeIntentMissing:   {"An effect is not covered by a declared nondeterminism_intent.", "Declare the intent with its justification."},
		CodeSource:          {"Something draws on a source of entropy that the budget does not allow.", "Add the source to entropy_budget.allowed_sources, or remove what draws on it."},
		CodeNotCovered:      {"A step makes claims that no rule verifies.", "Make the step the target of a rule, or state claims: false."},
		CodeRequiresNothing: {"A step waits for a PASS, and no rule looks at anything it needs.", "Verify a step it needs, or leave requires out."},
		CodeBudgetCeiling:   {"A budget is zero or above the ceiling this release has.", "Choose a value in the range named."},
		CodeDatasetState:    {"The state of a dataset does not fit the flow: frozen flows read frozen datasets, strict flows no experimental ones.", "Freeze the dataset, or change the flow's state or level."},
		CodeTooManyFaults:   {"More faults were found than are listed.", "Mend those listed and try again."},
	}
}

func resolveCodeDocs() map[string]CodeDoc {
	return map[string]CodeDoc{
		CodeDatasetMissing:  {"A dataset is not at its storage_uri, or cannot be read.", "Put it there, or mend the storage_uri; relative ones start at the manifest's folder."},
		CodeDatasetMismatch: {"A dataset's bytes are not those of the hash the manifest states.", "Restore the bytes; or, if they are meant to be new, give the dataset a new version and hash."},
		CodeDatasetEntry:    {"A dataset holds something besides regular files and folders, an empty folder, or names that some systems take for the same.", "Remove or rename the entry named."},
		CodeDatasetLimit:    {"A dataset has more files or bytes, longer paths or deeper folders than are allowed.", "Split it."},
		CodeModuleMissing:   {"A module file is not there or cannot be read.", "Build it, or mend the path; it starts at the manifest's folder."},
		CodeModuleTooLarge:  {"A module file is larger than 16 MiB.", "Strip it; debug sections are not needed."},
		CodeModuleRefused:   {"The sandbox does not accept the module. Every reason is listed.", "Mend the module and build it again."},
		CodeModuleDigest:    {"The module file is not the one module_digest names.", "Restore the file, or state the new digest after looking at what changed."},
		CodeModuleKind:      {"A rule module stands where an executor is expected, or the other way round.", "Use a module of the right kind."},
		CodeRuleNotInModule: {"The module has no rule of this id, or its rule does not take this target.", "Use an id and targets the module's metadata names."},
		CodeConfigInvalid:   {"The config is not what the module's config_schema asks for.", "Mend the config; the message names the place in it."},
		CodePlanFile:        {"The file is not a plan file of this release, or was changed by hand.", "Make it again with: writ plan -o FILE."},
		CodePlanDiffers:     {"The manifest, modules and data files here give another plan than the file pins.", "Restore the files named, or make a new plan with: writ plan -o FILE."},
	}
}
