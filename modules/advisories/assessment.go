package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/guest-abi/go/guest"
	"github.com/writrun/writ/modules/advisories/osv"
	"github.com/writrun/writ/modules/inventory/sbom"
)

// recordBytesMax is the most bytes one record may have.
const recordBytesMax = 4 << 20

// subject is a component whose version has a place in the order of versions.
type subject struct {
	component sbom.Component
	version   string // as records order it
}

// finding is one component beside one record.
type finding struct {
	PURL     string   `json:"purl"`
	Advisory string   `json:"advisory"`
	Aliases  []string `json:"aliases"`
	Summary  string   `json:"summary"`
}

// unchecked is a component no record could be held against.
type unchecked struct {
	PURL   string `json:"purl"`
	Reason string `json:"reason"`
}

// counts are the sizes of an assessment.
type counts struct {
	Records     int `json:"records"`      // records read
	Checked     int `json:"checked"`      // components held against the records
	NotChecked  int `json:"not_checked"`  // components that could not be
	Affected    int `json:"affected"`     // pairs of component and record
	NotAffected int `json:"not_affected"` // pairs
	Undecided   int `json:"undecided"`    // pairs
	Withdrawn   int `json:"withdrawn"`    // pairs whose record was withdrawn
}

// summary is the step's output.
type summary struct {
	Counts     counts      `json:"counts"`
	Affected   []finding   `json:"affected"`
	Undecided  []finding   `json:"undecided"`
	Withdrawn  []finding   `json:"withdrawn"`
	NotChecked []unchecked `json:"not_checked"`
}

// assessment collects claims while records are read one by one.
type assessment struct {
	subjects map[string][]subject // by module path as records have it
	files    map[string]string    // file of each record by its id
	summary  summary
	claims   []abi.Claim
	evidence []abi.Evidence
}

func newAssessment(inv sbom.Inventory) *assessment {
	a := &assessment{subjects: map[string][]subject{}, files: map[string]string{}, summary: summary{
		Affected: []finding{}, Undecided: []finding{}, Withdrawn: []finding{}, NotChecked: []unchecked{},
	}}
	if inv.Main != nil {
		a.add(*inv.Main)
	}
	for _, c := range inv.Components {
		a.add(c)
	}
	for _, name := range inv.Unidentified {
		a.skip(name, "it has no package URL")
	}
	return a
}

func (a *assessment) add(c sbom.Component) {
	if c.Type != "golang" {
		a.skip(c.PURL, "it is no Go module")
		return
	}
	path, version, ok := osv.Canonical(c.Name, c.Version)
	if !ok {
		a.skip(c.PURL, "its version has no place in the order of versions")
		return
	}
	a.subjects[path] = append(a.subjects[path], subject{c, version})
	a.summary.Counts.Checked++
}

func (a *assessment) skip(name, reason string) {
	a.summary.NotChecked = append(a.summary.NotChecked, unchecked{name, reason})
	a.summary.Counts.NotChecked++
}

// readAll reads every .json file of the folder as a record. A file that is no
// record fails the step: passing over it could hide an advisory.
func (a *assessment) readAll(host guest.Host, folder abi.ID, listing abi.DatasetListing) error {
	var buffer []byte
	for _, f := range listing.Files {
		if !strings.HasSuffix(f.Path, ".json") {
			continue
		}
		if f.Size < 0 || f.Size > recordBytesMax {
			return guest.Fail("bad_record", "%s/%s: %d bytes are not within 0 and %d", folder, f.Path, f.Size, recordBytesMax)
		}
		path := string(folder) + "/" + f.Path
		buffer = slices.Grow(buffer[:0], int(f.Size))[:f.Size]
		if err := readFull(host, path, buffer); err != nil {
			return err
		}
		r, err := osv.Parse(buffer)
		if err != nil {
			return guest.Fail("bad_record", "%s: %v", path, err)
		}
		if other, twice := a.files[r.ID]; twice {
			return guest.Fail("bad_record", "%s: the id %q is that of %s too", path, r.ID, other)
		}
		a.files[r.ID] = path
		a.summary.Counts.Records++
		if err := a.hold(r, path, f.Digest); err != nil {
			return err
		}
	}
	if a.summary.Counts.Records == 0 {
		return guest.Fail("no_records", "dataset %q has no .json files; nothing could be checked", folder)
	}
	return nil
}

// readFull fills p with the start of a dataset file. The listing has told its
// size, so that one host call reads a record.
func readFull(host guest.Host, path string, p []byte) error {
	for at := 0; at < len(p); {
		n, err := host.DatasetRead(path, int64(at), p[at:])
		if err != nil {
			return fmt.Errorf("read %s: %w", path, err)
		}
		if n == 0 {
			return guest.Fail("bad_record", "%s: ends at byte %d, its listing says %d", path, at, len(p))
		}
		at += n
	}
	return nil
}

// hold judges every component the record is about.
func (a *assessment) hold(r osv.Record, path string, digest abi.Digest) error {
	known := false
	for _, module := range r.Modules() {
		for _, s := range a.subjects[module] {
			claimed, err := a.judge(r, module, s)
			if err != nil {
				return err
			}
			known = known || claimed
		}
	}
	if !known {
		return nil
	}
	note, err := abi.EncodeMessage(struct {
		Summary  string   `json:"summary"`
		Aliases  []string `json:"aliases"`
		Modified string   `json:"modified"`
	}{r.Summary, r.Aliases, r.Modified})
	if err != nil {
		return err
	}
	a.evidence = append(a.evidence, abi.Evidence{EvidenceID: evidenceID(r.ID), Kind: "dataset", Path: path, Digest: digest, Note: note})
	return nil
}

func evidenceID(record string) string { return "advisory:" + record }

// judge makes the claim of one pair and reports whether it made one.
func (a *assessment) judge(r osv.Record, module string, s subject) (claimed bool, err error) {
	pair := finding{s.component.PURL, r.ID, r.Aliases, r.Summary}
	count := &a.summary.Counts
	if r.Withdrawn != "" {
		count.Withdrawn++
		a.summary.Withdrawn = append(a.summary.Withdrawn, pair)
		return false, nil
	}
	verdict := r.Judge(module, s.version)
	words := "is not affected by"
	switch verdict {
	case osv.Undecided:
		count.Undecided++
		a.summary.Undecided = append(a.summary.Undecided, pair)
		return false, nil
	case osv.IsAffected:
		words = "is affected by"
		count.Affected++
		a.summary.Affected = append(a.summary.Affected, pair)
	case osv.NotAffected:
		count.NotAffected++
	}
	value, err := json.Marshal(verdict == osv.IsAffected)
	if err != nil {
		return false, err
	}
	certain := 1.0
	a.claims = append(a.claims, abi.Claim{
		ClaimID:    r.ID + ":" + s.component.PURL,
		Statement:  s.component.Name + " " + s.component.Version + " " + words + " " + r.ID,
		Subject:    s.component.PURL,
		Predicate:  "affected_by:" + r.ID,
		Value:      value,
		Confidence: &certain,
		Evidence:   []string{evidenceID(r.ID), sbom.EvidenceID(s.component.PURL)},
	})
	return true, nil
}

// output returns the claims in the order of components and records.
func (a *assessment) output() (abi.StepOutput, error) {
	slices.SortStableFunc(a.claims, func(x, y abi.Claim) int {
		if c := strings.Compare(x.Subject, y.Subject); c != 0 {
			return c
		}
		return strings.Compare(x.Predicate, y.Predicate)
	})
	output, err := abi.EncodeMessage(a.summary)
	return abi.StepOutput{Claims: a.claims, Evidence: a.evidence, Output: output}, err
}
