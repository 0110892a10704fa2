package guests_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/writrun/writ/host/hosttest"
)

// build runs a compiler that writes to the file its arguments name by OUT, and
// returns what it wrote.
func build(t *testing.T, dir string, env []string, tool string, args ...string) []byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), "guest.wasm")
	args = append([]string(nil), args...)
	for i, a := range args {
		if a == "OUT" {
			args[i] = out
		}
	}
	cmd := exec.CommandContext(t.Context(), tool, args...)
	cmd.Dir = dir
	cmd.Env = append(cmd.Environ(), env...)
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", tool, strings.Join(args, " "), err, output)
	}
	wasm, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

func buildGo(t *testing.T) []byte {
	root, err := hosttest.Root()
	if err != nil {
		t.Fatal(err)
	}
	return build(t, root, []string{"GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false"},
		"go", "build", "-buildmode=c-shared", "-trimpath", "-ldflags=-s -w", "-o", "OUT", "./conformance/guests/testdata/goguest")
}

func buildC(t *testing.T) []byte {
	const needs = "SKIPPED: the guest in C needs clang, lld, wasi-libc and libclang-rt-dev-wasm32: apt-get install clang lld wasi-libc libclang-rt-dev-wasm32"
	for _, tool := range []string{"clang", "wasm-ld"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(needs)
		}
	}
	if _, err := os.Stat("/usr/lib/wasm32-wasi/crt1-reactor.o"); err != nil && os.Getenv("WASI_SYSROOT") == "" {
		t.Skip(needs)
	}
	args := []string{"--target=wasm32-wasi", "-mexec-model=reactor", "-O2", "-Wall", "-Wextra", "-Werror", "-o", "OUT", "guest.c"}
	if root := os.Getenv("WASI_SYSROOT"); root != "" {
		args = append(args, "--sysroot="+root)
	}
	return build(t, "testdata/c", nil, "clang", args...)
}

func buildRust(t *testing.T) []byte {
	compiler, target := rust(t.Context())
	if compiler == "" {
		t.Skip("SKIPPED: the guest in Rust needs a rustc with the standard library for wasm32-wasi: apt-get install rustc libstd-rust-dev-wasm32 lld")
	}
	return build(t, "testdata/rust", nil, compiler, "--target", target, "--edition", "2021", "--crate-type", "cdylib",
		"-O", "-C", "panic=abort", "-C", "strip=symbols", "-o", "OUT", "guest.rs")
}

// rust finds a compiler, on the path or the system's, that has the standard
// library of a WASI target.
func rust(ctx context.Context) (compiler, target string) {
	for _, compiler := range []string{"rustc", "/usr/bin/rustc"} {
		for _, target := range []string{"wasm32-wasip1", "wasm32-wasi"} {
			dir, err := exec.CommandContext(ctx, compiler, "--print", "target-libdir", "--target", target).Output()
			if err != nil {
				continue
			}
			if found, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "libstd-*.rlib")); err == nil && len(found) > 0 {
				return compiler, target
			}
		}
	}
	return "", ""
}
