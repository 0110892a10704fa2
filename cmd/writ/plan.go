package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/writrun/writ/engine"
	"github.com/writrun/writ/engine/flow"
	"github.com/writrun/writ/guest-abi/abi"
)

// planDocument is what plan prints as JSON.
type planDocument struct {
	PlanDigest     abi.Digest      `json:"plan_digest"`
	ManifestDigest abi.Digest      `json:"manifest_digest"`
	File           string          `json:"file"` // written by -o, else ""
	Warnings       []string        `json:"warnings"`
	Plan           json.RawMessage `json:"plan"` // the canonical plan the digest is of
}

func (a *app) planCommand() *cobra.Command {
	var file string
	var p policyFlags
	cmd := &cobra.Command{
		Use:   "plan MANIFEST",
		Short: "Resolve a manifest to a plan: order, modules and data by digest, budgets",
		Long: `plan reads a manifest and everything it names, checks it, and prints what would
run. It executes nothing and needs no store. The same input has the same plan
digest on any machine and in any checkout.

With -o the plan is written as a lock file: run takes it in place of the
manifest and runs exactly it. A frozen flow runs only that way. Keep the file
in the manifest's folder: modules and data are found from there.`,
		Example: `  writ plan flow.yaml
  writ plan flow.yaml -o flow.plan.json && writ run flow.plan.json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeFlowFiles,
		RunE: a.work(func(cmd *cobra.Command, args []string) error {
			return a.plan(cmd.Context(), args[0], file, p)
		}),
	}
	cmd.Flags().StringVarP(&file, "out", "o", "", "write the plan to `FILE`")
	p.registryFlag(cmd)
	return cmd
}

func completeFlowFiles(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"yaml", "yml", "json"}, cobra.ShellCompDirectiveFilterFileExt
}

func (a *app) plan(ctx context.Context, name, file string, p policyFlags) error {
	in, err := resolve(ctx, name, p)
	if err != nil {
		return err
	}
	doc := planDocument{PlanDigest: in.plan.Digest(), ManifestDigest: in.manifest.Digest(), File: file,
		Warnings: append([]string{}, in.plan.Warnings...), Plan: in.plan.Canonical()}
	if file != "" {
		lock := flow.Lock{Plan: in.plan, Manifest: in.manifest}
		if err := replaceFile(file, lock.Bytes()); err != nil {
			return err
		}
	}
	if a.json() {
		return a.writeJSON(doc)
	}
	a.showPlan(in, doc)
	return nil
}

// input is a flow that was read and resolved.
type input struct {
	manifest  *flow.Manifest
	plan      *flow.Plan
	materials *flow.Materials
	fromLock  bool // the file was a lock file
}

// resolve reads a manifest or a lock file and everything it names.
func resolve(ctx context.Context, name string, p policyFlags) (input, error) {
	data, err := readInput(name)
	if err != nil {
		return input{}, err
	}
	resolver := flow.Resolver{Root: filepath.Dir(name), Prepare: engine.Prepare, Policies: p.readBundle}
	if flow.IsLock(data) {
		lock, err := flow.ParseLock(name, data)
		if err != nil {
			return input{}, err
		}
		materials, err := lock.Resolve(ctx, resolver)
		return input{lock.Manifest, lock.Plan, materials, true}, err
	}
	manifest, err := flow.ParseManifest(name, data)
	if err != nil {
		return input{}, err
	}
	plan, materials, err := flow.Resolve(ctx, manifest, resolver)
	return input{manifest, plan, materials, false}, err
}

// readInput reads a manifest or plan file, as far as one may be long.
func readInput(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, inputError(name, err)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, inputError(name, err)
	case info.IsDir():
		return nil, inputError(name, errors.New("it is a directory; name the manifest in it"))
	case info.Size() > flow.PlanBytesMax:
		return nil, &fault{Code: flow.CodeTooLarge, Exit: exitUsage,
			Message: fmt.Sprintf("read %s: %d bytes are more than the %d a manifest may have", name, info.Size(), flow.ManifestBytesMax)}
	}
	data, err := io.ReadAll(io.LimitReader(f, flow.PlanBytesMax+1))
	if err != nil {
		return nil, inputError(name, err)
	}
	if len(data) > flow.PlanBytesMax {
		return nil, inputError(name, fmt.Errorf("it is longer than the %d bytes a plan file may have", flow.PlanBytesMax))
	}
	return data, nil
}

func inputError(name string, err error) *fault {
	var p *os.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return &fault{Code: "unreadable", Message: fmt.Sprintf("read %s: %v", name, err), Exit: exitUsage, cause: err}
}

func (a *app) showPlan(in input, doc planDocument) {
	p := in.plan
	fmt.Fprintf(a.stdout, "%s  %s, %s\n\n", a.paint(bold, string(p.FlowID)), p.DeterminismLevel, p.FlowState)
	var rows [][]string
	for i, id := range p.Order {
		s := p.Step(id)
		needs := make([]string, 0, len(s.Needs))
		for _, need := range s.Needs {
			needs = append(needs, string(need))
		}
		rules := 0
		for range p.RulesFor(string(id)) {
			rules++
		}
		rows = append(rows, []string{fmt.Sprint(i + 1), string(id), safe(s.Module.Name) + " " + safe(s.Module.Version),
			shortDigest(s.Module.Digest), orDash(strings.Join(needs, ", ")), fmt.Sprint(rules), orDash(reachOf(s.Effects))})
	}
	a.table([]string{"#", "STEP", "MODULE", "DIGEST", "NEEDS", "RULES", "MAY REACH"}, rows)
	rows = nil
	for _, d := range p.Datasets {
		rows = append(rows, []string{string(d.ID), safe(d.Version), d.State, shortDigest(d.Hash), bytesText(d.Size)})
	}
	if len(rows) > 0 {
		fmt.Fprintln(a.stdout)
		a.table([]string{"DATASET", "VERSION", "STATE", "DIGEST", "SIZE"}, rows)
	}
	fmt.Fprintln(a.stdout)
	a.pairs("", "arbitration", arbitrationText(p.Arbitration), "manifest", string(doc.ManifestDigest), "plan", string(doc.PlanDigest))
	for _, w := range doc.Warnings {
		fmt.Fprintf(a.stdout, "%s %s\n", a.paint(yellow, "warning:"), safe(w))
	}
	if doc.File != "" {
		fmt.Fprintf(a.stdout, "\nwrote %s; next: writ run %s\n", safe(doc.File), safe(doc.File))
	}
}

func reachOf(effects []flow.Effect) string {
	var out []string
	for _, e := range effects {
		for _, allow := range e.Allow {
			out = append(out, strings.Join(allow.Methods, "|")+" "+allow.URLPrefix)
		}
	}
	return safe(strings.Join(out, ", "))
}

func arbitrationText(a flow.Arbitration) string {
	if a.Rule == flow.ArbitrationQuorum {
		return fmt.Sprintf("%s, threshold %g", a.Rule, a.QuorumThreshold)
	}
	return a.Rule
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// shortDigest is enough of a digest to tell two apart by eye.
func shortDigest(d abi.Digest) string {
	if len(d) < 19 {
		return string(d)
	}
	return string(d[:19])
}

func bytesText(n int64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	value, prefix := float64(n), ""
	for _, p := range []string{"Ki", "Mi", "Gi", "Ti"} {
		if value < unit {
			break
		}
		value, prefix = value/unit, p
	}
	return fmt.Sprintf("%.1f %sB", value, prefix)
}
