package policies_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/policies"
)

func defaults(t testing.TB) *policies.Set {
	t.Helper()
	s, err := policies.Default()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// arbitrating returns a set whose arbitration policy is text.
func arbitrating(text string) (*policies.Set, error) {
	return policies.Load(policies.Config{Arbitration: fstest.MapFS{"p.rego": {Data: []byte(text)}}})
}

func input(rule string, threshold float64, statuses ...abi.Status) policies.ArbitrationInput {
	in := policies.ArbitrationInput{Action: "arbitrate", Tenant: "demo", Now: 1, Mode: "live", FlowID: "f", Target: "s",
		Rule: rule, QuorumThreshold: threshold}
	for i, s := range statuses {
		in.Results = append(in.Results, policies.ArbitrationResult{RuleID: fmt.Sprintf("r%d", i), Target: "s", Status: s, Severity: "error", Randomness: "deterministic"})
	}
	in.Coverage.Expected = len(statuses)
	return in
}

var allStatuses = []abi.Status{abi.Pass, abi.Fail, abi.Escalate, abi.Errored, abi.NotRun}

// TestFloor has a case for each line Go enforces, under a policy that says otherwise.
func TestFloor(t *testing.T) {
	always := func(decision string, permissive bool) string {
		return fmt.Sprintf("package writ.arbitration\ndefault decision := {\"decision\": %q, \"reasons\": [], \"permissive\": %v}\n", decision, permissive)
	}
	byErrors := `package writ.arbitration
default decision := {"decision": "FAIL", "reasons": [], "permissive": false}
decision := {"decision": "PASS", "reasons": [], "permissive": false} if { some r in input.results; r.status in {"ERROR", "NOT_RUN"} }`
	gap := input("unanimous", 0, abi.Pass)
	gap.Coverage.Expected = 2
	cases := []struct {
		name       string
		policy     string
		in         policies.ArbitrationInput
		want       string
		permissive bool
		reason     string
	}{
		{"nothing evaluated is not a pass", always("PASS", false), input("unanimous", 0), "ESCALATE", false, policies.ReasonNothingEvaluated},
		{"errors alone are nothing evaluated", always("PASS", false), input("unanimous", 0, abi.Errored, abi.NotRun), "ESCALATE", false, policies.ReasonNothingEvaluated},
		{"a coverage gap fails", always("PASS", false), gap, "FAIL", false, policies.ReasonCoverageGap},
		{"an error never improves", byErrors, input("unanimous", 0, abi.Pass, abi.Errored), "FAIL", false, policies.ReasonErrorsNoBetter},
		{"permissive is computed", always("PASS", false), input("unanimous", 0, abi.Pass, abi.Fail), "PASS", true, ""},
		{"permissive can be added", always("PASS", true), input("unanimous", 0, abi.Pass), "PASS", true, ""},
		{"a failure stays a failure over nothing", always("FAIL", false), input("unanimous", 0), "FAIL", false, policies.ReasonNothingEvaluated},
		{"what holds is left alone", always("PASS", false), input("unanimous", 0, abi.Pass), "PASS", false, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			set, err := arbitrating(c.policy)
			if err != nil {
				t.Fatal(err)
			}
			d, err := set.Arbitrate(t.Context(), c.in)
			if err != nil {
				t.Fatal(err)
			}
			if d.Decision != c.want || d.Permissive != c.permissive || c.reason != "" && !slices.Contains(d.Reasons, c.reason) {
				t.Errorf("%s permissive %v reasons %q, want %s %v %q", d.Decision, d.Permissive, d.Reasons, c.want, c.permissive, c.reason)
			}
		})
	}
}

func TestInvalidAnswersAreRefused(t *testing.T) {
	const head = "package writ.arbitration\ndefault decision := {\"decision\": \"FAIL\", \"reasons\": [], \"permissive\": false}\n"
	cases := []struct{ name, policy, code, says string }{
		{"two rules are true", head + `decision := {"decision": "PASS", "reasons": ["a"], "permissive": false} if { true }
decision := {"decision": "PASS", "reasons": ["b"], "permissive": false} if { count(input.results) == 1 }`, policies.CodeEvaluation, "conflict"},
		{"division by zero", head + `decision := {"decision": "PASS", "reasons": [sprintf("%v", [1 / (count(input.results) - 1)])], "permissive": false}`, policies.CodeEvaluation, "divide by zero"},
		{"a builtin fails", head + `decision := {"decision": "PASS", "reasons": [], "permissive": false} if { to_number(input.target) == 1 }`, policies.CodeEvaluation, "to_number"},
		{"a field is missing", `package writ.arbitration
default decision := {"decision": "PASS", "reasons": []}`, policies.CodeResult, "permissive"},
		{"a field too many", `package writ.arbitration
default decision := {"decision": "PASS", "reasons": [], "permissive": false, "note": "x"}`, policies.CodeResult, "note"},
		{"a field in another case", `package writ.arbitration
default decision := {"Decision": "PASS", "decision": "PASS", "reasons": [], "permissive": false}`, policies.CodeResult, "Decision"},
		{"null for a field", `package writ.arbitration
default decision := {"decision": "PASS", "reasons": null, "permissive": false}`, policies.CodeResult, "reasons"},
		{"a word for a flag", `package writ.arbitration
default decision := {"decision": "PASS", "reasons": [], "permissive": "no"}`, policies.CodeResult, "permissive"},
		{"another decision", `package writ.arbitration
default decision := {"decision": "pass", "reasons": [], "permissive": false}`, policies.CodeResult, "pass"},
		{"no object", "package writ.arbitration\ndefault decision := true", policies.CodeResult, "true"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			set, err := arbitrating(c.policy)
			if err != nil {
				t.Fatal(err)
			}
			d, err := set.Arbitrate(t.Context(), input("unanimous", 0, abi.Pass))
			var r *policies.Refusal
			if !errors.As(err, &r) || r.Code != c.code || !strings.Contains(r.Detail, c.says) {
				t.Fatalf("error %v, want %s naming %q", err, c.code, c.says)
			}
			if d.Decision != "" {
				t.Errorf("a refused evaluation decided %q", d.Decision)
			}
		})
	}
}

func TestQuestionsWithoutAnAnswer(t *testing.T) {
	cases := []struct {
		name string
		in   policies.ArbitrationInput
		says string // "" is accepted
	}{
		{"a threshold of all", input("quorum", 1, abi.Pass), ""},
		{"a threshold above all", input("quorum", 1.01, abi.Pass), "quorum_threshold"},
		{"a threshold of half", input("quorum", 0.5, abi.Pass), "quorum_threshold"},
		{"no threshold", input("quorum", 0, abi.Pass), "quorum_threshold"},
		{"no threshold where none is asked", input("unanimous", 0, abi.Pass), ""},
		{"a status that is none", input("unanimous", 0, "pass"), `"pass"`},
		{"no status", input("unanimous", 0, ""), "status"},
	}
	set := defaults(t)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			d, err := set.Arbitrate(t.Context(), c.in)
			if c.says != "" {
				wantRefusal(t, err, policies.CodeInput, c.says)
			} else if err != nil || d.Decision != "PASS" {
				t.Errorf("%s, %v", d.Decision, err)
			}
		})
	}
}

func TestUnusablePoliciesAreRefusedAtLoad(t *testing.T) {
	const head = "package writ.arbitration\ndefault decision := {\"decision\": \"FAIL\", \"reasons\": [], \"permissive\": false}\n"
	cases := []struct{ name, policy, code, says string }{
		{"reaches the network", head + `x := http.send({"method": "get", "url": "https://example.org"})`, policies.CodeInvalid, "http.send"},
		{"looks a name up", head + `x := net.lookup_ip_addr("example.org")`, policies.CodeInvalid, "net.lookup_ip_addr"},
		{"reads the process", head + "x := opa.runtime()", policies.CodeInvalid, "opa.runtime"},
		{"verifies against the clock", head + `x := crypto.x509.parse_and_verify_certificates("")`, policies.CodeInvalid, "crypto.x509.parse_and_verify_certificates"},
		{"Rego v0", "package writ.arbitration\ndefault decision = false\ndecision { input.tenant }", policies.CodeRegoV0, "--v0-v1"},
		{"another package", "package other\ndefault decision := 1", policies.CodeRoot, "data.writ.arbitration"},
		{"no default", "package writ.arbitration\ndecision := {} if { input.tenant }", policies.CodeNoDefault, "default"},
		{"syntax", head + "x := ", policies.CodeInvalid, "p.rego:3"},
		{"unused variable", head + "x if { y := 1 }", policies.CodeInvalid, "y"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := arbitrating(c.policy)
			var r *policies.Refusal
			if !errors.As(err, &r) || r.Code != c.code || !strings.Contains(r.Detail, c.says) {
				t.Errorf("error %v, want %s naming %q", err, c.code, c.says)
			}
		})
	}
	if _, err := policies.Load(policies.Config{Authority: fstest.MapFS{}}); err == nil {
		t.Error("an empty folder was taken for a policy")
	}
}

func TestEvaluationEndsWithItsCaller(t *testing.T) {
	set, err := arbitrating(`package writ.arbitration
default decision := {"decision": "FAIL", "reasons": [], "permissive": false}
digits := [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
decision := {"decision": "PASS", "reasons": [], "permissive": false} if {
	count([1 | some a in digits; some b in digits; some c in digits; some d in digits; some e in digits; some f in digits; some g in digits; some h in digits; some i in digits; a + b + c + d + e + f + g + h + i < 0]) == 0
}`)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := set.Arbitrate(ctx, input("unanimous", 0, abi.Pass)); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestAuthority(t *testing.T) {
	base := policies.AuthorityInput{Action: "run", Tenant: "demo", Now: 1, Mode: "live", FlowID: "f", FlowState: "validated"}
	with := func(change func(*policies.AuthorityInput)) policies.AuthorityInput {
		in := base
		change(&in)
		return in
	}
	cases := []struct {
		name    string
		in      policies.AuthorityInput
		allow   bool
		reasons []string
	}{
		{"local use", base, true, []string{}},
		{"another action", with(func(in *policies.AuthorityInput) { in.Action = "redact" }), false, []string{"no rule allows this action"}},
		{"deprecated", with(func(in *policies.AuthorityInput) { in.FlowState = "deprecated" }), false, []string{"the flow is deprecated; --allow-deprecated lets it run"}},
		{"deprecated and allowed", with(func(in *policies.AuthorityInput) { in.FlowState, in.AllowDeprecated = "deprecated", true }), true, []string{"the flow is deprecated and was allowed to run"}},
		{"unsigned modules", with(func(in *policies.AuthorityInput) {
			in.Modules = []policies.AuthorityModule{{Name: "m"}, {Name: "n", Signed: true}}
		}), true, []string{"1 of 2 modules are not signed; each is pinned by its digest"}},
	}
	set := defaults(t)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			d, err := set.Authority(t.Context(), c.in)
			if err != nil {
				t.Fatal(err)
			}
			if d.Allow != c.allow {
				t.Errorf("allow %v, want %v", d.Allow, c.allow)
			}
			if diff := cmp.Diff(c.reasons, d.Reasons); diff != "" {
				t.Errorf("reasons (-want +got):\n%s", diff)
			}
			if d.Record.InputDigest != abi.DigestOf(d.Record.Input) || len(d.Record.RulesFired) == 0 {
				t.Errorf("record %+v", d.Record)
			}
		})
	}
}

func TestDecisionsAreEqualEachTime(t *testing.T) {
	first, err := defaults(t).Arbitrate(t.Context(), input("quorum", 0.6, allStatuses...))
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		again, err := defaults(t).Arbitrate(t.Context(), input("quorum", 0.6, allStatuses...))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(first, again); diff != "" {
			t.Fatalf("second decision (-first +again):\n%s", diff)
		}
	}
	if a, b := defaults(t).ArbitrationDigest(), defaults(t).ArbitrationDigest(); a != b || a == defaults(t).AuthorityDigest() {
		t.Errorf("digests %s, %s", a, b)
	}
}
