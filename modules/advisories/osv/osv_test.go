package osv

import (
	"fmt"
	"strings"
	"testing"
)

// record makes a record about example.org/m whose one package has the given
// further fields.
func record(fields string) string {
	return `{"id":"GO-1","modified":"2024-01-01T00:00:00Z","affected":[{"package":{"ecosystem":"Go","name":"example.org/m"}` + fields + `}]}`
}

func ranges(events string) string {
	return record(`,"ranges":[{"type":"SEMVER","events":[` + events + `]}]`)
}

func TestJudge(t *testing.T) {
	const twoBranches = `{"introduced":"0"},{"fixed":"1.2.4"},{"introduced":"1.3.0-0"},{"fixed":"1.3.7"}`
	const pseudo = `{"introduced":"0"},{"fixed":"0.0.0-20200124225646-8b5121be2f68"}`
	const incompatible = `{"introduced":"2.0.0+incompatible"},{"fixed":"2.8.3+incompatible"}`
	tests := []struct {
		name, record string
		versions     map[string]Verdict
	}{
		{"fixed is the first that is not affected", ranges(`{"introduced":"1.1.0"},{"fixed":"1.4.0"}`), map[string]Verdict{
			"v1.0.9": NotAffected, "v1.1.0": IsAffected, "v1.3.99": IsAffected, "v1.4.0-rc.1": IsAffected, "v1.4.0": NotAffected, "v1.4.1": NotAffected, "v1.1.0-rc.1": NotAffected}},
		{"never fixed", ranges(`{"introduced":"1.1.0"}`), map[string]Verdict{"v1.0.0": NotAffected, "v1.1.0": IsAffected, "v99.0.0": IsAffected}},
		{"zero is before every version", ranges(`{"introduced":"0"}`), map[string]Verdict{"v0.0.0-0": IsAffected, "v0.0.0-00010101000000-000000000000": IsAffected}},
		{"last affected is affected", ranges(`{"introduced":"1.0.0"},{"last_affected":"1.2.0"}`), map[string]Verdict{"v1.2.0": IsAffected, "v1.2.1-0": NotAffected, "v1.2.1": NotAffected}},
		{"two branches", ranges(twoBranches), map[string]Verdict{"v1.2.3": IsAffected, "v1.2.4": NotAffected, "v1.2.99": NotAffected, "v1.3.0-0": IsAffected, "v1.3.0-rc.1": IsAffected, "v1.3.6": IsAffected, "v1.3.7": NotAffected}},
		{"events in any order", ranges(`{"fixed":"1.3.7"},{"introduced":"1.3.0-0"},{"fixed":"1.2.4"},{"introduced":"0"}`), map[string]Verdict{"v1.2.3": IsAffected, "v1.2.4": NotAffected, "v1.3.6": IsAffected, "v1.3.7": NotAffected}},
		{"pseudo-versions are ordered by time", ranges(pseudo), map[string]Verdict{
			"v0.0.0-20191011191535-87dc89f01550": IsAffected, "v0.0.0-20200124225646-8b5121be2f68": NotAffected, "v0.0.0-20200622213623-75b288015ac9": NotAffected, "v0.1.0": NotAffected}},
		{"a pseudo-version after a tag", ranges(`{"introduced":"0"},{"fixed":"0.3.5"}`), map[string]Verdict{"v0.3.5-0.20201125200606-c27b9fd57aec": IsAffected, "v0.3.5": NotAffected, "v0.3.6-0.20210101000000-000000000000": NotAffected}},
		{"incompatible is no part of the order", ranges(incompatible), map[string]Verdict{"v2.8.2+incompatible": IsAffected, "v2.8.3+incompatible": NotAffected, "v2.8.2": IsAffected, "v1.9.0": NotAffected}},
		{"numbers, not text", ranges(`{"introduced":"1.9.0"},{"fixed":"1.10.0"}`), map[string]Verdict{"v1.9.5": IsAffected, "v1.10.0": NotAffected, "v1.8.0": NotAffected}},
		{"limit", ranges(`{"introduced":"1.0.0"},{"limit":"1.5.0"}`), map[string]Verdict{"v1.4.0": IsAffected, "v1.5.0": NotAffected}},
		{"no limit after all", ranges(`{"introduced":"1.0.0"},{"limit":"*"}`), map[string]Verdict{"v1.4.0": IsAffected, "v0.9.0": NotAffected}},
		{"versions by name", record(`,"versions":["1.0.0","v1.2.0"]`), map[string]Verdict{"v1.0.0": IsAffected, "v1.1.0": NotAffected, "v1.2.0": IsAffected}},
		{"a version beside ranges", record(`,"versions":["0.5.0"],"ranges":[{"type":"SEMVER","events":[{"introduced":"1.0.0"}]}]`), map[string]Verdict{"v0.5.0": IsAffected, "v0.6.0": NotAffected, "v1.0.0": IsAffected}},
		{"neither versions nor ranges", record(``), map[string]Verdict{"v1.0.0": IsAffected}},
		{"commits only", record(`,"ranges":[{"type":"GIT","repo":"https://example.org/m","events":[{"introduced":"0"}]}]`), map[string]Verdict{"v1.0.0": Undecided}},
		{"commits beside versions", record(`,"versions":["1.0.0"],"ranges":[{"type":"GIT","events":[{"introduced":"0"}]}]`), map[string]Verdict{"v1.0.0": IsAffected, "v1.0.1": NotAffected}},
		{"a version without an order", ranges(`{"introduced":"0"}`), map[string]Verdict{"": Undecided, "devel": Undecided, "1.0.0": Undecided}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			r, err := Parse([]byte(tc.record))
			if err != nil {
				t.Fatal(err)
			}
			for version, want := range tc.versions {
				if got := r.Judge("example.org/m", version); got != want {
					t.Errorf("%s: got %s, want %s", version, got, want)
				}
			}
			if got := r.Judge("example.org/m/v2", "v2.0.0"); got != NotAffected {
				t.Errorf("another module path: got %s", got)
			}
		})
	}
}

func TestSeveralPackages(t *testing.T) {
	r, err := Parse([]byte(`{"id":"GO-2","affected":[
	  {"package":{"ecosystem":"Go","name":"a"},"ranges":[{"type":"SEMVER","events":[{"introduced":"0"},{"fixed":"1.0.0"}]}]},
	  {"package":{"ecosystem":"npm","name":"a"}},
	  {"package":{"ecosystem":"Go","name":"a"},"ranges":[{"type":"SEMVER","events":[{"introduced":"2.0.0"}]}]},
	  {"package":{"ecosystem":"Go","name":"b"},"ranges":[{"type":"SEMVER","events":[{"introduced":"0"}]}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(r.Modules()); got != "[a b]" {
		t.Errorf("modules: %s", got)
	}
	for version, want := range map[string]Verdict{"v0.9.0": IsAffected, "v1.5.0": NotAffected, "v2.0.0": IsAffected} {
		if got := r.Judge("a", version); got != want {
			t.Errorf("%s: got %s, want %s", version, got, want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	tests := []struct{ name, record, want string }{
		{"not JSON", `id: GO-1`, "not an OSV record"},
		{"cut off", `{"id":"GO-1"`, "not an OSV record"},
		{"no id", `{}`, "id is missing"},
		{"wrong type", `{"id":"GO-1","affected":{}}`, "not an OSV record"},
		{"no package name", `{"id":"GO-1","affected":[{"package":{"ecosystem":"Go"}}]}`, "name is missing"},
		{"version with v", ranges(`{"introduced":"v1.0.0"}`), `"v1.0.0" is not a semantic version`},
		{"version that is none", ranges(`{"introduced":"0"},{"fixed":"1.x"}`), `"1.x" is not a semantic version`},
		{"zero elsewhere than introduced is a version", ranges(`{"introduced":"0"},{"fixed":""}`), "names 0 points"},
		{"two points in an event", ranges(`{"introduced":"0","fixed":"1.0.0"}`), "names 2 points"},
		{"nothing introduced", ranges(`{"fixed":"1.0.0"}`), "no introduced event"},
		{"no events", ranges(``), "no introduced event"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := Parse([]byte(tc.record)); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got %v, want an error with %q", err, tc.want)
			}
		})
	}
}

func TestCanonical(t *testing.T) {
	tests := []struct {
		module, version string
		path, want      string
		ok              bool
	}{
		{"example.org/m", "v1.2.3", "example.org/m", "v1.2.3", true},
		{"example.org/m", "1.2.3", "example.org/m", "v1.2.3", true},
		{"example.org/m", "v0.0.0-20200124225646-8b5121be2f68", "example.org/m", "v0.0.0-20200124225646-8b5121be2f68", true},
		{"std", "go1.26.8", "stdlib", "v1.26.8", true},
		{"stdlib", "go1.22rc1", "stdlib", "v1.22.0-rc.1", true},
		{"stdlib", "1.21.4", "stdlib", "v1.21.4", true},
		{"toolchain", "go1.20beta1", "toolchain", "v1.20.0-beta.1", true},
		{"example.org/m", "go1.26.8", "example.org/m", "vgo1.26.8", false},
		{"example.org/m", "", "example.org/m", "", false},
		{"example.org/m", "(devel)", "example.org/m", "v(devel)", false},
	}
	for _, tc := range tests {
		path, v, ok := Canonical(tc.module, tc.version)
		if path != tc.path || v != tc.want || ok != tc.ok {
			t.Errorf("%s %s: got %s %s %v", tc.module, tc.version, path, v, ok)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(ranges(`{"introduced":"0"},{"fixed":"1.2.4"}`)), "v1.2.3")
	f.Add([]byte(record(`,"versions":["1.0.0"]`)), "v1.0.0")
	f.Add([]byte(`{"id":"X","affected":[{"ranges":[{"type":"GIT"}]}]}`), "")
	f.Fuzz(func(t *testing.T, data []byte, version string) {
		r, err := Parse(data)
		if err != nil {
			return
		}
		for _, m := range r.Modules() {
			if v := r.Judge(m, version); v != IsAffected && v != NotAffected && v != Undecided {
				t.Fatalf("verdict %q", v)
			}
		}
	})
}
