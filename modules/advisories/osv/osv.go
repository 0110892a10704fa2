// Package osv reads vulnerability records in the OSV format and judges by them
// whether a version of a Go module is affected.
//
// It follows the evaluation section of the OSV schema
// (https://ossf.github.io/osv-schema/#evaluation) for the ecosystem Go, whose
// versions are semantic versions without the leading "v". It never guesses: a
// version or a range it cannot order yields [Undecided].
package osv

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/writrun/writ/guest-abi/abi"
)

// Ecosystem is the name under which records list Go modules.
const Ecosystem = "Go"

// Stdlib is the module path under which records list the standard library.
const Stdlib = "stdlib"

// Record is one vulnerability record, as far as judging needs it.
type Record struct {
	ID        string     `json:"id"`
	Modified  string     `json:"modified"`
	Withdrawn string     `json:"withdrawn"` // a time; empty if the record stands
	Summary   string     `json:"summary"`
	Aliases   []string   `json:"aliases"`
	Affected  []Affected `json:"affected"`
}

// Affected says which versions of one package a record is about.
type Affected struct {
	Package  Package  `json:"package"`
	Ranges   []Range  `json:"ranges"`
	Versions []string `json:"versions"`
}

// Package names what is affected.
type Package struct {
	Ecosystem string `json:"ecosystem"`
	Name      string `json:"name"`
}

// Range is a list of the events between which versions are affected.
type Range struct {
	Type   string  `json:"type"`
	Events []Event `json:"events"`
}

// Event is one point of a range; exactly one field is set.
type Event struct {
	Introduced   string `json:"introduced"`
	Fixed        string `json:"fixed"`
	LastAffected string `json:"last_affected"`
	Limit        string `json:"limit"`
}

// Verdict is what a record says of one version of one module.
type Verdict string

// The verdicts.
const (
	IsAffected  Verdict = "affected"
	NotAffected Verdict = "not_affected"
	Undecided   Verdict = "undecided"
)

// Parse reads a record. Every version of every Go range is checked, so that a
// record which parses can be judged.
func Parse(data []byte) (Record, error) {
	if err := abi.CheckJSON(data, abi.MessageDepthMax); err != nil {
		return Record{}, fmt.Errorf("not an OSV record: %w", err)
	}
	var r Record
	if err := json.Unmarshal(data, &r); err != nil {
		return Record{}, fmt.Errorf("not an OSV record: %w", err)
	}
	if r.ID == "" {
		return Record{}, errors.New("not an OSV record: id is missing")
	}
	for i := range r.Affected {
		a := &r.Affected[i]
		if a.Package.Ecosystem != Ecosystem {
			continue
		}
		if err := a.check(); err != nil {
			return Record{}, fmt.Errorf("%.80q: package %.200q: %w", r.ID, a.Package.Name, err)
		}
	}
	return r, nil
}

func (a *Affected) check() error {
	if a.Package.Name == "" {
		return errors.New("the name is missing")
	}
	for _, r := range a.Ranges {
		if !r.ordered() {
			continue
		}
		if err := r.check(); err != nil {
			return err
		}
	}
	return nil
}

// ordered reports whether the range is over versions. A GIT range is over commits.
func (r Range) ordered() bool { return r.Type == "SEMVER" || r.Type == "ECOSYSTEM" }

func (r Range) check() error {
	if !slices.ContainsFunc(r.Events, func(e Event) bool { return e.Introduced != "" }) {
		return errors.New("a range has no introduced event")
	}
	for _, e := range r.Events {
		set := 0
		for _, v := range []string{e.Introduced, e.Fixed, e.LastAffected, e.Limit} {
			if v == "" {
				continue
			}
			set++
			whole := v == "0" && v == e.Introduced || v == "*" && v == e.Limit
			if !whole && !semver.IsValid("v"+v) {
				return fmt.Errorf("%.80q is not a semantic version", v)
			}
		}
		if set != 1 {
			return fmt.Errorf("an event names %d points instead of one", set)
		}
	}
	return nil
}

// Modules returns the Go modules the record is about, each once, in order.
func (r Record) Modules() []string {
	var out []string
	for _, a := range r.Affected {
		if a.Package.Ecosystem == Ecosystem && !slices.Contains(out, a.Package.Name) {
			out = append(out, a.Package.Name)
		}
	}
	return out
}

// Judge says whether a version of a module is affected. The version is written
// as go.mod has it, with the leading "v"; see [Canonical]. A record that is not
// about the module does not affect it.
func (r Record) Judge(module, version string) Verdict {
	if !semver.IsValid(version) {
		return Undecided
	}
	verdict := NotAffected
	for _, a := range r.Affected {
		if a.Package.Ecosystem != Ecosystem || a.Package.Name != module {
			continue
		}
		switch a.judge(version) {
		case IsAffected:
			return IsAffected
		case Undecided:
			verdict = Undecided
		}
	}
	return verdict
}

func (a Affected) judge(version string) Verdict {
	for _, v := range a.Versions {
		if strings.TrimPrefix(v, "v") == strings.TrimPrefix(version, "v") {
			return IsAffected
		}
	}
	if len(a.Ranges) == 0 {
		// Neither a range nor a list leaves every version affected, as the Go
		// vulnerability tools read it; a list without ranges is complete.
		if len(a.Versions) == 0 {
			return IsAffected
		}
		return NotAffected
	}
	verdict := NotAffected
	for _, r := range a.Ranges {
		switch {
		case !r.ordered() && len(a.Versions) == 0:
			verdict = Undecided
		case r.ordered() && r.contains(version):
			return IsAffected
		}
	}
	return verdict
}

// contains walks the events in order of their versions, as the schema's
// evaluation algorithm does.
func (r Range) contains(version string) bool {
	if !r.beforeLimits(version) {
		return false
	}
	events := slices.Clone(r.Events)
	slices.SortStableFunc(events, func(a, b Event) int { return compare(a.point(), b.point()) })
	affected := false
	for _, e := range events {
		switch {
		case e.Introduced != "":
			affected = affected || e.Introduced == "0" || compare(e.Introduced, version) <= 0
		case e.Fixed != "":
			affected = affected && compare(e.Fixed, version) > 0
		case e.LastAffected != "":
			affected = affected && compare(e.LastAffected, version) >= 0
		}
	}
	return affected
}

func (r Range) beforeLimits(version string) bool {
	limited := false
	for _, e := range r.Events {
		if e.Limit == "*" || e.Limit != "" && compare(e.Limit, version) > 0 {
			return true
		}
		limited = limited || e.Limit != ""
	}
	return !limited
}

func (e Event) point() string {
	for _, v := range []string{e.Introduced, e.Fixed, e.LastAffected} {
		if v != "" {
			return v
		}
	}
	return e.Limit
}

// compare orders two versions, with or without "v". An introduced "0" is before
// every version, pre-releases of 0.0.0 included; "*" is after every version.
func compare(a, b string) int {
	rank := func(v string) int {
		switch v {
		case "0":
			return -1
		case "*":
			return 1
		}
		return 0
	}
	if ra, rb := rank(a), rank(b); ra != 0 || rb != 0 {
		return ra - rb
	}
	return semver.Compare("v"+strings.TrimPrefix(a, "v"), "v"+strings.TrimPrefix(b, "v"))
}
