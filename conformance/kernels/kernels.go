// Package kernels holds the programs whose speed is published: small computations
// in C, each one file of src, and one guest in Go.
//
// Sources and compiler flags were fixed before preparation was made faster, and
// stay: a figure is comparable with earlier ones only if they are what they were.
// Every kernel exports run(n i32) -> i64, which returns a checksum of what it
// computed, and keeps the guest ABI, so that it also runs as an executor. The
// package compiles the kernels and does not run them.
package kernels

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// RunExport is the export with a kernel's work: (n i32) -> i64.
const RunExport = "run"

// GoGuest is the name of the kernel in Go. It imports functions of WASI; the
// kernels in C import nothing.
const GoGuest = "goguest"

// Kernel is one program and how much work a measurement gives it.
type Kernel struct {
	Name string // its module is Name + ".wasm"
	N    int32  // argument of run that takes 50 to 200 ms on wazero, unprepared
}

// Kernels returns the kernels in C, in the order in which figures list them.
func Kernels() []Kernel {
	return []Kernel{
		{"matmul", 320}, {"nbody", 500_000}, {"mandelbrot", 800}, {"sieve", 15_000_000},
		{"sha256", 8000}, {"fib", 35}, {"sort", 500_000}, {"json", 15_000},
	}
}

// Guest returns the kernel in Go.
func Guest() Kernel { return Kernel{GoGuest, 30_000} }

//go:embed src
var sources embed.FS

// Sources returns the names of all files that a kernel is made of, with their
// contents.
func Sources() (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, dir := range []string{"src", "src/" + GoGuest} {
		entries, err := sources.ReadDir(dir)
		if err != nil {
			return nil, fmt.Errorf("read kernel sources: %w", err)
		}
		for _, e := range entries {
			if e.IsDir() {
				continue
			}
			name := dir + "/" + e.Name()
			if files[name], err = sources.ReadFile(name); err != nil {
				return nil, fmt.Errorf("read kernel sources: %w", err)
			}
		}
	}
	return files, nil
}

// ErrNoCompiler is what Build returns, wrapped with how to install it, where the
// C compiler is absent.
var ErrNoCompiler = errors.New("the C compiler for WebAssembly is not installed")

// Build compiles every kernel in C into dir.
func Build(ctx context.Context, dir string) error {
	for _, tool := range []string{"clang", "wasm-ld"} {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("build kernels: %s: %w: apt-get install clang lld", tool, ErrNoCompiler)
		}
	}
	files, err := Sources()
	if err != nil {
		return err
	}
	src, err := os.MkdirTemp("", "writ-kernels-")
	if err != nil {
		return fmt.Errorf("build kernels: %w", err)
	}
	defer os.RemoveAll(src)
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(src, filepath.Base(name)), content, 0o600); err != nil {
			return fmt.Errorf("build kernels: %w", err)
		}
	}
	flags := strings.Fields(string(files["src/flags"]))
	for _, k := range Kernels() {
		args := append(flags[:len(flags):len(flags)], "-o", filepath.Join(dir, k.Name+".wasm"), filepath.Join(src, k.Name+".c"))
		if err := run(exec.CommandContext(ctx, "clang", args...)); err != nil {
			return fmt.Errorf("build kernel %s: %w", k.Name, err)
		}
	}
	return nil
}

// BuildGuest compiles the kernel in Go into dir.
func BuildGuest(ctx context.Context, dir string) error {
	files, err := Sources()
	if err != nil {
		return err
	}
	src, err := os.MkdirTemp("", "writ-kernels-")
	if err != nil {
		return fmt.Errorf("build kernel %s: %w", GoGuest, err)
	}
	defer os.RemoveAll(src)
	main := filepath.Join(src, "main.go")
	if err := os.WriteFile(main, files["src/"+GoGuest+"/main.go"], 0o600); err != nil {
		return fmt.Errorf("build kernel %s: %w", GoGuest, err)
	}
	out, err := filepath.Abs(filepath.Join(dir, GoGuest+".wasm"))
	if err != nil {
		return fmt.Errorf("build kernel %s: %w", GoGuest, err)
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-buildmode=c-shared", "-trimpath", "-ldflags=-s -w -buildid=", "-o", out, main)
	cmd.Dir = src
	// What a person has set for their own builds must not change a module's bytes.
	cmd.Env = append(cmd.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOWASM=", "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false",
		"GOEXPERIMENT=", "GOWORK=off", "GODEBUG=", "GO111MODULE=on", "GOENV=off")
	if err := run(cmd); err != nil {
		return fmt.Errorf("build kernel %s: %w", GoGuest, err)
	}
	return nil
}

func run(cmd *exec.Cmd) error {
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(cmd.Path), err, bytes.TrimSpace(output))
	}
	return nil
}
