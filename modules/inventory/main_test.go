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

const bill = `{"bomFormat":"CycloneDX","specVersion":"1.6",
 "metadata":{"component":{"name":"app","purl":"pkg:golang/example.org/app@v0.1.0"}},
 "components":[{"name":"b","purl":"pkg:golang/example.org/b@v1.0.0?goos=linux&goarch=amd64","licenses":[{"license":{"id":"MIT"}}]}]}`

func run(t *testing.T, config string, datasets []abi.DatasetHandle, files map[string]string) abi.ExecuteResponse {
	t.Helper()
	host := &guesttest.Host{Datasets: map[string][]byte{}}
	for path, text := range files {
		host.Datasets[path] = []byte(text)
	}
	request, err := abi.EncodeMessage(abi.ExecuteRequest{ABI: abi.Version, FlowID: "f", Datasets: datasets,
		Step: abi.ExecuteStep{ID: "inventory", Role: abi.RoleRetrieval, Config: json.RawMessage(config)}})
	if err != nil {
		t.Fatal(err)
	}
	var response abi.ExecuteResponse
	if err := json.Unmarshal(guest.RunExecute(host, request, inventory), &response); err != nil {
		t.Fatal(err)
	}
	return response
}

func TestInventory(t *testing.T) {
	digest := abi.DigestOf([]byte(bill))
	got := run(t, `{}`, []abi.DatasetHandle{{ID: "bom", Digest: digest}}, map[string]string{"bom": bill})
	if got.Error != nil {
		t.Fatal(got.Error)
	}
	var inv sbom.Inventory
	if err := json.Unmarshal(got.Output, &inv); err != nil {
		t.Fatal(err)
	}
	if inv.Main.Name != "example.org/app" || len(inv.Components) != 1 || inv.Components[0].Name != "example.org/b" {
		t.Errorf("output %s", got.Output)
	}
	var ids []string
	for _, e := range got.Evidence {
		ids = append(ids, e.EvidenceID)
		if e.Kind == "inline" && e.Digest != abi.DigestOf([]byte(e.Content)) {
			t.Errorf("%s: digest is not of the content", e.EvidenceID)
		}
	}
	want := []string{fileEvidenceID, "component:pkg:golang/example.org/app@v0.1.0", "component:pkg:golang/example.org/b@v1.0.0?goos=linux&goarch=amd64"}
	if diff := cmp.Diff(want, ids); diff != "" {
		t.Error(diff)
	}
	if got.Evidence[0].Digest != digest || got.Evidence[0].Path != "bom" {
		t.Errorf("file evidence %+v", got.Evidence[0])
	}
	const content = `{"purl":"pkg:golang/example.org/b@v1.0.0?goos=linux&goarch=amd64","type":"golang","name":"example.org/b","version":"v1.0.0","licences":["MIT"],"licence_names":[],"licence_source":"declared"}`
	if diff := cmp.Diff(content, got.Evidence[2].Content); diff != "" {
		t.Error(diff)
	}
	if len(got.Claims) != 0 {
		t.Errorf("claims %+v", got.Claims)
	}
}

func TestLocate(t *testing.T) {
	file := abi.DatasetHandle{ID: "bom", Digest: abi.DigestOf([]byte(bill))}
	folder := abi.DatasetHandle{ID: "boms", Folder: true}
	listing := `{"files":[{"path":"a/x.json","executable":false,"size":1,"digest":"` + string(file.Digest) + `"}]}`
	files := map[string]string{"bom": bill, "boms": listing, "boms/a/x.json": bill, "other": `{}`}
	tests := []struct {
		name, config string
		datasets     []abi.DatasetHandle
		path         string // of the evidence, or
		code, errHas string
	}{
		{"the only dataset", `{}`, []abi.DatasetHandle{file}, "bom", "", ""},
		{"by id", `{"sbom":"bom"}`, []abi.DatasetHandle{folder, file}, "bom", "", ""},
		{"a file of a folder", `{"sbom":"boms/a/x.json"}`, []abi.DatasetHandle{folder, file}, "boms/a/x.json", "", ""},
		{"no dataset", `{}`, nil, "", "invalid_config", "has 0 datasets"},
		{"which of two", `{}`, []abi.DatasetHandle{folder, file}, "", "invalid_config", "has 2 datasets"},
		{"a folder only", `{}`, []abi.DatasetHandle{folder}, "", "invalid_config", "name the bill"},
		{"a folder by id", `{"sbom":"boms"}`, []abi.DatasetHandle{folder}, "", "invalid_config", "does not name a file"},
		{"a file below a file", `{"sbom":"bom/x"}`, []abi.DatasetHandle{file}, "", "invalid_config", "does not name a file"},
		{"no such file", `{"sbom":"boms/y"}`, []abi.DatasetHandle{folder}, "", "invalid_config", "has no file"},
		{"no such dataset", `{"sbom":"x"}`, []abi.DatasetHandle{file}, "", "invalid_config", "does not have"},
		{"unknown field", `{"bom":"bom"}`, []abi.DatasetHandle{file}, "", "invalid_config", "unknown field"},
		{"not a bill of materials", `{"sbom":"other"}`, []abi.DatasetHandle{{ID: "other"}}, "", "bad_sbom", "read other: not a CycloneDX file"},
		{"not readable", `{"sbom":"gone"}`, []abi.DatasetHandle{{ID: "gone"}}, "", "not_found", "gone"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			got := run(t, tc.config, tc.datasets, files)
			if tc.code == "" {
				if got.Error != nil || got.Evidence[0].Path != tc.path || got.Evidence[0].Digest != file.Digest {
					t.Fatalf("error %v, evidence %+v", got.Error, got.Evidence)
				}
				return
			}
			if got.Error == nil || got.Error.Code != tc.code || !strings.Contains(got.Error.Message, tc.errHas) {
				t.Fatalf("got %+v, want %s with %q", got.Error, tc.code, tc.errHas)
			}
		})
	}
}
