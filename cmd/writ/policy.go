package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/writrun/writ/engine"
	"github.com/writrun/writ/policies/author"
)

// policyCommands are the commands of the group, in the order help lists them.
func (a *app) policyCommands() []*cobra.Command {
	return []*cobra.Command{
		a.policyNewCommand(),
		a.policyCheckCommand(),
		a.policyFmtCommand(),
		a.policyTestCommand(),
		a.policyCoverageCommand(),
		a.policyBenchCommand(),
		a.policyEvalCommand(),
		a.policyExplainCommand(),
		a.policyReplayCommand(),
	}
}

func (a *app) policyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "policy",
		Short: "Write, check, format, test and time policies in Rego",
		Long: `A policy answers one or more of the four questions a run asks:

  authority    may this action happen?                  {allow, reasons}
  arbitration  what do the verification results say?    {decision, reasons, permissive}
  replay       what does a replay's outcome mean?       {verdict, blocking, acceptable, reasons}
  standing     what may the run claim now?              {rungs, highest, narrowed_by}

Each is a rule of a Rego v1 package: data.writ.arbitration.decision in the
operator's policies, data.flow.<flow_id>.arbitration.decision in those a flow
brings. A policy is a pure function of its input: it has no clock, network or
environment, and it must have a default. "writ schema arbitration-input" and so
on print what each is asked over.

Files of a policy folder:
  *.rego            the policy
  *_test.rego       its Rego tests, which no run compiles
  cases/*.yaml      cases: an input and the answer that is wanted
  data.json         data of a flow's own policies, below data.<folders>`,
		Example: `  writ policy new lenient --decision arbitration
  writ policy check lenient && writ policy test lenient --coverage`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.policyCommands()...)
	return cmd
}

// policyFault tells what is wrong with a policy as faults of an input file.
func policyFault(err error) error {
	var found author.Findings
	switch {
	case errors.Is(err, context.Canceled):
		return &fault{Code: "interrupted", Message: "interrupted", Exit: engine.ExitInterrupted, cause: err}
	case !errors.As(err, &found):
		return err
	}
	f := &fault{Code: found[0].Code, Exit: exitUsage, Message: found[0].Error(), cause: err}
	if n := len(found); n > 1 {
		f.Message = fmt.Sprintf("%s in policies", plural(n, "fault"))
	}
	for _, one := range found {
		f.Faults = append(f.Faults, inputFault{Code: one.Code, File: one.File, Line: one.Line, Column: one.Column, Message: one.Message, Hint: one.Hint})
	}
	f.Hints = explainHint(f.Code)
	return f
}

// policyDocuments are what the commands of the group print as JSON.
func policyDocuments() map[string]document {
	return map[string]document{
		"policy-new":      {"writ policy new", policyNewDocument{}},
		"policy-check":    {"writ policy check", policyCheckDocument{}},
		"policy-fmt":      {"writ policy fmt", policyFmtDocument{}},
		"policy-test":     {"writ policy test", policyTestDocument{}},
		"policy-coverage": {"writ policy coverage", policyCoverageDocument{}},
		"policy-bench":    {"writ policy bench", policyBenchDocument{}},
		"policy-eval":     {"writ policy eval", policyEvalDocument{}},
		"policy-explain":  {"writ policy explain", policyExplainDocument{}},
		"policy-replay":   {"writ policy replay", policyReplayDocument{}},
	}
}
