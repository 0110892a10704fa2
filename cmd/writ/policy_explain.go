package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/writrun/writ/policies/review"
)

// policyExplainDocument is what policy explain prints as JSON.
type policyExplainDocument struct {
	Dir string `json:"dir"` // "" for the default policy
	review.Explanation
	Past *pastAnswer `json:"past,omitempty"` // with --run
}

func (a *app) policyExplainCommand() *cobra.Command {
	var q questionFlags
	cmd := &cobra.Command{
		Use:   "explain",
		Short: "Tell how a decision comes about: facts, rules that were true, reasons",
		Long: `explain asks one decision, as "writ policy eval" does, and tells how the answer
came about, in the order of the evaluation: what the policy read of its input,
the rules that were true with their values, those that were tried and were not
with the expression that failed, and the reasons. Where rules conflict it shows
every value and its place.

Without --policy it is the policy runs are asked with by default. Exit code 1:
the policy gave no valid answer.`,
		Example: `  writ policy explain --run latest --decision arbitration@flow/0
  writ policy explain --policy lenient --input input.json`,
		Args: cobra.NoArgs,
		RunE: a.work(func(cmd *cobra.Command, _ []string) error {
			if err := q.check(); err != nil {
				return err
			}
			return a.policyExplain(cmd.Context(), q)
		}),
	}
	q.add(a, cmd)
	return cmd
}

func (a *app) policyExplain(ctx context.Context, q questionFlags) error {
	p, d, question, past, err := a.pose(ctx, q)
	if err != nil {
		return err
	}
	x, err := p.Explain(ctx, d, question)
	if err != nil {
		return refusalFault(err)
	}
	doc := policyExplainDocument{Dir: q.policy, Explanation: *x}
	if past != nil {
		now, err := askPast(ctx, q.policy, *past)
		if err != nil {
			return err
		}
		doc.Past = now
	}
	if a.json() {
		err = a.writeJSON(doc)
	} else {
		a.showExplanation(doc)
	}
	if err == nil && x.Answer.Error != "" {
		err = exitStatus(exitFailed)
	}
	return err
}

func (a *app) showExplanation(doc policyExplainDocument) {
	fmt.Fprintf(a.stdout, "%s of %s\n", safe(doc.Entrypoint), policyName(doc.Dir))
	a.section("facts it read", len(doc.Facts))
	for _, f := range doc.Facts {
		fmt.Fprintf(a.stdout, "  %s = %s\n", safe(f.Path), safe(f.Value))
	}
	a.section("rules that were true, in this order", len(doc.True))
	for _, s := range doc.True {
		fmt.Fprintf(a.stdout, "  %s  %s = %s\n", safe(s.Place), safe(s.Name), safe(s.Value))
	}
	a.section("rules that were not", len(doc.NotTrue))
	for _, s := range doc.NotTrue {
		fmt.Fprintf(a.stdout, "  %s  %s", safe(s.Place), safe(s.Name))
		if s.Why != "" {
			fmt.Fprintf(a.stdout, "  because of %s", safe(s.Why))
		}
		fmt.Fprintln(a.stdout)
	}
	a.section("reasons", len(doc.Reasons))
	for _, r := range doc.Reasons {
		fmt.Fprintf(a.stdout, "  %s\n", safe(r))
	}
	if doc.Cut {
		fmt.Fprintln(a.stdout, "\nthere is more than what is shown")
	}
	fmt.Fprintln(a.stdout)
	a.showAnswer(doc.Answer)
	if p := doc.Past; p != nil {
		a.pairs("", "recorded", a.resultText(p.Recorded), "now", a.resultText(p.Now))
	}
}

// section begins a part of an explanation that has something in it.
func (a *app) section(title string, n int) {
	if n > 0 {
		fmt.Fprintf(a.stdout, "\n%s\n", a.paint(bold, title))
	}
}
