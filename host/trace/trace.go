// Package trace is the shape of a run's record: lanes and addresses, events
// and their payloads, the two digests, and the three file forms (journal,
// trace, payloads) over plain readers and writers.
//
// It refuses to read what it would not have written: every decoder accepts
// only core-deterministic CBOR (RFC 8949 section 4.2) of a known kind within
// named limits, so that no record has two encodings. It opens no file, takes
// no time and draws no randomness; package evidence does.
package trace

import "fmt"

// Version is the version of the record's form. Its kinds and causes are a
// closed list: an unknown one is damage.
const Version = 1

// Kind says what an event is.
type Kind uint8

// Core kinds, which replay reproduces and the execution digest covers. They
// live in every lane but control.
const (
	KindRunStart                Kind = 1
	KindDatasetPinned           Kind = 2
	KindStepStart               Kind = 3
	KindStepEnd                 Kind = 4
	KindStepFailed              Kind = 5
	KindStepSkipped             Kind = 6
	KindHostCalls               Kind = 7
	KindEffectIntent            Kind = 8
	KindEffectOutcome           Kind = 9
	KindVerificationStart       Kind = 10
	KindVerificationResult      Kind = 11
	KindVerificationArbitration Kind = 12
	KindEntropyExhausted        Kind = 13
	KindSemanticViolation       Kind = 14
	KindExecutionEnd            Kind = 15
)

// Control kinds, which tell how this run came about. They live in [LaneControl].
const (
	KindAdmission            Kind = 64
	KindAuthorityDecision    Kind = 65
	KindDecisionTrace        Kind = 66
	KindExecutionInterrupted Kind = 67
	KindEffectAttempt        Kind = 68
	KindRunEnd               Kind = 69
)

// String returns the kind's name in records, for instance "RUN_START", or ""
// for a number that is no kind.
func (k Kind) String() string {
	switch k {
	case KindRunStart:
		return "RUN_START"
	case KindDatasetPinned:
		return "DATASET_PINNED"
	case KindStepStart:
		return "STEP_START"
	case KindStepEnd:
		return "STEP_END"
	case KindStepFailed:
		return "STEP_FAILED"
	case KindStepSkipped:
		return "STEP_SKIPPED"
	case KindHostCalls:
		return "HOST_CALLS"
	case KindEffectIntent:
		return "EFFECT_INTENT"
	case KindEffectOutcome:
		return "EFFECT_OUTCOME"
	case KindVerificationStart:
		return "VERIFICATION_START"
	case KindVerificationResult:
		return "VERIFICATION_RESULT"
	case KindVerificationArbitration:
		return "VERIFICATION_ARBITRATION"
	case KindEntropyExhausted:
		return "ENTROPY_EXHAUSTED"
	case KindSemanticViolation:
		return "SEMANTIC_VIOLATION"
	case KindExecutionEnd:
		return "EXECUTION_END"
	}
	return k.controlName()
}

func (k Kind) controlName() string {
	switch k {
	case KindAdmission:
		return "ADMISSION"
	case KindAuthorityDecision:
		return "AUTHORITY_DECISION"
	case KindDecisionTrace:
		return "DECISION_TRACE"
	case KindExecutionInterrupted:
		return "EXECUTION_INTERRUPTED"
	case KindEffectAttempt:
		return "EFFECT_ATTEMPT"
	case KindRunEnd:
		return "RUN_END"
	}
	return ""
}

// Core reports whether k is a core kind.
func (k Kind) Core() bool { return k >= KindRunStart && k <= KindExecutionEnd }

// MarshalText returns the kind's name.
func (k Kind) MarshalText() ([]byte, error) {
	if k.String() == "" {
		return nil, fmt.Errorf("kind %d is unknown", uint8(k))
	}
	return []byte(k.String()), nil
}

// Cause says who or what an event comes from.
type Cause uint8

// The causes of events.
const (
	CauseAgent       Cause = 1
	CauseTool        Cause = 2
	CauseDataset     Cause = 3
	CauseEnvironment Cause = 4
	CauseHuman       Cause = 5
	CausePolicy      Cause = 6
	CauseRuntime     Cause = 7
)

// String returns the cause's name, for instance "agent", or "" for a number
// that is no cause.
func (c Cause) String() string {
	names := [...]string{"", "agent", "tool", "dataset", "environment", "human", "policy", "runtime"}
	if int(c) >= len(names) {
		return ""
	}
	return names[c]
}

// MarshalText returns the cause's name.
func (c Cause) MarshalText() ([]byte, error) {
	if c.String() == "" {
		return nil, fmt.Errorf("cause %d is unknown", uint8(c))
	}
	return []byte(c.String()), nil
}

// Event is one thing to be recorded in a lane.
type Event struct {
	Kind    Kind
	Cause   Cause
	Attempt uint32
	Payload []byte // of EncodePayload, or an array of AppendCall items for HOST_CALLS
	Span    uint64 // sequence numbers taken: the number of calls of a HOST_CALLS event; 0 means 1
}

// Limits of what a record holds.
const (
	PayloadBytesMax     = 65 << 20 // one payload: the largest guest message and its frame
	InlineBytesMax      = 4 << 10  // a payload kept in the record itself; a larger one goes to the content store
	BatchInlineBytesMax = 64 << 10 // the same for a HOST_CALLS payload; a batch of several calls is never longer
	BatchCallsMax       = 256      // calls of one HOST_CALLS event
	NestingMax          = 32       // containers inside containers in one CBOR item
	ContainerMax        = 1 << 20  // members of one CBOR array or map
	HeaderBytesMax      = 512      // one encoded header
	LaneEventsMax       = 1 << 40  // sequence numbers of one lane
	LayoutLanesMax      = 1 << 20  // lanes of one run
	FrameBytesMax       = 66 << 10 // one frame of a journal or entry of a payloads file
	GroupBytesMax       = 64 << 10 // frames of a journal group, before the last one
)

// InlineMax returns the largest payload of kind, in bytes, that the record
// itself keeps.
func InlineMax(kind Kind) int {
	if kind == KindHostCalls {
		return BatchInlineBytesMax
	}
	return InlineBytesMax
}
