package policies_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/policies"
)

// The oracle below follows the words of the design, not the Rego:
//
//	unanimous: any FAIL is FAIL, else any non-PASS is ESCALATE, else PASS.
//	quorum: PASS at threshold, else FAIL at threshold, else ESCALATE, errors and
//	not-run in the denominator.
//	strict_first_failure: first FAIL or ERROR is FAIL, first ESCALATE or NOT_RUN
//	is ESCALATE.
//	Nothing evaluated is at least ESCALATE; a gap in live coverage is FAIL.
//	An error or a missing result never improves a decision: with PASS in its
//	place, the best it could have been, the decision would be no worse.
//	permissive: PASS while any expected result is not PASS or is missing.

// question is one of all the oracle and the policies are asked.
type question struct {
	rule    string
	quorum  fraction // of rule quorum
	mode    string
	results string // a letter each: P, F, E(scalate), X (error), N (not run)
	missing int    // results that there should be and that are not there
}

type fraction struct {
	threshold float64
	num, den  int
}

func (q question) String() string {
	return fmt.Sprintf("%s %v over %q and %d missing, %s", q.rule, q.quorum.threshold, q.results, q.missing, q.mode)
}

type answer struct {
	decision   string
	permissive bool
}

var badness = map[string]int{"PASS": 0, "ESCALATE": 1, "FAIL": 2}

func worse(a, b string) string {
	if badness[b] > badness[a] {
		return b
	}
	return a
}

func (q question) expected() answer {
	decision := q.atWorst(q.results)
	if !strings.ContainsAny(q.results, "PFE") {
		decision = worse(decision, "ESCALATE")
	}
	if q.missing > 0 && q.mode == "live" {
		decision = "FAIL"
	}
	allPass := q.missing == 0 && strings.Count(q.results, "P") == len(q.results)
	return answer{decision, decision == "PASS" && !allPass}
}

// atWorst is the worst of what the rule says over the results and over those
// where some that are an error or were not run are a PASS.
func (q question) atWorst(results string) string {
	decision := q.byRule(results)
	for i, letter := range results {
		if letter == 'X' || letter == 'N' {
			decision = worse(decision, q.atWorst(results[:i]+"P"+results[i+1:]))
		}
	}
	return decision
}

// byRule is what a rule alone says.
func (q question) byRule(results string) string {
	atThreshold := func(letter string) bool {
		return len(results) > 0 && strings.Count(results, letter)*q.quorum.den >= q.quorum.num*len(results)
	}
	switch {
	case q.rule == "unanimous" && strings.Contains(results, "F"):
		return "FAIL"
	case q.rule == "unanimous" && strings.Trim(results, "P") != "":
		return "ESCALATE"
	case q.rule == "quorum" && atThreshold("P"):
		return "PASS"
	case q.rule == "quorum" && atThreshold("F"):
		return "FAIL"
	case q.rule == "quorum":
		return "ESCALATE"
	case q.rule == "strict_first_failure":
		first := strings.TrimLeft(results, "P")
		if strings.HasPrefix(first, "F") || strings.HasPrefix(first, "X") {
			return "FAIL"
		}
		if first != "" {
			return "ESCALATE"
		}
	}
	if results == "" {
		return "ESCALATE"
	}
	return "PASS"
}

func (q question) input() policies.ArbitrationInput {
	statuses := map[rune]abi.Status{'P': abi.Pass, 'F': abi.Fail, 'E': abi.Escalate, 'X': abi.Errored, 'N': abi.NotRun}
	var s []abi.Status
	for _, letter := range q.results {
		s = append(s, statuses[letter])
	}
	in := input(q.rule, q.quorum.threshold, s...)
	in.Mode = q.mode
	in.Coverage.Expected += q.missing
	return in
}

func quorums() []fraction {
	return []fraction{{0.51, 51, 100}, {0.6, 3, 5}, {2.0 / 3, 6666666666666666, 10000000000000000}, {0.75, 3, 4}, {0.8, 4, 5}, {1, 1, 1}}
}

// sequences lists every sequence of n letters.
func sequences(n int) []string {
	all := []string{""}
	for range n {
		var longer []string
		for _, s := range all {
			for _, letter := range "PFEXN" {
				longer = append(longer, s+string(letter))
			}
		}
		all = longer
	}
	return all
}

// questions lists what is asked: everything up to 5 results under WRIT_LONG=1,
// else everything up to 3 and, of longer ones, one order of each, which is all
// there is to a rule that does not look at the order.
func questions() []question {
	var all []question
	ask := func(results, mode string, missing int) {
		for _, rule := range []string{"unanimous", "strict_first_failure"} {
			all = append(all, question{rule: rule, mode: mode, results: results, missing: missing})
		}
		for _, f := range quorums() {
			all = append(all, question{rule: "quorum", quorum: f, mode: mode, results: results, missing: missing})
		}
	}
	for n := range 6 {
		for _, s := range sequences(n) {
			if n <= 3 || os.Getenv("WRIT_LONG") != "" || slices.IsSortedFunc([]rune(s), func(a, b rune) int { return strings.IndexRune("PFEXN", a) - strings.IndexRune("PFEXN", b) }) {
				ask(s, "live", 0)
			}
			if n <= 2 {
				ask(s, "live", 1)
				ask(s, "unsafe", 0)
				ask(s, "unsafe", 1)
			}
		}
	}
	return all
}

// TestDefaultArbitration asks the default policies all of it and compares the
// answers with the oracle and with each other.
func TestDefaultArbitration(t *testing.T) {
	set := defaults(t)
	answers := map[question]answer{}
	for _, q := range questions() {
		d, err := set.Arbitrate(t.Context(), q.input())
		if err != nil {
			t.Fatalf("%s: %v", q, err)
		}
		got := answer{d.Decision, d.Permissive}
		answers[q] = got
		if want := q.expected(); got != want {
			t.Errorf("%s: %+v, want %+v", q, got, want)
		}
		nothing := !strings.ContainsAny(q.results, "PFE")
		if slices.Contains(d.Reasons, policies.ReasonNothingEvaluated) != nothing {
			t.Errorf("%s: reasons %q", q, d.Reasons)
		}
	}
	t.Logf("%d decisions", len(answers))
	byTally := map[question]answer{}
	for q, got := range answers {
		checkErrorsNoBetter(t, answers, q)
		if q.rule == "strict_first_failure" {
			continue // its order counts
		}
		sorted := q
		letters := []byte(q.results)
		slices.Sort(letters)
		sorted.results = string(letters)
		if first, ok := byTally[sorted]; ok && first != got {
			t.Errorf("%s: %+v; in another order %+v", q, got, first)
		}
		byTally[sorted] = got
	}
}

// checkErrorsNoBetter compares an answer with those where one error or missing
// result is a PASS.
func checkErrorsNoBetter(t *testing.T, answers map[question]answer, q question) {
	t.Helper()
	var better []question
	for i, letter := range q.results {
		if letter == 'X' || letter == 'N' {
			other := q
			other.results = q.results[:i] + "P" + q.results[i+1:]
			better = append(better, other)
		}
	}
	if q.missing > 0 {
		other := q
		other.results, other.missing = q.results+"P", q.missing-1
		better = append(better, other)
	}
	for _, other := range better {
		with, asked := answers[other]
		if asked && badness[answers[q].decision] < badness[with.decision] {
			t.Errorf("%s: %+v is better than %+v of %s", q, answers[q], with, other)
		}
	}
}

// TestFirstFailureGoesByTheOrder has the two orders that the rule exists for.
func TestFirstFailureGoesByTheOrder(t *testing.T) {
	set := defaults(t)
	for results, want := range map[string]string{"PFE": "FAIL", "PEF": "ESCALATE"} {
		q := question{rule: "strict_first_failure", mode: "live", results: results}
		if d, err := set.Arbitrate(t.Context(), q.input()); err != nil || d.Decision != want {
			t.Errorf("%s: %s, %v; want %s", q, d.Decision, err, want)
		}
	}
}
