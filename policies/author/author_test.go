package author_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/writrun/writ/policies"
	"github.com/writrun/writ/policies/author"
)

// files is a folder by the names of its files.
type files map[string]string

func (f files) write(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range f {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const (
	authority = "package writ.authority\n\ndefault decision := {\"allow\": false, \"reasons\": []}\n"
	flowOwn   = "package flow.demo.authority\n\ndefault decision := {\"allow\": false, \"reasons\": []}\n"
)

// TestDefaultsPass holds what this repository ships against its own tools.
func TestDefaultsPass(t *testing.T) {
	for _, name := range author.Names() {
		p, err := author.Load(t.Context(), filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		r, err := p.Test(t.Context(), author.TestOptions{})
		if err != nil || !r.Passed() {
			t.Errorf("%s: %v %+v", name, err, r)
		}
		formatted, found := author.Format(p.Folder.Sources, false)
		if i := slices.IndexFunc(formatted, author.Formatted.Changed); len(found) > 0 || i >= 0 {
			t.Errorf("%s: %v, file %d is not formatted", name, found, i)
		}
	}
}

func TestScaffoldsPass(t *testing.T) {
	for _, flowID := range []string{"", "demo", "line-count"} {
		for _, name := range author.Names() {
			s, err := author.NewScaffold("first", name, flowID)
			if err != nil {
				t.Fatal(err)
			}
			f := files{}
			for _, one := range s.Files {
				f[one.Name] = string(one.Text)
			}
			p, err := author.Load(t.Context(), f.write(t))
			if err != nil {
				t.Fatalf("%s of %q: %v", name, flowID, err)
			}
			if len(p.Decisions) != 1 || p.Decisions[0].Entrypoint != s.Entrypoint || p.FlowID != flowID {
				t.Errorf("%s of %q: %+v", name, flowID, p.Decisions)
			}
			r, err := p.Test(t.Context(), author.TestOptions{Cover: true})
			if err != nil || !r.Passed() || r.Coverage.Percent != 100 || len(r.Results) < 4 {
				t.Errorf("%s of %q: %v %+v", name, flowID, err, r)
			}
		}
	}
}

// TestCheck has each refusal beside what is accepted.
func TestCheck(t *testing.T) {
	for _, test := range []struct {
		name  string
		files files
		want  []string // "code file:line" of each finding
	}{
		{"one decision of the operator's", files{"p.rego": authority}, nil},
		{"one decision of a flow's", files{"p.rego": flowOwn}, nil},
		{"a library beside it", files{"p.rego": flowOwn, "lib/l.rego": "package flow.demo.lib.deep\n\nx := 1\n"}, nil},
		{"data of a flow's", files{"p.rego": flowOwn, "flow/demo/data.json": `{"most": 3}`}, nil},
		{"data at the top", files{"p.rego": flowOwn, "data.yaml": "flow: {demo: {most: 3}}"}, nil},
		{"other files", files{"p.rego": authority, "notes.txt": "", "x.json": "{", "p.rego.orig": "x"}, nil},
		{"hidden files, as a run reads them", files{"p.rego": authority, ".x/.q.rego": "package a"}, []string{"policy_outside_root .x/.q.rego:1"}},
		{"no file", files{}, []string{"policy_unreadable :0"}},
		{"only tests", files{"p_test.rego": "package a\n"}, []string{"policy_unreadable :0"}},
		{"another package", files{"p.rego": "package authority\n"}, []string{"policy_outside_root p.rego:1"}},
		{"below a decision of the operator's", files{"p.rego": authority, "q.rego": "package writ.authority.lib\n"}, []string{"policy_outside_root q.rego:1"}},
		{"a flow and the operator", files{"p.rego": flowOwn, "q.rego": authority}, []string{"policy_outside_root q.rego:1"}},
		{"two flows", files{"p.rego": flowOwn, "q.rego": "package flow.other.authority\n"}, []string{"policy_outside_root q.rego:1"}},
		{"a flow itself", files{"p.rego": "package flow.demo\n"}, []string{"policy_outside_root p.rego:1"}},
		{"no decision", files{"p.rego": "package flow.demo.lib\n\nx := 1\n"}, []string{"policy_no_default :0"}},
		{"a decision below one", files{"p.rego": "package flow.demo.lib.authority\n\ndefault decision := 1\n"}, []string{"policy_no_default :0"}},
		{"data of the operator's", files{"p.rego": authority, "data.json": `{"a": 1}`}, []string{"policy_outside_root :0"}},
		{"data of another flow", files{"p.rego": flowOwn, "flow/x/data.json": `{"a": 1}`}, []string{"policy_outside_root :0"}},
		{"data that is none", files{"p.rego": flowOwn, "data.json": `[`}, []string{"policy_unreadable :0"}},
		{"data twice", files{"p.rego": flowOwn, "data.json": `{"flow": {"demo": 1}}`, "flow/data.json": `{"demo": 2}`}, []string{"policy_unreadable :0"}},
		{"another flow's data is read", files{"p.rego": flowOwn + "\nx := data.flow.other.most\n"}, []string{"policy_bundle_root :0"}},
		{"no default", files{"p.rego": "package writ.authority\n\nx := 1\n"}, []string{"policy_no_default p.rego:1"}},
		{"a default elsewhere", files{"p.rego": "package writ.authority\n\ndefault x := 1\n\ndecision := 1\n"}, []string{"policy_no_default p.rego:5"}},
		{"a default of another shape", files{"p.rego": "package writ.authority\n\ndefault decision := false\n"}, []string{"policy_result p.rego:3"}},
		{"two faults in two files", files{"p.rego": authority + "\nx := input.nothing\n", "q.rego": "package writ.authority\n\ny := http.send({})\n"}, []string{"policy_invalid q.rego:3"}},
		{"fields of two decisions", files{"p.rego": flowOwn + "\nx := input.results\n", "q.rego": "package flow.demo.arbitration\n\ndefault decision := {\"decision\": \"FAIL\", \"reasons\": [], \"permissive\": false}\n\ny := input.results\n"}, []string{"policy_invalid p.rego:5"}},
		{"v0", files{"p.rego": "package writ.authority\n\ndefault decision = false\n\ndecision { true }\n"}, []string{"policy_rego_v0 p.rego:5"}},
		{"neither v0 nor v1", files{"p.rego": "package writ.authority\n\ndecision {\n"}, []string{"policy_invalid p.rego:4"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := test.files.write(t)
			_, err := author.Load(t.Context(), dir)
			var found author.Findings
			if err != nil && !errors.As(err, &found) {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, places(dir, found)); diff != "" {
				t.Errorf("(-want +got):\n%s\n%v", diff, err)
			}
		})
	}
}

func places(dir string, found author.Findings) []string {
	var all []string
	for _, f := range found {
		file := strings.TrimPrefix(strings.TrimPrefix(f.File, dir), string(filepath.Separator))
		place := f.Code + " " + file + ":" + string(rune('0'+f.Line))
		if !slices.Contains(all, place) {
			all = append(all, place)
		}
	}
	return all
}

func TestCases(t *testing.T) {
	const right = `note: n
input: {}
want: {allow: false, reasons: []}
`
	for _, test := range []struct {
		name, text, want string // want is part of the finding, "" for none
	}{
		{"one case", right, ""},
		{"a list of them", "cases:\n- {note: a, input: {}, want: {allow: false, reasons: []}}\n- {note: b, input: 1, want_error: x}\n", ""},
		{"JSON", `{"note": "n", "input": null, "want": {}}`, ""},
		{"its decision", "decision: authority\n" + right, ""},
		{"its entrypoint", "decision: data.writ.authority.decision\n" + right, ""},
		{"its time and seed", "now: 7\nseed: " + strings.Repeat("0f", 32) + "\n" + right, ""},
		{"empty", "", "it is no mapping"},
		{"a list alone", "- a", "it is no mapping"},
		{"no YAML", "a: [", "yaml"},
		{"no case", "cases: []", "there are 0 cases; a file has 1 to"},
		{"no note", "input: {}\nwant: {}", "case 1 has no note"},
		{"no input", "note: n\nwant: {}", "case 1 (n) has no input"},
		{"nothing wanted", "note: n\ninput: {}", "needs one of want and want_error"},
		{"both wanted", right + "want_error: x", "needs one of want and want_error"},
		{"an unknown field", right + "wants: 1", `unknown field "wants"`},
		{"a note twice", "cases:\n- {note: a, input: 1, want: 1}\n- {note: a, input: 2, want: 1}\n", `case 2: the note "a" was there before`},
		{"another decision", "decision: standing\n" + right, `the policy does not answer "standing" but authority`},
		{"a bad seed", "seed: abc\n" + right, "read a seed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := author.Load(t.Context(), files{"p.rego": authority, "cases/a.yaml": test.text}.write(t))
			switch {
			case test.want == "" && err != nil:
				t.Error(err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}

// TestOutcomes has one test or case for each way it can end.
func TestOutcomes(t *testing.T) {
	p, err := author.Load(t.Context(), files{
		"p.rego": "package writ.authority\n\ndefault decision := {\"allow\": false, \"reasons\": []}\n\n" +
			"decision := {\"allow\": true, \"reasons\": [sprintf(\"%d\", [time.now_ns()])]} if input.action == \"run\"\n\n" +
			"decision := {\"allow\": true, \"reasons\": [\"x\"]} if to_number(input.mode) > 0\n",
		"p_test.rego": "package t\n\nimport data.writ.authority\n\n" +
			"test_pass if not authority.decision.allow with input as {\"action\": \"x\"}\n\n" +
			"test_fail if authority.decision.allow with input as {\"action\": \"x\"}\n\n" +
			"test_error if not authority.decision.allow with input as {\"mode\": \"live\"}\n\n" +
			"todo_test_skip if false\n\n" +
			"test_conflict if authority.decision with input as {\"action\": \"run\", \"mode\": \"1\"}\n\n" +
			"test_time if time.now_ns() == 1767225600000000000\n",
		"cases/a.yaml": `cases:
- {note: pass, input: {action: run, now: 7}, want: {allow: true, reasons: ["7"]}}
- {note: its own time, now: 8, input: {action: run, now: 7}, want: {allow: true, reasons: ["8"]}}
- {note: fail, input: {action: run, now: 7}, want: {allow: true, reasons: []}}
- {note: error, input: {mode: live}, want: {allow: true, reasons: []}}
- {note: the error that is wanted, input: {mode: live}, want_error: to_number}
- {note: another error, input: {mode: live}, want_error: nothing like it}
`,
	}.write(t))
	if err != nil {
		t.Fatal(err)
	}
	const entry = "data.writ.authority.decision: "
	want := map[string]string{
		"data.t.test_pass": author.Passed, "data.t.test_fail": author.Failed, "data.t.test_error": author.Errored,
		"data.t.todo_test_skip": author.Skipped, "data.t.test_conflict": author.Errored, "data.t.test_time": author.Passed,
		entry + "pass": author.Passed, entry + "its own time": author.Passed, entry + "fail": author.Failed,
		entry + "error": author.Errored, entry + "the error that is wanted": author.Passed, entry + "another error": author.Failed,
	}
	for _, cover := range []bool{false, true} {
		r, err := p.Test(t.Context(), author.TestOptions{Cover: cover})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, one := range r.Results {
			got[one.Name] = one.Outcome
			if (one.Outcome == author.Failed || one.Outcome == author.Errored) != (one.Message != "") {
				t.Errorf("%s: %s with message %q", one.Name, one.Outcome, one.Message)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" || r.Passed() {
			t.Errorf("coverage %v (-want +got):\n%s", cover, diff)
		}
	}
	chosen, err := p.Test(t.Context(), author.TestOptions{Run: regexp.MustCompile(`pass$`)})
	if err != nil || len(chosen.Results) != 2 || !chosen.Passed() {
		t.Errorf("%+v, %v", chosen, err)
	}
	none, err := p.Test(t.Context(), author.TestOptions{Run: regexp.MustCompile(`nothing`)})
	if err != nil || none.Passed() {
		t.Errorf("%+v, %v", none, err)
	}
}

func TestCancelledTestsEnd(t *testing.T) {
	p, err := author.Load(t.Context(), filepath.Join("..", "arbitration"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r, err := p.Test(ctx, author.TestOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestBenchTimesOnlyValidAnswers(t *testing.T) {
	p, err := author.Load(t.Context(), files{"p.rego": authority + "\ndecision := {\"allow\": 1, \"reasons\": []} if input.action == \"x\"\n"}.write(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, input := range []string{`{`, `{"action": "x"}`} {
		var r *policies.Refusal
		if timing, err := p.Bench(t.Context(), &p.Decisions[0], []byte(input)); !errors.As(err, &r) {
			t.Errorf("%s: %+v, %v", input, timing, err)
		}
	}
}

func TestSourcesOfOneFile(t *testing.T) {
	dir := files{"a.rego": "package a\n", "b.rego": "package b\n"}.write(t)
	for path, want := range map[string]int{dir: 2, filepath.Join(dir, "a.rego"): 1} {
		if got, err := author.Sources(path); err != nil || len(got) != want {
			t.Errorf("%s: %d, %v", path, len(got), err)
		}
	}
	if _, err := author.Sources(filepath.Join(dir, "c.rego")); err == nil {
		t.Error("a file that is not there was read")
	}
}

func FuzzCases(f *testing.F) {
	for _, seed := range []string{"note: n\ninput: {}\nwant: {}\n", "cases:\n- {note: a, input: 1, want_error: x}\n", `{"note": "n", "input": 1e999, "want": [1]}`, "a: &a [*a]", "? [a]\n: b\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		cases, err := author.ReadCases(author.Source{Name: "a.yaml", Text: text})
		if (err == nil) != (len(cases) > 0) {
			t.Errorf("%d cases, %v", len(cases), err)
		}
	})
}
