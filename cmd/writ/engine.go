package main

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/writrun/writ/host"
	"github.com/writrun/writ/host/wasmtime"
	"github.com/writrun/writ/host/wazero"
)

// engineChoice is an engine guests can run on.
type engineChoice struct {
	name string
	open func(ctx context.Context, cacheDir string) (host.Engine, error)
}

// engineChoices lists the engines, the default first. One that this build lacks
// is listed as well: choosing it says how to get it.
func engineChoices() []engineChoice {
	return []engineChoice{
		{"wazero", func(ctx context.Context, dir string) (host.Engine, error) {
			return wazero.New(ctx, wazero.Config{CacheDir: dir})
		}},
		{"wazero-interpreter", func(ctx context.Context, _ string) (host.Engine, error) {
			return wazero.New(ctx, wazero.Config{Interpreter: true})
		}},
		{"wasmtime", func(ctx context.Context, dir string) (host.Engine, error) {
			if dir != "" {
				dir = filepath.Join(dir, "wasmtime")
			}
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
		e, err := c.open(ctx, a.cacheDir())
		if err == nil {
			return e, nil
		}
		f := &fault{Code: "engine", Message: err.Error(), Exit: exitFailed, cause: err}
		if name == "wasmtime" && !wasmtime.Available {
			f.Exit, f.Hints = exitUsage, []string{"--engine wazero leaves the same record"}
		} else {
			f.Hints = []string{"compiled modules are kept below XDG_CACHE_HOME, which must be yours alone"}
		}
		return nil, f
	}
	f := usagef("--engine %q is not an engine", name)
	f.Hints = []string{"choose one of " + strings.Join(engineNames(), ", ")}
	return nil, f
}
