package trace

import "github.com/writrun/writ/guest-abi/abi"

// RunStart is the payload of RUN_START: what the run is a function of.
type RunStart struct {
	FlowID           abi.ID     `json:"flow_id"`
	Mode             string     `json:"mode"`
	Manifest         abi.Digest `json:"manifest"`
	Plan             abi.Digest `json:"plan"`
	Datasets         abi.Digest `json:"datasets"`
	Environment      abi.Digest `json:"environment"`
	Policy           abi.Digest `json:"policy"`
	Seed             Hex        `json:"seed"` // 32 bytes
	ClockStartNanos  int64      `json:"clock_start_ns"`
	ClockStepNanos   int64      `json:"clock_step_ns"`
	DeterminismLevel string     `json:"determinism_level"`
}

// DatasetPinned is the payload of DATASET_PINNED.
type DatasetPinned struct {
	DatasetID  abi.ID     `json:"dataset_id"`
	Version    string     `json:"version"`
	State      string     `json:"state"`
	Hash       abi.Digest `json:"hash"`
	StorageURI string     `json:"storage_uri"`
	Size       int64      `json:"size"` // bytes of all files
	Files      int64      `json:"files"`
}

// StepStart is the payload of STEP_START.
type StepStart struct {
	StepID   abi.ID     `json:"step_id"`
	Role     abi.Role   `json:"role"`
	Module   abi.Digest `json:"module"`
	Prepared abi.Digest `json:"prepared"`
	Input    abi.Digest `json:"input"` // of the request message
}

// StepEnd is the payload of STEP_END.
type StepEnd struct {
	Output        Bytes  `json:"output"` // exactly what the guest returned
	FuelUsed      uint64 `json:"fuel_used"`
	MemoryBytes   uint64 `json:"memory_bytes"`
	HostCalls     uint64 `json:"host_calls"`
	ClockEndNanos int64  `json:"clock_end_ns"`
}

// StepFailed is the payload of STEP_FAILED: a stop by the host, or an error
// the guest reported of itself.
type StepFailed struct {
	Stop          *StopInfo       `json:"stop"`
	Error         *abi.GuestError `json:"error"`
	Output        Bytes           `json:"output"`
	FuelUsed      uint64          `json:"fuel_used"`
	MemoryBytes   uint64          `json:"memory_bytes"`
	HostCalls     uint64          `json:"host_calls"`
	ClockEndNanos int64           `json:"clock_end_ns"`
}

// StopInfo says why the host ended a guest, in this project's own words: no
// engine's text, address or path is in it.
type StopInfo struct {
	Cause      string `json:"cause"` // snake_case
	Phase      string `json:"phase"`
	Function   string `json:"function"`    // export or host call, "" if none
	Limit      string `json:"limit"`       // the limit reached, "" if none
	LimitValue uint64 `json:"limit_value"` // in the limit's unit
	Offset     *int64 `json:"offset"`      // byte of an invalid message, nil if none
	Detail     string `json:"detail"`
}

// StepSkipped is the payload of STEP_SKIPPED.
type StepSkipped struct {
	Because []string `json:"because"` // steps or targets it depends on
	Reason  string   `json:"reason"`
}

// EffectIntent is the payload of EFFECT_INTENT, durable before the driver acts.
type EffectIntent struct {
	Ordinal uint32 `json:"ordinal"` // of the effect in its lane
	Driver  string `json:"driver"`
	Request Bytes  `json:"request"`
	Fuel    uint64 `json:"fuel"` // remaining at the call
}

// EffectOutcome is the payload of EFFECT_OUTCOME: what the guest saw.
type EffectOutcome struct {
	Ordinal  uint32 `json:"ordinal"`
	Status   string `json:"status"` // ok or failed
	Response Bytes  `json:"response"`
	Code     int32  `json:"code"`     // abi.Code, 0 for ok
	Withheld bool   `json:"withheld"` // the response could not be masked and is not kept
}

// VerificationStart is the payload of VERIFICATION_START.
type VerificationStart struct {
	RuleID   abi.ID     `json:"rule_id"`
	Target   string     `json:"target"`
	Phase    abi.Phase  `json:"phase"`
	Module   abi.Digest `json:"module"`
	Prepared abi.Digest `json:"prepared"`
	Input    abi.Digest `json:"input"` // of the request message
}

// VerificationResult is the payload of VERIFICATION_RESULT.
type VerificationResult struct {
	RuleID     abi.ID          `json:"rule_id"`
	Target     string          `json:"target"`
	Status     abi.Status      `json:"status"`
	Violations []abi.Violation `json:"violations"`
	Reason     string          `json:"reason"`
	Output     Bytes           `json:"output"` // exactly what the rule returned
	Stop       *StopInfo       `json:"stop"`
	FuelUsed   uint64          `json:"fuel_used"`
	HostCalls  uint64          `json:"host_calls"`
}

// VerificationArbitration is the payload of VERIFICATION_ARBITRATION.
type VerificationArbitration struct {
	Target     string     `json:"target"`
	Entrypoint string     `json:"entrypoint"`
	Policy     abi.Digest `json:"policy"`
	Input      abi.Digest `json:"input"` // of the input document
	Decision   string     `json:"decision"`
	Permissive bool       `json:"permissive"`
	Reasons    []string   `json:"reasons"`
}

// EntropyExhausted is the payload of ENTROPY_EXHAUSTED.
type EntropyExhausted struct {
	Source string `json:"source"`
	Budget string `json:"budget"`
	Action string `json:"action"`
}

// SemanticViolation is the payload of SEMANTIC_VIOLATION: well-formed output
// that says what the plan does not allow.
type SemanticViolation struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// ExecutionEnd is the payload of EXECUTION_END, the last core event of a run.
type ExecutionEnd struct {
	State      string   `json:"state"`    // succeeded or failed
	Decision   string   `json:"decision"` // PASS, FAIL, ESCALATE or none
	Result     string   `json:"result"`
	Permissive bool     `json:"permissive"`
	Reasons    []string `json:"reasons"`
	Marks      []string `json:"marks"`
}

// Identity is the seven digests a run is compared by. An empty one is unknown.
type Identity struct {
	Tenant      abi.Digest `json:"tenant"`
	Manifest    abi.Digest `json:"manifest"`
	Plan        abi.Digest `json:"plan"`
	Datasets    abi.Digest `json:"datasets"`
	Environment abi.Digest `json:"environment"`
	Policy      abi.Digest `json:"policy"`
	Store       abi.Digest `json:"store"`
}

// Admission is the payload of ADMISSION, the first control event of a run.
type Admission struct {
	Tenant     string            `json:"tenant"`
	StoreID    string            `json:"store_id"`
	RunID      abi.RunID         `json:"run_id"`
	RequestID  string            `json:"request_id"` // "" if the caller gave none
	Principal  string            `json:"principal"`
	Identity   Identity          `json:"identity"`
	Authority  abi.Digest        `json:"authority"` // of the operator's bundle
	Provenance map[string]string `json:"provenance"`
}

// AuthorityDecision is the payload of AUTHORITY_DECISION.
type AuthorityDecision struct {
	Action        string     `json:"action"`
	Allow         bool       `json:"allow"`
	Reasons       []string   `json:"reasons"`
	Entrypoint    string     `json:"entrypoint"`
	Policy        abi.Digest `json:"policy"`
	Input         abi.Digest `json:"input"`
	InputDocument Bytes      `json:"input_document"`
}

// DecisionTrace is the payload of DECISION_TRACE: how the policy engine came to
// the decision at Address, in the engine's own words.
type DecisionTrace struct {
	Address       string   `json:"address"`
	Entrypoint    string   `json:"entrypoint"`
	InputDocument Bytes    `json:"input_document"`
	RulesFired    []string `json:"rules_fired"`
	Error         string   `json:"error"`
}

// ExecutionInterrupted is the payload of EXECUTION_INTERRUPTED.
type ExecutionInterrupted struct {
	Reason string `json:"reason"`
}

// EffectAttempt is the payload of EFFECT_ATTEMPT: one try of a driver.
type EffectAttempt struct {
	Address     string `json:"address"` // of the intent
	Ordinal     uint32 `json:"ordinal"`
	Attempt     uint32 `json:"attempt"`
	Key         string `json:"key"` // idempotency key
	Peer        string `json:"peer"`
	Certificate string `json:"certificate"`
	Status      string `json:"status"` // ok, failed or unknown
	HTTPStatus  int    `json:"http_status"`
	Error       string `json:"error"`
	StartNanos  int64  `json:"start_ns"`
	EndNanos    int64  `json:"end_ns"`
}

// RunEnd is the payload of RUN_END, the last event of a run.
type RunEnd struct {
	ExecutionDigest abi.Digest `json:"execution_digest"`
	Result          string     `json:"result"`
}
