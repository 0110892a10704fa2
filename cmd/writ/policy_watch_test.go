package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestWatchRunsAgainAfterChanges follows a person who breaks a policy, mends it
// and adds a case in a new folder.
func TestWatchRunsAgainAfterChanges(t *testing.T) {
	const right = "package writ.authority\n\ndefault decision := {\"allow\": false, \"reasons\": []}\n"
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		// A new file in one step, as editors do it.
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path+".new", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	write("p.rego", right)
	write("p_test.rego", "package t\n\ntest_refused if not data.writ.authority.decision.allow\n")

	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	read, written := io.Pipe()
	a := &app{stdin: strings.NewReader(""), stdout: written, stderr: written, getenv: func(string) string { return "" }, now: time.Now}
	exit := make(chan int, 1)
	go func() {
		exit <- a.main(ctx, []string{"policy", "test", dir, "--watch"})
		written.Close()
	}()
	lines := bufio.NewScanner(read)
	// await reads to the end of a round that has want in it. A slow machine may
	// have one between two changes, too.
	await := func(want string) {
		t.Helper()
		var round []string
		for lines.Scan() {
			round = append(round, lines.Text())
			if strings.HasPrefix(lines.Text(), "watching ") && strings.Contains(strings.Join(round, "\n"), want) {
				return
			}
		}
		t.Fatalf("the output ended before %q:\n%s", want, strings.Join(round, "\n"))
	}
	await("1 passed, 0 failed, 0 errored")
	write("p.rego", strings.Replace(right, "false", "true", 1))
	await("0 passed, 1 failed, 0 errored")
	write("p.rego", right+"\ndecision {\n")
	await("rego_parse_error")
	write("p.rego", right)
	await("1 passed, 0 failed, 0 errored")
	write("cases/a.yaml", "note: a\ninput: {}\nwant: {allow: false, reasons: []}\n")
	await("2 passed, 0 failed, 0 errored")

	cancel()
	go io.Copy(io.Discard, read)
	if code := <-exit; code != exitDone {
		t.Errorf("exit code %d", code)
	}
}
