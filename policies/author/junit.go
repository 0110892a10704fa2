package author

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"unicode"
)

// The form of a JUnit report, as continuous integration reads it:
// one suite per file, one case per test.
type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Name     string       `xml:"name,attr"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Errors   int          `xml:"errors,attr"`
		Skipped  int          `xml:"skipped,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Name    string        `xml:"name,attr"`
		Class   string        `xml:"classname,attr"`
		File    string        `xml:"file,attr"`
		Line    int           `xml:"line,attr,omitempty"`
		Seconds string        `xml:"time,attr"`
		Failure *junitProblem `xml:"failure"`
		Error   *junitProblem `xml:"error"`
		Skipped *struct{}     `xml:"skipped"`
		Output  string        `xml:"system-out,omitempty"`
	}
	junitProblem struct {
		Message string `xml:"message,attr"` // the first line
		Text    string `xml:",chardata"`
	}
)

// WriteJUnit writes a report as JUnit XML.
func WriteJUnit(w io.Writer, name string, r *Report) error {
	all := junitSuites{Name: name, Tests: len(r.Results), Failures: r.Count(Failed), Errors: r.Count(Errored), Skipped: r.Count(Skipped)}
	for _, one := range r.Results {
		if n := len(all.Suites); n == 0 || all.Suites[n-1].Name != one.File {
			all.Suites = append(all.Suites, junitSuite{Name: one.File})
		}
		suite := &all.Suites[len(all.Suites)-1]
		c := junitCase{Name: printable(one.Name), Class: one.File, File: one.File, Line: one.Line, Seconds: fmt.Sprintf("%.6f", one.Duration.Seconds()), Output: printable(one.Output)}
		first, _, _ := strings.Cut(one.Message, "\n")
		problem := &junitProblem{printable(first), printable(one.Message)}
		suite.Tests++
		switch one.Outcome {
		case Failed:
			c.Failure = problem
			suite.Failures++
		case Errored:
			c.Error = problem
			suite.Errors++
		case Skipped:
			c.Skipped = &struct{}{}
			suite.Skipped++
		}
		suite.Cases = append(suite.Cases, c)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// printable leaves out what a terminal could act on.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
}
