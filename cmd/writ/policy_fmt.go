package main

import (
	"fmt"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"

	"github.com/writrun/writ/policies/author"
)

// policyFmtDocument is what policy fmt prints as JSON.
type policyFmtDocument struct {
	Files   []policyFmtFile `json:"files"`
	Changed int             `json:"changed"` // files that are not formatted, or were not before --write
	Written bool            `json:"written"`
}

// policyFmtFile is one file that was looked at.
type policyFmtFile struct {
	File    string `json:"file"`
	Changed bool   `json:"changed"`
	Diff    string `json:"diff"` // "" where nothing changed
}

// policyFmtFlags are the flags of policy fmt as they were given.
type policyFmtFlags struct{ check, diff, write, fromV0 bool }

func (a *app) policyFmtCommand() *cobra.Command {
	var f policyFmtFlags
	cmd := &cobra.Command{
		Use:   "fmt PATH...",
		Short: "Format policies the way OPA does",
		Long: `fmt formats the .rego files of folders, or single files, with OPA's formatter.
Without a flag it lists the files that are not formatted.

  --write   rewrites them
  --diff    shows what would change
  --check   lists them and ends with exit code 1 if there are any

--v0-v1 rewrites Rego v0 as v1, as "opa fmt --v0-v1" does.`,
		Example: `  writ policy fmt --write lenient
  writ policy fmt --check lenient gate    # in CI
  writ policy fmt --v0-v1 --diff old.rego`,
		Args: cobra.MinimumNArgs(1),
		RunE: a.work(func(_ *cobra.Command, args []string) error { return a.policyFmt(args, f) }),
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.check, "check", false, "end with exit code 1 if a file is not formatted")
	flags.BoolVar(&f.diff, "diff", false, "show what would change")
	flags.BoolVarP(&f.write, "write", "w", false, "rewrite the files that are not formatted")
	flags.BoolVar(&f.fromV0, "v0-v1", false, "read files that are Rego v0, and write them as v1")
	cmd.MarkFlagsMutuallyExclusive("check", "write")
	return cmd
}

func (a *app) policyFmt(paths []string, f policyFmtFlags) error {
	var formatted []author.Formatted
	var found author.Findings
	for _, path := range paths {
		sources, err := author.Sources(path)
		if err != nil {
			return policyFault(err)
		}
		one, bad := author.Format(sources, f.fromV0)
		formatted, found = append(formatted, one...), append(found, bad...)
	}
	if len(found) > 0 {
		return policyFault(found)
	}
	doc := policyFmtDocument{Files: []policyFmtFile{}, Written: f.write}
	for _, one := range formatted {
		file := policyFmtFile{File: one.Name, Changed: one.Changed()}
		if one.Changed() {
			doc.Changed++
			file.Diff = string(diff.Diff(one.Name, one.Text, one.Name+" (formatted)", one.Want))
			if f.write {
				if err := replaceFile(one.Name, one.Want); err != nil {
					return err
				}
			}
		}
		doc.Files = append(doc.Files, file)
	}
	if err := a.showPolicyFmt(doc, f); err != nil {
		return err
	}
	if f.check && doc.Changed > 0 {
		return exitStatus(exitFailed)
	}
	return nil
}

func (a *app) showPolicyFmt(doc policyFmtDocument, f policyFmtFlags) error {
	if a.json() {
		return a.writeJSON(doc)
	}
	for _, file := range doc.Files {
		if !file.Changed {
			continue
		}
		if !f.diff {
			fmt.Fprintln(a.stdout, safe(file.File))
			continue
		}
		for line := range strings.Lines(file.Diff) {
			colour := map[byte]string{'+': green, '-': red, '@': dim}[line[0]]
			fmt.Fprintln(a.stdout, a.paint(colour, safe(strings.TrimSuffix(line, "\n"))))
		}
	}
	return nil
}
