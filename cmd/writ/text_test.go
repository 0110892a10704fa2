package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/writrun/writ/engine"
	"github.com/writrun/writ/engine/evidence"
	"github.com/writrun/writ/engine/flow"
)

func TestSafe(t *testing.T) {
	tests := []struct{ note, in, want string }{
		{"plain", "advisories: 3 of 4", "advisories: 3 of 4"},
		{"other scripts and emoji", "Größe, 大小, 🙂", "Größe, 大小, 🙂"},
		{"line ends and tabs", "a\nb\tc", `a\nb\tc`},
		{"carriage return overwrites a line", "pass\rFAIL", `pass\x0dFAIL`},
		{"escape sequence clears a screen", "\x1b[2J", `\x1b[2J`},
		{"C1 control is an escape too", "\u009b31m", `\u009b31m`},
		{"NUL and DEL", "\x00\x7f", `\x00\x7f`},
		{"marks of direction reorder a line", "a\u202eb\u2066c\u200fd", `a\u202eb\u2066c\u200fd`},
		{"invisible characters", "a\u200bb\u00adc\ufeffd", `a\u200bb\u00adc\ufeffd`},
		{"line separator", "a\u2028b", `a\u2028b`},
		{"tag characters", "a\U000e0041", `a\U000e0041`},
		{"invalid UTF-8", "a\xffb\xc3", `a\xffb\xc3`},
		{"the replacement character itself", "\ufffd", "\ufffd"},
	}
	for _, tt := range tests {
		t.Run(tt.note, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, safe(tt.in)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func FuzzSafe(f *testing.F) {
	f.Add("\x1b[2J\u202e\xff")
	f.Add("plain")
	f.Fuzz(func(t *testing.T, s string) {
		got := safe(s)
		if !utf8.ValidString(got) {
			t.Fatalf("%q is not UTF-8", got)
		}
		for _, r := range got {
			if !unicode.IsPrint(r) {
				t.Fatalf("%q has %U", got, r)
			}
		}
		if again := safe(got); again != got {
			t.Fatalf("%q becomes %q", got, again)
		}
	})
}

// TestEscapeJSON shows that JSON means the same and moves no cursor.
func TestEscapeJSON(t *testing.T) {
	in := map[string]string{"text": "a\x1b\u202e\u009b\u2028\U000e0041🙂<&>"}
	text, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	got := escapeJSON(text)
	for _, r := range string(got) {
		if !unicode.IsPrint(r) {
			t.Errorf("%s has %U", got, r)
		}
	}
	var out map[string]string
	if err := json.Unmarshal(got, &out); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(in, out); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestShort(t *testing.T) {
	for _, tt := range []struct {
		in   string
		max  int
		want string
	}{{"abc", 3, "abc"}, {"abcd", 3, "ab…"}, {"äöüß", 4, "äöüß"}, {"\x1babc", 4, `\x1…`}, {"", 1, ""}} {
		if got := short(tt.in, tt.max); got != tt.want {
			t.Errorf("short(%q, %d) = %q, want %q", tt.in, tt.max, got, tt.want)
		}
	}
}

func TestTable(t *testing.T) {
	var b bytes.Buffer
	a := &app{stdout: &b, getenv: func(string) string { return "" }}
	a.table([]string{"A", "LONGER"}, [][]string{{"\x1b[32mpass\x1b[0m", "x"}, {"escalate", ""}})
	want := "A         LONGER\n\x1b[32mpass\x1b[0m      x\nescalate\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestFaultExit shows which exit code each kind of error has.
func TestFaultExit(t *testing.T) {
	problem := func(code string) error {
		return fmt.Errorf("open: %w", &evidence.Problem{Code: code, Detail: "detail"})
	}
	tests := []struct {
		err  error
		exit int
		code string
	}{
		{usagef("x"), 2, "usage"},
		{flow.Errors{{Code: flow.CodeUnknownField, File: "f"}}, 2, flow.CodeUnknownField},
		{flow.Errors{{Code: flow.CodeModuleRefused, File: "f"}}, 3, flow.CodeModuleRefused},
		{fmt.Errorf("run: %w", &engine.Refused{Action: "run", Code: "authority_denied"}), 3, "authority_denied"},
		{problem(evidence.CodeLocked), 6, evidence.CodeLocked},
		{problem(evidence.CodeNotAStore), 2, evidence.CodeNotAStore},
		{problem(evidence.CodeForeignCopy), 3, evidence.CodeForeignCopy},
		{problem(evidence.CodeFull), 1, evidence.CodeFull},
		{problem(evidence.CodeTraceMismatch), 5, evidence.CodeTraceMismatch},
		{problem("a_code_of_tomorrow"), 5, "a_code_of_tomorrow"},
		{errors.New("anything else"), 1, "failed"},
	}
	for _, tt := range tests {
		f := faultOf(tt.err)
		if f.Exit != tt.exit || f.Code != tt.code {
			t.Errorf("%v: exit %d code %s, want %d %s", tt.err, f.Exit, f.Code, tt.exit, tt.code)
		}
	}
}

// TestCodes shows that every code is of one form and says cause and remedy.
func TestCodes(t *testing.T) {
	for code, doc := range codeDocs() {
		if strings.Trim(code, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
			t.Errorf("code %q is not snake_case", code)
		}
		if doc.Cause == "" || doc.Remedy == "" {
			t.Errorf("code %s has no cause or no remedy", code)
		}
	}
}
