package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/writrun/writ/engine"
	"github.com/writrun/writ/engine/flow"
	"github.com/writrun/writ/guest-abi/abi"
)

// TestScaffoldModules assembles the scaffold's modules again, adds their
// metadata, and requires the bytes that are embedded. UPDATE=1 rewrites them.
func TestScaffoldModules(t *testing.T) {
	assembler, err := exec.LookPath("wat2wasm")
	if err != nil {
		t.Skip("SKIPPED: no wat2wasm; make tools installs it")
	}
	for _, name := range []string{"count", "recount"} {
		t.Run(name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), name+".wasm")
			if text, err := exec.Command(assembler, filepath.Join("scaffold", name+".wat"), "-o", out).CombinedOutput(); err != nil {
				t.Fatalf("assemble: %v\n%s", err, text)
			}
			wasm, err := os.ReadFile(out)
			if err != nil {
				t.Fatal(err)
			}
			metadata, err := os.ReadFile(filepath.Join("scaffold", name+".json"))
			if err != nil {
				t.Fatal(err)
			}
			want, err := abi.AppendMetadata(wasm, metadata)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("scaffold", name+".wasm")
			if os.Getenv("UPDATE") != "" {
				if err := os.WriteFile(file, want, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			got, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s is not what %s.wat and %s.json make; UPDATE=1 rewrites it", file, name, name)
			}
			if _, err := engine.Prepare(got, 0, flow.StackPortable); err != nil {
				t.Errorf("the sandbox refuses it: %v", err)
			}
		})
	}
}
