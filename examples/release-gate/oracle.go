// Package releasegate has what the tests of the release-gate example check its
// results against: the same question answered in another way.
package releasegate

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"golang.org/x/mod/semver"
)

// Affected says for each pair of a component's package URL and a record's id
// whether the component is affected. It has every pair whose record is about the
// component's module and was not withdrawn.
//
// It shares no code with the executors and does not walk events. It lays all
// versions a record names, and the component's own, on one line, paints what
// each introduced event reaches up to the next fix, and looks at the component's
// place. Records whose ranges are not of type SEMVER are refused.
func Affected(sbom []byte, records fs.FS) (map[[2]string]bool, error) {
	components, err := readComponents(sbom)
	if err != nil {
		return nil, err
	}
	files, err := fs.Glob(records, "*.json")
	if err != nil {
		return nil, err
	}
	out := map[[2]string]bool{}
	for _, name := range files {
		data, err := fs.ReadFile(records, name)
		if err != nil {
			return nil, err
		}
		var record map[string]any
		if err := json.Unmarshal(data, &record); err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		if record["withdrawn"] != nil {
			continue
		}
		for _, entry := range list(record["affected"]) {
			if err := judgeEntry(out, components, entry, fmt.Sprint(record["id"])); err != nil {
				return nil, fmt.Errorf("read %s: %w", name, err)
			}
		}
	}
	return out, nil
}

// place is a component as records name it.
type place struct{ purl, module, version string }

func readComponents(sbom []byte) ([]place, error) {
	var file map[string]any
	if err := json.Unmarshal(sbom, &file); err != nil {
		return nil, fmt.Errorf("read bill of materials: %w", err)
	}
	components := list(file["components"])
	if metadata, ok := file["metadata"].(map[string]any); ok && metadata["component"] != nil {
		components = append(components, metadata["component"].(map[string]any))
	}
	var out []place
	for _, c := range components {
		p := place{fmt.Sprint(c["purl"]), fmt.Sprint(c["name"]), fmt.Sprint(c["version"])}
		if p.module == "std" {
			p.module, p.version = "stdlib", "v"+strings.TrimPrefix(p.version, "go")
		}
		if !strings.HasPrefix(p.purl, "pkg:golang/") || !semver.IsValid(p.version) {
			continue
		}
		if base, _, _ := strings.Cut(path.Base(p.purl), "?"); !strings.HasSuffix(base, fmt.Sprint(c["version"])) {
			return nil, fmt.Errorf("component %s does not end in its version %s", p.purl, p.version)
		}
		out = append(out, p)
	}
	return out, nil
}

func judgeEntry(out map[[2]string]bool, components []place, entry map[string]any, id string) error {
	pkg, _ := entry["package"].(map[string]any)
	if pkg["ecosystem"] != "Go" {
		return nil
	}
	for _, c := range components {
		if c.module != pkg["name"] {
			continue
		}
		for _, r := range list(entry["ranges"]) {
			if r["type"] != "SEMVER" {
				return fmt.Errorf("range of type %v", r["type"])
			}
			key := [2]string{c.purl, id}
			out[key] = painted(list(r["events"]), c.version) || out[key]
		}
	}
	return nil
}

// painted reports whether version lies where the events paint the line.
func painted(events []map[string]any, version string) bool {
	version = semver.Canonical(version)
	line := []string{version}
	marks := map[string][]string{"introduced": nil, "fixed": nil}
	for _, e := range events {
		for kind, v := range e {
			at := semver.Canonical("v" + fmt.Sprint(v))
			if v == "0" {
				at = "v0.0.0-0"
			}
			line = append(line, at)
			marks[kind] = append(marks[kind], at)
		}
	}
	slices.SortFunc(line, semver.Compare)
	line = slices.CompactFunc(line, func(a, b string) bool { return semver.Compare(a, b) == 0 })
	for _, start := range marks["introduced"] {
		for _, v := range line {
			if semver.Compare(v, start) < 0 {
				continue
			}
			if slices.ContainsFunc(marks["fixed"], func(f string) bool { return semver.Compare(f, v) == 0 }) {
				break
			}
			if semver.Compare(v, version) == 0 {
				return true
			}
		}
	}
	return false
}

func list(v any) []map[string]any {
	var out []map[string]any
	items, _ := v.([]any)
	for _, item := range items {
		if m, ok := item.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}
