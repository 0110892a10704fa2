// Command build makes the guest modules of this folder from source.
//
//	go run ./modules/build [-o DIR] [-check | -update] [NAME ...]
//
// Each modules/NAME with a module.json is a package main for GOOS=wasip1. It is
// compiled reproducibly, its metadata is appended as the writ.module section, and
// the result is written to DIR/NAME.wasm. With -check the results must have the
// digests in modules/SHA256SUMS, with -update that file is rewritten. Run it from
// anywhere inside the repository; without names it builds every module.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
)

func main() {
	var o options
	flag.StringVar(&o.out, "o", "", "write modules to `DIR` (default modules/out)")
	flag.BoolVar(&o.check, "check", false, "fail unless each digest is the one in modules/SHA256SUMS")
	flag.BoolVar(&o.update, "update", false, "write the digests to modules/SHA256SUMS")
	flag.Parse()
	o.names = flag.Args()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "build: error:", err)
		os.Exit(1)
	}
}

// options are what the command line says.
type options struct {
	out           string
	check, update bool
	names         []string
}

func run(ctx context.Context, o options) error {
	if o.check && o.update {
		return errors.New("-check and -update exclude each other")
	}
	wd, err := os.Getwd()
	if err != nil {
		return err
	}
	root, err := findRoot(wd)
	if err != nil {
		return err
	}
	modules := filepath.Join(root, "modules")
	if o.out == "" {
		o.out = filepath.Join(modules, "out")
	}
	all, err := moduleNames(modules)
	if err != nil {
		return err
	}
	if len(o.names) == 0 {
		o.names = all
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	sumsFile := filepath.Join(modules, "SHA256SUMS")
	sums, err := readSums(sumsFile)
	if err != nil {
		return err
	}
	var faults []error
	for _, name := range o.names {
		wasm, err := build(ctx, root, name)
		if err == nil {
			err = writeIfChanged(filepath.Join(o.out, name+".wasm"), wasm)
		}
		if err != nil {
			return fmt.Errorf("module %q: %w", name, err)
		}
		faults = append(faults, settle(sums, name, wasm, o))
	}
	if o.update {
		sums.keep(all)
		faults = append(faults, sums.write(sumsFile))
	}
	return errors.Join(faults...)
}

// settle reports a module and compares or notes its digest.
func settle(sums sumTable, name string, wasm []byte, o options) error {
	sum := sumOf(wasm)
	fmt.Printf("%s  %s (%d bytes)\n", sum, filepath.Join(o.out, name+".wasm"), len(wasm))
	if o.update {
		sums[name] = sum
	}
	if o.check && sums[name] != sum {
		return fmt.Errorf("module %q has digest %s; modules/SHA256SUMS has %q (same Go version? else run with -update and review the change)", name, sum, sums[name])
	}
	return nil
}
