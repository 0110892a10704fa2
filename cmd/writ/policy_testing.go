package main

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/writrun/writ/policies/author"
)

const outputJUnit = "junit"

// policyTestDocument is what policy test prints as JSON.
type policyTestDocument struct {
	Dir       string           `json:"dir"`
	Passed    bool             `json:"passed"` // something ran, nothing failed, and the threshold was reached
	Counts    policyTestCounts `json:"counts"`
	Tests     []author.Result  `json:"tests"`
	Coverage  *author.Coverage `json:"coverage,omitempty"` // with --coverage
	Threshold float64          `json:"threshold"`          // percent; 0 for none
}

// policyTestCounts is how many tests came to what.
type policyTestCounts struct {
	Passed  int `json:"passed"`
	Failed  int `json:"failed"`
	Errored int `json:"errored"`
	Skipped int `json:"skipped"`
}

// policyTestFlags are the flags of policy test as they were given.
type policyTestFlags struct {
	run, format              string
	coverage, watch, verbose bool
	threshold                float64
}

func (a *app) policyTestCommand() *cobra.Command {
	var f policyTestFlags
	cmd := &cobra.Command{
		Use:   "test DIR",
		Short: "Run a policy's Rego tests and cases",
		Long: `test runs the test_ rules of _test.rego files, and the cases of cases/*.yaml.

A Rego test passes if it is true; a builtin that fails makes the test fail,
though the rule that called it would only be undefined. A case is an input and
the whole answer that is wanted, before what Go enforces whatever a policy says,
or part of the error that is wanted:

  cases:
    - note: one failure fails
      input: {rule: unanimous, results: [{status: FAIL}]}
      want: {decision: FAIL, reasons: [a rule failed], permissive: false}
    - note: no results to look at
      input: {rule: unanimous, results: 7}
      want_error: policy_undefined

A case may name its decision, where a policy answers several, its now
(nanoseconds since 1970; else the input's now) and its seed. Without them the
time is 2026-01-01T00:00:00Z and the seed all zeros, in Rego tests too, so that
a test comes out the same wherever and whenever it runs.

Exit code 1: a test failed, none ran, or the coverage is below --threshold.
--watch runs the tests again whenever a file of DIR changes, until Ctrl-C.`,
		Example: `  writ policy test lenient --coverage --threshold 90
  writ policy test lenient --run 'quorum' --watch
  writ policy test lenient --format junit > report.xml`,
		Args: cobra.ExactArgs(1),
		RunE: a.work(func(cmd *cobra.Command, args []string) error {
			return a.policyTest(cmd.Context(), args[0], f)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.run, "run", "", "run only tests whose name matches `REGEX`; a case's name is data.PACKAGE.RULE: NOTE")
	flags.BoolVar(&f.coverage, "coverage", false, "measure what the tests evaluate")
	flags.Float64Var(&f.threshold, "threshold", 0, "least coverage in `PERCENT`; implies --coverage")
	flags.BoolVar(&f.watch, "watch", false, "run again whenever a file changes")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "show tests that passed too")
	flags.StringVar(&f.format, "format", "", "`form` of the report: text, json or junit (default what --output says)")
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{outputText, outputJSON, outputJUnit}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// settle checks flags against each other and fills in what follows from them.
func (f *policyTestFlags) settle(output string) (*regexp.Regexp, error) {
	switch {
	case f.format == "":
		f.format = output
	case f.format != outputText && f.format != outputJSON && f.format != outputJUnit:
		return nil, usagef("--format is %q; it is text, json or junit", f.format)
	case output == outputJSON && f.format != outputJSON:
		return nil, usagef("--output json and --format %s: give one of them", f.format)
	}
	if !(f.threshold >= 0 && f.threshold <= 100) {
		return nil, usagef("--threshold is %v; it is a percentage from 0 to 100", f.threshold)
	}
	if f.watch && f.format != outputText {
		return nil, usagef("--watch is for people: give it no --format or --output but text")
	}
	f.coverage = f.coverage || f.threshold > 0
	if f.run == "" {
		return nil, nil
	}
	run, err := regexp.Compile(f.run)
	if err != nil {
		return nil, usagef("--run: %v", err)
	}
	return run, nil
}

func (a *app) policyTest(ctx context.Context, dir string, f policyTestFlags) error {
	run, err := f.settle(a.output)
	if err != nil {
		return err
	}
	options := author.TestOptions{Run: run, Cover: f.coverage, Now: a.now}
	if f.watch {
		return a.watchPolicy(ctx, dir, func(ctx context.Context) error { return a.testPolicyOnce(ctx, dir, options, f) })
	}
	return a.testPolicyOnce(ctx, dir, options, f)
}

func (a *app) testPolicyOnce(ctx context.Context, dir string, options author.TestOptions, f policyTestFlags) error {
	p, err := author.Load(ctx, dir)
	if err != nil {
		return policyFault(err)
	}
	report, err := p.Test(ctx, options)
	if err != nil {
		return policyFault(err)
	}
	doc := policyTestDocument{Dir: dir, Tests: report.Results, Coverage: report.Coverage, Threshold: f.threshold,
		Counts: policyTestCounts{report.Count(author.Passed), report.Count(author.Failed), report.Count(author.Errored), report.Count(author.Skipped)}}
	if doc.Tests == nil {
		doc.Tests = []author.Result{}
	}
	doc.Passed = report.Passed() && (report.Coverage == nil || report.Coverage.Percent >= f.threshold)
	switch f.format {
	case outputJSON:
		err = a.writeJSON(doc)
	case outputJUnit:
		err = author.WriteJUnit(a.stdout, dir, report)
	default:
		a.showPolicyTest(doc, f.verbose)
	}
	if err == nil && !doc.Passed {
		err = exitStatus(exitFailed)
	}
	return err
}

func (a *app) showPolicyTest(doc policyTestDocument, verbose bool) {
	colours := map[string]string{author.Passed: green, author.Failed: red, author.Errored: red, author.Skipped: yellow}
	file := ""
	for _, r := range doc.Tests {
		if r.Outcome == author.Passed && !verbose {
			continue
		}
		if r.File != file {
			file = r.File
			fmt.Fprintf(a.stdout, "%s:\n", safe(file))
		}
		fmt.Fprintf(a.stdout, "%s: %s\n", safe(r.Name), a.paint(colours[r.Outcome], strings.ToUpper(r.Outcome)))
		for _, part := range r.Parts {
			if verbose || part.Outcome != author.Passed {
				fmt.Fprintf(a.stdout, "  %s: %s\n", safe(part.Name), a.paint(colours[part.Outcome], strings.ToUpper(part.Outcome)))
			}
		}
		indented(a.stdout, r.Message)
		indented(a.stdout, r.Output)
	}
	if file != "" {
		fmt.Fprintln(a.stdout)
	}
	c := doc.Counts
	line := fmt.Sprintf("%s: %d passed, %d failed, %d errored, %d skipped", safe(doc.Dir), c.Passed, c.Failed, c.Errored, c.Skipped)
	if c.Passed+c.Failed+c.Errored == 0 {
		line += "; no test was run"
	}
	fmt.Fprintln(a.stdout, line)
	if doc.Coverage != nil {
		below := ""
		if doc.Coverage.Percent < doc.Threshold {
			below = a.paint(red, fmt.Sprintf(", below the threshold of %s%%", percent(doc.Threshold)))
		}
		fmt.Fprintf(a.stdout, "coverage: %s%% of %s%s\n", percent(doc.Coverage.Percent), plural(doc.Coverage.CoveredLines+doc.Coverage.NotCoveredLines, "line"), below)
	}
}

// indented writes the lines of a text that others made.
func indented(w io.Writer, text string) {
	if text = strings.TrimRight(text, "\n"); text == "" {
		return
	}
	for line := range strings.SplitSeq(text, "\n") {
		fmt.Fprintf(w, "  %s\n", safe(line))
	}
}

// percent writes a percentage with at most one place, rounded down: 99.96 has
// not reached 100.
func percent(p float64) string {
	return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(int(p*10))/10), ".0")
}
