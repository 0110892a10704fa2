package review_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/writrun/writ/policies"
	"github.com/writrun/writ/policies/review"
)

// load reads a policy of one file.
func load(t *testing.T, rego string) *review.Policy {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "p.rego"), []byte(rego), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := review.Load(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func question(t *testing.T, input string) review.Question {
	t.Helper()
	q, err := review.QuestionOf([]byte(input))
	if err != nil {
		t.Fatal(err)
	}
	return q
}

const head = `package writ.arbitration

default decision := {"decision": "ESCALATE", "reasons": ["none"], "permissive": false}

`

func TestAsk(t *testing.T) {
	cases := []struct{ name, rules, input, result, code string }{
		{"the default", "", `{}`, `{"decision":"ESCALATE","permissive":false,"reasons":["none"]}`, ""},
		{"a rule", `decision := {"decision": "PASS", "reasons": [], "permissive": false} if input.rule == "quorum"`, `{"rule":"quorum"}`, `{"decision":"PASS","permissive":false,"reasons":[]}`, ""},
		{"the input's time", `decision := {"decision": "PASS", "reasons": [sprintf("%d", [time.now_ns()])], "permissive": false}`, `{"now":7}`, `{"decision":"PASS","permissive":false,"reasons":["7"]}`, ""},
		{"a wrong word", `decision := {"decision": "MAYBE", "reasons": [], "permissive": false} if input.rule == "quorum"`, `{"rule":"quorum"}`, `{"decision":"MAYBE","permissive":false,"reasons":[]}`, policies.CodeResult},
		{"a builtin that fails", `decision := {"decision": "PASS", "reasons": [], "permissive": false} if to_number(input.rule) == 1`, `{"rule":"quorum"}`, "", policies.CodeEvaluation},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := load(t, head+c.rules+"\n")
			got, err := p.Ask(t.Context(), &p.Decisions[0], question(t, c.input))
			if err != nil {
				t.Fatal(err)
			}
			if string(got.Result) != c.result || got.Code != c.code || (got.Error != "") != (c.code != "") {
				t.Errorf("got %s, code %q, error %q", got.Result, got.Code, got.Error)
			}
		})
	}
}

func TestExplainTellsInOrder(t *testing.T) {
	p, err := review.Default(policies.DecisionArbitration)
	if err != nil {
		t.Fatal(err)
	}
	x, err := p.Explain(t.Context(), &p.Decisions[0], question(t, `{"rule":"quorum","quorum_needed":2,"results":[{"status":"PASS"},{"status":"PASS"},{"status":"FAIL"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	var facts, done, not []string
	for _, f := range x.Facts {
		facts = append(facts, f.Path)
	}
	for _, s := range x.True {
		done = append(done, s.Name+" = "+s.Value)
	}
	for _, s := range x.NotTrue {
		not = append(not, s.Name+" | "+s.Why)
	}
	if diff := cmp.Diff([]string{"input.rule", "input.results", "input.quorum_needed"}, facts); diff != "" {
		t.Errorf("facts (-want +got):\n%s", diff)
	}
	for _, want := range []string{`quorum = "PASS"`, `permissive = true`, `tally("PASS") = 2`} {
		if !slices.Contains(done, want) {
			t.Errorf("true rules do not have %s: %q", want, done)
		}
	}
	if !slices.ContainsFunc(not, func(s string) bool { return strings.Contains(s, `input.rule == "unanimous"`) }) {
		t.Errorf("rules that were not true: %q", not)
	}
	if !strings.Contains(string(x.Answer.Result), `"PASS"`) || len(x.Reasons) != 1 || x.Cut {
		t.Errorf("answer %s, reasons %q, cut %v", x.Answer.Result, x.Reasons, x.Cut)
	}
}

func TestConflictShowsEveryValueAndPlace(t *testing.T) {
	p := load(t, head+`decision := {"decision": "PASS", "reasons": ["a"], "permissive": false} if input.rule == "quorum"

decision := {"decision": "FAIL", "reasons": ["b"], "permissive": false} if input.rule != "unanimous"
`)
	x, err := p.Explain(t.Context(), &p.Decisions[0], question(t, `{"rule":"quorum"}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"PASS"`, `"FAIL"`, "p.rego:5", "p.rego:7"} {
		if !strings.Contains(x.Answer.Error, want) {
			t.Errorf("the conflict does not show %s:\n%s", want, x.Answer.Error)
		}
	}
	if x.Answer.Code != policies.CodeEvaluation || x.Answer.Result != nil {
		t.Errorf("answer %+v", x.Answer)
	}
}

func TestExplanationIsBounded(t *testing.T) {
	p := load(t, head+`many(n) := n if n >= 0

decision := {"decision": "PASS", "reasons": [], "permissive": false} if count([1 | some i in numbers.range(0, 2000); many(i)]) > 0
`)
	x, err := p.Explain(t.Context(), &p.Decisions[0], question(t, `{}`))
	if err != nil {
		t.Fatal(err)
	}
	if len(x.True) != review.RulesMax || !x.Cut {
		t.Errorf("%d rules, cut %v", len(x.True), x.Cut)
	}
}

func TestWrongQuestionsAreErrors(t *testing.T) {
	for _, input := range []string{"", "{", `{"now":1e99999999}`} {
		if q, err := review.QuestionOf([]byte(input)); err == nil {
			p := load(t, head)
			if _, err := p.Ask(t.Context(), &p.Decisions[0], q); err == nil {
				t.Errorf("%q was asked", input)
			}
		}
	}
	if _, err := review.Load(t.Context(), t.TempDir()); err == nil {
		t.Error("an empty folder was read")
	}
	if _, err := review.Default("nonsense"); err == nil {
		t.Error("there is a default policy nonsense")
	}
}
