package policies_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/policies"
)

func TestReadsOfFieldsThatAreNotThereAreRefusedAtLoad(t *testing.T) {
	const (
		authority   = "package writ.authority\ndefault decision := {\"allow\": false, \"reasons\": []}\n"
		arbitration = "package writ.arbitration\ndefault decision := {\"decision\": \"FAIL\", \"reasons\": [], \"permissive\": false}\n"
		replay      = "package writ.replay\ndefault verdict := {\"verdict\": \"unacceptable\", \"blocking\": [], \"acceptable\": [], \"reasons\": []}\n"
		standing    = "package writ.standing\ndefault standing := {}\n"
	)
	cases := []struct{ name, text, says string }{
		{"a field of authority", authority + `x if { input.flow_stat == "draft" }`, `p.rego:3:8: rego_type_error: undefined ref: input.flow_stat`},
		{"a field of a module", authority + `x if { some m in input.modules; m.signd }`, "p.rego:3:33: rego_type_error: undefined ref"},
		{"a field of arbitration in authority", authority + `x if { input.results[0].status == "PASS" }`, "undefined ref: input.results"},
		{"a field of a result", arbitration + `x if { input.results[_].verdict == "PASS" }`, "undefined ref: input.results"},
		{"a field of a difference", replay + `x if { input.differences[_].blocks }`, "undefined ref: input.differences"},
		{"a flag of a standing", standing + `x if { input.flags.forked }`, "undefined ref: input.flags.forked"},
		{"text as a number", authority + `x := input.tenant + 1`, "rego_type_error: plus: invalid argument"},
		{"a field of authority that is there", authority + `x if { input.policy.signed; some m in input.modules; m.digest == input.plan }`, ""},
		{"a field of arbitration that is there", arbitration + `x if { some r in input.results; r.violations > 0; input.coverage.complete }`, ""},
		{"a field of replay that is there", replay + `x if { input.entropy.original.sources[_].calls > 0; input.envelope.declared }`, ""},
		{"a flag that is there", standing + `x if { input.flags.fork; input.facts.recorded.state == "yes" }`, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			files, config := fstest.MapFS{"p.rego": {Data: []byte(c.text)}}, policies.Config{}
			switch {
			case strings.HasPrefix(c.text, authority):
				config.Authority = files
			case strings.HasPrefix(c.text, arbitration):
				config.Arbitration = files
			case strings.HasPrefix(c.text, replay):
				config.Replay = files
			default:
				config.Standing = files
			}
			_, err := policies.Load(config)
			var r *policies.Refusal
			switch {
			case c.says == "" && err != nil:
				t.Error(err)
			case c.says != "" && (!errors.As(err, &r) || r.Code != policies.CodeInvalid || !strings.Contains(r.Detail, c.says)):
				t.Errorf("error %v; want one with %q", err, c.says)
			}
		})
	}
}

// valid reports how a document differs from a schema.
func valid(t *testing.T, schema, document []byte) string {
	t.Helper()
	args := []*ast.Term{ast.StringTerm(string(document)), ast.StringTerm(string(withoutDraft(t, schema)))}
	var result ast.Value
	err := topdown.GetBuiltin("json.match_schema")(topdown.BuiltinContext{Capabilities: &ast.Capabilities{AllowNet: []string{}}}, args, func(term *ast.Term) error {
		result = term.Value
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found := result.(*ast.Array); !ast.Boolean(true).Equal(found.Elem(0).Value) {
		return found.Elem(1).String()
	}
	return ""
}

// withoutDraft leaves out the name of the draft, which OPA's validator is too
// old for; no keyword of ours differs between the drafts.
func withoutDraft(t *testing.T, schema []byte) []byte {
	t.Helper()
	var s map[string]any
	if err := json.Unmarshal(schema, &s); err != nil {
		t.Fatal(err)
	}
	delete(s, "$schema")
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func schema(t *testing.T, name string) []byte {
	t.Helper()
	b, err := policies.Schema(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestSchemasAreOfTheDecisions(t *testing.T) {
	want := []string{"arbitration-input", "arbitration-result", "authority-input", "authority-result", "replay-input", "replay-result", "standing-input", "standing-result"}
	if diff := cmp.Diff(want, policies.SchemaNames()); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	for _, name := range []string{"", "authority", "authority-output", "other-input"} {
		if b, err := policies.Schema(name); err == nil {
			t.Errorf("schema %q: %s", name, b)
		}
	}
	cases := []struct{ schema, document, wrong string }{
		{"authority-result", `{"allow": true, "reasons": []}`, ""},
		{"authority-result", `{"allow": "yes", "reasons": []}`, "allow"},
		{"authority-result", `{"allow": true}`, "reasons"},
		{"authority-result", `{"allow": true, "reasons": [], "note": 1}`, "note"},
		{"replay-result", `{"verdict": "acceptable", "blocking": [], "acceptable": [], "reasons": []}`, ""},
		{"standing-result", `{"rungs": {}, "highest": "none", "narrowed_by": []}`, "recorded"},
	}
	for _, c := range cases {
		got := valid(t, schema(t, c.schema), []byte(c.document))
		if (c.wrong == "") != (got == "") || !strings.Contains(got, c.wrong) {
			t.Errorf("%s against %s: %q, want %q", c.document, c.schema, got, c.wrong)
		}
	}
}

// asked asks the default policies over a sample, which must be of the decision's
// Go type.
func asked(t *testing.T, decision string, sample []byte) policies.Record {
	t.Helper()
	known := map[string]struct {
		input      any
		entrypoint string
	}{
		"authority":   {&policies.AuthorityInput{}, policies.AuthorityEntrypoint},
		"arbitration": {&policies.ArbitrationInput{}, policies.ArbitrationEntrypoint},
		"replay":      {&policies.ReplayInput{}, policies.ReplayEntrypoint},
		"standing":    {&policies.StandingInput{}, policies.StandingEntrypoint},
	}[decision]
	strict := json.NewDecoder(bytes.NewReader(sample))
	strict.DisallowUnknownFields()
	if err := strict.Decode(known.input); err != nil {
		t.Fatal(err)
	}
	input, err := abi.EncodeMessage(known.input)
	if err != nil {
		t.Fatal(err)
	}
	record, err := defaults(t).Ask(t.Context(), policies.Record{Entrypoint: known.entrypoint, Input: input, InputDigest: abi.DigestOf(input)})
	if err != nil {
		t.Fatal(err)
	}
	return record
}

// TestSamples holds every sample input against its schema and its answer, which
// lies beside it and is written anew with UPDATE=1.
func TestSamples(t *testing.T) {
	files, err := filepath.Glob("samples/*/*.json")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, path := range files {
		if strings.HasSuffix(path, ".result.json") {
			continue
		}
		decision := filepath.Base(filepath.Dir(path))
		seen[decision]++
		t.Run(decision+"/"+filepath.Base(path), func(t *testing.T) {
			sample, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if wrong := valid(t, schema(t, decision+"-input"), sample); wrong != "" {
				t.Fatalf("not as the schema says: %s", wrong)
			}
			record := asked(t, decision, sample)
			if wrong := valid(t, schema(t, decision+"-input"), record.Input); wrong != "" {
				t.Errorf("what the policy got is not as the schema says: %s", wrong)
			}
			if wrong := valid(t, schema(t, decision+"-result"), record.Result); wrong != "" {
				t.Errorf("the answer is not as the schema says: %s", wrong)
			}
			var got bytes.Buffer
			if err := json.Indent(&got, record.Result, "", "  "); err != nil {
				t.Fatal(err)
			}
			got.WriteByte('\n')
			beside := strings.TrimSuffix(path, ".json") + ".result.json"
			if os.Getenv("UPDATE") == "1" {
				if err := os.WriteFile(beside, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(beside)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
	for _, name := range policies.SchemaNames() {
		if decision, isInput := strings.CutSuffix(name, "-input"); isInput && seen[decision] < 2 {
			t.Errorf("decision %s has %d samples", decision, seen[decision])
		}
	}
}

func TestEachDecisionOfABundleHasItsOwnInput(t *testing.T) {
	good := content{
		"a.rego": "package flow.f.authority\n\ndefault decision := {\"allow\": false, \"reasons\": []}\n\ndecision := {\"allow\": true, \"reasons\": data.flow.f.lib.notes} if input.flow_state == \"frozen\"\n",
		"b.rego": "package flow.f.arbitration\n\ndefault decision := {\"decision\": \"FAIL\", \"reasons\": [], \"permissive\": false}\n\nx if input.results[0].status == \"PASS\"\n",
		"c.rego": "package flow.f.lib\n\nnotes contains input.whatever.is_there\n",
	}
	cases := []struct {
		name, file, text, says string
	}{
		{"as it should be", "c.rego", good["c.rego"], ""},
		{"a field of authority in arbitration", "b.rego", good["b.rego"] + "\ny if input.flow_state == \"frozen\"\n", "b.rego:7:6: rego_type_error: undefined ref: input.flow_state"},
		{"a field of arbitration in authority", "a.rego", good["a.rego"] + "\ny if input.results[0].status == \"PASS\"\n", "a.rego:7:6: rego_type_error: undefined ref: input.results"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := policies.ReadBundle(tarOf(t, good.with(content{c.file: c.text})), forF)
			if c.says == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			wantRefusal(t, err, policies.CodeInvalid, c.says)
		})
	}
}
