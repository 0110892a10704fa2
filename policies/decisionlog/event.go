package decisionlog

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/writrun/writ/guest-abi/abi"
)

// Decision is one decision as it is logged.
type Decision struct {
	ID          string // unique in the log
	Entrypoint  string // data.<package>.<rule>
	Policy      abi.Digest
	RunID       abi.RunID // "" of a request that was refused
	Address     string    // in the run's record
	FlowID      abi.ID
	InputDigest abi.Digest
	Input       []byte // JSON; leaves only with IncludeInput
	Result      any    // what was decided, as JSON has it
	Error       string // why the policy gave no answer
	At          time.Time
}

// event is OPA's EventV1, as far as it has to do with decisions asked here. What
// OPA has no place for is in custom, which it leaves to the writer.
type event struct {
	Labels     map[string]string `json:"labels"`
	DecisionID string            `json:"decision_id"`
	Bundles    map[string]bundle `json:"bundles,omitempty"`
	Path       string            `json:"path,omitempty"`
	Input      any               `json:"input,omitempty"`
	Result     any               `json:"result,omitempty"`
	Erased     []string          `json:"erased,omitempty"`
	Error      *failure          `json:"error,omitempty"`
	Timestamp  time.Time         `json:"timestamp"`
	Custom     custom            `json:"custom"`
}

type bundle struct {
	Revision string `json:"revision"`
}

type failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

type custom struct {
	RunID       abi.RunID  `json:"run_id,omitempty"`
	Address     string     `json:"address,omitempty"`
	FlowID      abi.ID     `json:"flow_id,omitempty"`
	InputDigest abi.Digest `json:"input_digest,omitempty"`
}

// messageBytesMax bounds a policy's error in an event.
const messageBytesMax = 4 << 10

// encode writes a decision as one line, and reports whether its input is in it.
// The line is nil if it cannot be written within EventBytesMax.
func (l *Log) encode(d Decision) (line []byte, input bool) {
	e := event{Labels: l.config.Labels, DecisionID: d.ID, Path: pathOf(d.Entrypoint), Timestamp: d.At,
		Custom: custom{d.RunID, d.Address, d.FlowID, d.InputDigest}}
	if e.Labels == nil {
		e.Labels = map[string]string{}
	}
	if d.Policy != "" {
		e.Bundles = map[string]bundle{"policy": {string(d.Policy)}}
	}
	if d.Error != "" {
		e.Error = &failure{"no_decision", strings.ToValidUTF8(d.Error[:min(len(d.Error), messageBytesMax)], "")}
	}
	result, err := json.Marshal(d.Result)
	if err != nil {
		return nil, false
	}
	doc := map[string]any{"result": decode(result)}
	switch {
	case !l.config.IncludeInput || len(d.Input) == 0:
	case len(d.Input) > EventBytesMax:
		e.Erased = append(e.Erased, "/input")
	default:
		doc["input"] = decode(d.Input)
	}
	for _, r := range l.erase {
		if r.remove(doc) {
			e.Erased = append(e.Erased, r.path)
		}
	}
	e.Input, e.Result = doc["input"], doc["result"]
	if line, err = json.Marshal(e); err != nil {
		return nil, false
	}
	if len(line) > EventBytesMax && e.Input != nil {
		e.Input, e.Erased = nil, append(e.Erased, "/input")
		if line, err = json.Marshal(e); err != nil {
			return nil, false
		}
	}
	if len(line) > EventBytesMax {
		return nil, false
	}
	return line, e.Input != nil
}

// decode reads JSON with its numbers as they are written; what is none is null.
func decode(text []byte) any {
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil
	}
	return v
}

// pathOf is an entrypoint as OPA's log has it: writ/arbitration/decision.
func pathOf(entrypoint string) string {
	ref, err := ast.ParseRef(entrypoint)
	if err != nil || len(ref) < 2 {
		return ""
	}
	var parts []string
	for _, t := range ref[1:] {
		s, ok := t.Value.(ast.String)
		if !ok {
			return ""
		}
		parts = append(parts, string(s))
	}
	return strings.Join(parts, "/")
}
