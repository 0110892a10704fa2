package abi

import "encoding/json"

// Role of a step, shown to people and passed to the guest; nothing interprets it.
type Role string

// The roles of steps.
const (
	RoleAgent     Role = "agent"
	RoleRetrieval Role = "retrieval"
	RoleReasoning Role = "reasoning"
)

// ExecuteRequest is the message an executor's writ_execute gets.
type ExecuteRequest struct {
	ABI      int               `json:"abi"`
	FlowID   ID                `json:"flow_id"`
	Step     ExecuteStep       `json:"step"`
	Inputs   map[ID]StepOutput `json:"inputs"` // by id of each step this one needs
	Datasets []DatasetHandle   `json:"datasets"`
}

// ExecuteStep tells an executor which step it is.
type ExecuteStep struct {
	ID     ID              `json:"id"`
	Role   Role            `json:"role"`
	Config json.RawMessage `json:"config"` // an object; {} if the manifest has none
}

// DatasetHandle names a dataset the guest may read.
type DatasetHandle struct {
	ID     ID     `json:"id"`
	Size   int64  `json:"size"` // bytes of all files
	Digest Digest `json:"digest"`
	Folder bool   `json:"folder"` // reading the bare id of a folder yields its listing, see DatasetListing
}

// DatasetListing is what a folder dataset consists of. Its canonical JSON is what
// reading the bare id yields and what the dataset's digest is taken over.
type DatasetListing struct {
	Files []DatasetFile `json:"files"` // sorted by path, bytewise
}

// DatasetFile is one file of a folder dataset.
type DatasetFile struct {
	Path       string `json:"path"` // slash-separated, relative
	Executable bool   `json:"executable"`
	Size       int64  `json:"size"` // bytes
	Digest     Digest `json:"digest"`
}

// StepOutput is what an executor produced.
type StepOutput struct {
	Claims    []Claim         `json:"claims"`
	Evidence  []Evidence      `json:"evidence"`
	Artifacts []Artifact      `json:"artifacts"`
	Output    json.RawMessage `json:"output,omitempty"` // any JSON, for dependents
}

// ExecuteResponse is what writ_execute returns: an output, or an error.
type ExecuteResponse struct {
	StepOutput
	Error *GuestError `json:"error,omitempty"`
}

// GuestError is a failure a guest reports of itself.
type GuestError struct {
	Code      string `json:"code"` // snake_case
	Message   string `json:"message"`
	Retryable bool   `json:"retryable"`
}

// Error makes a GuestError an error, for guests that fail with one and for hosts
// that report one.
func (e *GuestError) Error() string { return e.Code + ": " + e.Message }

// Claim is a statement an executor makes.
type Claim struct {
	ClaimID    string          `json:"claim_id"`
	Statement  string          `json:"statement"`
	Subject    string          `json:"subject,omitempty"`    // what the claim is about, for instance a package URL
	Predicate  string          `json:"predicate,omitempty"`  // what is said of it, for instance affected_by:GO-2024-0001
	Value      json.RawMessage `json:"value,omitempty"`      // what it is said to be; two claims of one subject and predicate and different values contradict
	Confidence *float64        `json:"confidence,omitempty"` // 0 to 1
	Evidence   []string        `json:"evidence"`             // evidence ids
}

// Evidence is what a claim rests on.
type Evidence struct {
	EvidenceID string          `json:"evidence_id"`
	Kind       string          `json:"kind"`               // inline, dataset or artifact
	Path       string          `json:"path,omitempty"`     // of kind dataset: "id" or "id/file"
	Artifact   Digest          `json:"artifact,omitempty"` // of kind artifact
	Content    string          `json:"content,omitempty"`  // of kind inline: the text itself
	Digest     Digest          `json:"digest"`             // of the text, the dataset's file, or the artifact
	Note       json.RawMessage `json:"note,omitempty"`     // any JSON, for rules and readers
}

// Artifact is a retained file an executor produced with artifact_put.
type Artifact struct {
	ArtifactID Digest `json:"artifact_id"`
	Name       string `json:"name"`
	MediaType  string `json:"media_type"`
	Size       int64  `json:"size"` // bytes
}

// Phase says when a rule runs.
type Phase string

// The phases of verification.
const (
	PhaseStep Phase = "step" // after one step, before its dependents
	PhaseFlow Phase = "flow" // after all steps
)

// VerifyRequest is the message a rule's writ_verify gets. Evidence holds the
// target's own and that of every step it needs, so that "known" can be judged.
type VerifyRequest struct {
	ABI       int             `json:"abi"`
	Rule      VerifyRule      `json:"rule"`
	Claims    []Claim         `json:"claims"`
	Evidence  []Evidence      `json:"evidence"`
	Artifacts []Artifact      `json:"artifacts"` // content is read with artifact_read
	Outputs   []TargetOutput  `json:"outputs"`   // of the target step, or of every step for the flow
	Datasets  []DatasetHandle `json:"datasets"`  // those of the target
}

// TargetOutput is the free-form output of one step under verification.
type TargetOutput struct {
	StepID ID              `json:"step_id"`
	Output json.RawMessage `json:"output,omitempty"`
}

// VerifyRule tells a rule module which rule it is and what it looks at.
type VerifyRule struct {
	ID     ID              `json:"id"`
	Config json.RawMessage `json:"config"` // an object; {} if the manifest has none
	Phase  Phase           `json:"phase"`
	Target string          `json:"target"` // a step id, or "flow"
}

// Status of a verification result.
type Status string

// PASS, FAIL and ESCALATE are what a rule may say. ERROR (the rule trapped, was
// stopped or said something invalid) and NOT_RUN are said by the host.
const (
	Pass     Status = "PASS"
	Fail     Status = "FAIL"
	Escalate Status = "ESCALATE"
	Errored  Status = "ERROR"
	NotRun   Status = "NOT_RUN"
)

// VerifyResponse is what writ_verify returns, unless it returns an object whose
// one field "error" is a [GuestError].
type VerifyResponse struct {
	Status     Status      `json:"status"` // PASS, FAIL or ESCALATE
	Violations []Violation `json:"violations"`
	Reason     string      `json:"reason,omitempty"`
}

// Violation is one finding of a rule.
type Violation struct {
	RuleID  ID     `json:"rule_id"`
	Subject string `json:"subject"` // a claim, evidence or artifact id
	Message string `json:"message"`
}

// Kind of a guest module.
type Kind string

// The kinds of guest modules.
const (
	Executor Kind = "executor"
	Rule     Kind = "rule"
)

// Metadata is the content of a module's writ.module section, readable without
// executing anything.
type Metadata struct {
	ABI          int             `json:"abi"`
	Kind         Kind            `json:"kind"`
	Name         string          `json:"name"`    // of the form of an ID
	Version      string          `json:"version"` // semantic version without "v"
	Description  string          `json:"description"`
	License      string          `json:"license"` // SPDX expression
	Source       string          `json:"source"`
	Wants        []Want          `json:"wants"`
	ConfigSchema json.RawMessage `json:"config_schema,omitempty"` // JSON Schema 2020-12, $ref only inside itself
	Rules        []RuleInfo      `json:"rules,omitempty"`         // of kind rule: at least one
}

// Want is a capability a module asks for, with its reason: clock, random,
// datasets, artifacts, log, or effect:DRIVER.
type Want struct {
	Capability string `json:"capability"`
	Reason     string `json:"reason"`
}

// RuleInfo describes one rule a module implements.
type RuleInfo struct {
	RuleID     ID     `json:"rule_id"`
	Severity   string `json:"severity"`   // info, warning or error
	Randomness string `json:"randomness"` // deterministic, sampled or statistical
	Target     string `json:"target"`     // step, flow or any
}
