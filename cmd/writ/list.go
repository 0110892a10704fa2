package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/writrun/writ/engine/evidence"
)

// listDocument is what list prints as JSON.
type listDocument struct {
	Tenant string                `json:"tenant"`
	Runs   []evidence.RunSummary `json:"runs"` // newest first
	More   int                   `json:"more"` // older runs left out by --limit
}

func (a *app) listCommand() *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List a tenant's runs, newest first",
		Long: `list shows the runs that the tenant's ledger knows, newest first. What runs
exist is read from the ledger and nowhere else.`,
		Example: `  writ list --limit 5
  writ list --output json | jq '.runs[] | select(.result != "pass") | .run_id'`,
		Args: cobra.NoArgs,
		RunE: a.work(func(*cobra.Command, []string) error {
			if limit < 0 {
				return usagef("--limit is negative")
			}
			return a.list(limit)
		}),
	}
	cmd.Flags().IntVar(&limit, "limit", 50, "show at most `N` runs; 0 shows all")
	return cmd
}

func (a *app) list(limit int) error {
	store, tenant, err := a.openStore(true)
	if err != nil {
		return err
	}
	defer store.Close()
	runs, err := tenant.Runs()
	if err != nil {
		return err
	}
	doc := listDocument{Tenant: a.tenantName, Runs: runs}
	if limit > 0 && len(runs) > limit {
		doc.Runs, doc.More = runs[:limit], len(runs)-limit
	}
	if a.json() {
		if doc.Runs == nil {
			doc.Runs = []evidence.RunSummary{}
		}
		return a.writeJSON(doc)
	}
	if len(runs) == 0 {
		fmt.Fprintf(a.stdout, "tenant %s has no runs\n", a.tenantName)
		return nil
	}
	var rows [][]string
	for _, r := range doc.Runs {
		result, took := a.word(r.Result), ""
		if r.Result == "" {
			result = "-"
		}
		if r.Sealed() {
			took = r.SealedAt.Sub(r.AdmittedAt).Round(time.Millisecond).String()
		}
		rows = append(rows, []string{string(r.RunID), string(r.FlowID), a.word(r.State), result, r.AdmittedAt.Local().Format(time.DateTime), took, safe(r.RequestID)})
	}
	a.table([]string{"RUN", "FLOW", "STATE", "RESULT", "ADMITTED", "TOOK", "REQUEST"}, rows)
	if doc.More > 0 {
		fmt.Fprintf(a.stdout, "and %d older; see them with --limit 0\n", doc.More)
	}
	return nil
}
