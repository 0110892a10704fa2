package abi

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// readmeRows returns the cells of every table row of guest-abi/README.md.
func readmeRows(t *testing.T) [][]string {
	t.Helper()
	data, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]string
	for line := range strings.SplitSeq(string(data), "\n") {
		if !strings.HasPrefix(line, "| ") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		rows = append(rows, cells)
	}
	return rows
}

func typeText(c HostCall) string {
	names := func(types []ValueType) string {
		var s []string
		for _, v := range types {
			s = append(s, map[ValueType]string{I32: "i32", I64: "i64"}[v])
		}
		return strings.Join(s, ", ")
	}
	return fmt.Sprintf("(%s) -> %s", names(c.Params), names(c.Results))
}

func thousands(n uint64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// TestReadme compares the normative tables with this package.
func TestReadme(t *testing.T) {
	number := regexp.MustCompile(`^-?[0-9]+$`)
	named := regexp.MustCompile("`([a-z_]+)`")
	var calls, codes, limits []string
	wasi := map[string]int{}
	for _, r := range readmeRows(t) {
		switch {
		case number.MatchString(r[0]) && r[0][0] == '-':
			codes = append(codes, r[0]+" "+r[1])
		case number.MatchString(r[0]):
			calls = append(calls, strings.Join(r[:3], " "))
		case len(r) == 4 && strings.HasPrefix(r[0], "`"):
			limits = append(limits, strings.Join(r, " "))
		case len(r) == 2 && strings.HasPrefix(r[0], "`"):
			for _, m := range named.FindAllStringSubmatch(r[0], -1) {
				wasi[m[1]]++
			}
		}
	}

	var wantCalls, wantCodes, wantLimits []string
	wantWASI := map[string]int{}
	for _, c := range HostCalls {
		if c.Module == ModuleWASI {
			wantWASI[c.Name] = 1
			continue
		}
		wantCalls = append(wantCalls, fmt.Sprintf("%d `%s` %s", c.Number, c.Name, typeText(c)))
	}
	for code := NotGranted; code >= Unavailable; code-- {
		wantCodes = append(wantCodes, fmt.Sprintf("%d `%s`", code, code.String()))
	}
	for _, l := range LimitTable {
		wantLimits = append(wantLimits, fmt.Sprintf("`%s` %s %s %s", l.Name, thousands(l.Default), thousands(l.Ceiling), l.Unit))
	}
	for _, c := range []struct {
		what      string
		want, got any
	}{{"host calls", wantCalls, calls}, {"codes", wantCodes, codes}, {"limits", wantLimits, limits}, {"WASI functions", wantWASI, wasi}} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("%s of README.md (-abi +README):\n%s", c.what, diff)
		}
	}
}

// TestReadmeFixedLimits looks for each fixed limit's figure beside its words.
func TestReadmeFixedLimits(t *testing.T) {
	data, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for text, n := range map[string]uint64{
		"one memory argument and one artifact %s bytes": ArgumentBytesMax,
		"core module of at most %s bytes":               ModuleBytesMax,
		"at most %s bytes and depth":                    MetadataBytesMax,
		"and depth %s:":                                 MetadataDepthMax,
		"at most %s deep":                               MessageDepthMax,
		"(a request: %s)":                               RequestDepthMax,
		"fills at most %s bytes":                        RandomBytesMax,
		"a dataset path %s;":                            PathBytesMax,
		"a driver name %s;":                             DriverBytesMax,
		"a claim or evidence id %s;":                    ItemIDBytesMax,
		"a subject or predicate %s;":                    SubjectBytesMax,
		"a statement, reason or error message %s;":      StatementBytesMax,
		"an artifact name or media type %s;":            NameBytesMax,
		"claims, evidence, artifacts and violations %s": ClaimsMax,
		"keys of one object %s.":                        ObjectKeysMax,
	} {
		if want := fmt.Sprintf(text, thousands(n)); !strings.Contains(string(data), want) {
			t.Errorf("README.md does not say %q", want)
		}
	}
	for _, equal := range [][2]int{
		{ArgumentBytesMax, ArtifactBytesMax}, {StatementBytesMax, ReasonBytesMax},
		{ClaimsMax, EvidenceMax}, {ClaimsMax, ArtifactsMax}, {ClaimsMax, ViolationsMax},
	} {
		if equal[0] != equal[1] {
			t.Errorf("README.md gives %d and %d one figure", equal[0], equal[1])
		}
	}
}
