package flow

import (
	"fmt"
	"slices"
	"strings"
)

// Error is one fault of a manifest, of a plan file or of what they name.
type Error struct {
	Code    string // explained by [Codes]
	File    string
	Line    int    // from 1; 0 if the fault has no place in the file
	Column  int    // in characters, from 1
	Path    string // for instance steps[2].module; "" for the whole file
	Message string
	Hint    string // what to do; "" if the message says it
	Cause   error  // what a module's preparation or a file system said, or nil
}

// Error returns the place, the path and the message, without the hint.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", e.Line, e.Column)
	}
	b.WriteString(": ")
	if e.Path != "" {
		b.WriteString(e.Path + ": ")
	}
	return b.String() + e.Message
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Errors is everything that is wrong, in the order of the file. It is never
// empty when it is returned as an error.
type Errors []*Error

// Error returns the faults one per line, each followed by its hint.
func (e Errors) Error() string {
	lines := make([]string, 0, len(e))
	for _, one := range e {
		line := one.Error()
		if one.Hint != "" {
			line += " (" + one.Hint + ")"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the single faults for errors.As.
func (e Errors) Unwrap() []error {
	out := make([]error, 0, len(e))
	for _, one := range e {
		out = append(out, one)
	}
	return out
}

// Refused reports whether a fault is a module that was refused, rather than a
// manifest that cannot be read.
func (e Errors) Refused() bool {
	return slices.ContainsFunc(e, func(one *Error) bool {
		return slices.Contains(moduleCodes, one.Code)
	})
}

// moduleCodes are the codes of refused modules.
var moduleCodes = []string{CodeModuleRefused, CodeModuleDigest, CodeModuleKind, CodeModuleTooLarge, CodeRuleNotInModule}

// sorted orders by place, then path; faults without a place come last. It keeps
// at most ErrorsMax.
func (e Errors) sorted() Errors {
	slices.SortStableFunc(e, func(a, b *Error) int {
		if (a.Line == 0) != (b.Line == 0) {
			return b.Line - a.Line
		}
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		if a.Column != b.Column {
			return a.Column - b.Column
		}
		return strings.Compare(a.Path, b.Path)
	})
	if len(e) > ErrorsMax {
		more := len(e) - ErrorsMax
		e = append(e[:ErrorsMax:ErrorsMax], &Error{Code: CodeTooManyFaults, File: e[0].File,
			Message: fmt.Sprintf("%d more faults are not listed", more), Hint: "mend those above first"})
	}
	return e
}

// orNil returns e sorted, or nil if it is empty.
func (e Errors) orNil() error {
	if len(e) == 0 {
		return nil
	}
	return e.sorted()
}
