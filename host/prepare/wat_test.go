package prepare

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// anything admits modules that are no guests, within the memory every module is held to.
var anything = rules{pagesMax: pagesMax, anyImport: true, anyExport: true}

// wat translates the text format with wabt's wat2wasm.
func wat(t testing.TB, text string, flags ...string) []byte {
	t.Helper()
	tool, err := exec.LookPath("wat2wasm")
	if err != nil {
		t.Fatal("wat2wasm is missing: install wabt (apt-get install wabt)")
	}
	out := filepath.Join(t.TempDir(), "m.wasm")
	cmd := exec.Command(tool, append(flags, "-", "-o", out)...)
	cmd.Stdin = bytes.NewReader([]byte(text))
	if msg, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("wat2wasm: %v\n%s\n%s", err, msg, text)
	}
	wasm, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}
