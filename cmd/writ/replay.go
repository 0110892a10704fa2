package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/writrun/writ/engine"
)

// replayFlags are the flags of replay as they were given.
type replayFlags struct {
	engine   string
	policies policyFlags
	jobs     int
}

func (a *app) replayCommand() *cobra.Command {
	var f replayFlags
	cmd := &cobra.Command{
		Use:   "replay RUN",
		Short: "Execute a run again from its record and compare every event",
		Long: `replay executes every step and rule of a sealed run again, on any engine, with
its seed and clock, answers its effects from the record, and asks its
arbitrations again. Every event is compared with the recorded one: each host
call with its request, its result and the fuel that was left, every output,
every decision. Nothing is performed and nothing of the run changes; the verdict
becomes a record of the ledger.

With every input served, any difference means that something outside the record
had a part in the run or in the replay. The first one is named by its address.

It exits with 4 if the replay diverged or is unacceptable, with 3 if it is
refused, and with 5 if the record is damaged.`,
		Example: `  writ replay latest
  writ replay latest --engine wazero-interpreter
  writ replay r4xv2 --output json | jq .divergence`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeRuns,
		RunE: a.work(func(cmd *cobra.Command, args []string) error {
			return a.replay(cmd.Context(), args[0], f)
		}),
	}
	engineFlag(cmd, &f.engine)
	f.policies.decidingFlags(cmd)
	cmd.Flags().IntVar(&f.jobs, "jobs", 0, "`N` guests at once (default: one per CPU)")
	return cmd
}

func (a *app) replay(ctx context.Context, name string, f replayFlags) error {
	set, err := operatorPolicies(f.policies.operator)
	if err != nil {
		return err
	}
	keys, err := signingKeys(f.policies.keys)
	if err != nil {
		return err
	}
	store, tenant, err := a.openStore(false)
	if err != nil {
		return err
	}
	defer store.Close()
	run, err := findRun(tenant, name)
	if err != nil {
		return err
	}
	id, err := a.tenant()
	if err != nil {
		return err
	}
	sandbox, err := a.newEngine(ctx, f.engine)
	if err != nil {
		return err
	}
	defer sandbox.Close(context.WithoutCancel(ctx))
	bar := a.newBar("replaying")
	defer bar.end()
	runner, err := engine.New(engine.Config{
		Store: store, Tenant: tenant, TenantID: id, Engine: sandbox, Policies: set, WithFlow: withFlow(set, keys),
		Now: a.now, Rand: a.rand, Principal: a.principal(), Provenance: provenance(), Jobs: f.jobs, Progress: bar.run,
	})
	if err != nil {
		return err
	}
	got, err := runner.Replay(ctx, run)
	if err != nil {
		return err
	}
	bar.end()
	if a.json() {
		got.Reasons = orEmpty(got.Reasons)
		if err := a.writeJSON(got); err != nil {
			return err
		}
	} else {
		a.showRunReplay(got)
	}
	if !got.Accepted() {
		return exitStatus(exitDiverged)
	}
	return nil
}

func (a *app) showRunReplay(r engine.Replay) {
	fmt.Fprintf(a.stdout, "%s  replayed on %s\n\n", a.paint(bold, string(r.FlowID)), r.Engine)
	colour := green
	if !r.Accepted() {
		colour = red
	}
	a.pairs("", "verdict", a.paint(colour, r.Verdict))
	for _, reason := range r.Reasons {
		a.pairs("", "reason", safe(reason))
	}
	a.pairs("", "compared", fmt.Sprintf("%s, %s, %s, %s, %s served", plural(r.Steps, "step"), plural(r.Results, "result"), plural(r.Arbitrations, "arbitration"),
		plural(int(r.HostCalls), "host call"), plural(int(r.Effects), "effect")), "run", string(r.RunID), "execution", string(r.ExecutionDigest))
	d := r.Divergence
	if d == nil {
		fmt.Fprintln(a.stdout, "\nevery event was reproduced")
		return
	}
	fmt.Fprintf(a.stdout, "\nthe first difference is at %s\n", a.paint(bold, d.Address))
	a.pairs("  ", "code", d.Code, "step", string(d.StepID), "event", d.Kind, "host call", d.Function, "recorded", safe(short(d.Recorded, divergenceShown)), "replayed", safe(short(d.Replayed, divergenceShown)))
	fmt.Fprintf(a.stderr, "writ: hint: writ inspect %s --events shows what was recorded around it\n", r.RunID)
}

// divergenceShown is how many characters of each side are shown as text.
const divergenceShown = 300
