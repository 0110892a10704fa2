package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/guest-abi/go/guest"
	"github.com/writrun/writ/guest-abi/go/guest/guesttest"
	"github.com/writrun/writ/modules/inventory/sbom"
)

func run(t *testing.T, config string, inputs map[abi.ID]abi.StepOutput) abi.ExecuteResponse {
	t.Helper()
	request, err := abi.EncodeMessage(abi.ExecuteRequest{ABI: abi.Version, FlowID: "f", Inputs: inputs,
		Step: abi.ExecuteStep{ID: "licences", Role: abi.RoleReasoning, Config: json.RawMessage(config)}})
	if err != nil {
		t.Fatal(err)
	}
	var response abi.ExecuteResponse
	if err := json.Unmarshal(guest.RunExecute(&guesttest.Host{}, request, licences), &response); err != nil {
		t.Fatal(err)
	}
	return response
}

func inputs(t *testing.T, components ...sbom.Component) map[abi.ID]abi.StepOutput {
	t.Helper()
	output, err := abi.EncodeMessage(sbom.Inventory{Components: components})
	if err != nil {
		t.Fatal(err)
	}
	in := abi.StepOutput{Output: output}
	for _, c := range components {
		in.Evidence = append(in.Evidence, abi.Evidence{EvidenceID: sbom.EvidenceID(c.PURL)})
	}
	return map[abi.ID]abi.StepOutput{"inventory": in}
}

func module(name, source string, terms ...string) sbom.Component {
	return sbom.Component{PURL: "pkg:golang/" + name + "@v1.0.0", Type: "golang", Name: name, Version: "v1.0.0", Licences: terms, LicenceSource: source}
}

func TestLicences(t *testing.T) {
	const config = `{"concluded":{
	  "pkg:golang/d": {"licence":"BSD-3-Clause","because":"its LICENSE file"},
	  "pkg:golang/e@v2.0.0": {"licence":"MIT","because":"another version"},
	  "pkg:golang/f@v1.0.0": {"licence":"ISC","because":"its README"}}}`
	named := module("g", "declared", "NOASSERTION", "MIT")
	named.LicenceNames = []string{"GPLv3"}
	got := run(t, config, inputs(t, module("a", "declared", "MIT"), module("b", "detected", "MIT OR ISC", "0BSD"), module("c", "none"),
		module("d", "none"), module("e", "none"), module("f", "detected", "GPL-3.0-only"), named))
	if got.Error != nil {
		t.Fatal(got.Error)
	}
	type row struct{ Statement, Value, Evidence string }
	var rows []row
	for _, c := range got.Claims {
		if c.Predicate != "licence" || c.ClaimID != "licence:"+c.Subject || *c.Confidence != 1 {
			t.Errorf("claim %+v", c)
		}
		rows = append(rows, row{c.Statement, string(c.Value), strings.Join(c.Evidence, " ")})
	}
	want := []row{
		{"a v1.0.0 declares licence MIT", `"MIT"`, "component:pkg:golang/a@v1.0.0"},
		{"b v1.0.0 was detected to be under licence (MIT OR ISC) AND 0BSD", `"(MIT OR ISC) AND 0BSD"`, "component:pkg:golang/b@v1.0.0"},
		{"c v1.0.0 names no licence", `"NOASSERTION"`, "component:pkg:golang/c@v1.0.0"},
		{"d v1.0.0 was concluded to be under licence BSD-3-Clause", `"BSD-3-Clause"`, "concluded:pkg:golang/d"},
		{"e v1.0.0 names no licence", `"NOASSERTION"`, "component:pkg:golang/e@v1.0.0"},
		{"f v1.0.0 was concluded to be under licence ISC", `"ISC"`, "concluded:pkg:golang/f@v1.0.0"},
		{`g v1.0.0 names licences without an SPDX id: ["GPLv3"]`, `"NOASSERTION AND MIT"`, "component:pkg:golang/g@v1.0.0"},
	}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Error(diff)
	}
	if len(got.Evidence) != 2 || got.Evidence[0].Content != `{"because":"its LICENSE file","licence":"BSD-3-Clause","package":"pkg:golang/d"}` ||
		got.Evidence[0].Digest != abi.DigestOf([]byte(got.Evidence[0].Content)) {
		t.Errorf("evidence %+v", got.Evidence)
	}
	const output = `{"components":7,"by_licence":{"(MIT OR ISC) AND 0BSD":1,"BSD-3-Clause":1,"ISC":1,"MIT":1,"NOASSERTION":2,"NOASSERTION AND MIT":1},` +
		`"unknown":["pkg:golang/c@v1.0.0","pkg:golang/e@v1.0.0","pkg:golang/g@v1.0.0"],"concluded":["pkg:golang/d@v1.0.0","pkg:golang/f@v1.0.0"],"unused":["pkg:golang/e@v2.0.0"]}`
	if diff := cmp.Diff(output, string(got.Output)); diff != "" {
		t.Error(diff)
	}
}

func TestRefusals(t *testing.T) {
	good := inputs(t, module("a", "declared", "MIT"))
	tests := []struct {
		name, config string
		inputs       map[abi.ID]abi.StepOutput
		code, has    string
	}{
		{"no inventory", `{}`, nil, "invalid_config", "needs 0 steps"},
		{"another inventory", `{"inventory":"x"}`, good, "invalid_config", `step "x"`},
		{"no package URL", `{"concluded":{"a":{"licence":"MIT","because":"x"}}}`, good, "invalid_config", `"a" does not start with "pkg:"`},
		{"no licence", `{"concluded":{"pkg:golang/a":{"licence":" ","because":"x"}}}`, good, "invalid_config", "needs a licence and a because"},
		{"no reason", `{"concluded":{"pkg:golang/a":{"licence":"MIT"}}}`, good, "invalid_config", "needs a licence and a because"},
		{"unknown field", `{"allow":["MIT"]}`, good, "invalid_config", "unknown field"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			got := run(t, tc.config, tc.inputs)
			if got.Error == nil || got.Error.Code != tc.code || !strings.Contains(got.Error.Message, tc.has) {
				t.Fatalf("got %+v, want %s with %q", got.Error, tc.code, tc.has)
			}
		})
	}
}
