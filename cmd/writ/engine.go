package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/writrun/writ/host"
	"github.com/writrun/writ/host/wasmtime"
	"github.com/writrun/writ/host/wazero"
)

// engineChoice is an engine guests can run on.
type engineChoice struct {
	name     string
	compiles bool // into code that is kept
	open     func(ctx context.Context, cacheDir string) (keeper, error)
}

// engineChoices lists the engines, the default first. One that this build lacks
// is listed as well: choosing it says how to get it.
func engineChoices() []engineChoice {
	return []engineChoice{
		{"wazero", true, func(ctx context.Context, dir string) (keeper, error) {
			return wazero.New(ctx, wazero.Config{CacheDir: dir})
		}},
		{"wazero-interpreter", false, func(ctx context.Context, _ string) (keeper, error) {
			return wazero.New(ctx, wazero.Config{Interpreter: true})
		}},
		{"wasmtime", true, func(ctx context.Context, dir string) (keeper, error) {
			return wasmtime.New(ctx, wasmtime.Config{CacheDir: dir})
		}},
	}
}

func engineNames() []string {
	var names []string
	for _, c := range engineChoices() {
		names = append(names, c.name)
	}
	return names
}

// engineFlag adds --engine to a command.
func engineFlag(cmd *cobra.Command, to *string) {
	cmd.Flags().StringVar(to, "engine", engineNames()[0], "`engine` guests run on: "+strings.Join(engineNames(), ", ")+"; the record is the same on each")
	err := cmd.RegisterFlagCompletionFunc("engine", cobra.FixedCompletions(engineNames(), cobra.ShellCompDirectiveNoFileComp))
	if err != nil {
		panic(err) // the flag was added above
	}
}

// newEngine opens the engine of that name.
func (a *app) newEngine(ctx context.Context, name string) (host.Engine, error) {
	for _, c := range engineChoices() {
		if c.name != name {
			continue
		}
		e, err := a.openEngine(ctx, c)
		if err == nil {
			return e, nil
		}
		var told *fault
		if errors.As(err, &told) {
			return nil, told
		}
		f := &fault{Code: "engine", Message: err.Error(), Exit: exitFailed, cause: err}
		switch {
		case strings.Contains(err.Error(), "compilation cache"):
			f.Hints = []string{"compiled modules are kept below XDG_CACHE_HOME, which must be yours alone"}
		case name == "wasmtime":
			f.Hints = []string{"--engine wazero leaves the same record"}
			if !wasmtime.Available {
				f.Exit = exitUsage
			}
		}
		return nil, f
	}
	f := usagef("--engine %q is not an engine", name)
	f.Hints = []string{"choose one of " + strings.Join(engineNames(), ", ")}
	return nil, f
}

// openEngine opens an engine and bounds its compilations. Where code cannot be
// kept between processes, it is kept for this one.
func (a *app) openEngine(ctx context.Context, c engineChoice) (host.Engine, error) {
	if !c.compiles {
		return c.open(ctx, "")
	}
	dir, scratch := a.cacheDir(), false
	if dir == "" || !writable(dir) {
		made, err := os.MkdirTemp("", "writ-cache-")
		if err != nil {
			return nil, &fault{Code: "engine", Message: fmt.Sprintf("open engine %s: no folder for compiled code can be made: %v", c.name, err), Exit: exitFailed, cause: err,
				Hints: []string{"set XDG_CACHE_HOME or TMPDIR to a directory that can be written to", "--engine wazero-interpreter needs none"}}
		}
		dir, scratch = made, true
	}
	e, err := c.open(ctx, dir)
	if err != nil {
		if scratch {
			err = errors.Join(err, os.RemoveAll(dir))
		}
		return nil, err
	}
	return boundCompile(e, dir, scratch), nil
}

// writable reports whether a file can be made in dir, or dir itself.
func writable(dir string) bool {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return false
	}
	return unix.Access(dir, unix.W_OK|unix.X_OK) == nil
}
