package vectors_test

import (
	"strings"
	"testing"

	"github.com/writrun/writ/guest-abi/abi"
)

type messageVector struct {
	Name      string `json:"name"`
	Message   string `json:"message"` // execute_request, execute_response, verify_request, verify_response or metadata
	Text      string `json:"text"`
	Fault     string `json:"fault,omitempty"`     // where: a path, or "json" for what is no JSON of the message's shape
	Canonical string `json:"canonical,omitempty"` // of an accepted message
}

const (
	digest    = `"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"`
	handle    = `{"id":"sbom","size":3,"digest":` + digest + `,"folder":false}`
	claim     = `{"claim_id":"c1","statement":"s","evidence":["e1"]}`
	evidence  = `{"evidence_id":"e1","kind":"inline","content":"x","digest":` + digest + `}`
	artifact  = `{"artifact_id":` + digest + `,"name":"a.txt","media_type":"text/plain","size":0}`
	step      = `"step":{"id":"inventory","role":"retrieval","config":{}}`
	rule      = `"rule":{"id":"schema","config":{},"phase":"step","target":"inventory"}`
	moduleTop = `"abi":1,"name":"m","version":"1.0.0","description":"d","license":"MIT","source":"s"`
)

// messageCases states by hand what is accepted and where the rest is at fault.
var messageCases = []struct{ message, name, text, fault string }{
	{"execute_response", "empty", `{}`, ""},
	{"execute_response", "everything", `{"claims":[` + claim + `],"evidence":[` + evidence + `],"artifacts":[` + artifact + `],"output":{"b":1,"a":[null]}}`, ""},
	{"execute_response", "all claim fields", `{"claims":[{"claim_id":"c","statement":"s","subject":"pkg","predicate":"licence","value":null,"confidence":0.5,"evidence":[]}]}`, ""},
	{"execute_response", "repeated claim id", `{"claims":[` + claim + `,` + claim + `]}`, ""},
	{"execute_response", "confidence out of range", `{"claims":[{"claim_id":"c","statement":"s","confidence":7}]}`, ""},
	{"execute_response", "error", `{"error":{"code":"bad_sbom","message":"no components","retryable":false}}`, ""},
	{"execute_response", "null output", `{"output":null}`, ""},
	{"execute_response", "not an object", `[]`, "json"},
	{"execute_response", "null", `null`, "json"},
	{"execute_response", "no bytes", ``, "json"},
	{"execute_response", "trailing bytes", `{}{}`, "json"},
	{"execute_response", "duplicate key", `{"claims":[],"claims":[]}`, "json"},
	{"execute_response", "unknown field", `{"claim":[]}`, "json"},
	{"execute_response", "field in other case", `{"Claims":[]}`, "json"},
	{"execute_response", "unknown field of a claim", `{"claims":[{"claim_id":"c","statement":"s","weight":1}]}`, "json"},
	{"execute_response", "null claims", `{"claims":null}`, "json"},
	{"execute_response", "null claim", `{"claims":[null]}`, "json"},
	{"execute_response", "null confidence", `{"claims":[{"claim_id":"c","statement":"s","confidence":null}]}`, "json"},
	{"execute_response", "claim id is a number", `{"claims":[{"claim_id":1,"statement":"s"}]}`, "json"},
	{"execute_response", "integer beyond 2^53 in output", `{"output":9007199254740993}`, "json"},
	{"execute_response", "lone surrogate in output", `{"output":"\ud800"}`, "json"},
	{"execute_response", "no claim id", `{"claims":[{"statement":"s"}]}`, "claims[0].claim_id"},
	{"execute_response", "no statement", `{"claims":[{"claim_id":"c"}]}`, "claims[0].statement"},
	{"execute_response", "long claim id", `{"claims":[{"claim_id":"` + strings.Repeat("c", 513) + `","statement":"s"}]}`, "claims[0].claim_id"},
	{"execute_response", "empty evidence id in a claim", `{"claims":[{"claim_id":"c","statement":"s","evidence":["e",""]}]}`, "claims[0].evidence[1]"},
	{"execute_response", "no evidence id", `{"evidence":[{"kind":"inline","digest":` + digest + `}]}`, "evidence[0].evidence_id"},
	{"execute_response", "repeated evidence id", `{"evidence":[` + evidence + `,` + evidence + `]}`, "evidence[1].evidence_id"},
	{"execute_response", "no digest", `{"evidence":[{"evidence_id":"e","kind":"inline"}]}`, "evidence[0].digest"},
	{"execute_response", "digest in upper case", `{"evidence":[{"evidence_id":"e","kind":"inline","digest":` + strings.ToUpper(digest) + `}]}`, "evidence[0].digest"},
	{"execute_response", "unknown kind", `{"evidence":[{"evidence_id":"e","kind":"web","digest":` + digest + `}]}`, "evidence[0].kind"},
	{"execute_response", "dataset evidence", `{"evidence":[{"evidence_id":"e","kind":"dataset","path":"osv/a.json","digest":` + digest + `}]}`, ""},
	{"execute_response", "dataset evidence without path", `{"evidence":[{"evidence_id":"e","kind":"dataset","digest":` + digest + `}]}`, "evidence[0].path"},
	{"execute_response", "artifact evidence", `{"evidence":[{"evidence_id":"e","kind":"artifact","artifact":` + digest + `,"digest":` + digest + `}]}`, ""},
	{"execute_response", "artifact evidence without artifact", `{"evidence":[{"evidence_id":"e","kind":"artifact","digest":` + digest + `}]}`, "evidence[0].artifact"},
	{"execute_response", "inline evidence with a path", `{"evidence":[{"evidence_id":"e","kind":"inline","path":"osv","digest":` + digest + `}]}`, "evidence[0].path"},
	{"execute_response", "artifact without name", `{"artifacts":[{"artifact_id":` + digest + `,"media_type":"text/plain","size":0}]}`, "artifacts[0].name"},
	{"execute_response", "artifact id is no digest", `{"artifacts":[{"artifact_id":"a","name":"a","media_type":"text/plain","size":0}]}`, "artifacts[0].artifact_id"},
	{"execute_response", "negative size", `{"artifacts":[{"artifact_id":` + digest + `,"name":"a","media_type":"text/plain","size":-1}]}`, "artifacts[0].size"},
	{"execute_response", "fractional size", `{"artifacts":[{"artifact_id":` + digest + `,"name":"a","media_type":"text/plain","size":1.0}]}`, "json"},
	{"execute_response", "error beside output", `{"output":0,"error":{"code":"x","message":"","retryable":false}}`, "error"},
	{"execute_response", "error beside empty arrays", `{"claims":[],"evidence":[],"artifacts":[],"error":{"code":"x","message":"","retryable":false}}`, ""},
	{"execute_response", "error code not snake_case", `{"error":{"code":"Bad SBOM","message":"","retryable":false}}`, "error.code"},
	{"execute_response", "error without code", `{"error":{}}`, "error.code"},

	{"verify_response", "pass", `{"status":"PASS"}`, ""},
	{"verify_response", "fail", `{"status":"FAIL","violations":[{"rule_id":"schema","subject":"c1","message":"m"}],"reason":"r"}`, ""},
	{"verify_response", "escalate", `{"status":"ESCALATE","violations":[],"reason":"nothing evaluated: no claims"}`, ""},
	{"verify_response", "no status", `{}`, "status"},
	{"verify_response", "status in lower case", `{"status":"pass"}`, "status"},
	{"verify_response", "status of the host", `{"status":"ERROR"}`, "status"},
	{"verify_response", "pass with violations", `{"status":"PASS","violations":[{"rule_id":"schema","subject":"c1","message":"m"}]}`, "status"},
	{"verify_response", "violation without rule", `{"status":"FAIL","violations":[{"subject":"c1","message":"m"}]}`, "violations[0].rule_id"},
	{"verify_response", "null violations", `{"status":"PASS","violations":null}`, "json"},
	{"verify_response", "unknown field", `{"status":"PASS","confidence":1}`, "json"},
	{"verify_response", "the rule's own error", `{"error":{"code":"invalid_config","message":"m","retryable":false}}`, "reported"},
	{"verify_response", "error beside a status", `{"status":"PASS","error":{"code":"x","message":"","retryable":false}}`, "error"},

	{"execute_request", "least", `{"abi":1,"flow_id":"gate",` + step + `,"inputs":{},"datasets":[]}`, ""},
	{"execute_request", "with inputs and datasets", `{"abi":1,"flow_id":"gate",` + step + `,"inputs":{"fetch":{"claims":[` + claim + `],"evidence":[` + evidence + `],"artifacts":[],"output":7}},"datasets":[` + handle + `]}`, ""},
	{"execute_request", "other version", `{"abi":2,"flow_id":"gate",` + step + `}`, "abi"},
	{"execute_request", "no config", `{"abi":1,"flow_id":"gate","step":{"id":"a","role":"agent"}}`, "step.config"},
	{"execute_request", "config not an object", `{"abi":1,"flow_id":"gate","step":{"id":"a","role":"agent","config":[]}}`, "step.config"},
	{"execute_request", "unknown role", `{"abi":1,"flow_id":"gate","step":{"id":"a","role":"chef","config":{}}}`, "step.role"},
	{"execute_request", "reserved step id", `{"abi":1,"flow_id":"gate","step":{"id":"run","role":"agent","config":{}}}`, "step.id"},
	{"execute_request", "input of an ill-formed id", `{"abi":1,"flow_id":"gate",` + step + `,"inputs":{"A":{}}}`, "inputs"},
	{"execute_request", "dataset twice", `{"abi":1,"flow_id":"gate",` + step + `,"datasets":[` + handle + `,` + handle + `]}`, "datasets[1].id"},

	{"verify_request", "least", `{"abi":1,` + rule + `,"claims":[],"evidence":[],"artifacts":[],"outputs":[],"datasets":[]}`, ""},
	{"verify_request", "flow", `{"abi":1,"rule":{"id":"schema","config":{"output":{}},"phase":"flow","target":"flow"},"claims":[` + claim + `],"evidence":[` + evidence + `],"artifacts":[` + artifact + `],"outputs":[{"step_id":"inventory","output":{}},{"step_id":"notify"}],"datasets":[` + handle + `]}`, ""},
	{"verify_request", "evidence of two steps with one id", `{"abi":1,` + rule + `,"evidence":[` + evidence + `,` + evidence + `]}`, ""},
	{"verify_request", "unknown phase", `{"abi":1,"rule":{"id":"schema","config":{},"phase":"end","target":"flow"}}`, "rule.phase"},
	{"verify_request", "step phase on the flow", `{"abi":1,"rule":{"id":"schema","config":{},"phase":"step","target":"flow"}}`, "rule.target"},
	{"verify_request", "flow phase on a step", `{"abi":1,"rule":{"id":"schema","config":{},"phase":"flow","target":"inventory"}}`, "rule.target"},

	{"metadata", "executor", `{` + moduleTop + `,"kind":"executor","wants":[{"capability":"effect:http","reason":"posts the summary"}]}`, ""},
	{"metadata", "rule", `{` + moduleTop + `,"kind":"rule","wants":[],"config_schema":{"$ref":"#/$defs/c","$defs":{"c":{}}},"rules":[{"rule_id":"schema","severity":"error","randomness":"deterministic","target":"any"}]}`, ""},
	{"metadata", "unknown kind", `{` + moduleTop + `,"kind":"plugin"}`, "kind"},
	{"metadata", "rule without rules", `{` + moduleTop + `,"kind":"rule"}`, "a rule module names no rules"},
	{"metadata", "reference outside", `{` + moduleTop + `,"kind":"executor","config_schema":{"$ref":"https://example.org/s"}}`, "config_schema"},
	{"metadata", "unknown capability", `{` + moduleTop + `,"kind":"executor","wants":[{"capability":"files","reason":"r"}]}`, "wants[0]"},
	{"metadata", "unknown field", `{` + moduleTop + `,"kind":"executor","authors":[]}`, "invalid JSON"},
}

// decodeMessage decodes and encodes again.
func decodeMessage(message string, text []byte) (canonical []byte, err error) {
	var v any
	switch message {
	case "execute_request":
		v, err = abi.DecodeExecuteRequest(text)
	case "execute_response":
		v, err = abi.DecodeExecuteResponse(text)
	case "verify_request":
		v, err = abi.DecodeVerifyRequest(text)
	case "verify_response":
		v, err = abi.DecodeVerifyResponse(text)
	case "metadata":
		v, err = abi.ParseMetadata(text)
	}
	if err != nil {
		return nil, err
	}
	return abi.EncodeMessage(v)
}

// faultOf says where err puts the fault, as messageVector.Fault does.
func faultOf(err error) string {
	switch err := err.(type) {
	case nil:
		return ""
	case *abi.JSONError:
		return "json"
	case *abi.MessageError:
		return err.Path
	case *abi.GuestError:
		return "reported"
	case *abi.MetadataError:
		return err.Faults[0]
	}
	return "no known type of error: " + err.Error()
}

func TestMessages(t *testing.T) {
	var want []messageVector
	for _, c := range messageCases {
		t.Run(c.message+"/"+c.name, func(t *testing.T) {
			canonical, err := decodeMessage(c.message, []byte(c.text))
			fault := faultOf(err)
			if c.message == "metadata" && c.fault != "" && strings.HasPrefix(fault, c.fault) {
				fault = c.fault
			}
			if fault != c.fault {
				t.Errorf("fault is at %q, want %q: %v", fault, c.fault, err)
			}
			if err == nil {
				again, err := decodeMessage(c.message, canonical)
				if err != nil || string(again) != string(canonical) {
					t.Errorf("canonical form %s reads back as %s, %v", canonical, again, err)
				}
			}
			want = append(want, messageVector{c.name, c.message, c.text, c.fault, string(canonical)})
		})
	}
	settle(t, "messages.json", want)
}
