package abi

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// MetadataError lists everything that is wrong with a module's metadata.
type MetadataError struct{ Faults []string }

// Error returns the faults, separated by semicolons.
func (e *MetadataError) Error() string { return "module metadata: " + strings.Join(e.Faults, "; ") }

func (e *MetadataError) add(format string, args ...any) {
	e.Faults = append(e.Faults, fmt.Sprintf(format, args...))
}

// ParseMetadata reads the content of a module's [MetadataSection]. It refuses
// unknown fields. The error is a [*MetadataError]; arrays of the result are
// never nil.
func ParseMetadata(data []byte) (Metadata, error) {
	var m Metadata
	faults := &MetadataError{}
	if len(data) == 0 {
		faults.add("there is none: the module needs a custom section %q (guest-abi/README.md, Metadata)", MetadataSection)
		return Metadata{}, faults
	}
	if len(data) > MetadataBytesMax {
		faults.add("%d bytes are more than %d", len(data), MetadataBytesMax)
		return Metadata{}, faults
	}
	if err := decode(data, MetadataDepthMax, &m); err != nil {
		faults.add("%v", err)
		return Metadata{}, faults
	}
	m.check(faults)
	if len(faults.Faults) > 0 {
		return Metadata{}, faults
	}
	m.Wants = orEmpty(m.Wants)
	return m, nil
}

// capabilities says what a module must want to import a function of writ_v1.
// Functions of WASI need no mention: language runtimes import them unasked.
var capabilities = map[string]string{
	"clock_now": "clock", "random_fill": "random", "log": "log", "effect": "effect:DRIVER", "response_read": "effect:DRIVER",
	"dataset_size": "datasets", "dataset_read": "datasets",
	"artifact_put": "artifacts", "artifact_size": "artifacts", "artifact_read": "artifacts",
}

// CheckImports compares what the module wants with the functions of
// [ModuleWrit] it imports, given by name. It wants less than it imports if the
// error, a [*MetadataError], is not nil.
func (m Metadata) CheckImports(names []string) error {
	wanted := map[string]bool{}
	for _, w := range m.Wants {
		wanted[w.Capability] = true
		if strings.HasPrefix(w.Capability, "effect:") {
			wanted["effect:DRIVER"] = true
		}
	}
	faults := &MetadataError{}
	for _, name := range names {
		if c, ok := capabilities[name]; ok && !wanted[c] {
			faults.add("the module imports %s and does not want %s", name, c)
		}
	}
	if len(faults.Faults) > 0 {
		return faults
	}
	return nil
}

// decode reads data of v's shape into v.
func decode(data []byte, depthMax int, v any) error {
	if err := checkShape(data, depthMax, shapeOf(reflect.TypeOf(v))); err != nil {
		return err
	}
	return json.Unmarshal(data, v)
}

func (m *Metadata) check(faults *MetadataError) {
	if m.ABI != Version {
		faults.add("abi is %d; this is version %d", m.ABI, Version)
	}
	if m.Kind != Executor && m.Kind != Rule {
		faults.add("kind is %.40q; it is executor or rule", m.Kind)
	}
	if _, err := ParseID(m.Name); err != nil {
		faults.add("name: %v", err)
	}
	if !isSemver(m.Version) {
		faults.add("version %.80q is not a semantic version such as 1.2.3", m.Version)
	}
	if !isSPDX(m.License) {
		faults.add("license %.80q is not an SPDX expression", m.License)
	}
	for _, f := range []struct{ name, value string }{{"description", m.Description}, {"source", m.Source}} {
		if strings.TrimSpace(f.value) == "" {
			faults.add("%s is empty", f.name)
		}
	}
	checkWants(m.Wants, faults)
	checkRules(m, faults)
	if m.ConfigSchema != nil {
		checkSchemaRefs(m.ConfigSchema, faults)
	}
}

func checkWants(wants []Want, faults *MetadataError) {
	seen := map[string]bool{}
	for i, w := range wants {
		driver, isEffect := strings.CutPrefix(w.Capability, "effect:")
		switch {
		case isEffect:
			if err := checkID(driver); err != nil {
				faults.add("wants[%d]: driver: %v", i, err)
			}
		case !slices.Contains([]string{"clock", "random", "datasets", "artifacts", "log"}, w.Capability):
			faults.add("wants[%d]: unknown capability %.80q", i, w.Capability)
		}
		if seen[w.Capability] {
			faults.add("wants[%d]: %.80q is named twice", i, w.Capability)
		}
		seen[w.Capability] = true
		if strings.TrimSpace(w.Reason) == "" {
			faults.add("wants[%d]: %.80q has no reason", i, w.Capability)
		}
	}
}

func checkRules(m *Metadata, faults *MetadataError) {
	switch {
	case m.Kind == Rule && len(m.Rules) == 0:
		faults.add("a rule module names no rules")
	case m.Kind == Executor && len(m.Rules) > 0:
		faults.add("an executor module names rules")
	}
	seen := map[ID]bool{}
	for i, r := range m.Rules {
		if _, err := ParseID(string(r.RuleID)); err != nil {
			faults.add("rules[%d]: rule_id: %v", i, err)
		}
		if seen[r.RuleID] {
			faults.add("rules[%d]: rule_id %.80q appears twice", i, r.RuleID)
		}
		seen[r.RuleID] = true
		for _, f := range []struct {
			name, value string
			allowed     []string
		}{
			{"severity", r.Severity, []string{"info", "warning", "error"}},
			{"randomness", r.Randomness, []string{"deterministic", "sampled", "statistical"}},
			{"target", r.Target, []string{"step", "flow", "any"}},
		} {
			if !slices.Contains(f.allowed, f.value) {
				faults.add("rules[%d]: %s is %.40q; it is one of %s", i, f.name, f.value, strings.Join(f.allowed, ", "))
			}
		}
	}
}

// checkSchemaRefs refuses a schema that could make its reader fetch something.
func checkSchemaRefs(schema json.RawMessage, faults *MetadataError) {
	var root any
	if err := json.Unmarshal(schema, &root); err != nil {
		faults.add("config_schema: %v", err)
		return
	}
	if _, ok := root.(map[string]any); !ok {
		faults.add("config_schema is not an object")
	}
	refs := []string{}
	collectRefs(root, &refs)
	slices.Sort(refs)
	for _, ref := range refs {
		if !strings.HasPrefix(ref, "#") {
			faults.add("config_schema: reference %.80q leads outside; write it as #/$defs/NAME", ref)
		}
	}
}

// collectRefs recurses at most MetadataDepthMax deep: the JSON was checked.
func collectRefs(v any, refs *[]string) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			collectRefs(e, refs)
		}
	case map[string]any:
		for k, e := range v {
			if ref, ok := e.(string); ok && (k == "$ref" || k == "$dynamicRef" || k == "$id") {
				*refs = append(*refs, ref)
			}
			collectRefs(e, refs)
		}
	}
}

// isSemver reports whether s is a semantic version (semver.org 2.0.0).
func isSemver(s string) bool {
	s, build, hasBuild := strings.Cut(s, "+")
	if hasBuild && !areSemverIdentifiers(build, false) {
		return false
	}
	core, pre, hasPre := strings.Cut(s, "-")
	if hasPre && !areSemverIdentifiers(pre, true) {
		return false
	}
	numbers := strings.Split(core, ".")
	if len(numbers) != 3 {
		return false
	}
	for _, n := range numbers {
		if !isDigits(n) || !areSemverIdentifiers(n, true) {
			return false
		}
	}
	return true
}

// areSemverIdentifiers reports whether s is a dotted list of identifiers.
// Where strict, numbers have no superfluous zeros.
func areSemverIdentifiers(s string, strict bool) bool {
	for id := range strings.SplitSeq(s, ".") {
		if id == "" || strict && len(id) > 1 && id[0] == '0' && isDigits(id) {
			return false
		}
		for i := range len(id) {
			if c := id[i]; !isAlphanumeric(c) && c != '-' {
				return false
			}
		}
	}
	return true
}

func isDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

func isAlphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// isSPDX reports whether s is made of the characters of an SPDX expression.
func isSPDX(s string) bool {
	for i := range len(s) {
		if c := s[i]; !isAlphanumeric(c) && !strings.ContainsRune("-.+:() ", rune(c)) {
			return false
		}
	}
	return strings.TrimSpace(s) != ""
}
