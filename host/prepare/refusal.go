package prepare

import (
	"fmt"
	"strings"
)

// Fault is one reason why a module is refused.
type Fault struct {
	Code   string `json:"code"`            // a key of [Codes]
	Offset int    `json:"offset"`          // byte of the original module
	Where  string `json:"where,omitempty"` // for instance "import 3" or "function 12"
	Detail string `json:"detail"`
}

// String returns the fault as one line.
func (f Fault) String() string {
	if f.Where == "" {
		return fmt.Sprintf("%s at byte %d: %s", f.Code, f.Offset, f.Detail)
	}
	return fmt.Sprintf("%s at byte %d (%s): %s", f.Code, f.Offset, f.Where, f.Detail)
}

// Refusal is the error of [Prepare] and [Inspect]: every fault found, in the
// order of the module, at most 100. A damaged structure ends the search.
type Refusal struct {
	Faults []Fault `json:"faults"`
}

// Error lists all faults, one a line if there are several.
func (r *Refusal) Error() string {
	if len(r.Faults) == 1 {
		return "prepare module: " + r.Faults[0].String()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "prepare module: %d faults:", len(r.Faults))
	for _, f := range r.Faults {
		b.WriteString("\n  ")
		b.WriteString(f.String())
	}
	return b.String()
}

// faultList collects faults up to faultsMax.
type faultList struct{ faults []Fault }

func (l *faultList) full() bool { return len(l.faults) >= faultsMax }

func (l *faultList) add(offset int, code, where, format string, args ...any) {
	l.put(Fault{Code: code, Offset: offset, Where: where, Detail: fmt.Sprintf(format, args...)})
}

func (l *faultList) put(f Fault) {
	switch {
	case len(l.faults) < faultsMax-1:
		l.faults = append(l.faults, f)
	case len(l.faults) == faultsMax-1:
		l.faults = append(l.faults, Fault{Code: codeMoreFaults, Offset: f.Offset,
			Detail: fmt.Sprintf("%d faults are listed; the rest is left out", faultsMax-1)})
	}
}

func (l *faultList) refusal() error {
	if len(l.faults) == 0 {
		return nil
	}
	return &Refusal{Faults: l.faults}
}
