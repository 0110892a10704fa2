package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/writrun/writ/policies/author"
)

// policyCoverageDocument is what policy coverage prints as JSON: what
// "opa test --coverage" does, without the tests themselves.
type policyCoverageDocument struct {
	Dir string `json:"dir"`
	author.Coverage
}

func (a *app) policyCoverageCommand() *cobra.Command {
	var threshold float64
	cmd := &cobra.Command{
		Use:   "coverage DIR",
		Short: "Show which lines of a policy its tests do not reach",
		Long: `coverage runs the tests and cases of a policy and shows the lines that none of
them evaluates: rules that were never true, and expressions that were never
come to. Tests that fail count for what they evaluated; "writ policy test" says
that they failed.`,
		Example: `  writ policy coverage lenient
  writ policy coverage lenient --threshold 90 --output json`,
		Args: cobra.ExactArgs(1),
		RunE: a.work(func(cmd *cobra.Command, args []string) error {
			return a.policyCoverage(cmd.Context(), args[0], threshold)
		}),
	}
	cmd.Flags().Float64Var(&threshold, "threshold", 0, "end with exit code 1 below this `PERCENT`")
	return cmd
}

func (a *app) policyCoverage(ctx context.Context, dir string, threshold float64) error {
	if !(threshold >= 0 && threshold <= 100) {
		return usagef("--threshold is %v; it is a percentage from 0 to 100", threshold)
	}
	p, err := author.Load(ctx, dir)
	if err != nil {
		return policyFault(err)
	}
	report, err := p.Test(ctx, author.TestOptions{Cover: true})
	if err != nil {
		return policyFault(err)
	}
	c := report.Coverage
	if a.json() {
		err = a.writeJSON(policyCoverageDocument{dir, *c})
	} else {
		a.showCoverage(p, c)
	}
	if err == nil && c.Percent < threshold {
		err = exitStatus(exitFailed)
	}
	return err
}

func (a *app) showCoverage(p *author.Policy, c *author.Coverage) {
	for _, name := range slices.Sorted(maps.Keys(c.Files)) {
		f := c.Files[name]
		fmt.Fprintf(a.stdout, "%s: %s%% of %s\n", safe(name), percent(f.Percent), plural(f.CoveredLines+f.NotCoveredLines, "line"))
		lines := p.Folder.Lines(name)
		shown := 0
		for _, r := range f.NotCovered {
			for row := max(r.Start.Row, shown+1); row <= r.End.Row && row <= len(lines); row++ {
				fmt.Fprintf(a.stdout, "  %s  %s\n", a.paint(red, fmt.Sprintf("%4d", row)), safe(strings.ReplaceAll(lines[row-1], "\t", "    ")))
				shown = row
			}
		}
	}
	fmt.Fprintf(a.stdout, "coverage: %s%% of %s\n", percent(c.Percent), plural(c.CoveredLines+c.NotCoveredLines, "line"))
}
