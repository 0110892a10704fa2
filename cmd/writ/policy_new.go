package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/writrun/writ/policies/author"
)

// policyNewDocument is what policy new prints as JSON.
type policyNewDocument struct {
	Dir        string   `json:"dir"`
	Decision   string   `json:"decision"`
	Package    string   `json:"package"`
	Entrypoint string   `json:"entrypoint"` // data.<package>.<rule>
	Files      []string `json:"files"`      // relative to dir
}

func (a *app) policyNewCommand() *cobra.Command {
	var decision, dir, flowID string
	cmd := &cobra.Command{
		Use:   "new NAME",
		Short: "Write a policy to start from, with a test and a case that pass",
		Long: `new writes a small policy for one decision into a folder NAME: the Rego with its
default, a Rego test, a case in YAML and a README. It passes check and test as it
is; change the case to what you want, watch it fail, then change the policy.

Without --flow it is the operator's (package writ.<decision>); with --flow one
that the flow of that id brings along (package flow.<flow_id>.<decision>).`,
		Example: `  writ policy new lenient
  writ policy new gate --decision authority --dir policies
  writ policy new arbiter --flow release-gate && writ policy test arbiter --watch`,
		Args: cobra.ExactArgs(1),
		RunE: a.work(func(_ *cobra.Command, args []string) error { return a.policyNew(args[0], decision, dir, flowID) }),
	}
	flags := cmd.Flags()
	flags.StringVar(&decision, "decision", "arbitration", "`decision` it answers: authority, arbitration, replay or standing")
	flags.StringVar(&dir, "dir", ".", "`folder` to make NAME in")
	flags.StringVar(&flowID, "flow", "", "`id` of the flow that brings the policy")
	_ = cmd.RegisterFlagCompletionFunc("decision", cobra.FixedCompletions(author.Names(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (a *app) policyNew(name, decision, dir, flowID string) error {
	s, err := author.NewScaffold(name, decision, flowID)
	if err != nil {
		return usagef("%v", err)
	}
	doc := policyNewDocument{Dir: filepath.Join(dir, name), Decision: decision, Package: s.Package, Entrypoint: s.Entrypoint, Files: []string{}}
	entries, err := os.ReadDir(doc.Dir)
	switch {
	case len(entries) > 0:
		return usagef("%s is there already and not empty", doc.Dir)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return inputError(doc.Dir, err)
	}
	for _, file := range s.Files {
		if _, err := writeNew(filepath.Join(doc.Dir, filepath.FromSlash(file.Name)), file.Text); err != nil {
			return fmt.Errorf("write %s: %w", file.Name, err)
		}
		doc.Files = append(doc.Files, file.Name)
	}
	if a.json() {
		return a.writeJSON(doc)
	}
	for _, name := range doc.Files {
		fmt.Fprintf(a.stdout, "wrote %s\n", safe(filepath.Join(doc.Dir, name)))
	}
	fmt.Fprintf(a.stdout, "\nnext: writ policy test %s --watch\n", safe(doc.Dir))
	return nil
}
