package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/writrun/writ/engine"
	"github.com/writrun/writ/engine/effect"
	"github.com/writrun/writ/engine/flow"
	"github.com/writrun/writ/guest-abi/abi"
)

// runFlags are the flags of run as they were given.
type runFlags struct {
	seed, clockStart, runID, requestID, planDigest string
	allowDeprecated                                bool
	secrets                                        []string
	jobs                                           int
	engine                                         string
	policies                                       policyFlags
	log                                            decisionLogFlags
}

// secretFileBytesMax bounds a secret read from a file.
const secretFileBytesMax = 64 << 10

func (a *app) runCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run FILE",
		Short: "Run a flow: execute its steps, verify, arbitrate, seal the record",
		Long: `run takes a manifest, or a plan file made by "writ plan -o", and runs it live:
effects happen, every rule is asked, and the record is sealed at the end.

A refused run has no effect and leaves a record of the refusal. Ctrl-C stops at
the next safe place and keeps the journal.

Two runs of a strict flow with the same inputs, --seed and --clock-start have
the same execution digest.`,
		Example: `  writ run flow.yaml
  writ run flow.plan.json --request-id nightly-2026-12-01
  writ run flow.yaml --secret API_TOKEN=env:API_TOKEN
  writ run flow.yaml --seed "$(printf %064d 7)" --clock-start 2026-01-01T00:00:00Z`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeFlowFiles,
		RunE: a.work(func(cmd *cobra.Command, args []string) error {
			return a.runFlow(cmd.Context(), args[0], f)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.seed, "seed", "", "seed of all randomness, 64 `hex` digits (default: drawn, and recorded)")
	flags.StringVar(&f.clockStart, "clock-start", "", "RFC 3339 `time` the virtual clock starts at (default: the manifest's, else now)")
	flags.StringVar(&f.runID, "run-id", "", "`id` of the run (default: drawn)")
	flags.StringVar(&f.requestID, "request-id", "", "`id` of this request: asking again with it shows the first run")
	flags.StringVar(&f.planDigest, "plan-digest", "", "run only if the plan has this `digest`")
	flags.BoolVar(&f.allowDeprecated, "allow-deprecated", false, "let a deprecated flow run")
	flags.StringArrayVar(&f.secrets, "secret", nil, "secret for the headers the manifest binds it to: `NAME=env:VAR` or NAME=file:PATH; repeatable")
	engineFlag(cmd, &f.engine)
	f.policies.registryFlag(cmd)
	f.policies.decidingFlags(cmd)
	f.log.add(cmd)
	flags.IntVar(&f.jobs, "jobs", 0, "`N` guests at once (default: one per CPU)")
	return cmd
}

func (a *app) runFlow(ctx context.Context, name string, f runFlags) error {
	request, err := f.request()
	if err != nil {
		return err
	}
	secrets, err := a.secrets(f.secrets)
	if err != nil {
		return err
	}
	in, err := resolve(ctx, name, f.policies)
	if err != nil {
		return err
	}
	if f.planDigest != "" && in.plan.Digest() != abi.Digest(f.planDigest) {
		return &fault{Code: "plan_digest_differs", Exit: exitRefused,
			Message: fmt.Sprintf("%s resolves to plan %s, and --plan-digest asks for %s", name, in.plan.Digest(), f.planDigest),
			Hints:   []string{"writ plan shows what would run"}}
	}
	request.Manifest, request.Plan, request.Materials, request.FromPlanFile = in.manifest, in.plan, in.materials, in.fromLock
	result, err := a.execute(ctx, request, secrets, f)
	if err != nil && !errors.Is(err, engine.ErrInterrupted) {
		return err
	}
	if a.json() {
		if err := a.writeJSON(normalResult(result)); err != nil {
			return err
		}
	} else {
		a.showResult(result)
	}
	if code := result.Exit(); code != exitDone {
		return exitStatus(code)
	}
	return nil
}

// request checks the flags that become part of the engine's request.
func (f runFlags) request() (engine.Request, error) {
	r := engine.Request{RequestID: f.requestID, AllowDeprecated: f.allowDeprecated}
	if f.seed != "" {
		seed, err := flow.ParseSeed(f.seed)
		if err != nil {
			return r, usagef("--seed: %v", err)
		}
		bytes := [32]byte(seed)
		r.Seed = &bytes
	}
	if f.clockStart != "" {
		start, err := time.Parse(time.RFC3339Nano, f.clockStart)
		if err != nil || start.UnixNano() <= 0 || start.Year() > 2200 {
			return r, usagef("--clock-start %q is not an RFC 3339 time from 1970 to 2200, such as 2026-01-01T00:00:00Z", f.clockStart)
		}
		r.ClockStart = start
	}
	if f.runID != "" {
		id, err := abi.ParseRunID(f.runID)
		if err != nil {
			return r, usagef("--run-id: %v", err)
		}
		r.RunID = id
	}
	if f.planDigest != "" {
		if _, err := abi.ParseDigest(f.planDigest); err != nil {
			return r, usagef("--plan-digest: %v", err)
		}
	}
	if f.jobs < 0 {
		return r, usagef("--jobs is negative")
	}
	return r, nil
}

func (a *app) secrets(specs []string) ([]effect.Secret, error) {
	lookup := func(name string) (string, bool) { value := a.getenv(name); return value, value != "" }
	var out []effect.Secret
	for _, spec := range specs {
		s, err := effect.ParseSecret(spec, lookup, readSecretFile)
		if err != nil {
			return nil, usagef("--secret: %v", err)
		}
		out = append(out, s)
	}
	return out, nil
}

func readSecretFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, secretFileBytesMax+1))
	if err == nil && len(data) > secretFileBytesMax {
		err = fmt.Errorf("%s is longer than %d bytes", name, secretFileBytesMax)
	}
	return data, err
}

// execute wires an engine up and runs the request.
func (a *app) execute(ctx context.Context, request engine.Request, secrets []effect.Secret, f runFlags) (engine.Result, error) {
	set, err := operatorPolicies(f.policies.operator)
	if err != nil {
		return engine.Result{}, err
	}
	keys, err := signingKeys(f.policies.keys)
	if err != nil {
		return engine.Result{}, err
	}
	store, tenant, err := a.openStore(false)
	if err != nil {
		return engine.Result{}, err
	}
	defer store.Close()
	id, err := a.tenant()
	if err != nil {
		return engine.Result{}, err
	}
	sandbox, err := a.newEngine(ctx, f.engine)
	if err != nil {
		return engine.Result{}, err
	}
	defer sandbox.Close(context.WithoutCancel(ctx))
	log, err := a.openDecisionLog(f.log, store, tenant, secrets)
	if err != nil {
		return engine.Result{}, err
	}
	defer log.close(ctx)
	bar := a.newBar("running")
	defer bar.end()
	runner, err := engine.New(engine.Config{
		Store: store, Tenant: tenant, TenantID: id, Engine: sandbox, Policies: set, WithFlow: withFlow(set, keys),
		Drivers: []effect.Driver{effect.NewHTTP(effect.HTTPConfig{})}, Secrets: secrets, Now: a.now, Rand: a.rand,
		Principal: a.principal(), Provenance: provenance(), Jobs: f.jobs, Progress: bar.run, Decided: log.decided,
	})
	if err != nil {
		return engine.Result{}, err
	}
	return runner.Run(ctx, request)
}

// principal is the operating system's user, whose word is not checked.
func (a *app) principal() engine.Principal {
	name := "unknown"
	if u, err := user.Current(); err == nil && u.Username != "" {
		name = u.Username
	}
	return engine.Principal{Name: name, Kind: "local, unauthenticated"}
}

// showResult says what a run came to.
func (a *app) showResult(r engine.Result) {
	if r.Existing {
		fmt.Fprintf(a.stdout, "request %s was made before; this is its run\n\n", safe(r.RequestID))
	}
	a.showSteps(r)
	a.showJudgement(r)
	a.showOutcome(r)
	fmt.Fprintf(a.stdout, "\nnext: %s\n", nextCommand(r))
}

func (a *app) showSteps(r engine.Result) {
	rows := make([][]string, 0, len(r.Steps))
	for _, s := range r.Steps {
		rows = append(rows, []string{string(s.StepID), a.word(s.State), fmt.Sprint(s.Claims), fmt.Sprint(s.Evidence), fmt.Sprint(s.Effects), short(stepNote(s), 100)})
	}
	if len(rows) > 0 {
		a.table([]string{"STEP", "STATE", "CLAIMS", "EVIDENCE", "EFFECTS", ""}, rows)
		fmt.Fprintln(a.stdout)
	}
}

func stepNote(s engine.StepResult) string {
	switch {
	case s.Detail == "":
		return s.Cause
	case s.Cause == "" || s.Cause == s.State || strings.HasPrefix(s.Detail, s.Cause):
		return s.Detail
	}
	return s.Cause + ": " + s.Detail
}

// showJudgement lists the results that are not PASS, counts the others, and
// gives each arbitration with its reasons.
func (a *app) showJudgement(r engine.Result) {
	passed := 0
	var rows [][]string
	for _, res := range r.Results {
		if res.Status == abi.Pass {
			passed++
			continue
		}
		note := res.Reason
		if len(res.Violations) > 0 {
			note = violationText(res.Violations[0])
			if n := len(res.Violations) - 1; n > 0 {
				note = fmt.Sprintf("%s (and %d more)", note, n)
			}
		}
		rows = append(rows, []string{string(res.RuleID), safe(res.Target), a.word(string(res.Status)), short(note, 120)})
	}
	if len(rows) > 0 {
		a.table([]string{"RULE", "TARGET", "STATUS", "WHY"}, rows)
		fmt.Fprintln(a.stdout)
	}
	if len(r.Results) > 0 {
		fmt.Fprintf(a.stdout, "%d of %s passed\n", passed, plural(len(r.Results), "check"))
	}
	for _, arb := range r.Arbitrations {
		text := a.word(arb.Decision)
		if arb.Permissive {
			text += " " + a.paint(yellow, "(permissive)")
		}
		if len(arb.Reasons) > 0 {
			text += "  " + short(strings.Join(arb.Reasons, "; "), 120)
		}
		fmt.Fprintf(a.stdout, "arbitration of %s: %s\n", safe(arb.Target), text)
	}
	if len(r.Results)+len(r.Arbitrations) > 0 {
		fmt.Fprintln(a.stdout)
	}
}

func violationText(v abi.Violation) string {
	if v.Subject == "" {
		return v.Message
	}
	return v.Subject + ": " + v.Message
}

// showOutcome gives the lines that travel with every result.
func (a *app) showOutcome(r engine.Result) {
	result := a.word(r.Result)
	if r.Result == "" {
		result = ""
	}
	a.pairs("", "mode", safe(r.Mode), "state", a.word(r.State), "result", result,
		"reasons", short(strings.Join(r.Reasons, "; "), 300), "marks", safe(strings.Join(r.Marks, ", ")),
		"run", string(r.RunID), "plan", string(r.Plan), "trace", string(r.TraceRoot), "execution", string(r.ExecutionDigest))
}

// nextCommand is what most people want to do next.
func nextCommand(r engine.Result) string {
	if r.Result == engine.ResultPass {
		return "writ inspect " + string(r.RunID)
	}
	return "writ explain " + string(r.RunID)
}

// normalResult replaces absent lists by empty ones, as the schema has them.
func normalResult(r engine.Result) engine.Result {
	r.Reasons, r.Marks = orEmpty(r.Reasons), orEmpty(r.Marks)
	r.Steps, r.Results, r.Arbitrations = orEmpty(r.Steps), orEmpty(slices.Clone(r.Results)), orEmpty(slices.Clone(r.Arbitrations))
	for i := range r.Results {
		r.Results[i].Violations = orEmpty(r.Results[i].Violations)
	}
	for i := range r.Arbitrations {
		r.Arbitrations[i].Reasons = orEmpty(r.Arbitrations[i].Reasons)
	}
	return r
}

func orEmpty[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

func hexOf(b []byte) string { return hex.EncodeToString(b) }
