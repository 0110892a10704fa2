package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/writrun/writ/engine"
	"github.com/writrun/writ/policies"
	"github.com/writrun/writ/policies/author"
	"github.com/writrun/writ/policies/review"
)

// loadOperator reads the policies of folders in place of the defaults.
func loadOperator(folders map[string]string) (*policies.Set, error) {
	var c policies.Config
	for decision, to := range map[string]*fs.FS{
		policies.DecisionAuthority: &c.Authority, policies.DecisionArbitration: &c.Arbitration,
		policies.DecisionReplay: &c.Replay, policies.DecisionStanding: &c.Standing,
	} {
		if dir := folders[decision]; dir != "" {
			*to = os.DirFS(dir)
		}
	}
	return policies.Load(c)
}

// decisionFolders are the folders named for decisions in an operator's folder.
func decisionFolders(dir string) map[string]string {
	folders := map[string]string{}
	for _, decision := range author.Names() {
		sub := filepath.Join(dir, decision)
		if info, err := os.Stat(sub); err == nil && info.IsDir() {
			folders[decision] = sub
		}
	}
	return folders
}

func (a *app) showEval(doc policyEvalDocument) {
	a.pairs("", "decision", safe(doc.Entrypoint), "policy", policyName(doc.Dir))
	a.showAnswer(doc.Answer)
	for _, rule := range doc.Answer.RulesFired {
		fmt.Fprintf(a.stdout, "true      %s\n", safe(rule))
	}
	if p := doc.Past; p != nil {
		fmt.Fprintln(a.stdout)
		a.pairs("", "run", string(p.RunID), "address", safe(p.Address), "recorded", a.resultText(p.Recorded), "now", a.resultText(p.Now))
		if p.Changed {
			fmt.Fprintf(a.stdout, "\nthis policy would change the decision from %s to %s\n", resultWords(p.Recorded), resultWords(p.Now))
		} else {
			fmt.Fprintln(a.stdout, "\nthis policy would not change the decision")
		}
	}
	if doc.Case != "" {
		fmt.Fprintf(a.stdout, "wrote %s\n", safe(doc.Case))
	}
}

// showAnswer shows a policy's answer, or each line of why there is none.
func (a *app) showAnswer(answer review.Answer) {
	if answer.Result != nil {
		fmt.Fprintf(a.stdout, "answer    %s\n", safe(string(answer.Result)))
	}
	if answer.Error == "" {
		return
	}
	fmt.Fprintf(a.stdout, "no valid answer: %s\n", a.paint(red, answer.Code))
	for line := range strings.SplitSeq(answer.Error, "\n") {
		fmt.Fprintf(a.stdout, "  %s\n", safe(line))
	}
}

func policyName(dir string) string {
	if dir == "" {
		return "the default"
	}
	return safe(dir)
}

// resultWords is a decision with its mark.
func resultWords(r engine.DecisionResult) string {
	if r.Permissive {
		return r.Decision + " (permissive)"
	}
	return r.Decision
}

func (a *app) resultText(r engine.DecisionResult) string {
	return strings.TrimSpace(a.word(resultWords(r)) + "  " + short(strings.Join(r.Reasons, "; "), 160))
}
