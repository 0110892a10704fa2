package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// variable matches what differs from run to run in shown output.
var variable = regexp.MustCompile(`sha256:[0-9a-f]{64}|\br[a-z2-7]{26}\b`)

// TestReadme runs the console sessions of the README, one after another in one
// directory, and requires each line that is shown of a command's output.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), "\n"); n > 150 {
		t.Errorf("README.md has %d lines; at most 150", n)
	}
	var script strings.Builder
	commands := 0
	for block := range strings.SplitSeq(string(text), "```console\n") {
		session, _, ok := strings.Cut(block, "\n```")
		if !ok || !strings.HasPrefix(session, "$ ") {
			continue
		}
		for line := range strings.SplitSeq(session, "\n") {
			command, isCommand := strings.CutPrefix(line, "$ ")
			folder, isChange := strings.CutPrefix(command, "cd ")
			switch {
			case isChange && isCommand:
				fmt.Fprintf(&script, "cd %s\n", folder)
			case isCommand:
				commands++
				fmt.Fprintf(&script, "exec bash -c '%s'\n", strings.ReplaceAll(command, "'", "''"))
			case line != "":
				fmt.Fprintf(&script, "stdout '^%s$'\n", pattern(line))
			}
		}
	}
	if commands < 5 {
		t.Fatalf("only %d commands found", commands)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "readme.txtar"), []byte(script.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{Dir: dir, Setup: func(env *testscript.Env) error {
		env.Setenv("WRIT_KEYS", filepath.Join(env.WorkDir, "keys"))
		env.Setenv("XDG_CACHE_HOME", filepath.Join(env.WorkDir, "cache"))
		return nil
	}})
}

// pattern matches a line of output, whatever ids and digests are in it.
func pattern(line string) string {
	quoted := regexp.QuoteMeta(line)
	quoted = variable.ReplaceAllStringFunc(quoted, func(found string) string {
		if strings.HasPrefix(found, "r") {
			return "r[a-z2-7]{26}"
		}
		return "sha256:[0-9a-f]{64}"
	})
	return strings.ReplaceAll(quoted, "'", "''")
}
