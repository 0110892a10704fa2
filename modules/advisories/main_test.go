package main

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/guest-abi/go/guest"
	"github.com/writrun/writ/guest-abi/go/guest/guesttest"
	"github.com/writrun/writ/modules/inventory/sbom"
)

// inventoryStep makes the input an inventory of the given components yields.
func inventoryStep(t *testing.T, main *sbom.Component, components ...sbom.Component) abi.StepOutput {
	t.Helper()
	output, err := abi.EncodeMessage(sbom.Inventory{Main: main, Components: components, Unidentified: []string{"left-pad"}})
	if err != nil {
		t.Fatal(err)
	}
	out := abi.StepOutput{Output: output}
	if main != nil {
		components = append(components, *main)
	}
	for _, c := range components {
		out.Evidence = append(out.Evidence, abi.Evidence{EvidenceID: sbom.EvidenceID(c.PURL), Kind: "inline"})
	}
	return out
}

func module(name, version string) sbom.Component {
	return sbom.Component{PURL: "pkg:golang/" + name + "@" + version, Type: "golang", Name: name, Version: version}
}

// records is a folder dataset "osv" of files by path.
func records(t *testing.T, files map[string]string) *guesttest.Host {
	t.Helper()
	host := &guesttest.Host{Datasets: map[string][]byte{}}
	listing := abi.DatasetListing{}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		text := files[path]
		host.Datasets["osv/"+path] = []byte(text)
		listing.Files = append(listing.Files, abi.DatasetFile{Path: path, Size: int64(len(text)), Digest: abi.DigestOf([]byte(text))})
	}
	var err error
	if host.Datasets["osv"], err = abi.EncodeMessage(listing); err != nil {
		t.Fatal(err)
	}
	return host
}

func run(t *testing.T, host guest.Host, config string, inputs map[abi.ID]abi.StepOutput, datasets ...abi.DatasetHandle) abi.ExecuteResponse {
	t.Helper()
	request, err := abi.EncodeMessage(abi.ExecuteRequest{ABI: abi.Version, FlowID: "f", Datasets: datasets, Inputs: inputs,
		Step: abi.ExecuteStep{ID: "advisories", Role: abi.RoleReasoning, Config: json.RawMessage(config)}})
	if err != nil {
		t.Fatal(err)
	}
	var response abi.ExecuteResponse
	if err := json.Unmarshal(guest.RunExecute(host, request, advisories), &response); err != nil {
		t.Fatal(err)
	}
	return response
}

const (
	fixed    = `{"id":"GO-1","summary":"A hole","aliases":["CVE-1"],"affected":[{"package":{"ecosystem":"Go","name":"example.org/a"},"ranges":[{"type":"SEMVER","events":[{"introduced":"0"},{"fixed":"1.2.0"}]}]}]}`
	gone     = `{"id":"GO-2","withdrawn":"2024-01-01T00:00:00Z","affected":[{"package":{"ecosystem":"Go","name":"example.org/a"}}]}`
	commits  = `{"id":"GO-3","affected":[{"package":{"ecosystem":"Go","name":"example.org/b"},"ranges":[{"type":"GIT","events":[{"introduced":"0"}]}]}]}`
	stdlib   = `{"id":"GO-4","affected":[{"package":{"ecosystem":"Go","name":"stdlib"},"ranges":[{"type":"SEMVER","events":[{"introduced":"1.22.0-0"},{"fixed":"1.22.1"}]}]}]}`
	foreign  = `{"id":"GHSA-1","affected":[{"package":{"ecosystem":"npm","name":"example.org/a"}}]}`
	nobodys  = `{"id":"GO-5","affected":[{"package":{"ecosystem":"Go","name":"example.org/z"}}]}`
	notARecd = `{"id":"GO-6","affected":[{"package":{"ecosystem":"Go","name":"example.org/z"},"ranges":[{"type":"SEMVER","events":[{"introduced":"one"}]}]}]}`
)

func TestAdvisories(t *testing.T) {
	app := module("example.org/app", "v0.1.0")
	npm := sbom.Component{PURL: "pkg:npm/x@1", Type: "npm", Name: "x", Version: "1"}
	inputs := map[abi.ID]abi.StepOutput{"inventory": inventoryStep(t, &app,
		module("example.org/a", "v1.1.0"), module("example.org/a/v2", "v2.0.0"), module("example.org/b", "v1.0.0"), module("std", "go1.22.0"), module("example.org/c", "(devel)"), npm)}
	host := records(t, map[string]string{"1.json": fixed, "2.json": gone, "3.json": commits, "x/4.json": stdlib, "5.json": nobodys, "g.json": foreign, "README.md": "no record"})
	got := run(t, host, `{}`, inputs, abi.DatasetHandle{ID: "osv", Folder: true})
	if got.Error != nil {
		t.Fatal(got.Error)
	}

	certain := 1.0
	claims := []abi.Claim{
		{ClaimID: "GO-1:pkg:golang/example.org/a@v1.1.0", Statement: "example.org/a v1.1.0 is affected by GO-1", Subject: "pkg:golang/example.org/a@v1.1.0", Predicate: "affected_by:GO-1",
			Value: json.RawMessage(`true`), Confidence: &certain, Evidence: []string{"advisory:GO-1", "component:pkg:golang/example.org/a@v1.1.0"}},
		{ClaimID: "GO-4:pkg:golang/std@go1.22.0", Statement: "std go1.22.0 is affected by GO-4", Subject: "pkg:golang/std@go1.22.0", Predicate: "affected_by:GO-4",
			Value: json.RawMessage(`true`), Confidence: &certain, Evidence: []string{"advisory:GO-4", "component:pkg:golang/std@go1.22.0"}},
	}
	if diff := cmp.Diff(claims, got.Claims); diff != "" {
		t.Error(diff)
	}
	evidence := map[string]abi.Digest{}
	for _, e := range got.Evidence {
		evidence[e.EvidenceID+" "+e.Path] = e.Digest
	}
	wantEvidence := map[string]abi.Digest{"advisory:GO-1 osv/1.json": abi.DigestOf([]byte(fixed)), "advisory:GO-4 osv/x/4.json": abi.DigestOf([]byte(stdlib))}
	if diff := cmp.Diff(wantEvidence, evidence); diff != "" {
		t.Error(diff)
	}
	var sum summary
	if err := json.Unmarshal(got.Output, &sum); err != nil {
		t.Fatal(err)
	}
	wantSummary := summary{
		Counts: counts{Records: 6, Checked: 5, NotChecked: 3, Affected: 2, Undecided: 1, Withdrawn: 1},
		Affected: []finding{
			{"pkg:golang/example.org/a@v1.1.0", "GO-1", []string{"CVE-1"}, "A hole"},
			{"pkg:golang/std@go1.22.0", "GO-4", []string{}, ""},
		},
		Undecided: []finding{{"pkg:golang/example.org/b@v1.0.0", "GO-3", []string{}, ""}},
		Withdrawn: []finding{{"pkg:golang/example.org/a@v1.1.0", "GO-2", []string{}, ""}},
		NotChecked: []unchecked{
			{"pkg:golang/example.org/c@(devel)", "its version has no place in the order of versions"},
			{"pkg:npm/x@1", "it is no Go module"},
			{"left-pad", "it has no package URL"},
		},
	}
	if diff := cmp.Diff(wantSummary, sum); diff != "" {
		t.Error(diff)
	}
}

func TestNotAffected(t *testing.T) {
	inputs := map[abi.ID]abi.StepOutput{"inventory": inventoryStep(t, nil, module("example.org/a", "v1.2.0"))}
	got := run(t, records(t, map[string]string{"1.json": fixed}), `{}`, inputs, abi.DatasetHandle{ID: "osv", Folder: true})
	if got.Error != nil || len(got.Claims) != 1 {
		t.Fatalf("error %v, claims %+v", got.Error, got.Claims)
	}
	if c := got.Claims[0]; string(c.Value) != "false" || c.Statement != "example.org/a v1.2.0 is not affected by GO-1" {
		t.Errorf("claim %+v", c)
	}
}

func TestRefusals(t *testing.T) {
	folder := abi.DatasetHandle{ID: "osv", Folder: true}
	good := map[abi.ID]abi.StepOutput{"inventory": inventoryStep(t, nil, module("example.org/a", "v1.2.0"))}
	unknown := map[abi.ID]abi.StepOutput{"inventory": {Output: good["inventory"].Output}}
	noOutput := map[abi.ID]abi.StepOutput{"inventory": {Output: json.RawMessage(`"none"`)}}
	ok := map[string]string{"1.json": fixed}
	tests := []struct {
		name, config string
		files        map[string]string
		inputs       map[abi.ID]abi.StepOutput
		datasets     []abi.DatasetHandle
		code, has    string
	}{
		{"record that is no JSON", `{}`, map[string]string{"1.json": fixed, "2.json": "{"}, good, []abi.DatasetHandle{folder}, "bad_record", "osv/2.json: not an OSV record"},
		{"record that cannot be judged", `{}`, map[string]string{"6.json": notARecd}, good, []abi.DatasetHandle{folder}, "bad_record", `osv/6.json: "GO-6"`},
		{"record above its limit", `{}`, map[string]string{"1.json": strings.Repeat(" ", recordBytesMax+1)}, good, []abi.DatasetHandle{folder}, "bad_record", "not within 0 and 4194304"},
		{"two records of one id", `{}`, map[string]string{"1.json": fixed, "2.json": fixed}, good, []abi.DatasetHandle{folder}, "bad_record", `the id "GO-1" is that of`},
		{"no records", `{}`, map[string]string{"README.md": ""}, good, []abi.DatasetHandle{folder}, "no_records", "nothing could be checked"},
		{"no inventory", `{}`, ok, nil, []abi.DatasetHandle{folder}, "invalid_config", "needs 0 steps"},
		{"another inventory", `{"inventory":"x"}`, ok, good, []abi.DatasetHandle{folder}, "invalid_config", `step "x"`},
		{"input that is no inventory", `{}`, ok, noOutput, []abi.DatasetHandle{folder}, "bad_inventory", "is no inventory"},
		{"component without evidence", `{}`, ok, unknown, []abi.DatasetHandle{folder}, "bad_inventory", "has no evidence of it"},
		{"no dataset", `{}`, ok, good, nil, "invalid_config", "has 0 datasets"},
		{"another dataset", `{"records":"x"}`, ok, good, []abi.DatasetHandle{folder}, "invalid_config", `dataset "x"`},
		{"a file", `{}`, ok, good, []abi.DatasetHandle{{ID: "osv"}}, "invalid_config", "is a file"},
		{"unknown field", `{"rigour":1}`, ok, good, []abi.DatasetHandle{folder}, "invalid_config", "unknown field"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			got := run(t, records(t, tc.files), tc.config, tc.inputs, tc.datasets...)
			if got.Error == nil || got.Error.Code != tc.code || !strings.Contains(got.Error.Message, tc.has) {
				t.Fatalf("got %+v, want %s with %q", got.Error, tc.code, tc.has)
			}
		})
	}
}
