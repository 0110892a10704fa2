package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/writrun/writ/engine/evidence"
	"github.com/writrun/writ/guest-abi/abi"
)

// app is one invocation of the tool: its surroundings and its global flags.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	getenv         func(string) string
	now            func() time.Time
	rand           io.Reader

	storeDir   string
	tenantName string
	output     string
	wait       time.Duration

	began   bool              // a command's own work has begun; before that every error is one of usage
	damaged *evidence.Problem // of the evidence a command has read from, though it could go on
}

const (
	outputText = "text"
	outputJSON = "json"

	defaultStore  = ".writ"
	defaultTenant = "default"
)

// exitStatus ends the tool with a code and no message: all was said.
type exitStatus int

func (exitStatus) Error() string { return "exit status" }

// main runs the tool and returns its exit code.
func (a *app) main(ctx context.Context, args []string) int {
	root := a.command()
	root.SetArgs(args)
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	err := root.ExecuteContext(ctx)
	var status exitStatus
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &status):
		return int(status)
	}
	f := faultOf(err)
	if !a.began {
		f = usageFault(err)
	}
	a.report(f)
	return f.Exit
}

// command builds the tree of commands.
func (a *app) command() *cobra.Command {
	root := &cobra.Command{
		Use:   "writ",
		Short: "Run flows of sandboxed guests and say exactly as much as the record supports",
		Long: `writ runs flows of untrusted WebAssembly executors and verification rules,
records every crossing between guest and world, and says of a finished run
exactly as much as its retained evidence supports.

Exit codes:
  0    done; of a run: accepted
  1    a step failed, the arbitration said FAIL, or the tool itself could not go on
  2    wrong usage or invalid input
  3    refused
  4    a replay diverged or is unacceptable, or a past decision would flip
  5    evidence is damaged
  6    the store is in use by another process
  7    escalated or in doubt
  8    nothing was evaluated
  130  interrupted; the run's journal is kept

With --output json a command writes one JSON document to stdout; its form is
what "writ schema" prints. An error is the document of schema "error".`,
		Example: `  writ init demo && cd demo
  writ run flow.yaml
  writ inspect latest`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveDefault)
	flags := root.PersistentFlags()
	flags.StringVar(&a.storeDir, "store", "", "store `directory` (default $WRIT_STORE, else "+defaultStore+")")
	flags.StringVar(&a.tenantName, "tenant", "", "`tenant` to act for (default $WRIT_TENANT, else "+defaultTenant+")")
	flags.StringVar(&a.output, "output", outputText, "`form` of what is printed: text or json")
	flags.DurationVar(&a.wait, "wait", 0, "how `long` to wait for a store that is in use, for instance 30s")
	root.PersistentPreRunE = func(*cobra.Command, []string) error { return a.settle() }
	for _, name := range []string{"output"} {
		_ = root.RegisterFlagCompletionFunc(name, cobra.FixedCompletions([]string{outputText, outputJSON}, cobra.ShellCompDirectiveNoFileComp))
	}
	root.AddCommand(a.initCommand(), a.planCommand(), a.runCommand(), a.listCommand(), a.inspectCommand(),
		a.explainCommand(), a.replayCommand(), a.moduleCommand(), a.policyCommand(), a.storeCommand(), a.schemaCommand(), a.versionCommand(), a.compileCommand())
	return root
}

// settle fills global flags from the environment and checks them.
func (a *app) settle() error {
	if a.output != outputText && a.output != outputJSON {
		bad := a.output
		a.output = outputText
		return usagef("--output is %q; it is text or json", bad)
	}
	if a.storeDir == "" {
		a.storeDir = a.getenv("WRIT_STORE")
	}
	if a.tenantName == "" {
		a.tenantName = a.getenv("WRIT_TENANT")
	}
	if a.tenantName == "" {
		a.tenantName = defaultTenant
	}
	if a.wait < 0 {
		return usagef("--wait is negative")
	}
	return nil
}

// work wraps a command's function, so that errors before it are known as usage.
func (a *app) work(f func(cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		a.began = true
		err := f(cmd, args)
		if err == nil && a.damaged != nil {
			// What was shown is what is left of the evidence, and that is said last.
			fmt.Fprintf(a.stderr, "writ: error: %s\nwrit: hint: writ store verify shows what is damaged\n", safe(a.damaged.Error()))
			return exitStatus(exitDamaged)
		}
		return err
	}
}

func (a *app) json() bool { return a.output == outputJSON }

func (a *app) tenant() (abi.TenantID, error) {
	id, err := abi.ParseTenantID(a.tenantName)
	if err != nil {
		return id, usagef("%v", err)
	}
	return id, nil
}

// storeOptions says which store is meant and where its keys are.
func (a *app) storeOptions(readOnly bool) (evidence.Options, error) {
	keys, err := a.keyDir()
	if err != nil {
		return evidence.Options{}, err
	}
	dir := a.storeDir
	if dir == "" {
		dir = defaultStore
	}
	return evidence.Options{Dir: dir, KeyDir: keys, ReadOnly: readOnly, Wait: a.wait, Now: a.now, Rand: a.rand}, nil
}

// keyDir is where keys live: $WRIT_KEYS, else the user's configuration.
func (a *app) keyDir() (string, error) {
	if dir := a.getenv("WRIT_KEYS"); dir != "" {
		return dir, nil
	}
	if dir := a.getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "writ", "keys"), nil
	}
	if home := a.getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".config", "writ", "keys"), nil
	}
	return "", &fault{Code: "no_key_dir", Message: "no directory for keys: WRIT_KEYS, XDG_CONFIG_HOME and HOME are not set",
		Hints: []string{"set WRIT_KEYS to a directory outside the store"}, Exit: exitUsage}
}

// cacheDir is where compiled modules may be kept, "" for nowhere.
func (a *app) cacheDir() string {
	if dir := a.getenv("XDG_CACHE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "writ")
	}
	if home := a.getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".cache", "writ")
	}
	return ""
}

// openStore opens the store and the caller's tenant in it.
func (a *app) openStore(readOnly bool) (*evidence.Store, *evidence.Tenant, error) {
	id, err := a.tenant()
	if err != nil {
		return nil, nil, err
	}
	options, err := a.storeOptions(readOnly)
	if err != nil {
		return nil, nil, err
	}
	store, err := evidence.Open(options)
	if err != nil {
		return nil, nil, err
	}
	tenant, err := store.Tenant(id)
	if err != nil {
		return nil, nil, errors.Join(err, store.Close())
	}
	a.damaged = tenant.Problem()
	return store, tenant, nil
}
