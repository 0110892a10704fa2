package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/writrun/writ/engine"
	"github.com/writrun/writ/engine/evidence"
	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host/trace"
)

// runPrefixBytesMin is how much of a run id is enough to name it.
const runPrefixBytesMin = 6

// eventsDocument is what inspect --events prints as JSON.
type eventsDocument struct {
	RunID  abi.RunID       `json:"run_id"`
	Events []eventDocument `json:"events"` // in the order of the trace
}

type eventDocument struct {
	Address    string          `json:"address"`
	Kind       string          `json:"kind"`
	Cause      string          `json:"cause"`
	At         time.Time       `json:"at"` // the local clock's claim
	Size       uint64          `json:"payload_size"`
	Commitment string          `json:"commitment"`
	Payload    json.RawMessage `json:"payload"`
}

func (a *app) inspectCommand() *cobra.Command {
	var events, effects, claims, results bool
	var step string
	cmd := &cobra.Command{
		Use:   "inspect RUN",
		Short: "Show what a run's record says",
		Long: `inspect reads a run's record, sealed or not, checks it as it goes, and shows a
summary. RUN is a run id, the first characters of one (at least 6), or "latest".

With one of --events, --effects, --claims and --results it shows those instead,
of one step with --step. With --output json the summary holds effects, claims
and results anyway; --events adds every event with its payload.`,
		Example: `  writ inspect latest
  writ inspect latest --results
  writ inspect latest --step advisories --claims
  writ inspect latest --events --output json | jq '.events[] | select(.kind == "EFFECT_INTENT")'`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeRuns,
		RunE: a.work(func(_ *cobra.Command, args []string) error {
			return a.inspect(args[0], step, view{events, effects, claims, results})
		}),
	}
	flags := cmd.Flags()
	flags.BoolVar(&events, "events", false, "show every event")
	flags.BoolVar(&effects, "effects", false, "show what was asked of the outside world")
	flags.BoolVar(&claims, "claims", false, "show the claims")
	flags.BoolVar(&results, "results", false, "show every verification result")
	flags.StringVar(&step, "step", "", "show one `step` only")
	cmd.MarkFlagsMutuallyExclusive("events", "effects", "claims", "results")
	return cmd
}

// view is which part of a record is asked for.
type view struct{ events, effects, claims, results bool }

func (a *app) inspect(name, step string, v view) error {
	store, tenant, err := a.openStore(true)
	if err != nil {
		return err
	}
	defer store.Close()
	id, err := findRun(tenant, name)
	if err != nil {
		return err
	}
	tr, err := engine.Open(tenant, id)
	if err != nil {
		return err
	}
	defer tr.Close()
	if v.events {
		return a.inspectEvents(tr, id, step)
	}
	s, err := engine.Summarize(tr)
	if err != nil {
		return err
	}
	if step != "" && !slices.ContainsFunc(s.Steps, func(r engine.StepResult) bool { return string(r.StepID) == step }) {
		return unknownStep(step, s.Steps)
	}
	s = ofStep(s, step)
	if a.json() {
		return a.writeJSON(normalSummary(s))
	}
	switch {
	case v.effects:
		a.showEffects(s.Effects)
	case v.claims:
		a.showClaims(s.Claims)
	case v.results:
		a.showResults(s.Results)
	default:
		a.showSummary(s)
	}
	return nil
}

func unknownStep(step string, steps []engine.StepResult) *fault {
	var ids []string
	for _, s := range steps {
		ids = append(ids, string(s.StepID))
	}
	f := usagef("the run has no step %q", step)
	f.Code = "step_unknown"
	f.Hints = []string{"its steps are " + strings.Join(ids, ", ")}
	return f
}

// findRun returns the run that is meant: by id, by the beginning of one, or the
// latest.
func findRun(tenant *evidence.Tenant, name string) (abi.RunID, error) {
	if id, err := abi.ParseRunID(name); err == nil {
		return id, nil
	}
	runs, err := tenant.Runs()
	if err != nil {
		return "", err
	}
	if name == "latest" {
		if len(runs) == 0 {
			return "", &fault{Code: evidence.CodeRunUnknown, Message: "this tenant has no runs", Exit: exitUsage,
				Hints: []string{"another tenant's are seen with --tenant"}}
		}
		return runs[0].RunID, nil
	}
	if len(name) < runPrefixBytesMin {
		return "", usagef("%q names no run: give a run id, at least %d characters of one, or latest", name, runPrefixBytesMin)
	}
	var found []string
	for _, r := range runs {
		if strings.HasPrefix(string(r.RunID), name) {
			found = append(found, string(r.RunID))
		}
	}
	switch len(found) {
	case 0:
		return "", &fault{Code: evidence.CodeRunUnknown, Message: fmt.Sprintf("no run of this tenant begins with %q", name), Exit: exitUsage,
			Hints: []string{"writ list shows the runs of this tenant"}}
	case 1:
		return abi.RunID(found[0]), nil
	}
	f := usagef("%d runs begin with %q", len(found), name)
	f.Hints = []string{"give more of the id: " + strings.Join(found[:min(len(found), 5)], ", ")}
	return "", f
}

// completeRuns offers run ids, newest first, each with what it came to.
func (a *app) completeRuns(_ *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	const none = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	if len(args) > 0 || a.settle() != nil {
		return nil, none
	}
	store, tenant, err := a.openStore(true)
	if err != nil {
		return nil, none
	}
	defer store.Close()
	runs, err := tenant.Runs()
	if err != nil {
		return nil, none
	}
	var out []string
	for _, r := range runs {
		if strings.HasPrefix(string(r.RunID), begun) {
			out = append(out, fmt.Sprintf("%s\t%s %s", r.RunID, r.FlowID, cmpOr(r.Result, r.State)))
		}
	}
	return out, none
}

func cmpOr(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// ofStep narrows a summary to one step; "" leaves it as it is.
func ofStep(s engine.Summary, step string) engine.Summary {
	if step == "" {
		return s
	}
	s.Steps = slices.DeleteFunc(s.Steps, func(r engine.StepResult) bool { return string(r.StepID) != step })
	s.Results = slices.DeleteFunc(s.Results, func(r engine.RuleResult) bool { return r.Target != step })
	s.Arbitrations = slices.DeleteFunc(s.Arbitrations, func(r engine.Arbitration) bool { return r.Target != step })
	s.Effects = slices.DeleteFunc(s.Effects, func(r engine.EffectSummary) bool { return string(r.StepID) != step })
	s.Claims = slices.DeleteFunc(s.Claims, func(r engine.ClaimSummary) bool { return string(r.StepID) != step })
	return s
}

// normalSummary replaces absent lists by empty ones, as the schema has them.
func normalSummary(s engine.Summary) engine.Summary {
	s.Result = normalResult(s.Result)
	s.Authority.Reasons = orEmpty(s.Authority.Reasons)
	s.Datasets, s.Effects, s.Claims = orEmpty(s.Datasets), orEmpty(s.Effects), orEmpty(s.Claims)
	for i := range s.Effects {
		s.Effects[i].Attempts = orEmpty(s.Effects[i].Attempts)
	}
	for i := range s.Claims {
		s.Claims[i].Evidence = orEmpty(s.Claims[i].Evidence)
	}
	if s.Provenance == nil {
		s.Provenance = map[string]string{}
	}
	return s
}

// costText says what guests used of their budgets.
func costText(r engine.Result) string {
	var steps, rules uint64
	for _, s := range r.Steps {
		steps += s.FuelUsed
	}
	for _, v := range r.Results {
		rules += v.FuelUsed
	}
	return fmt.Sprintf("%d fuel in steps, %d in rules", steps, rules)
}

func (a *app) showSummary(s engine.Summary) {
	fmt.Fprintf(a.stdout, "%s  admitted %s by %s", a.paint(bold, string(s.FlowID)), s.AdmittedAt.Local().Format(time.DateTime), safe(s.Principal))
	if s.Sealed {
		fmt.Fprintf(a.stdout, ", sealed after %s", s.SealedAt.Sub(s.AdmittedAt).Round(time.Millisecond))
	}
	fmt.Fprint(a.stdout, "\n\n")
	a.showSteps(s.Result)
	a.showJudgement(s.Result)
	a.showOutcome(s.Result)
	var datasets []string
	for _, d := range s.Datasets {
		datasets = append(datasets, fmt.Sprintf("%s %s (%s, %s)", d.DatasetID, d.Version, d.State, shortDigest(d.Hash)))
	}
	clock := ""
	if !s.ClockStart.IsZero() {
		clock = s.ClockStart.Format(time.RFC3339Nano)
	}
	fmt.Fprintln(a.stdout)
	a.pairs("", "datasets", safe(strings.Join(datasets, ", ")), "seed", hexOf(s.Seed), "engine", s.Provenance["engine"], "clock start", clock,
		"record", fmt.Sprintf("%s, %s, %s", plural(s.Events, "event"), plural(len(s.Claims), "claim"), plural(len(s.Effects), "effect")),
		"cost", costText(s.Result), "authority", authorityText(s.Authority), "request", safe(s.RequestID), "damage", a.paint(red, safe(s.Damage)))
	fmt.Fprintf(a.stdout, "\nnext: writ explain %s, or writ inspect %s --claims | --effects | --results | --events\n", s.RunID, s.RunID)
}

func authorityText(s engine.AuthoritySummary) string {
	if s.Address == "" {
		return ""
	}
	text := "refused"
	if s.Allow {
		text = "allowed"
	}
	if len(s.Reasons) > 0 {
		text += ": " + short(strings.Join(s.Reasons, "; "), 160)
	}
	return text
}

func (a *app) showEffects(effects []engine.EffectSummary) {
	if len(effects) == 0 {
		fmt.Fprintln(a.stdout, "no effects")
	}
	for _, e := range effects {
		fmt.Fprintf(a.stdout, "%s  %s  %s\n", a.paint(bold, e.Address), safe(e.Driver), a.word(e.Status))
		response := short(string(e.Response), 400)
		switch {
		case e.Withheld:
			response = "withheld, because a secret in it could not be masked"
		case e.Code != 0:
			response = "refused to the guest: " + abi.Code(e.Code).String()
		}
		a.pairs("  ", "request", short(string(e.Request), 400), "response", response)
		for _, try := range e.Attempts {
			a.pairs("  ", fmt.Sprintf("try %d", try.Attempt), safe(strings.TrimSpace(try.Status+" "+try.Peer+" "+try.Error)))
		}
	}
}

func (a *app) showClaims(claims []engine.ClaimSummary) {
	if len(claims) == 0 {
		fmt.Fprintln(a.stdout, "no claims")
		return
	}
	rows := make([][]string, 0, len(claims))
	for _, c := range claims {
		rows = append(rows, []string{string(c.StepID), short(c.ClaimID, 48), short(c.Statement, 100), short(strings.Join(c.Evidence, ", "), 60)})
	}
	a.table([]string{"STEP", "CLAIM", "STATEMENT", "EVIDENCE"}, rows)
}

func (a *app) showResults(results []engine.RuleResult) {
	if len(results) == 0 {
		fmt.Fprintln(a.stdout, "no verification results")
		return
	}
	rows := make([][]string, 0, len(results))
	for _, r := range results {
		rows = append(rows, []string{string(r.RuleID), safe(r.Target), a.word(string(r.Status)), short(r.Reason, 120), safe(r.Address)})
		for _, v := range r.Violations {
			rows = append(rows, []string{"", "", "", short(violationText(v), 120), ""})
		}
	}
	a.table([]string{"RULE", "TARGET", "STATUS", "WHY", "ADDRESS"}, rows)
}

func (a *app) inspectEvents(tr *evidence.Trace, id abi.RunID, step string) error {
	doc := eventsDocument{RunID: id, Events: []eventDocument{}}
	var rows [][]string
	for _, lane := range tr.Lanes() {
		if step != "" && !laneOf(lane, step) {
			continue
		}
		for e, err := range tr.Events(lane) {
			if err != nil {
				return err
			}
			rows = append(rows, []string{safe(e.Address().String()), e.Kind.String(), e.Cause.String(), e.At().Local().Format("15:04:05.000"), fmt.Sprint(e.PayloadSize)})
			if !a.json() {
				continue
			}
			payload, err := trace.PayloadJSON(e.Kind, e.Payload)
			if err != nil {
				return fmt.Errorf("show event %s: %w", e.Address(), err)
			}
			doc.Events = append(doc.Events, eventDocument{Address: e.Address().String(), Kind: e.Kind.String(), Cause: e.Cause.String(),
				At: e.At(), Size: e.PayloadSize, Commitment: "sha256:" + hexOf(e.Commitment[:]), Payload: payload})
		}
	}
	if a.json() {
		return a.writeJSON(doc)
	}
	if len(rows) == 0 {
		fmt.Fprintln(a.stdout, "no events")
		return nil
	}
	a.table([]string{"ADDRESS", "KIND", "CAUSE", "AT", "BYTES"}, rows)
	return nil
}

// laneOf reports whether a lane is a step's, or that of a rule or arbitration of it.
func laneOf(lane trace.Lane, step string) bool {
	return string(lane) == step || strings.HasSuffix(string(lane), "@"+step)
}
