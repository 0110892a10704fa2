package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/writrun/writ/engine"
	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/policies"
	"github.com/writrun/writ/policies/author"
	"github.com/writrun/writ/policies/review"
)

// policyEvalDocument is what policy eval prints as JSON.
type policyEvalDocument struct {
	Dir        string        `json:"dir"` // "" for the default policy
	Entrypoint string        `json:"entrypoint"`
	Answer     review.Answer `json:"answer"`         // the policy's own
	Past       *pastAnswer   `json:"past,omitempty"` // with --run
	Case       string        `json:"case,omitempty"` // the file of --save-case
	input      review.Question
}

// pastAnswer is a recorded decision beside what it would be now.
type pastAnswer struct {
	RunID    abi.RunID             `json:"run_id"`
	Address  string                `json:"address"`
	Policy   abi.Digest            `json:"policy"` // it was decided under
	Recorded engine.DecisionResult `json:"recorded"`
	Now      engine.DecisionResult `json:"now"` // after what is enforced whatever a policy says
	Changed  bool                  `json:"changed"`
}

// questionFlags say which decision is asked of which policy.
type questionFlags struct {
	policy, decision, input, run string
}

func (q *questionFlags) add(a *app, cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&q.policy, "policy", "", "`DIR` of the policy (default: the one runs are asked with)")
	flags.StringVar(&q.decision, "decision", "", "`decision` to ask: with --input its name, where a policy answers several; with --run its address, for instance arbitration@flow/0; ledger/N is one that refused a request")
	flags.StringVar(&q.input, "input", "", "`FILE` with the input document as JSON, or - for stdin")
	flags.StringVar(&q.run, "run", "", "`RUN` that the decision is one of")
	_ = cmd.RegisterFlagCompletionFunc("run", a.completeRuns)
	_ = cmd.RegisterFlagCompletionFunc("decision", cobra.FixedCompletions(author.Names(), cobra.ShellCompDirectiveNoFileComp))
}

// refused reports whether the decision is one that no run came of.
func (q *questionFlags) refused() bool {
	return q.input == "" && strings.HasPrefix(q.decision, "ledger/")
}

func (q *questionFlags) check() error {
	switch {
	case q.refused() && q.input == "" && q.run == "":
	case (q.input == "") == (q.run == ""):
		return usagef("give one of --input FILE and --run RUN")
	case q.run != "" && q.decision == "":
		return usagef("--run needs --decision ADDRESS; writ inspect RUN --results shows the addresses")
	}
	return nil
}

func (a *app) policyEvalCommand() *cobra.Command {
	var q questionFlags
	var save string
	cmd := &cobra.Command{
		Use:   "eval",
		Short: "Ask a decision of a policy: over a document, or over a past one's",
		Long: `eval asks one decision of a policy and shows the answer and the rules that were
true. With --input it is the policy's own answer to that document.

With --run and the address of a decision it asks what was asked in that run, and
shows what would change: what was recorded, and what a run would come to now,
after what is enforced whatever a policy says. --save-case makes a case of it for
"writ policy test": the input, and the decision that was recorded.

Exit code 1: the policy gave no valid answer.`,
		Example: `  writ policy eval --policy lenient --input input.json
  writ policy eval --run latest --decision arbitration@flow/0 --policy lenient
  writ policy eval --run latest --decision arbitration@flow/0 --save-case lenient/cases/flow.yaml`,
		Args: cobra.NoArgs,
		RunE: a.work(func(cmd *cobra.Command, _ []string) error {
			if err := q.check(); err != nil {
				return err
			}
			if save != "" && q.input != "" {
				return usagef("--save-case makes a case of a past decision: give --run and --decision")
			}
			return a.policyEval(cmd.Context(), q, save)
		}),
	}
	q.add(a, cmd)
	cmd.Flags().StringVar(&save, "save-case", "", "write the past decision as a case to this new `FILE`")
	return cmd
}

func (a *app) policyEval(ctx context.Context, q questionFlags, save string) error {
	p, d, question, past, err := a.pose(ctx, q)
	if err != nil {
		return err
	}
	doc := policyEvalDocument{Dir: q.policy, Entrypoint: d.Entrypoint, input: question}
	if doc.Answer, err = p.Ask(ctx, d, question); err != nil {
		return refusalFault(err)
	}
	if past != nil {
		if doc.Past, err = askPast(ctx, q.policy, *past); err != nil {
			return err
		}
	}
	if save != "" {
		if err := saveCase(save, d, doc); err != nil {
			return err
		}
		doc.Case = save
	}
	if a.json() {
		err = a.writeJSON(doc)
	} else {
		a.showEval(doc)
	}
	if err == nil && doc.Answer.Error != "" {
		err = exitStatus(exitFailed)
	}
	return err
}

// pose finds the policy, its decision and what it is asked over; past is the
// recorded decision of --run.
func (a *app) pose(ctx context.Context, q questionFlags) (*review.Policy, *author.Decision, review.Question, *engine.PolicyDecision, error) {
	var question review.Question
	var past *engine.PolicyDecision
	name := q.decision
	if q.run != "" || q.refused() {
		d, err := a.pastDecision(q)
		if err != nil {
			return nil, nil, question, nil, err
		}
		past, name = &d, engine.DecisionName(d.Entrypoint)
		if question, err = review.QuestionOf(d.Input); err != nil {
			return nil, nil, question, nil, refusalFault(err)
		}
		question.Seed = d.Seed
	} else {
		input, err := a.readDocument(q.input)
		if err != nil {
			return nil, nil, question, nil, err
		}
		if question, err = review.QuestionOf(input); err != nil {
			return nil, nil, question, nil, refusalFault(err)
		}
	}
	p, d, err := loadReviewed(ctx, q.policy, name)
	if err == nil && past != nil && p.FlowID == "" && strings.HasPrefix(past.Entrypoint, "data.flow") {
		err = usagef("the decision is one of the flow's own policy, which stands in place of the operator's; name it with --policy DIR")
	}
	if err == nil && past != nil && p.FlowID != "" && p.FlowID != string(past.FlowID) {
		err = usagef("%s is the policy of flow %s, and the decision is one of flow %s", q.policy, p.FlowID, past.FlowID)
	}
	return p, d, question, past, err
}

// loadReviewed reads a policy to ask a decision of; "" is the default one.
func loadReviewed(ctx context.Context, dir, decision string) (*review.Policy, *author.Decision, error) {
	if dir == "" {
		if decision == "" {
			return nil, nil, usagef("name the decision with --decision, or the policy with --policy DIR")
		}
		p, err := review.Default(decision)
		if err != nil {
			return nil, nil, usagef("--decision %q is none of %s", decision, strings.Join(author.Names(), ", "))
		}
		return p, &p.Decisions[0], nil
	}
	p, err := review.Load(ctx, dir)
	if sub := decisionFolders(dir)[decision]; err != nil && sub != "" {
		if own, subErr := review.Load(ctx, sub); subErr == nil {
			p, err = own, nil
		}
	}
	if err != nil {
		return nil, nil, policyFault(err)
	}
	d, err := p.Decision(decision)
	if err != nil {
		return nil, nil, usagef("%v", err)
	}
	return p, d, nil
}

// pastDecision reads a decision of a run whose input is retained.
func (a *app) pastDecision(q questionFlags) (engine.PolicyDecision, error) {
	store, tenant, err := a.openStore(true)
	if err != nil {
		return engine.PolicyDecision{}, err
	}
	defer store.Close()
	var d engine.PolicyDecision
	if q.refused() {
		d, err = engine.FindRefused(tenant, q.decision)
	} else {
		var id abi.RunID
		if id, err = findRun(tenant, q.run); err == nil {
			d, err = engine.FindDecision(tenant, id, q.decision)
		}
	}
	if err == nil && d.Input == nil {
		err = &fault{Code: "decision_gone", Exit: exitDamaged, Hints: explainHint("decision_gone"),
			Message: fmt.Sprintf("decision %s cannot be asked again: %s", d.Address, d.NotRetained)}
	}
	return d, err
}

// askPast asks a recorded decision of the policy of a folder as a run would.
func askPast(ctx context.Context, dir string, past engine.PolicyDecision) (*pastAnswer, error) {
	p, err := loadAsked(ctx, dir)
	if err != nil {
		return nil, err
	}
	asked, err := engine.AskAgain(ctx, p.set, past)
	switch {
	case err == nil:
		return &pastAnswer{past.RunID, past.Address, past.Policy, past.Result, asked.Result, !past.Result.Same(asked.Result)}, nil
	case errors.Is(err, context.Canceled):
		return nil, err
	}
	return nil, &fault{Code: "decision_unaskable", Message: err.Error(), Hints: explainHint("decision_unaskable"), Exit: exitRefused, cause: err}
}

// askedPolicy is the policies of an operator who had put the policy of one folder
// in force.
type askedPolicy struct {
	set       *policies.Set
	flowID    string   // whose own the policy is, "" for the operator's
	decisions []string // that the policy answers
	digest    abi.Digest
}

// loadAsked reads the policy of a folder beside the defaults; "" is the defaults.
func loadAsked(ctx context.Context, dir string) (*askedPolicy, error) {
	set, err := policies.Default()
	if err != nil || dir == "" {
		return &askedPolicy{set: set, decisions: author.Names()}, err
	}
	checked, err := author.Load(ctx, dir)
	if folders := decisionFolders(dir); err != nil && len(folders) > 0 {
		if set, treeErr := loadOperator(folders); treeErr == nil {
			return &askedPolicy{set: set, decisions: slices.Sorted(maps.Keys(folders))}, nil
		}
	}
	if err != nil {
		return nil, policyFault(err)
	}
	p := &askedPolicy{flowID: checked.FlowID}
	for _, d := range checked.Decisions {
		p.decisions = append(p.decisions, d.Name)
	}
	if p.flowID != "" {
		bundle, err := policies.LoadBundle(ctx, dir, policies.BundleConfig{FlowID: p.flowID})
		if err != nil {
			return nil, refusalFault(err)
		}
		p.digest = bundle.Digest()
		p.set, err = set.WithFlow(bundle)
		return p, err
	}
	if p.set, err = loadOperator(map[string]string{p.decisions[0]: dir}); err != nil {
		return nil, refusalFault(err)
	}
	p.digest = map[string]func() abi.Digest{
		policies.DecisionAuthority: p.set.AuthorityDigest, policies.DecisionArbitration: p.set.ArbitrationDigest,
		policies.DecisionReplay: p.set.ReplayDigest, policies.DecisionStanding: p.set.StandingDigest,
	}[p.decisions[0]]()
	return p, nil
}

// asks reports whether a decision would be asked of the policy.
func (p *askedPolicy) asks(d engine.PolicyDecision) bool {
	own := strings.HasPrefix(d.Entrypoint, "data.flow")
	switch {
	case d.Name() != "" && !slices.Contains(p.decisions, d.Name()):
		return false
	case p.flowID != "":
		return p.flowID == string(d.FlowID)
	}
	return !own // a flow's own arbitration stands in place of the operator's
}

// saveCase writes a past decision as a case. Where the policy still decides so,
// the case wants its own words, else those that were recorded.
func saveCase(file string, d *author.Decision, doc policyEvalDocument) error {
	want := json.RawMessage(doc.Answer.Result)
	if doc.Past.Changed || doc.Answer.Error != "" {
		var err error
		if want, err = recordedAnswer(d.Name, doc.Past.Recorded); err != nil {
			return err
		}
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "note: %q\ndecision: %s\n", pastName(doc.Past.RunID, doc.Past.Address), d.Name)
	if doc.input.Seed != (policies.Seed{}) {
		fmt.Fprintf(&b, "seed: \"%x\"\n", doc.input.Seed[:])
	}
	for _, part := range []struct {
		name string
		doc  []byte
	}{{"input", doc.input.Input}, {"want", want}} {
		fmt.Fprintf(&b, "%s:\n  ", part.name)
		if err := json.Indent(&b, part.doc, "  ", "  "); err != nil {
			return fmt.Errorf("write case %s: %w", file, err)
		}
		b.WriteByte('\n')
	}
	made, err := writeNew(file, b.Bytes())
	switch {
	case err != nil:
		return fmt.Errorf("write case: %w", err)
	case !made:
		return usagef("%s exists; name a new file for the case", file)
	}
	return nil
}

// pastName names a past decision for people.
func pastName(run abi.RunID, address string) string {
	if run == "" {
		return address
	}
	return address + " of run " + string(run)
}

// recordedAnswer is a recorded decision in the form a policy answers in.
func recordedAnswer(decision string, r engine.DecisionResult) (json.RawMessage, error) {
	var answer any = struct {
		Decision   string   `json:"decision"`
		Permissive bool     `json:"permissive"`
		Reasons    []string `json:"reasons"`
	}{r.Decision, r.Permissive, orEmpty(r.Reasons)}
	if decision == policies.DecisionAuthority {
		answer = struct {
			Allow   bool     `json:"allow"`
			Reasons []string `json:"reasons"`
		}{r.Decision == engine.DecisionAllow, orEmpty(r.Reasons)}
	}
	return abi.EncodeMessage(answer)
}
