package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/writrun/writ/policies/author"
)

// policyCheckDocument is what policy check prints as JSON.
type policyCheckDocument struct {
	Policies []policyChecked `json:"policies"`
}

// policyChecked is one folder that was found right.
type policyChecked struct {
	Dir         string   `json:"dir"`
	Root        string   `json:"root"`        // writ.<decision> or flow.<flow_id>
	Entrypoints []string `json:"entrypoints"` // data.<package>.<rule>
	Files       int      `json:"files"`       // .rego, tests too
	CaseFiles   int      `json:"case_files"`
}

func (a *app) policyCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check DIR...",
		Short: "Say everything that is wrong with policies before a run does",
		Long: `check compiles each folder the way a run does, and its tests, and says
everything that is wrong, with file, line and column:

  - what OPA's strict mode refuses, in OPA's words
  - Rego v0, with the command that rewrites it
  - a builtin that is impure, or that nobody has reviewed
  - a read of a field that the decision's input does not have
  - a package outside its root, writ.<decision> or flow.<flow_id>
  - a decision without a default, or with one that is no answer
  - a case that cannot be read

A folder is one policy: the operator's for one decision, or all a flow brings.
Style is left to Regal, which works on the folder as it is.`,
		Example: `  writ policy check lenient
  writ policy check lenient gate --output json`,
		Args: cobra.MinimumNArgs(1),
		RunE: a.work(func(cmd *cobra.Command, args []string) error { return a.policyCheck(cmd.Context(), args) }),
	}
}

func (a *app) policyCheck(ctx context.Context, dirs []string) error {
	doc := policyCheckDocument{Policies: []policyChecked{}}
	var all author.Findings
	for _, dir := range dirs {
		p, err := author.Load(ctx, dir)
		var found author.Findings
		switch {
		case errors.As(err, &found):
			all = append(all, found...)
			continue
		case err != nil:
			return policyFault(err)
		}
		one := policyChecked{Dir: dir, Root: p.Root, Entrypoints: []string{}, Files: len(p.Folder.Sources), CaseFiles: len(p.Folder.Cases)}
		for _, d := range p.Decisions {
			one.Entrypoints = append(one.Entrypoints, d.Entrypoint)
		}
		doc.Policies = append(doc.Policies, one)
	}
	if len(all) > 0 {
		return policyFault(all)
	}
	if a.json() {
		return a.writeJSON(doc)
	}
	for _, one := range doc.Policies {
		fmt.Fprintf(a.stdout, "%s: %s: %s\n", safe(one.Dir), a.paint(green, "ok"), safe(strings.Join(one.Entrypoints, ", ")))
	}
	return nil
}
