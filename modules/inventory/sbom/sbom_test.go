package sbom

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParsePURL(t *testing.T) {
	tests := []struct {
		purl string
		want PURL
		err  string
	}{
		{purl: "pkg:golang/github.com/ProtonMail/crypto@v1.0.0", want: PURL{"golang", "github.com/ProtonMail/crypto", "v1.0.0"}},
		{purl: "pkg:golang/github.com/a/b/v2@v2.1.0?goarch=amd64&goos=linux&type=module#pkg/x", want: PURL{"golang", "github.com/a/b/v2", "v2.1.0"}},
		{purl: "pkg:golang/github.com/a/b@v4.0.0%2Bincompatible", want: PURL{"golang", "github.com/a/b", "v4.0.0+incompatible"}},
		{purl: "pkg:GoLang/std@go1.26.8", want: PURL{"golang", "std", "go1.26.8"}},
		{purl: "pkg:npm/%40angular/core@17.0.1", want: PURL{"npm", "@angular/core", "17.0.1"}},
		{purl: "pkg:npm/@angular/core", want: PURL{"npm", "@angular/core", ""}},
		{purl: "pkg:deb/debian/curl@7.50.3-1?arch=i386", want: PURL{"deb", "debian/curl", "7.50.3-1"}},
		{purl: "golang/a@v1", err: "does not start"},
		{purl: "", err: "does not start"},
		{purl: "pkg:golang", err: "names no type and package"},
		{purl: "pkg:golang/@v1.0.0", err: "name is empty"},
		{purl: "pkg:golang/a%zz@v1", err: "invalid URL escape"},
		{purl: "pkg:golang/a@v1%z", err: "invalid URL escape"},
	}
	for _, tc := range tests {
		t.Run(tc.purl, func(t *testing.T) {
			got, err := ParsePURL(tc.purl)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("got %v, %v; want an error with %q", got, err, tc.err)
				}
				return
			}
			if err != nil || got != tc.want {
				t.Fatalf("got %+v, %v; want %+v", got, err, tc.want)
			}
		})
	}
}

func TestLicences(t *testing.T) {
	tests := []struct {
		name, licences, evidence string
		want                     string
		source                   string
	}{
		{"one id", `[{"license":{"id":"MIT"}}]`, `[]`, "MIT", "declared"},
		{"two ids bind both", `[{"license":{"id":"CC0-1.0"}},{"license":{"id":"MIT"}}]`, `[]`, "CC0-1.0 AND MIT", "declared"},
		{"the same id twice", `[{"license":{"id":"MIT"}},{"license":{"id":"MIT"}}]`, `[]`, "MIT", "declared"},
		{"expression", `[{"expression":"MIT OR Apache-2.0"}]`, `[]`, "MIT OR Apache-2.0", "declared"},
		{"expression beside an id", `[{"expression":"MIT OR Apache-2.0"},{"license":{"id":"ISC"}}]`, `[]`, "(MIT OR Apache-2.0) AND ISC", "declared"},
		{"a name is no id", `[{"license":{"name":"GPLv3"}}]`, `[]`, NoAssertion, "declared"},
		{"a name is no expression", `[{"license":{"name":"MIT OR Foo"}},{"license":{"id":"ISC"}}]`, `[]`, "NOASSERTION AND ISC", "declared"},
		{"an id beside its name", `[{"license":{"id":"MIT","name":"The MIT Licence"}}]`, `[]`, "MIT", "declared"},
		{"detected only", `[]`, `[{"license":{"id":"0BSD"}}]`, "0BSD", "detected"},
		{"declared wins over detected", `[{"license":{"id":"MIT"}}]`, `[{"license":{"id":"0BSD"}}]`, "MIT", "declared"},
		{"none", `[]`, `[]`, NoAssertion, "none"},
		{"empty entries", `[{"license":{"id":" "}},{}]`, `null`, NoAssertion, "none"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			file := `{"bomFormat":"CycloneDX","specVersion":"1.6","components":[{"name":"a","purl":"pkg:golang/a@v1.0.0",` +
				`"licenses":` + tc.licences + `,"evidence":{"licenses":` + tc.evidence + `}}]}`
			got, err := Read([]byte(file))
			if err != nil {
				t.Fatal(err)
			}
			c := got.Components[0]
			if e := Expression(c.Licences); e != tc.want || c.LicenceSource != tc.source {
				t.Fatalf("got %q (%s), want %q (%s)", e, c.LicenceSource, tc.want, tc.source)
			}
		})
	}
}

func TestRead(t *testing.T) {
	const file = `{
	  "bomFormat": "CycloneDX", "specVersion": "1.4",
	  "metadata": {"component": {"name": "app", "purl": "pkg:golang/example.org/app@v0.1.0"}},
	  "components": [
	    {"name": "b", "purl": "pkg:golang/example.org/b@v1.0.0", "licenses": [{"license": {"id": "MIT"}}],
	     "components": [{"name": "inner", "version": "2", "purl": "pkg:generic/inner"}]},
	    {"group": "g", "name": "nameless", "version": "1"},
	    {"type": "file", "name": "/etc/b.conf"},
	    {"name": "b", "purl": "pkg:golang/example.org/b@v1.0.0", "licenses": [{"license": {"id": "ISC"}}, {"license": {"name": "Foo"}}]},
	    {"name": "app", "purl": "pkg:golang/example.org/app@v0.1.0"}
	  ]}`
	want := Inventory{
		Main: &Component{PURL: "pkg:golang/example.org/app@v0.1.0", Type: "golang", Name: "example.org/app", Version: "v0.1.0", Licences: []string{}, LicenceNames: []string{}, LicenceSource: "none"},
		Components: []Component{
			{PURL: "pkg:golang/example.org/b@v1.0.0", Type: "golang", Name: "example.org/b", Version: "v1.0.0", Licences: []string{"MIT", "ISC", NoAssertion}, LicenceNames: []string{"Foo"}, LicenceSource: "declared"},
			{PURL: "pkg:generic/inner", Type: "generic", Name: "inner", Version: "2", Licences: []string{}, LicenceNames: []string{}, LicenceSource: "none"},
		},
		Unidentified: []string{"g/nameless"},
	}
	got, err := Read([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
}

func TestReadRefuses(t *testing.T) {
	many := `{"bomFormat":"CycloneDX","specVersion":"1.6","components":[` + strings.TrimSuffix(strings.Repeat("{},", ComponentsMax+1), ",") + `]}`
	tests := []struct{ name, file, want string }{
		{"not JSON", `bom: yes`, "not a CycloneDX file in JSON"},
		{"cut off", `{"bomFormat":"CycloneDX"`, "not a CycloneDX file in JSON"},
		{"another format", `{"spdxVersion":"SPDX-2.3"}`, `bomFormat is ""`},
		{"an old version", `{"bomFormat":"CycloneDX","specVersion":"1.1"}`, `version "1.1" is not one of 1.2`},
		{"wrong type", `{"bomFormat":"CycloneDX","specVersion":"1.6","components":{}}`, "not a CycloneDX file in JSON"},
		{"too many components", many, "more than 20000 components"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := Read([]byte(tc.file)); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got %v, want an error with %q", err, tc.want)
			}
		})
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"bomFormat":"CycloneDX","specVersion":"1.6","components":[{"name":"a","purl":"pkg:golang/a@v1.0.0","licenses":[{"expression":"MIT"}]}]}`))
	f.Add([]byte(`{"bomFormat":"CycloneDX","specVersion":"1.2","metadata":{"component":{"purl":"pkg:npm/%40a/b@1"}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := Read(data)
		if err != nil {
			return
		}
		seen := map[string]bool{}
		for _, c := range got.Components {
			if c.PURL == "" || c.Name == "" || seen[c.PURL] {
				t.Fatalf("component %+v is unnamed or listed twice", c)
			}
			seen[c.PURL] = true
		}
		if _, err := json.Marshal(got); err != nil {
			t.Fatal(err)
		}
	})
}
