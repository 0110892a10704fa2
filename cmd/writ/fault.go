package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/writrun/writ/engine"
	"github.com/writrun/writ/engine/evidence"
	"github.com/writrun/writ/engine/flow"
	"github.com/writrun/writ/policies"
)

// Exit codes of the tool; those of a run's result are the engine's.
const (
	exitDone     = 0
	exitFailed   = 1
	exitUsage    = 2
	exitRefused  = 3
	exitDiverged = 4
	exitDamaged  = 5
	exitBusy     = 6
)

// fault is an error as the tool tells it.
type fault struct {
	Code    string       `json:"code"`
	Message string       `json:"message"`
	Hints   []string     `json:"hints"`
	Exit    int          `json:"exit"`
	Faults  []inputFault `json:"faults"` // each thing that is wrong with an input file
	cause   error
}

// inputFault is one thing wrong with a manifest, a plan or what they name.
type inputFault struct {
	Code    string `json:"code"`
	File    string `json:"file"`
	Line    int    `json:"line"`   // from 1; 0 where there is no place in the file
	Column  int    `json:"column"` // in characters, from 1
	Path    string `json:"path"`
	Message string `json:"message"`
	Hint    string `json:"hint"`
}

// errorDocument is what stdout gets for an error with --output json.
type errorDocument struct {
	Error *fault `json:"error"`
}

func (f *fault) Error() string { return f.Message }

func (f *fault) Unwrap() error { return f.cause }

func usagef(format string, args ...any) *fault {
	return &fault{Code: "usage", Message: fmt.Sprintf(format, args...), Exit: exitUsage}
}

// usageFault is what is said of an error before a command began.
func usageFault(err error) *fault {
	var f *fault
	if errors.As(err, &f) {
		return f
	}
	return &fault{Code: "usage", Message: err.Error(), Hints: []string{"writ --help lists commands and flags"}, Exit: exitUsage, cause: err}
}

// faultOf turns any error into what the tool says of it.
func faultOf(err error) *fault {
	var (
		f       *fault
		inputs  flow.Errors
		refused *engine.Refused
		problem *evidence.Problem
		policy  *policies.Refusal
	)
	switch {
	case errors.As(err, &f):
		return f
	case errors.Is(err, context.Canceled):
		return &fault{Code: "interrupted", Message: "interrupted; nothing was begun that has to be taken up again", Exit: engine.ExitInterrupted, cause: err}
	case errors.As(err, &inputs):
		return inputsFault(inputs)
	case errors.As(err, &refused):
		return &fault{Code: refused.Code, Message: refused.Action + " refused: " + strings.Join(append([]string{refused.Code}, refused.Reasons...), ": "),
			Hints: append(slices.Clone(refused.Next), explainHint(refused.Code)...), Exit: exitRefused, cause: err}
	case errors.As(err, &problem):
		return problemFault(problem, err)
	case errors.As(err, &policy):
		return &fault{Code: policy.Code, Message: policy.Error(), Hints: explainHint(policy.Code), Exit: exitUsage, cause: err}
	}
	return &fault{Code: "failed", Message: err.Error(), Exit: exitFailed, cause: err}
}

func inputsFault(inputs flow.Errors) *fault {
	f := &fault{Code: inputs[0].Code, Exit: exitUsage, cause: inputs}
	if inputs.Refused() {
		f.Exit = exitRefused
	}
	for _, one := range inputs {
		f.Faults = append(f.Faults, inputFault{one.Code, one.File, one.Line, one.Column, one.Path, one.Message, one.Hint})
	}
	f.Message = inputs[0].Error()
	if n := len(inputs); n > 1 {
		f.Message = fmt.Sprintf("%s: %d faults", inputs[0].File, n)
	}
	return f
}

// usageCodes are problems of what was asked for, refusalCodes of where; every
// other problem of the store is damage.
var (
	usageCodes   = []string{evidence.CodeNotAStore, evidence.CodeRunUnknown, evidence.CodeRunExists, evidence.CodeRunNotSealed, evidence.CodeTenantUnknown, evidence.CodeRequestInvalid, evidence.CodeEventUnknown, evidence.CodeKeysInStore}
	refusalCodes = []string{evidence.CodeForeignCopy, evidence.CodeFormatUnknown, evidence.CodeReadOnly, evidence.CodeNetworkFS, evidence.CodeKeyMissing, evidence.CodeKeyExposed, evidence.CodeDatasetChanged, evidence.CodeDatasetState, evidence.CodeRequestExists, evidence.CodeJournalClosed}
	systemCodes  = []string{evidence.CodeFull, evidence.CodeBroken, evidence.CodeContentTooLarge}
)

func problemFault(p *evidence.Problem, err error) *fault {
	f := &fault{Code: p.Code, Message: err.Error(), Exit: exitDamaged, cause: err}
	switch {
	case p.Code == evidence.CodeLocked:
		f.Exit = exitBusy
		f.Hints = append(f.Hints, "wait for it with --wait 30s")
	case slices.Contains(usageCodes, p.Code):
		f.Exit = exitUsage
	case slices.Contains(refusalCodes, p.Code):
		f.Exit = exitRefused
	case slices.Contains(systemCodes, p.Code):
		f.Exit = exitFailed
	}
	switch p.Code {
	case evidence.CodeNotAStore:
		f.Hints = append(f.Hints, "name a store with --store or WRIT_STORE, or make one with: writ init --bare")
	case evidence.CodeRunUnknown:
		f.Hints = append(f.Hints, "writ list shows the runs of this tenant")
	case evidence.CodeTenantUnknown:
		f.Hints = append(f.Hints, "name another tenant with --tenant or WRIT_TENANT")
	}
	f.Hints = append(f.Hints, explainHint(p.Code)...)
	return f
}

// explainHint points to a code's page, if it has one.
func explainHint(code string) []string {
	if _, ok := codeDocs()[code]; !ok {
		return nil
	}
	return []string{"more: writ explain " + code}
}

// report tells a fault: to people on stderr, to programs on stdout.
func (a *app) report(f *fault) {
	if a.json() {
		if f.Hints == nil {
			f.Hints = []string{}
		}
		if f.Faults == nil {
			f.Faults = []inputFault{}
		}
		// What cannot be written cannot be reported either.
		_ = a.writeJSON(errorDocument{f})
	}
	if len(f.Faults) == 0 {
		for line := range strings.SplitSeq(f.Message, "\n") {
			fmt.Fprintf(a.stderr, "writ: error: %s\n", safe(line))
		}
	}
	var hinted []string
	for _, one := range f.Faults {
		e := flow.Error{File: one.File, Line: one.Line, Column: one.Column, Path: one.Path, Message: one.Message}
		for line := range strings.SplitSeq(e.Error(), "\n") {
			fmt.Fprintf(a.stderr, "writ: error: %s\n", safe(line))
		}
		if one.Hint != "" && !slices.Contains(hinted, one.Hint) {
			hinted = append(hinted, one.Hint)
			fmt.Fprintf(a.stderr, "writ: hint: %s\n", safe(one.Hint))
		}
	}
	for _, hint := range f.Hints {
		fmt.Fprintf(a.stderr, "writ: hint: %s\n", safe(hint))
	}
}
