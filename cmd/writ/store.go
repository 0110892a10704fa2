package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/writrun/writ/engine"
	"github.com/writrun/writ/engine/evidence"
)

// verifyDocument is what store verify prints as JSON.
type verifyDocument struct {
	Store string `json:"store"`
	evidence.Report
}

func (a *app) storeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "store",
		Short: "Check the store that holds the evidence",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(&cobra.Command{
		Use:   "verify",
		Short: "Recompute every digest of the store from its files",
		Long: `verify reads every file of the store, of every tenant, and recomputes what the
record rests on: each ledger against each signed head, each trace's root against
the ledger, each payload against its commitment, each content object against its
name, and the authentication codes of unfinished runs. It writes nothing.

It exits with 5 if anything is damaged, and with 8 if there was nothing to
verify. A clean report shows that the files agree with the heads signed by the
key on this machine; it cannot show what the holder of that key has left out.`,
		Example: `  writ store verify
  writ store verify --output json | jq .problems`,
		Args: cobra.NoArgs,
		RunE: a.work(func(cmd *cobra.Command, _ []string) error { return a.verifyStore(cmd.Context()) }),
	})
	return cmd
}

func (a *app) verifyStore(ctx context.Context) error {
	options, err := a.storeOptions(true)
	if err != nil {
		return err
	}
	store, err := evidence.Open(options)
	if err != nil {
		return err
	}
	defer store.Close()
	bar := a.newBar("verifying")
	report, err := store.Verify(ctx, bar.set)
	bar.end()
	if err != nil {
		return err
	}
	if a.json() {
		if report.Problems == nil {
			report.Problems = []*evidence.Problem{}
		}
		if err := a.writeJSON(verifyDocument{options.Dir, report}); err != nil {
			return err
		}
	} else {
		a.showReport(options.Dir, report)
	}
	switch {
	case len(report.Problems) > 0:
		return exitStatus(exitDamaged)
	case recordsOf(report) == 0:
		return exitStatus(engine.ExitNothingEvaluated)
	}
	return nil
}

// recordsOf counts the ledgers' records: without any, nothing was verified.
func recordsOf(report evidence.Report) uint64 {
	records := uint64(0)
	for _, t := range report.Tenants {
		records += t.Records
	}
	return records
}

func (a *app) showReport(dir string, report evidence.Report) {
	fmt.Fprintf(a.stdout, "store %s (%s)\n", safe(dir), report.StoreID)
	if report.Foreign != "" {
		fmt.Fprintf(a.stdout, "%s it is not where it was made: %s\n", a.paint(yellow, "note:"), safe(report.Foreign))
	}
	var rows [][]string
	for _, t := range report.Tenants {
		rows = append(rows, []string{safe(t.Tenant), fmt.Sprint(t.Records), fmt.Sprint(t.HeadSize), fmt.Sprint(t.Runs),
			fmt.Sprint(t.Sealed), fmt.Sprint(t.Unfinished), fmt.Sprint(t.Quarantined)})
	}
	if len(rows) > 0 {
		fmt.Fprintln(a.stdout)
		a.table([]string{"TENANT", "RECORDS", "SIGNED", "RUNS", "SEALED", "UNFINISHED", "QUARANTINED"}, rows)
	}
	fmt.Fprintf(a.stdout, "\nrecomputed: %s, %s, %s\n", plural(report.Events, "event header"), plural(report.Payloads, "payload"),
		plural(report.ContentObjects, "content object"))
	for _, t := range report.Tenants {
		if t.TornRecord || t.TornRuns > 0 || t.Unanchored > 0 {
			fmt.Fprintf(a.stdout, "%s tenant %s: %s after the newest head, %s cut short by a crash; the next writer settles them\n",
				a.paint(yellow, "note:"), safe(t.Tenant), plural(int(t.Unanchored), "record"), plural(t.TornRuns, "journal"))
		}
	}
	switch {
	case len(report.Problems) > 0:
		fmt.Fprintf(a.stdout, "\n%s\n", a.paint(red, plural(len(report.Problems), "problem")))
		for _, p := range report.Problems {
			fmt.Fprintf(a.stdout, "  %s\n", safe(p.Error()))
		}
		fmt.Fprintf(a.stdout, "\nnext: writ explain %s\n", report.Problems[0].Code)
	case recordsOf(report) == 0:
		fmt.Fprintln(a.stdout, "nothing to verify: the store holds no record")
	default:
		fmt.Fprintf(a.stdout, "%s\n", a.paint(green, "no damage found"))
	}
}
