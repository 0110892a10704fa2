package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/writrun/writ/engine"
)

// safe returns text that cannot move a terminal's cursor, change its colours or
// reorder what stands beside it: control characters, marks of direction,
// invisible characters and invalid UTF-8 are written as escapes.
func safe(s string) string {
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
		s = s[size:]
	}
	return b.String()
}

// short returns at most max characters of a safe text, with an ellipsis where
// something was cut.
func short(s string, max int) string {
	s = safe(s)
	if utf8.RuneCountInString(s) <= max {
		return s
	}
	return string([]rune(s)[:max-1]) + "…"
}

// writeJSON writes a document to stdout, indented, with what a terminal could
// act on escaped as JSON has it.
func (a *app) writeJSON(v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("encode output: %w", err)
	}
	_, err := a.stdout.Write(escapeJSON(b.Bytes()))
	return err
}

// escapeJSON writes invisible characters of a JSON text as \u escapes. Outside
// of strings a JSON text has none but spaces and line ends.
func escapeJSON(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for _, r := range string(text) {
		switch {
		case r == '\n' || unicode.IsPrint(r):
			out = utf8.AppendRune(out, r)
		case r <= 0xffff:
			out = fmt.Appendf(out, `\u%04x`, r)
		default:
			high, low := (r-0x10000)>>10+0xd800, (r-0x10000)&0x3ff+0xdc00
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		}
	}
	return out
}

// isTerminal reports whether w is a terminal.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Colours of the terminal.
const (
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
)

// paint colours text on a terminal, unless NO_COLOR is set.
func (a *app) paint(colour, s string) string {
	if colour == "" || !isTerminal(a.stdout) || a.getenv("NO_COLOR") != "" || a.getenv("TERM") == "dumb" {
		return s
	}
	return "\x1b[" + colour + "m" + s + "\x1b[0m"
}

// wordColour is the colour of a state, status, decision or result.
func wordColour(word string) string {
	switch word {
	case engine.ResultPass, engine.DecisionPass, engine.StateSucceeded:
		return green
	case engine.ResultFail, engine.ResultFailed, engine.DecisionFail, "ERROR", engine.StateQuarantined:
		return red
	case "", engine.StateAdmitted:
		return ""
	default:
		return yellow
	}
}

func (a *app) word(s string) string { return a.paint(wordColour(s), safe(s)) }

// table writes rows with aligned columns; the cells are safe already.
func (a *app) table(head []string, rows [][]string) {
	var widths []int
	all := append([][]string{head}, rows...)
	for _, row := range all {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], visible(cell))
		}
	}
	for n, row := range all {
		var line strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-visible(cell)+2)
			if n == 0 && cell != "" {
				cell = a.paint(dim, cell)
			}
			line.WriteString(cell + pad)
		}
		fmt.Fprintln(a.stdout, strings.TrimRight(line.String(), " "))
	}
}

// visible is how many characters of a cell take up room.
func visible(cell string) int {
	n, escape := 0, false
	for _, r := range cell {
		switch {
		case r == '\x1b':
			escape = true
		case escape:
			escape = r != 'm'
		default:
			n++
		}
	}
	return n
}

// pairs writes name and value, one pair per line, values aligned; pairs without
// a value are left out.
func (a *app) pairs(indent string, pairs ...string) {
	width := 0
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			width = max(width, len(pairs[i]))
		}
	}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			fmt.Fprintf(a.stdout, "%s%-*s  %s\n", indent, width, pairs[i], pairs[i+1])
		}
	}
}

func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}
