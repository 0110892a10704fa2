package author

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/open-policy-agent/opa/v1/util"

	"github.com/writrun/writ/policies"
)

// CasesMax is how many cases one file may have.
const CasesMax = 10_000

// Case is one input and the answer that is wanted.
type Case struct {
	Note      string          `json:"note"`
	Decision  string          `json:"decision"`   // may be left out where the policy has one
	Input     json.RawMessage `json:"input"`      // the document the decision is asked over
	Want      json.RawMessage `json:"want"`       // the whole answer, before the floor
	WantError string          `json:"want_error"` // part of the refusal that is wanted instead
	Now       *int64          `json:"now"`        // nanoseconds since 1970; else the input's now, else [TestTime]
	Seed      policies.Seed   `json:"seed"`

	file     string
	decision *Decision
}

// caseFile is the form of a file of cases; one that holds a single case may be
// the case itself.
type caseFile struct {
	Cases []Case `json:"cases"`
}

// readCases reads every case of the folder.
func (p *Policy) readCases() Findings {
	var found Findings
	for _, s := range p.Folder.Cases {
		read, err := readCases(s)
		if err == nil {
			err = p.settleCases(read)
		}
		if err != nil {
			found = append(found, Finding{Code: policies.CodeInvalid, File: s.Name, Message: fmt.Sprintf("read the cases: %v", err),
				Hint: "a case is {note, input, want}, or want_error in place of want; a file is one case or {cases: [...]}"})
			continue
		}
		p.cases = append(p.cases, read...)
	}
	return found
}

func readCases(s Source) ([]Case, error) {
	var text json.RawMessage
	if err := util.Unmarshal(s.Text, &text); err != nil {
		return nil, err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil || fields == nil {
		return nil, errors.New("it is no mapping")
	}
	var f caseFile
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	var err error
	if _, many := fields["cases"]; many {
		err = d.Decode(&f)
	} else {
		f.Cases = make([]Case, 1)
		err = d.Decode(&f.Cases[0])
	}
	if err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	if len(f.Cases) == 0 || len(f.Cases) > CasesMax {
		return nil, fmt.Errorf("there are %d cases; a file has 1 to %d", len(f.Cases), CasesMax)
	}
	for i := range f.Cases {
		f.Cases[i].file = s.Name
	}
	return f.Cases, nil
}

// settleCases checks cases and finds the decision each asks.
func (p *Policy) settleCases(cases []Case) error {
	notes := map[string]bool{}
	for i := range cases {
		c := &cases[i]
		what := fmt.Sprintf("case %d", i+1)
		switch {
		case c.Note == "":
			return fmt.Errorf("%s has no note", what)
		case notes[c.Note]:
			return fmt.Errorf("%s: the note %q was there before", what, c.Note)
		case c.Input == nil:
			return fmt.Errorf("%s (%s) has no input", what, c.Note)
		case (c.Want == nil) == (c.WantError == ""):
			return fmt.Errorf("%s (%s) needs one of want and want_error", what, c.Note)
		}
		notes[c.Note] = true
		d, err := p.Decision(c.Decision)
		if err != nil {
			return fmt.Errorf("%s (%s): %w", what, c.Note, err)
		}
		c.decision = d
		for _, doc := range []*json.RawMessage{&c.Input, &c.Want} {
			if *doc == nil {
				continue
			}
			if *doc, err = policies.Canonical(*doc); err != nil {
				return fmt.Errorf("%s (%s): %w", what, c.Note, err)
			}
		}
	}
	return nil
}

// Decision finds a decision by name; "" is the only one there is.
func (p *Policy) Decision(name string) (*Decision, error) {
	var names []string
	for i := range p.Decisions {
		d := &p.Decisions[i]
		if d.Name == name || d.Entrypoint == name || name == "" && len(p.Decisions) == 1 {
			return d, nil
		}
		names = append(names, d.Name)
	}
	if name == "" {
		return nil, fmt.Errorf("the policy answers %s: name one as decision", strings.Join(names, ", "))
	}
	return nil, fmt.Errorf("the policy does not answer %q but %s", name, strings.Join(names, ", "))
}
