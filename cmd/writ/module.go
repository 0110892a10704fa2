package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host/prepare"
)

// moduleDocument is what module inspect prints as JSON.
type moduleDocument struct {
	File     string          `json:"file"`
	Digest   abi.Digest      `json:"digest"`
	Profile  string          `json:"profile"` // the rules the module was held to
	Admitted bool            `json:"admitted"`
	Faults   []prepare.Fault `json:"faults"`             // why the code is refused
	Metadata *abi.Metadata   `json:"metadata,omitempty"` // absent if there is none that can be read
	Wrong    []string        `json:"metadata_faults"`    // why the metadata is refused
	Module   *prepare.Info   `json:"module,omitempty"`   // absent if the code is refused
}

func (a *app) moduleCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "module",
		Short: "Look at guest modules",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(&cobra.Command{
		Use:   "inspect FILE",
		Short: "Say what a module is, whether it may run, and what preparation adds to it",
		Long: `inspect reads a WebAssembly module and executes nothing of it.

It prints what the module says of itself, what it imports and wants, and what
preparation would put into it: charges of fuel, checks of fuel and stack, places
where a NaN is made canonical. A module that would be refused is listed with
every reason, each with the byte it is about, and the command exits with 3.`,
		Example: `  writ module inspect rules.wasm
  writ module inspect rules.wasm --output json | jq .module.imports`,
		Args: cobra.ExactArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"wasm"}, cobra.ShellCompDirectiveFilterFileExt
		},
		RunE: a.work(func(_ *cobra.Command, args []string) error { return a.inspectModule(args[0]) }),
	})
	return cmd
}

func (a *app) inspectModule(name string) error {
	wasm, err := readModule(name)
	if err != nil {
		return err
	}
	d, err := describeModule(name, wasm)
	if err != nil {
		return err
	}
	if a.json() {
		if err := a.writeJSON(d); err != nil {
			return err
		}
	} else {
		a.showModule(d)
	}
	if !d.Admitted {
		return exitStatus(exitRefused)
	}
	return nil
}

// readModule reads a file that is no larger than a module may be.
func readModule(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, usagef("read module: %v", err)
	}
	defer f.Close()
	wasm, err := io.ReadAll(io.LimitReader(f, abi.ModuleBytesMax+1))
	if err != nil {
		return nil, usagef("read module: %v", err)
	}
	if len(wasm) > abi.ModuleBytesMax {
		return nil, usagef("read module: %s has more than %d bytes, the most a module may have", name, abi.ModuleBytesMax)
	}
	return wasm, nil
}

func describeModule(name string, wasm []byte) (moduleDocument, error) {
	d := moduleDocument{File: name, Digest: abi.DigestOf(wasm), Profile: prepare.Profile, Faults: []prepare.Fault{}, Wrong: []string{}}
	info, err := prepare.Inspect(wasm)
	var refusal *prepare.Refusal
	switch {
	case errors.As(err, &refusal):
		d.Faults = refusal.Faults
		return d, nil
	case err != nil:
		return d, err
	}
	d.Module = info
	meta, err := abi.ParseMetadata(info.Metadata)
	if err == nil {
		d.Metadata = &meta
		err = meta.CheckImports(importNames(info))
	}
	var wrong *abi.MetadataError
	if errors.As(err, &wrong) {
		d.Wrong = wrong.Faults
	}
	d.Admitted = err == nil
	return d, nil
}

func importNames(info *prepare.Info) []string {
	var names []string
	for _, i := range info.Imports {
		if i.Module == abi.ModuleWrit {
			names = append(names, i.Name)
		}
	}
	return names
}

func (a *app) showModule(d moduleDocument) {
	fmt.Fprintf(a.stdout, "%s  %s\n", a.paint(bold, safe(d.File)), d.Digest)
	if m := d.Metadata; m != nil {
		a.pairs("  ", "name", safe(string(m.Name)+" "+m.Version), "kind", string(m.Kind), "about", safe(m.Description),
			"licence", safe(m.License), "source", safe(m.Source))
		a.showWants(m)
	}
	if i := d.Module; i != nil {
		a.showCode(d.Profile, i)
	}
	fmt.Fprintln(a.stdout)
	if d.Admitted {
		fmt.Fprintln(a.stdout, a.paint(green, "admitted")+": a flow may pin it")
		return
	}
	fmt.Fprintln(a.stdout, a.paint(red, "refused")+":")
	for _, f := range d.Faults {
		fmt.Fprintf(a.stdout, "  %s\n", safe(f.String()))
	}
	for _, w := range d.Wrong {
		fmt.Fprintf(a.stdout, "  metadata: %s\n", safe(w))
	}
	if len(d.Faults) > 0 {
		fmt.Fprintf(a.stderr, "writ: hint: writ explain %s says what to do\n", d.Faults[0].Code)
	}
}

func (a *app) showWants(m *abi.Metadata) {
	var rows [][]string
	for _, w := range m.Wants {
		rows = append(rows, []string{safe(w.Capability), safe(w.Reason)})
	}
	if len(rows) > 0 {
		fmt.Fprintln(a.stdout)
		a.table([]string{"WANTS", "WHY"}, rows)
	}
	rows = nil
	for _, r := range m.Rules {
		rows = append(rows, []string{safe(string(r.RuleID)), r.Severity, r.Randomness, r.Target})
	}
	if len(rows) > 0 {
		fmt.Fprintln(a.stdout)
		a.table([]string{"RULE", "SEVERITY", "RANDOMNESS", "TARGET"}, rows)
	}
}

func (a *app) showCode(profile string, i *prepare.Info) {
	var imports []string
	for _, e := range i.Imports {
		imports = append(imports, e.Module+"."+e.Name)
	}
	slices.Sort(imports)
	fmt.Fprintln(a.stdout)
	a.pairs("", "imports", safe(strings.Join(imports, ", ")), "features", strings.Join(i.Features, ", "),
		"code", fmt.Sprintf("%s, %s, %s, %s", plural(i.Functions, "function"), plural(i.Tables, "table"), plural(i.Globals, "global"), plural(i.DataSegments, "data segment")),
		"memory", fmt.Sprintf("%d pages, at most %d", i.MemoryPagesMin, i.MemoryPagesMax),
		"start", map[bool]string{true: "has a start function, which the host calls within the budget"}[i.HasStart])
	n := i.Inserted
	fmt.Fprintf(a.stdout, "\nprepared under %s: %d bytes become %d (%+.1f %%)\n", profile, i.OriginalBytes, i.PreparedBytes,
		100*float64(i.PreparedBytes-i.OriginalBytes)/float64(max(i.OriginalBytes, 1)))
	a.pairs("  ", "fuel charges", fmt.Sprint(n.FuelCharges), "fuel checks", fmt.Sprint(n.FuelChecks), "charges by length", fmt.Sprint(n.BulkCharges),
		"stack checks", fmt.Sprint(n.StackChecks), "canonical NaNs", fmt.Sprint(n.NaNs))
}
