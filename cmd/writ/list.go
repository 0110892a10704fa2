package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/writrun/writ/engine/evidence"
	"github.com/writrun/writ/guest-abi/abi"
)

// listDocument is what list prints as JSON.
type listDocument struct {
	Tenant string                `json:"tenant"`
	Runs   []evidence.RunSummary `json:"runs"` // newest first
	More   int                   `json:"more"` // older runs left out by --limit
}

// refusedDocument is what list --refused prints as JSON.
type refusedDocument struct {
	Tenant   string       `json:"tenant"`
	Refusals []refusalRow `json:"refusals"` // newest first
	More     int          `json:"more"`     // older ones left out by --limit
}

// refusalRow is a request that was refused, as the ledger has it.
type refusalRow struct {
	RefusedAt time.Time  `json:"refused_at"`
	Action    string     `json:"action"`
	Code      string     `json:"code"`
	Reasons   []string   `json:"reasons"` // empty where the text is not retained
	FlowID    abi.ID     `json:"flow_id"`
	Plan      abi.Digest `json:"plan"`
	RequestID string     `json:"request_id"`
}

func (a *app) listCommand() *cobra.Command {
	var limit int
	var refused bool
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List a tenant's runs, newest first",
		Long: `list shows the runs that the tenant's ledger knows, newest first. What runs
exist is read from the ledger and nowhere else. With --refused it shows the
requests that were refused instead: no run came of them.`,
		Example: `  writ list --limit 5
  writ list --refused
  writ list --output json | jq '.runs[] | select(.result != "pass") | .run_id'`,
		Args: cobra.NoArgs,
		RunE: a.work(func(*cobra.Command, []string) error {
			if limit < 0 {
				return usagef("--limit is negative")
			}
			if refused {
				return a.listRefused(limit)
			}
			return a.list(limit)
		}),
	}
	cmd.Flags().IntVar(&limit, "limit", 50, "show at most `N`; 0 shows all")
	cmd.Flags().BoolVar(&refused, "refused", false, "show refused requests, not runs")
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

func (a *app) listRefused(limit int) error {
	store, tenant, err := a.openStore(true)
	if err != nil {
		return err
	}
	defer store.Close()
	doc := refusedDocument{Tenant: a.tenantName, Refusals: []refusalRow{}}
	err = tenant.Ledger(func(_ uint64, r evidence.Record) error {
		if f := r.AdmissionRefused; f != nil {
			doc.Refusals = append(doc.Refusals, refusalRow{RefusedAt: time.Unix(0, r.AtNanos).UTC(), Action: f.Action, Code: f.Code,
				Reasons: orEmpty(r.Reasons), FlowID: f.FlowID, Plan: f.Plan, RequestID: f.RequestID})
		}
		return nil
	})
	if err != nil {
		return err
	}
	slices.Reverse(doc.Refusals)
	if n := len(doc.Refusals); limit > 0 && n > limit {
		doc.Refusals, doc.More = doc.Refusals[:limit], n-limit
	}
	if a.json() {
		return a.writeJSON(doc)
	}
	if len(doc.Refusals) == 0 {
		fmt.Fprintf(a.stdout, "tenant %s was refused nothing\n", a.tenantName)
		return nil
	}
	var rows [][]string
	for _, r := range doc.Refusals {
		rows = append(rows, []string{r.RefusedAt.Local().Format(time.DateTime), string(r.FlowID), safe(r.Code), safe(r.RequestID), short(strings.Join(r.Reasons, "; "), 160)})
	}
	a.table([]string{"REFUSED", "FLOW", "CODE", "REQUEST", "WHY"}, rows)
	if doc.More > 0 {
		fmt.Fprintf(a.stdout, "and %d older; see them with --limit 0\n", doc.More)
	}
	return nil
}
