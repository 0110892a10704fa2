package guest_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestPackageCommentBuilds compiles the module that the package comment shows, with
// the commands it shows.
func TestPackageCommentBuilds(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles a module")
	}
	file, err := parser.ParseFile(token.NewFileSet(), "guest.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	code := indented(file.Doc)
	at := strings.Index(code, "\nGOOS=wasip1")
	if at < 0 {
		t.Fatal("the package comment shows no build command")
	}
	source, command := code[:at], strings.Fields(code[at:])
	dir := t.TempDir()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	// An overlay puts the code beside this package without writing there.
	main := filepath.Join(dir, "main.go")
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(here, "hello", "main.go"): main}})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{main: []byte(source), filepath.Join(dir, "overlay.json"): overlay} {
		if err := os.WriteFile(name, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if len(command) < 4 || command[2] != "go" || command[3] != "build" {
		t.Fatalf("the build command is %q", command)
	}
	args := append([]string{"build", "-overlay", filepath.Join(dir, "overlay.json")}, command[4:]...)
	args[len(args)-1] = filepath.Join(dir, args[len(args)-1])
	cmd := exec.CommandContext(t.Context(), "go", append(args, "./hello")...)
	cmd.Env = append(cmd.Environ(), command[:2]...)
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	if wasm, err := os.ReadFile(filepath.Join(dir, "hello.wasm")); err != nil || !strings.HasPrefix(string(wasm), "\x00asm") {
		t.Errorf("built %.8q, %v", wasm, err)
	}
}

// indented returns the code blocks of a comment.
func indented(doc *ast.CommentGroup) string {
	var b strings.Builder
	for _, c := range doc.List {
		if line, ok := strings.CutPrefix(c.Text, "//\t"); ok {
			b.WriteString(line + "\n")
		} else if c.Text == "//" {
			b.WriteString("\n")
		}
	}
	return b.String()
}
