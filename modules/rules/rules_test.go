package main

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/guest-abi/go/guest"
	"github.com/writrun/writ/guest-abi/go/guest/guesttest"
)

func number(f float64) *float64 { return &f }

func inline(id, content string) abi.Evidence {
	return abi.Evidence{EvidenceID: id, Kind: abi.EvidenceInline, Content: content, Digest: abi.DigestOf([]byte(content))}
}

func file(id, path, content string) abi.Evidence {
	return abi.Evidence{EvidenceID: id, Kind: abi.EvidenceDataset, Path: path, Digest: abi.DigestOf([]byte(content))}
}

func stored(id, content string) abi.Evidence {
	d := abi.DigestOf([]byte(content))
	return abi.Evidence{EvidenceID: id, Kind: abi.EvidenceArtifact, Artifact: d, Digest: d}
}

func claims(cs ...abi.Claim) []abi.Claim { return cs }

func claim(id string, evidence ...string) abi.Claim {
	return abi.Claim{ClaimID: id, Statement: "s", Evidence: evidence}
}

func says(id, subject, predicate, value string) abi.Claim {
	return abi.Claim{ClaimID: id, Statement: "s", Subject: subject, Predicate: predicate, Value: json.RawMessage(value)}
}

func confident(id string, p *float64) abi.Claim {
	return abi.Claim{ClaimID: id, Statement: "s", Confidence: p}
}

func artifacts(contents ...string) []abi.Artifact {
	var as []abi.Artifact
	for _, c := range contents {
		as = append(as, abi.Artifact{ArtifactID: abi.DigestOf([]byte(c)), Name: c, MediaType: "text/plain", Size: int64(len(c))})
	}
	return as
}

// wrong gives evidence the digest of other content.
func wrong(e abi.Evidence) abi.Evidence {
	e.Digest = abi.DigestOf([]byte("other"))
	return e
}

func outputs(raw ...string) []abi.TargetOutput {
	var out []abi.TargetOutput
	for i, r := range raw {
		o := abi.TargetOutput{StepID: abi.ID(fmt.Sprint("s", i))}
		if r != "" {
			o.Output = json.RawMessage(r)
		}
		out = append(out, o)
	}
	return out
}

var ruleCases = []struct {
	rule, name string
	config     string
	request    abi.VerifyRequest
	want       string   // status and reason, or the error's code
	subjects   []string // of the violations
}{
	{"claim-has-evidence", "no claims", `{}`, abi.VerifyRequest{}, "ESCALATE nothing evaluated: no claims", nil},
	{"claim-has-evidence", "each has some", `{}`, abi.VerifyRequest{Claims: claims(claim("a", "e"), claim("b", "e", "f"))}, "PASS 2 claims evaluated", nil},
	{"claim-has-evidence", "one has none", `{}`, abi.VerifyRequest{Claims: claims(claim("a", "e"), claim("b"))}, "FAIL 1 violations in 2 claims", []string{"b"}},
	{"claim-has-evidence", "config of no meaning", `{"strict":true}`, abi.VerifyRequest{}, "invalid_config", nil},

	{"evidence-known", "no claims", `{}`, abi.VerifyRequest{Evidence: []abi.Evidence{inline("e", "x")}}, "ESCALATE nothing evaluated: no citations of evidence", nil},
	{"evidence-known", "claims without citations", `{}`, abi.VerifyRequest{Claims: claims(claim("a"))}, "ESCALATE nothing evaluated: no citations of evidence", nil},
	{"evidence-known", "all known", `{}`, abi.VerifyRequest{Claims: claims(claim("a", "e")), Evidence: []abi.Evidence{inline("e", "x")}}, "PASS 1 citations of evidence evaluated", nil},
	{"evidence-known", "one unknown", `{}`, abi.VerifyRequest{Claims: claims(claim("a", "e", "f")), Evidence: []abi.Evidence{inline("e", "x")}}, "FAIL 1 violations in 2 citations of evidence", []string{"a"}},

	{"evidence-hash-matches", "no evidence", `{}`, abi.VerifyRequest{Claims: claims(claim("a"))}, "ESCALATE nothing evaluated: no pieces of evidence", nil},
	{"evidence-hash-matches", "every kind", `{}`, abi.VerifyRequest{Evidence: []abi.Evidence{inline("i", ""), file("d", "osv/a.json", "{}"), stored("x", "kept")}}, "PASS 3 pieces of evidence evaluated", nil},
	{"evidence-hash-matches", "every kind wrong", `{}`, abi.VerifyRequest{Evidence: []abi.Evidence{wrong(inline("i", "")), wrong(file("d", "osv/a.json", "{}")), wrong(stored("x", "kept"))}}, "FAIL 3 violations in 3 pieces of evidence", []string{"i", "d", "x"}},
	{"evidence-hash-matches", "file longer than one read", `{}`, abi.VerifyRequest{Evidence: []abi.Evidence{file("d", "big", bigFile)}}, "PASS 1 pieces of evidence evaluated", nil},
	{"evidence-hash-matches", "cited and out of reach", `{}`, abi.VerifyRequest{Claims: claims(claim("a", "d")), Evidence: []abi.Evidence{inline("i", ""), file("d", "sbom", "{}")}}, `ESCALATE evidence "d" cannot be read here: dataset "sbom": host call refused: not_found`, nil},
	{"evidence-hash-matches", "out of reach and no claims", `{}`, abi.VerifyRequest{Evidence: []abi.Evidence{file("d", "sbom", "{}")}}, `ESCALATE evidence "d" cannot be read here: dataset "sbom": host call refused: not_found`, nil},
	{"evidence-hash-matches", "out of reach and cited by nobody", `{}`, abi.VerifyRequest{Claims: claims(claim("a", "i")), Evidence: []abi.Evidence{inline("i", ""), file("d", "sbom", "{}")}}, "PASS 1 pieces of evidence evaluated", nil},
	{"evidence-hash-matches", "wrong and cited by nobody", `{}`, abi.VerifyRequest{Claims: claims(claim("a", "i")), Evidence: []abi.Evidence{inline("i", ""), wrong(inline("j", ""))}}, "FAIL 1 violations in 2 pieces of evidence", []string{"j"}},

	{"confidence-in-range", "no claims", `{}`, abi.VerifyRequest{}, "ESCALATE nothing evaluated: no claims with a confidence", nil},
	{"confidence-in-range", "none stated", `{}`, abi.VerifyRequest{Claims: claims(confident("a", nil))}, "ESCALATE nothing evaluated: no claims with a confidence", nil},
	{"confidence-in-range", "none stated and required", `{"required":true}`, abi.VerifyRequest{Claims: claims(confident("a", nil))}, "FAIL 1 violations in 1 claims with a confidence", []string{"a"}},
	{"confidence-in-range", "both ends", `{}`, abi.VerifyRequest{Claims: claims(confident("a", number(0)), confident("b", number(1)), confident("c", nil))}, "PASS 2 claims with a confidence evaluated", nil},
	{"confidence-in-range", "beyond both ends", `{}`, abi.VerifyRequest{Claims: claims(confident("a", number(-0.1)), confident("b", number(1.1)))}, "FAIL 2 violations in 2 claims with a confidence", []string{"a", "b"}},

	{"claim-ids-unique", "no claims", `{}`, abi.VerifyRequest{}, "ESCALATE nothing evaluated: no claims", nil},
	{"claim-ids-unique", "unique", `{}`, abi.VerifyRequest{Claims: claims(claim("a"), claim("b"))}, "PASS 2 claims evaluated", nil},
	{"claim-ids-unique", "three of one id", `{}`, abi.VerifyRequest{Claims: claims(claim("a"), claim("a"), claim("a"))}, "FAIL 2 violations in 3 claims", []string{"a", "a"}},

	{"artifact-hash-cited", "no artifacts", `{}`, abi.VerifyRequest{Evidence: []abi.Evidence{inline("e", "x")}}, "ESCALATE nothing evaluated: no artifacts and citations of artifacts", nil},
	{"artifact-hash-cited", "cited", `{}`, abi.VerifyRequest{Artifacts: artifacts("kept"), Evidence: []abi.Evidence{stored("e", "kept")}}, "PASS 2 artifacts and citations of artifacts evaluated", nil},
	{"artifact-hash-cited", "not cited", `{}`, abi.VerifyRequest{Artifacts: artifacts("kept")}, "FAIL 1 violations in 1 artifacts and citations of artifacts", []string{string(abi.DigestOf([]byte("kept")))}},
	{"artifact-hash-cited", "cited with another digest", `{}`, abi.VerifyRequest{Artifacts: artifacts("kept"), Evidence: []abi.Evidence{wrong(stored("e", "kept"))}}, "FAIL 1 violations in 2 artifacts and citations of artifacts", []string{string(abi.DigestOf([]byte("kept")))}},
	{"artifact-hash-cited", "cites what is not there", `{}`, abi.VerifyRequest{Evidence: []abi.Evidence{stored("e", "kept")}}, "FAIL 1 violations in 1 artifacts and citations of artifacts", []string{"e"}},

	{"contradiction", "no claims", `{}`, abi.VerifyRequest{}, "ESCALATE nothing evaluated: no claims with a subject and a predicate", nil},
	{"contradiction", "nothing comparable", `{}`, abi.VerifyRequest{Claims: claims(claim("a"), claim("a"))}, "ESCALATE nothing evaluated: no claims with a subject and a predicate", nil},
	{"contradiction", "agree", `{}`, abi.VerifyRequest{Claims: claims(says("a", "x", "p", `1`), says("b", "x", "p", `1.0`), says("c", "x", "q", `2`), says("d", "y", "p", `3`))}, "PASS 4 claims with a subject and a predicate evaluated", nil},
	{"contradiction", "agree but for key order", `{}`, abi.VerifyRequest{Claims: claims(says("a", "x", "p", `{"a":1,"b":2}`), says("b", "x", "p", `{"b":2,"a":1}`))}, "PASS 2 claims with a subject and a predicate evaluated", nil},
	{"contradiction", "differ", `{}`, abi.VerifyRequest{Claims: claims(says("a", "x", "p", `true`), says("b", "x", "p", `false`), says("c", "x", "p", `"true"`))}, "FAIL 2 violations in 3 claims with a subject and a predicate", []string{"b", "c"}},
	{"contradiction", "value and none", `{}`, abi.VerifyRequest{Claims: claims(says("a", "x", "p", `1`), says("b", "x", "p", ``))}, "FAIL 1 violations in 2 claims with a subject and a predicate", []string{"b"}},

	{"schema", "no schema", `{}`, abi.VerifyRequest{Claims: claims(claim("a"))}, "invalid_config", nil},
	{"schema", "unknown keyword", `{"output":{"pattern":"a"}}`, abi.VerifyRequest{}, "invalid_config", nil},
	{"schema", "unknown keyword inside", `{"output":{"properties":{"a":{"$ref":"#"}}}}`, abi.VerifyRequest{}, "invalid_config", nil},
	{"schema", "unknown type", `{"output":{"type":"date"}}`, abi.VerifyRequest{}, "invalid_config", nil},
	{"schema", "no claims", `{"claim":{}}`, abi.VerifyRequest{Outputs: outputs(`1`)}, "ESCALATE nothing evaluated: no claims", nil},
	{"schema", "no outputs", `{"output":{}}`, abi.VerifyRequest{Claims: claims(claim("a"))}, "ESCALATE nothing evaluated: no outputs", nil},
	{"schema", "a step without output", `{"output":{}}`, abi.VerifyRequest{Outputs: outputs(`1`, ``)}, "FAIL 1 violations in 2 claims and outputs", []string{"s1"}},
	{"schema", "claims", `{"claim":{"required":["subject"],"properties":{"confidence":{"type":"number","minimum":0.5}}}}`,
		abi.VerifyRequest{Claims: claims(says("a", "x", "p", `1`), claim("b"), abi.Claim{ClaimID: "c", Subject: "x", Confidence: number(0.4)})}, "FAIL 2 violations in 3 claims and outputs", []string{"b", "c"}},

	{"unheard-of", "unknown rule", `{}`, abi.VerifyRequest{}, "unknown_rule", nil},
}

var bigFile = func() string {
	b := make([]byte, 3*pieceBytesMax+7)
	for i := range b {
		b[i] = byte(i)
	}
	return string(b)
}()

func TestRules(t *testing.T) {
	host := &guesttest.Host{
		Datasets:  map[string][]byte{"osv/a.json": []byte("{}"), "big": []byte(bigFile)},
		Artifacts: map[abi.Digest][]byte{abi.DigestOf([]byte("kept")): []byte("kept")},
	}
	for _, c := range ruleCases {
		t.Run(c.rule+"/"+c.name, func(t *testing.T) {
			c.request.ABI = abi.Version
			c.request.Rule = abi.VerifyRule{ID: abi.ID(c.rule), Config: json.RawMessage(c.config), Phase: abi.PhaseFlow, Target: "flow"}
			request, err := abi.EncodeMessage(c.request)
			if err != nil {
				t.Fatal(err)
			}
			r, err := abi.DecodeVerifyResponse(guest.RunVerify(host, request, verify))
			got := string(r.Status) + " " + r.Reason
			if e, ok := err.(*abi.GuestError); ok {
				got = e.Code
			} else if err != nil {
				t.Fatal(err)
			}
			var subjects []string
			for _, v := range r.Violations {
				subjects = append(subjects, v.Subject)
				if string(v.RuleID) != c.rule || v.Message == "" {
					t.Errorf("violation %+v", v)
				}
			}
			if got != c.want {
				t.Errorf("got  %q\nwant %q\n%v", got, c.want, err)
			}
			if diff := cmp.Diff(c.subjects, subjects); diff != "" {
				t.Errorf("subjects of violations (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSchemaKeywords gives each keyword a value it takes and one it does not.
func TestSchemaKeywords(t *testing.T) {
	for _, c := range []struct{ schema, good, bad, fault string }{
		{`{}`, `{"a":[1,null]}`, ``, ""},
		{`{"title":"t","description":"d"}`, `1`, ``, ""},
		{`{"type":"null"}`, `null`, `0`, "the value is not of type [null]"},
		{`{"type":"boolean"}`, `false`, `null`, "the value is not of type [boolean]"},
		{`{"type":"integer"}`, `1.0`, `1.5`, "the value is not of type [integer]"},
		{`{"type":"integer"}`, `1e300`, `"1"`, "the value is not of type [integer]"},
		{`{"type":["number","string"]}`, `1.5`, `[]`, "the value is not of type [number string]"},
		{`{"type":"object"}`, `{}`, `[]`, "the value is not of type [object]"},
		{`{"enum":[1,"a",[2]]}`, `[2]`, `"b"`, "the value is not one of the allowed values"},
		{`{"enum":[]}`, ``, `1`, "the value is not one of the allowed values"},
		{`{"const":{"a":1}}`, `{"a":1.0}`, `{"a":2}`, `the value is not {"a":1}`},
		{`{"minLength":2}`, `"éé"`, `"é"`, "the value has a length that is 1, below 2"},
		{`{"maxLength":1}`, `"é"`, `"ab"`, "the value has a length that is 2, above 1"},
		{`{"minimum":1}`, `1`, `0.9`, "the value is 0.9, below 1"},
		{`{"maximum":1}`, `"not a number"`, `1.1`, "the value is 1.1, above 1"},
		{`{"minItems":1}`, `[0]`, `[]`, "the value has a length that is 0, below 1"},
		{`{"maxItems":1}`, `{}`, `[0,0]`, "the value has a length that is 2, above 1"},
		{`{"items":{"type":"string"}}`, `["a"]`, `["a",1]`, "[1] is not of type [string]"},
		{`{"required":["a"]}`, `{"a":null}`, `{"b":1}`, `the value has no "a"`},
		{`{"properties":{"a":{"type":"string"}}}`, `{"b":1}`, `{"a":1}`, ".a is not of type [string]"},
		{`{"properties":{"a":{}},"additionalProperties":false}`, `{"a":1}`, `{"a":1,"b":1}`, `the value has "b", which is not allowed`},
		{`{"properties":{"a":{"items":{"properties":{"b":{"type":"null"}}}}}}`, `{"a":[{"b":null}]}`, `{"a":[{},{"b":0}]}`, ".a[1].b is not of type [null]"},
	} {
		t.Run(c.schema, func(t *testing.T) {
			s, err := guest.Config[*schema]([]byte(c.schema))
			if err != nil {
				t.Fatal(err)
			}
			for text, want := range map[string]string{c.good: "", c.bad: c.fault} {
				if text == "" {
					continue
				}
				var v any
				if err := json.Unmarshal([]byte(text), &v); err != nil {
					t.Fatal(err)
				}
				if got := s.fault("", v); got != want {
					t.Errorf("%s: fault %q, want %q", text, got, want)
				}
			}
		})
	}
}

func TestMetadataNamesEveryRule(t *testing.T) {
	data, err := os.ReadFile("module.json")
	if err != nil {
		t.Fatal(err)
	}
	m, err := abi.ParseMetadata(data)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range m.Rules {
		request, err := abi.EncodeMessage(abi.VerifyRequest{ABI: abi.Version, Rule: abi.VerifyRule{ID: r.RuleID, Config: json.RawMessage(`{}`)}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = abi.DecodeVerifyResponse(guest.RunVerify(&guesttest.Host{}, request, verify))
		if e, ok := err.(*abi.GuestError); ok && e.Code == "unknown_rule" {
			t.Errorf("metadata names rule %q and the module has none", r.RuleID)
		}
	}
	if len(m.Rules) != 8 {
		t.Errorf("metadata names %d rules", len(m.Rules))
	}
}
