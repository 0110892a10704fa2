package trace

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
)

// Bytes are recorded bytes that usually hold JSON. As JSON they appear as the
// value they hold, or as {"base64": …} if they hold none.
type Bytes []byte

// MarshalJSON returns the JSON that b holds, or b in base64.
func (b Bytes) MarshalJSON() ([]byte, error) {
	switch {
	case len(b) == 0:
		return []byte("null"), nil
	case json.Valid(b):
		return b, nil
	}
	return json.Marshal(map[string]string{"base64": base64.StdEncoding.EncodeToString(b)})
}

// Hex are bytes that appear as hex digits in JSON.
type Hex []byte

// MarshalJSON returns the hex digits of h.
func (h Hex) MarshalJSON() ([]byte, error) { return []byte(`"` + hex.EncodeToString(h) + `"`), nil }

// MarshalJSON returns the item for people: bytes as {"hex": …}, map keys as text.
func (i Item) MarshalJSON() ([]byte, error) {
	if len(i) == 0 {
		return []byte("null"), nil
	}
	var out bytes.Buffer
	n, err := itemJSON(&out, i, 0)
	if err != nil || n != len(i) {
		return nil, fmt.Errorf("read item: %w", err)
	}
	return out.Bytes(), nil
}

// itemJSON writes the item b begins with and returns its length in b.
func itemJSON(out *bytes.Buffer, b []byte, depth int) (int, error) {
	size, err := checkItem(b, depth)
	if err != nil {
		return 0, err
	}
	major, arg, n, _ := itemHead(b)
	switch major {
	case 0:
		out.WriteString(strconv.FormatUint(arg, 10))
	case 1:
		out.WriteString(strconv.FormatInt(^int64(arg), 10))
	case 2:
		out.WriteString(`{"hex":"` + hex.EncodeToString(b[n:size]) + `"}`)
	case 3:
		text, err := json.Marshal(string(b[n:size]))
		if err != nil {
			return 0, err
		}
		out.Write(text)
	case 4, 5:
		return size, membersJSON(out, b[n:size], arg, depth, major == 5)
	default:
		out.WriteString([]string{"false", "true", "null"}[arg-20])
	}
	return size, nil
}

func membersJSON(out *bytes.Buffer, b []byte, count uint64, depth int, isMap bool) error {
	marks := "[]"
	if isMap {
		marks = "{}"
	}
	out.WriteByte(marks[0])
	for i := range count {
		if i > 0 {
			out.WriteByte(',')
		}
		if isMap {
			var key bytes.Buffer
			n, err := itemJSON(&key, b, depth+1)
			if err != nil {
				return err
			}
			if key.Bytes()[0] != '"' {
				key.Reset()
				fmt.Fprintf(&key, "%q", hex.EncodeToString(b[:n]))
			}
			out.Write(key.Bytes())
			out.WriteByte(':')
			b = b[n:]
		}
		n, err := itemJSON(out, b, depth+1)
		if err != nil {
			return err
		}
		b = b[n:]
	}
	out.WriteByte(marks[1])
	return nil
}

// NewPayload returns a pointer to an empty payload struct of kind, or nil for
// an unknown kind.
func NewPayload(kind Kind) any {
	switch kind {
	case KindRunStart:
		return new(RunStart)
	case KindDatasetPinned:
		return new(DatasetPinned)
	case KindStepStart:
		return new(StepStart)
	case KindStepEnd:
		return new(StepEnd)
	case KindStepFailed:
		return new(StepFailed)
	case KindStepSkipped:
		return new(StepSkipped)
	case KindHostCalls:
		return new(HostCalls)
	case KindEffectIntent:
		return new(EffectIntent)
	case KindEffectOutcome:
		return new(EffectOutcome)
	case KindVerificationStart:
		return new(VerificationStart)
	case KindVerificationResult:
		return new(VerificationResult)
	case KindVerificationArbitration:
		return new(VerificationArbitration)
	case KindEntropyExhausted:
		return new(EntropyExhausted)
	case KindSemanticViolation:
		return new(SemanticViolation)
	case KindExecutionEnd:
		return new(ExecutionEnd)
	}
	return newControlPayload(kind)
}

func newControlPayload(kind Kind) any {
	switch kind {
	case KindAdmission:
		return new(Admission)
	case KindAuthorityDecision:
		return new(AuthorityDecision)
	case KindDecisionTrace:
		return new(DecisionTrace)
	case KindExecutionInterrupted:
		return new(ExecutionInterrupted)
	case KindEffectAttempt:
		return new(EffectAttempt)
	case KindRunEnd:
		return new(RunEnd)
	}
	return nil
}

// PayloadJSON decodes a payload of kind strictly and returns it as JSON, for
// people and programs that read the record. Names are those of the payload
// structs; bytes that hold JSON are embedded as JSON.
func PayloadJSON(kind Kind, payload []byte) ([]byte, error) {
	v := NewPayload(kind)
	if v == nil {
		return nil, fmt.Errorf("read payload: kind %d is unknown", uint8(kind))
	}
	if err := DecodePayload(payload, v); err != nil {
		return nil, fmt.Errorf("read %s payload: %w", kind, err)
	}
	return json.Marshal(v)
}
