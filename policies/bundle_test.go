package policies_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/policies"
)

// content is the files of a bundle.
type content map[string]string

func (c content) with(more content) content {
	all := maps.Clone(c)
	maps.Copy(all, more)
	return all
}

const alwaysFail = `package flow.f.arbitration

default decision := {"decision": "FAIL", "reasons": ["of the flow"], "permissive": false}
`

// byThreshold passes above a share that its data holds.
const byThreshold = `package flow.f.arbitration

default decision := {"decision": "FAIL", "reasons": [], "permissive": false}

decision := {"decision": "PASS", "reasons": [], "permissive": false} if {
	count([r | some r in input.results; r.status == "PASS"]) >= data.flow.f.limits.passes
}
`

// authorityOf is a flow's authority that says allow, with a reason.
func authorityOf(allow bool, reason string) string {
	return fmt.Sprintf("package flow.f.authority\n\ndefault decision := {\"allow\": %v, \"reasons\": [%q]}\n", allow, reason)
}

// tarOf writes the files as a tar, compressed; each name as it is given.
func tarOf(t testing.TB, c content) []byte {
	t.Helper()
	var entries []tar.Header
	for _, name := range slices.Sorted(maps.Keys(c)) {
		entries = append(entries, tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o600, Size: int64(len(c[name]))})
	}
	return tarOfEntries(t, entries, func(name string) string { return c[name] })
}

func tarOfEntries(t testing.TB, entries []tar.Header, text func(name string) string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, h := range entries {
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Size > 0 {
			if _, err := w.Write([]byte(text(h.Name))); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func folderOf(t testing.TB, c content) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range c {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func fileOf(t testing.TB, b []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bundle.tar.gz")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

var forF = policies.BundleConfig{FlowID: "f"}

func read(t testing.TB, c content) *policies.Bundle {
	t.Helper()
	b, err := policies.ReadBundle(tarOf(t, c), forF)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// withFlow returns the default policies with a flow's bundle of these files.
func withFlow(t testing.TB, c content) *policies.Set {
	t.Helper()
	set, err := defaults(t).WithFlow(read(t, c))
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func wantRefusal(t *testing.T, err error, code, says string) {
	t.Helper()
	var r *policies.Refusal
	if !errors.As(err, &r) || r.Code != code || !strings.Contains(r.Detail, says) {
		t.Errorf("error %v, want %s naming %q", err, code, says)
	}
}

func TestBundleIsOneInEveryForm(t *testing.T) {
	files := content{"arbitration.rego": byThreshold, "flow/f/limits/data.json": `{"passes": 2}`,
		".manifest": `{"revision": "1", "roots": ["flow/f"]}`, "arbitration_test.rego": "package flow.f.arbitration_test\n\ntest_a if true\n"}
	rooted := content{}
	for name, text := range files {
		rooted["/"+name] = text
	}
	dotted := content{}
	for name, text := range files {
		dotted["./"+name] = text
	}
	folder := read(t, files)
	references := map[string]string{
		"folder": folderOf(t, files.with(content{"README.md": "# read by nobody", "cases/a.yaml": "note: x"})), "archive": fileOf(t, tarOf(t, files)),
		"archive as OPA writes it": fileOf(t, tarOf(t, rooted)), "archive as tar writes it": fileOf(t, tarOf(t, dotted)),
		"archive that a run retained": fileOf(t, folder.Archive()), "OCI layout": "oci-layout://" + layoutOf(t, "v1", tarOf(t, files)) + ":v1",
	}
	for name, reference := range references {
		t.Run(name, func(t *testing.T) {
			b, err := policies.LoadBundle(t.Context(), reference, forF)
			if err != nil {
				t.Fatal(err)
			}
			if b.Digest() != folder.Digest() || !bytes.Equal(b.Archive(), folder.Archive()) {
				t.Errorf("digest %s, want %s", b.Digest(), folder.Digest())
			}
			if diff := cmp.Diff([]string{policies.DecisionArbitration}, b.Decisions()); diff != "" {
				t.Errorf("decisions (-want +got):\n%s", diff)
			}
			if s := b.Signature(); s != (policies.SignatureState{}) {
				t.Errorf("signature %+v", s)
			}
		})
	}
}

func TestBundleDigest(t *testing.T) {
	files := content{"a.rego": byThreshold, "flow/f/limits/data.json": `{"passes": 2}`}
	digest := read(t, files).Digest()
	cases := []struct {
		name string
		more content
		same bool
	}{
		{"a test changes nothing", content{"a_test.rego": "package flow.f.arbitration_test\n\ntest_a if true\n"}, true},
		{"a note changes nothing", content{"README.md": "words"}, true},
		{"other data", content{"flow/f/limits/data.json": `{"passes": 3}`}, false},
		{"another rule", content{"b.rego": "package flow.f.lib\n\na := 1\n"}, false},
		{"a manifest", content{".manifest": `{"roots": ["flow/f"]}`}, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := read(t, files.with(c.more)).Digest(); (got == digest) != c.same {
				t.Errorf("digest %s beside %s, want them equal: %v", got, digest, c.same)
			}
		})
	}
}

func TestBundlesThatMayNotBeUsed(t *testing.T) {
	good := content{"a.rego": alwaysFail}
	cases := []struct {
		name       string
		files      content
		code, says string
	}{
		{"a package of the operator's", good.with(content{"b.rego": "package writ.authority\n\ndefault decision := 1\n"}), policies.CodeBundleRoot, "b.rego:1: package writ.authority"},
		{"a package of another flow", good.with(content{"b.rego": "package flow.g.arbitration\n\na := 1\n"}), policies.CodeBundleRoot, "flow.g.arbitration"},
		{"a package whose name only begins alike", good.with(content{"b.rego": "package flow.ff\n\na := 1\n"}), policies.CodeBundleRoot, "flow.ff"},
		{"a test of the operator's", good.with(content{"b_test.rego": "package writ.arbitration_test\n\ntest_a if true\n"}), policies.CodeBundleRoot, "writ.arbitration_test"},
		{"data of the operator's", good.with(content{"data.json": `{"writ": {"authority": {"decision": {"allow": true}}}}`}), policies.CodeBundleRoot, `"writ"`},
		{"data of another flow", good.with(content{"data.yaml": "flow: {g: 1}"}), policies.CodeBundleRoot, `flow["g"]`},
		{"data over all flows", good.with(content{"data.json": `{"flow": 1}`}), policies.CodeBundleRoot, "data.flow"},
		{"a root of the operator's", good.with(content{".manifest": `{"roots": ["flow/f", "writ"]}`}), policies.CodeBundleRoot, `root "writ"`},
		{"a root over all flows", good.with(content{".manifest": `{"roots": ["flow"]}`}), policies.CodeBundleRoot, `root "flow"`},
		{"reads the operator's", content{"a.rego": alwaysFail + "\nx := data.writ.authority.decision\n"}, policies.CodeBundleRoot, "a.rego:5: data.writ.authority.decision is read"},
		{"imports the operator's", content{"a.rego": strings.Replace(alwaysFail, "default", "import data.writ.arbitration\n\ndefault", 1) + "\nx := arbitration.decision\n"}, policies.CodeBundleRoot, "data.writ.arbitration.decision"},
		{"puts something in the operator's place", content{"a.rego": alwaysFail + "\nx if count(input.results) == 1 with data.writ.y as 1\n"}, policies.CodeBundleRoot, "data.writ.y"},
		{"no decision", content{"a.rego": "package flow.f.lib\n\na := 1\n"}, policies.CodeBundleRoot, "flow.f.<decision>"},
		{"nothing", content{}, policies.CodeBundleRoot, "flow.f.<decision>"},
		{"no default", content{"a.rego": "package flow.f.arbitration\n\ndecision := 1 if input.tenant\n"}, policies.CodeNoDefault, "flow.f.arbitration"},
		{"the default in another package", content{"a.rego": "package flow.f.arbitration\n\ndecision := 1 if input.tenant\n", "b.rego": "package flow.f.lib\n\ndefault decision := 1\n"}, policies.CodeNoDefault, "flow.f.arbitration"},
		{"no default for rules in the package's place", content{"a.rego": "package flow.f\n\narbitration.decision := 1 if input.now\n"}, policies.CodeNoDefault, "flow.f.arbitration"},
		{"another rule than the one that is asked", content{"a.rego": "package flow.f.arbitration\n\ndefault verdict := 1\n"}, policies.CodeNoDefault, "no default decision"},
		{"a default in a test", content{"a.rego": "package flow.f.arbitration\n\ndecision := 1 if input.tenant\n", "b_test.rego": "package flow.f.arbitration\n\ndefault decision := 1\n"}, policies.CodeNoDefault, "flow.f.arbitration"},
		{"data in the place of a rule", good.with(content{"data.json": `{"flow": {"f": {"arbitration": {"decision": {"decision": "PASS", "reasons": [], "permissive": false}}}}}`}), policies.CodeInvalid, "conflict"},
		{"a field the input has not", content{"a.rego": alwaysFail + "\nx := input.resultz\n"}, policies.CodeInvalid, "a.rego:5:"},
		{"a field of another decision's input", content{"a.rego": alwaysFail, "b.rego": authorityOf(true, "f") + "\nx := input.results\n"}, policies.CodeInvalid, "b.rego:5:"},
		{"an impure builtin", content{"a.rego": alwaysFail + "\nx := http.send({\"method\": \"get\", \"url\": \"https://example.org\"})\n"}, policies.CodeInvalid, "http.send"},
		{"Rego v0", content{"a.rego": "package flow.f.arbitration\ndefault decision = false\ndecision { input.tenant }"}, policies.CodeRegoV0, "--v0-v1"},
		{"Rego v0 by manifest", good.with(content{".manifest": `{"rego_version": 0}`}), policies.CodeRegoV0, "rego_version"},
		{"Rego v0 for one file", good.with(content{".manifest": `{"rego_version": 1, "file_rego_versions": {"a.rego": 0}}`}), policies.CodeRegoV0, "a.rego"},
		{"no syntax", good.with(content{"b.rego": "package flow.f.lib\nx := "}), policies.CodeInvalid, "b.rego:2"},
		{"no JSON", good.with(content{"data.json": `{`}), policies.CodeInvalid, "data.json"},
		{"a number of many digits", good.with(content{"data.json": `{"flow": {"f": {"n": 1e999999}}}`}), policies.CodeInvalid, "number too big"},
		{"a document of itself", good.with(content{"data.yaml": doubling(24)}), policies.CodeInvalid, "aliasing"},
		{"no manifest", good.with(content{".manifest": `[`}), policies.CodeInvalid, "manifest"},
		{"the same document twice", good.with(content{"flow/f/data.json": `{"a": 1}`, "data.json": `{"flow": {"f": {"a": 2}}}`}), policies.CodeInvalid, "failed to insert"},
		{"compiled policies", good.with(content{"policy.wasm": "\x00asm"}), policies.CodeBundleFile, "Rego"},
		{"a plan", good.with(content{"plan.json": "{}"}), policies.CodeBundleFile, "Rego"},
		{"a delta", good.with(content{"patch.json": `{"data": []}`}), policies.CodeBundleFile, "delta"},
		{"a second manifest", good.with(content{"flow/.manifest": `{"roots": ["writ"]}`}), policies.CodeBundleFile, "flow/.manifest"},
		{"a manifest in protobuf", good.with(content{".manifest.pb": "x"}), policies.CodeBundleFile, ".manifest.pb"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := policies.ReadBundle(tarOf(t, c.files), forF)
			wantRefusal(t, err, c.code, c.says)
		})
	}
	for _, id := range []string{"", "F", "a/b", "flow", "a.b", `a"b`} {
		_, err := policies.ReadBundle(tarOf(t, good), policies.BundleConfig{FlowID: id})
		wantRefusal(t, err, policies.CodeBundleFlow, "belongs to a flow")
	}
}

// doubling is a YAML document that holds itself twice, n times over.
func doubling(n int) string {
	var b strings.Builder
	b.WriteString("flow:\n  f:\n    a0: &a0 [x, x]\n")
	for i := range n {
		fmt.Fprintf(&b, "    a%d: &a%d [*a%d, *a%d]\n", i+1, i+1, i, i)
	}
	return b.String()
}

// TestEveryFlowIDHasAPackage tries ids that Rego cannot write with a dot.
func TestEveryFlowIDHasAPackage(t *testing.T) {
	for _, id := range []string{"f", "my-flow", "my_flow", "0day", "in", "if", "default", "package", "data", "input", "not", "every"} {
		t.Run(id, func(t *testing.T) {
			text := strings.Replace(byThreshold, "flow.f.arbitration", fmt.Sprintf("flow[%q].arbitration", id), 1)
			text = strings.Replace(text, "data.flow.f.", fmt.Sprintf("data.flow[%q].", id), 1)
			b, err := policies.ReadBundle(tarOf(t, content{"a.rego": text, "flow/" + id + "/limits/data.json": `{"passes": 1}`}), policies.BundleConfig{FlowID: id})
			if err != nil {
				t.Fatal(err)
			}
			set, err := defaults(t).WithFlow(b)
			if err != nil {
				t.Fatal(err)
			}
			in := input("unanimous", 0, abi.Pass)
			in.FlowID = id
			if d, err := set.Arbitrate(t.Context(), in); err != nil || d.Decision != "PASS" {
				t.Errorf("%s, %v", d.Decision, err)
			}
		})
	}
}

func TestADecisionInThePlaceOfItsPackage(t *testing.T) {
	text := "package flow.f\n\ndefault arbitration.decision := {\"decision\": \"FAIL\", \"reasons\": [], \"permissive\": false}\n"
	d, err := withFlow(t, content{"a.rego": text}).Arbitrate(t.Context(), input("unanimous", 0, abi.Pass))
	if err != nil || d.Decision != "FAIL" {
		t.Errorf("%s, %v", d.Decision, err)
	}
}

// TestTheBundleOfTheREADME is the example that the README shows.
func TestTheBundleOfTheREADME(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "```rego\n")
	rego, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("the README shows no policy")
	}
	b, err := policies.ReadBundle(tarOf(t, content{"arbitration.rego": rego, "flow/my-flow/limits/data.json": `{"passes": 2}`}), policies.BundleConfig{FlowID: "my-flow"})
	if err != nil {
		t.Fatal(err)
	}
	set, err := defaults(t).WithFlow(b)
	if err != nil {
		t.Fatal(err)
	}
	for want, statuses := range map[string][]abi.Status{"PASS": {abi.Pass, abi.Pass, abi.Fail}, "ESCALATE": {abi.Pass, abi.Fail}} {
		in := input("unanimous", 0, statuses...)
		in.FlowID = "my-flow"
		if d, err := set.Arbitrate(t.Context(), in); err != nil || d.Decision != want {
			t.Errorf("%v: %s, %v; want %s", statuses, d.Decision, err, want)
		}
	}
}
