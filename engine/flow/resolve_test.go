package flow

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/writrun/writ/guest-abi/abi"
)

// module returns a module of a kind that consists of its metadata only.
func module(t *testing.T, kind, name, more string) []byte {
	t.Helper()
	wasm, err := abi.AppendMetadata([]byte("\x00asm\x01\x00\x00\x00"), fmt.Appendf(nil,
		`{"abi":1,"kind":%q,"name":%q,"version":"1.2.3","description":"d","license":"MIT","source":"s"%s}`, kind, name, more))
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

// prepareForTest stands for the sandbox: it reads the metadata, and what it
// prepares depends on the memory budget.
func prepareForTest(wasm []byte, memoryBytesMax uint64, stackProfile string) (PreparedModule, error) {
	text, err := abi.FindMetadata(wasm)
	if err != nil {
		return PreparedModule{}, err
	}
	prepared := fmt.Appendf(bytes.Clone(wasm), "%d", memoryBytesMax)
	m := PreparedModule{Original: abi.DigestOf(wasm), Prepared: abi.DigestOf(prepared), OriginalBytes: wasm, PreparedBytes: prepared}
	m.Metadata, err = abi.ParseMetadata(text)
	return m, err
}

const judgeSchema = `,"wants":[{"capability":"datasets","reason":"r"}],"config_schema":{"type":"object","additionalProperties":false,"properties":{"limit":{"type":"integer"},"names":{"items":{"$ref":"#/$defs/name"}},"ratio":{},"nothing":{}},"$defs":{"name":{"type":"string"}}}`

// checkout makes a folder with everything the whole manifest names.
func checkout(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	rules := `,"wants":[],"rules":[{"rule_id":"evidence","severity":"warning","randomness":"deterministic","target":"any"},{"rule_id":"steps-only","severity":"info","randomness":"sampled","target":"step"}]`
	for name, content := range map[string]string{
		"data/sbom.json":         "abc",
		"data/records/b.json":    "b",
		"data/records/a/1.json":  "1",
		"modules/inventory.wasm": string(module(t, "executor", "inventory", `,"wants":[{"capability":"datasets","reason":"r"}]`)),
		"modules/judge.wasm":     string(module(t, "executor", "judge", judgeSchema)),
		"modules/notify.wasm":    string(module(t, "executor", "notify", `,"wants":[{"capability":"effect:http","reason":"r"}]`)),
		"modules/rules.wasm":     string(module(t, "rule", "rules", rules)),
	} {
		write(t, filepath.Join(dir, name), content)
	}
	return dir
}

func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// resolvable is the whole manifest with the digests of what checkout makes.
func resolvable(t *testing.T) string {
	t.Helper()
	text := wholeFlow
	for _, c := range [][2]string{
		{"sha256:67f022195ee405142968ca1b53ae2513a8bab0404d70577785316fa95218e8ba", string(abi.DigestOf(module(t, "executor", "judge", judgeSchema)))},
		{"      module_digest: sha256:ab22d5ca8de3b3b73fb3fe2ebc2be8c2e7c9a18e5ac6cba9e6b50c1c8d4b1f48\n", ""},
	} {
		text = change(t, text, c[0], c[1])
	}
	return text
}

func mustResolve(t *testing.T, text, dir string) (*Plan, *Materials) {
	t.Helper()
	p, materials, err := Resolve(t.Context(), mustParse(t, text), Resolver{Root: dir, Prepare: prepareForTest})
	if err != nil {
		t.Fatal(err)
	}
	return p, materials
}

func TestResolve(t *testing.T) {
	p, materials := mustResolve(t, resolvable(t), checkout(t))
	if diff := cmp.Diff([]abi.ID{"inventory", "judge", "notify"}, p.Order); diff != "" {
		t.Error(diff)
	}
	wasm := module(t, "executor", "judge", judgeSchema)
	judge := p.Step("judge")
	if judge.Module != (ModulePin{"modules/judge.wasm", abi.DigestOf(wasm), abi.DigestOf(append(wasm, "131072"...)), "judge", "1.2.3"}) {
		t.Errorf("module %+v", judge.Module)
	}
	if diff := cmp.Diff(abi.Limits{Fuel: 1000, MemoryBytes: 131072, OutputBytes: 10, HostCalls: 5, LogBytes: 6, Effects: 7, Artifacts: 8}, judge.Limits); diff != "" {
		t.Error(diff)
	}
	defaults, _ := abi.Limits{}.Resolve()
	if p.Step("inventory").Limits != defaults || p.Step("none").ID != "" {
		t.Error("limits of a step without budget are not the defaults")
	}
	listing := `{"files":[{"path":"a/1.json","executable":false,"size":1,"digest":"` + string(abi.DigestOf([]byte("1"))) +
		`"},{"path":"b.json","executable":false,"size":1,"digest":"` + string(abi.DigestOf([]byte("b"))) + `"}]}`
	want := []PlanDataset{
		{"records", "v2", StateExperimental, abi.DigestOf([]byte(listing)), "file:data/records", true, 2, 2},
		{"sbom", "1", StateFrozen, abi.DigestOf([]byte("abc")), "data/sbom.json", false, 3, 1},
	}
	if diff := cmp.Diff(want, p.Datasets); diff != "" {
		t.Errorf("datasets (-want +got):\n%s", diff)
	}
	if got := string(materials.Datasets["records"].ListingBytes); got != listing {
		t.Errorf("listing %s", got)
	}
	if rules := p.RulesFor(TargetFlow); len(rules) != 1 || rules[0].Severity != "error" || rules[0].Randomness != "deterministic" || len(p.RulesFor("inventory")) != 0 {
		t.Errorf("rules %+v", rules)
	}
	if len(materials.Modules) != 4 || p.Clock.StartNanos != 1769817600_000000000 || p.Clock.StepNanos != 1000 || len(p.Warnings) != 0 {
		t.Errorf("%d modules, clock %+v, warnings %q", len(materials.Modules), p.Clock, p.Warnings)
	}
	f, err := materials.Datasets["sbom"].Open("")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if b, err := io.ReadAll(f); string(b) != "abc" || err != nil {
		t.Errorf("dataset reads as %q, %v", b, err)
	}
}

func TestPlanIsTheSameInAnyCheckout(t *testing.T) {
	p, _ := mustResolve(t, resolvable(t), checkout(t))
	again, _ := mustResolve(t, "# another comment\n"+resolvable(t), checkout(t))
	if p.Digest() != again.Digest() || p.DatasetsDigest() != again.DatasetsDigest() || p.PolicyDigest("x") != again.PolicyDigest("x") {
		t.Errorf("plans differ:\n%s\n%s", p.Canonical(), again.Canonical())
	}
	read, err := ParsePlan("plan", p.Canonical())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(p, read); diff != "" {
		t.Errorf("plan read back (-want +got):\n%s", diff)
	}
}

// Each identity changes with what it covers and with nothing else.
func TestIdentities(t *testing.T) {
	base, _ := mustResolve(t, resolvable(t), checkout(t))
	for _, c := range []struct {
		name, old, new   string
		datasets, policy bool // change
	}{
		{"role", "role: agent", "role: reasoning", false, false},
		{"dataset version", "version: v2", "version: v3", true, false},
		{"dataset state", "state: experimental", "state: frozen", true, false},
		{"threshold", "quorum_threshold: 0.75", "quorum_threshold: 0.8", false, true},
		{"rule config", "config: {}", "config: {a: 1}", false, true},
		{"severity", "severity: error", "severity: info", false, true},
		{"targets", "targets: [judge, flow]", "targets: [judge]", false, true},
		{"fuel of a step", "fuel: 1000", "fuel: 1001", false, false},
	} {
		p, _ := mustResolve(t, change(t, resolvable(t), c.old, c.new), checkout(t))
		if p.Digest() == base.Digest() || p.Manifest == base.Manifest {
			t.Errorf("%s: plan or manifest identity is unchanged", c.name)
		}
		if changed := p.DatasetsDigest() != base.DatasetsDigest(); changed != c.datasets {
			t.Errorf("%s: datasets identity changed: %v", c.name, changed)
		}
		if changed := p.PolicyDigest("x") != base.PolicyDigest("x"); changed != c.policy {
			t.Errorf("%s: policy identity changed: %v", c.name, changed)
		}
	}
	if base.PolicyDigest("x") == base.PolicyDigest("y") {
		t.Error("the arbitration policy is not in the policy identity")
	}
}

func TestWarnings(t *testing.T) {
	for _, c := range []struct{ name, old, new, want string }{
		{"at most once", "delivery: idempotent\n        attempts_max: 2", "delivery: at_most_once", "recovery unsafe: effect http of step notify (grant 1) is at_most_once"},
		{"deprecated dataset", "state: experimental", "state: deprecated", "dataset records is deprecated"},
		{"deprecated flow", "flow_state: validated", "flow_state: deprecated", "flow gate is deprecated"},
		{"wants without grant", "module: modules/inventory.wasm", "module: modules/notify.wasm", "step inventory: its module wants effect http and is not granted it"},
		{"wants no dataset given", "    datasets: [sbom]\n", "", "step inventory: its module wants datasets and is given none"},
	} {
		p, _ := mustResolve(t, change(t, resolvable(t), c.old, c.new), checkout(t))
		if diff := cmp.Diff([]string{c.want}, p.Warnings); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestResolveRefusals(t *testing.T) {
	for _, c := range []struct {
		name     string
		text     func(t *testing.T, text string) string
		dir      func(t *testing.T, dir string)
		codes    []string
		messages []string
		refused  bool // by exit code: a module, not the manifest
	}{
		{"module not there", nil, func(t *testing.T, dir string) { remove(t, dir, "modules/judge.wasm") },
			[]string{CodeModuleMissing}, []string{`29:13: steps[1].module: module "modules/judge.wasm": no such file or directory`}, false},
		{"module is a folder", nil, func(t *testing.T, dir string) {
			remove(t, dir, "modules/judge.wasm")
			write(t, filepath.Join(dir, "modules/judge.wasm/x"), "")
		}, []string{CodeModuleMissing}, []string{`29:13: steps[1].module: module "modules/judge.wasm": not a regular file`}, false},
		{"module is a FIFO", nil, func(t *testing.T, dir string) {
			remove(t, dir, "modules/judge.wasm")
			if err := syscall.Mkfifo(filepath.Join(dir, "modules/judge.wasm"), 0o600); err != nil {
				t.Skip(err)
			}
		}, []string{CodeModuleMissing}, []string{`29:13: steps[1].module: module "modules/judge.wasm": not a regular file`}, false},
		{"module by a link that leads out", nil, func(t *testing.T, dir string) {
			out := filepath.Join(t.TempDir(), "out.wasm")
			if err := os.Rename(filepath.Join(dir, "modules/judge.wasm"), out); err != nil {
				t.Fatal(err)
			}
			link(t, out, filepath.Join(dir, "modules/judge.wasm"))
		}, []string{CodeModuleMissing}, []string{`29:13: steps[1].module: module "modules/judge.wasm": path escapes from parent`}, false},
		{"module not Wasm", nil, func(t *testing.T, dir string) { write(t, filepath.Join(dir, "modules/judge.wasm"), "text") },
			[]string{CodeModuleRefused}, []string{`29:13: steps[1].module: module "modules/judge.wasm": not a WebAssembly core module of version 1`}, true},
		{"module too large", nil, func(t *testing.T, dir string) {
			if err := os.Truncate(filepath.Join(dir, "modules/judge.wasm"), abi.ModuleBytesMax+1); err != nil {
				t.Fatal(err)
			}
		}, []string{CodeModuleTooLarge}, []string{`29:13: steps[1].module: module "modules/judge.wasm": 16777217 bytes are more than 16777216`}, true},
		{"module changed", nil, func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, "modules/judge.wasm"), string(module(t, "executor", "other", "")))
		}, []string{CodeModuleDigest}, []string{`30:20: steps[1].module_digest: module "modules/judge.wasm" is ` +
			string(abi.DigestOf(module(t, "executor", "other", ""))) + ", not " + string(abi.DigestOf(module(t, "executor", "judge", judgeSchema)))}, true},
		{"rule as a step, step as a rule", func(t *testing.T, text string) string {
			return change(t, change(t, text, "module: modules/rules.wasm", "module: modules/inventory.wasm"), "module: modules/notify.wasm", "module: modules/rules.wasm")
		}, nil, []string{CodeModuleKind, CodeModuleKind}, []string{
			`37:13: steps[2].module: module "modules/rules.wasm" is of kind rule`,
			`56:15: verification.rules[0].module: module "modules/inventory.wasm" is of kind executor`}, true},
		{"rule not in the module", func(t *testing.T, text string) string {
			return change(t, text, "rule_id: evidence", "rule_id: evidenz")
		},
			nil, []string{CodeRuleNotInModule}, []string{`55:16: verification.rules[0].rule_id: module "modules/rules.wasm" has no rule "evidenz"`}, true},
		{"rule for steps only", func(t *testing.T, text string) string {
			return change(t, text, "rule_id: evidence", "rule_id: steps-only")
		},
			nil, []string{CodeRuleNotInModule}, []string{`58:24: verification.rules[0].targets[1]: rule steps-only takes a target of kind step only`}, true},
		{"config of another form", func(t *testing.T, text string) string {
			return change(t, text, "{limit: 3, names: [a, b],", "{limit: x, names: [1, b], odd: 1,")
		}, nil, []string{CodeConfigInvalid, CodeConfigInvalid, CodeConfigInvalid}, []string{
			"34:13: steps[1].config: does not fit the module: additional properties 'odd' not allowed",
			"34:21: steps[1].config.limit: does not fit the module: got string, want integer",
			"34:32: steps[1].config.names.0: does not fit the module: got number, want string"}, false},
		{"dataset not there", nil, func(t *testing.T, dir string) { remove(t, dir, "data/sbom.json") },
			[]string{CodeDatasetMissing}, []string{`20:18: datasets[0].storage_uri: dataset sbom at "data/sbom.json": no such file or directory`}, false},
		{"dataset of other bytes", nil, func(t *testing.T, dir string) { write(t, filepath.Join(dir, "data/sbom.json"), "abc\n") },
			[]string{CodeDatasetMismatch}, []string{"19:11: datasets[0].hash: dataset sbom has the bytes of " + string(abi.DigestOf([]byte("abc\n"))) + ", not those of " + string(abi.DigestOf([]byte("abc")))}, false},
		{"dataset is a link", nil, func(t *testing.T, dir string) {
			remove(t, dir, "data/sbom.json")
			link(t, "records/b.json", filepath.Join(dir, "data/sbom.json"))
		}, []string{CodeDatasetEntry}, []string{`20:18: datasets[0].storage_uri: dataset sbom at "data/sbom.json": is a symbolic link`}, false},
		{"everything at once", func(t *testing.T, text string) string { return change(t, text, "rule_id: evidence", "rule_id: none") }, func(t *testing.T, dir string) {
			remove(t, dir, "data/sbom.json")
			remove(t, dir, "modules/inventory.wasm")
		}, []string{CodeDatasetMissing, CodeModuleMissing, CodeRuleNotInModule}, []string{
			`20:18: datasets[0].storage_uri: dataset sbom at "data/sbom.json": no such file or directory`,
			`24:13: steps[0].module: module "modules/inventory.wasm": no such file or directory`,
			`55:16: verification.rules[0].rule_id: module "modules/rules.wasm" has no rule "none"`}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			text, dir := resolvable(t), checkout(t)
			if c.text != nil {
				text = c.text(t, text)
			}
			if c.dir != nil {
				c.dir(t, dir)
			}
			_, _, err := Resolve(t.Context(), mustParse(t, text), Resolver{Root: dir, Prepare: prepareForTest})
			var faults Errors
			if !errors.As(err, &faults) {
				t.Fatalf("error %v", err)
			}
			if diff := cmp.Diff(c.messages, lines(err)); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
			for i, f := range faults {
				if i < len(c.codes) && f.Code != c.codes[i] {
					t.Errorf("code %s, want %s", f.Code, c.codes[i])
				}
			}
			if faults.Refused() != c.refused {
				t.Errorf("refused: %v", faults.Refused())
			}
		})
	}
}

func remove(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, target, name string) {
	t.Helper()
	if err := os.Symlink(target, name); err != nil {
		t.Fatal(err)
	}
}

func TestModuleSchemasThatCannotBeUsed(t *testing.T) {
	for _, c := range []struct{ name, schema, fault string }{
		{"refers to a definition", `{"properties":{"limit":{"$ref":"#/$defs/a"}},"$defs":{"a":{"type":"integer"}}}`, ""},
		{"refers to its root", `{"properties":{"a":{"$ref":"#"}}}`, "leads nowhere"},
		{"refers to itself", `{"$ref":"#/$defs/a","$defs":{"a":{"items":{"$ref":"#/$defs/a"}}}}`, "refers to itself"},
		{"refers around", `{"$ref":"#/$defs/a","$defs":{"a":{"not":{"$ref":"#/$defs/b"}},"b":{"not":{"$ref":"#/$defs/a"}}}}`, "refers to itself"},
		{"refers by an anchor", `{"$ref":"#a","$defs":{"a":{"$anchor":"a"}}}`, "leads nowhere"},
		{"unfolds without end", bomb(), "it unfolds to more than 100000 schemas"},
		{"not a schema", `{"type":"thing"}`, "config_schema of module judge"},
		{"refers to nothing", `{"$ref":"#/$defs/none"}`, "config_schema of module judge"},
		{"of an unknown dialect", `{"$schema":"https://example.org/s"}`, "config_schema of module judge"},
		{"pattern that is none", `{"pattern":"("}`, "config_schema of module judge"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := checkout(t)
			wasm := module(t, "executor", "judge", `,"wants":[],"config_schema":`+c.schema)
			write(t, filepath.Join(dir, "modules/judge.wasm"), string(wasm))
			text := strings.Replace(resolvable(t), string(abi.DigestOf(module(t, "executor", "judge", judgeSchema))), string(abi.DigestOf(wasm)), 1)
			_, _, err := Resolve(t.Context(), mustParse(t, text), Resolver{Root: dir, Prepare: prepareForTest})
			if c.fault == "" && err != nil || c.fault != "" && (err == nil || !strings.Contains(err.Error(), c.fault)) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// bomb is a schema of 40 definitions that each refer twice to the next.
func bomb() string {
	var b strings.Builder
	b.WriteString(`{"$ref":"#/$defs/d0","$defs":{`)
	for i := range 40 {
		fmt.Fprintf(&b, `"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	return b.String() + `"d40":{}}}`
}

func TestDatasetEntries(t *testing.T) {
	for _, c := range []struct {
		name  string
		make  func(t *testing.T, dir string)
		fault string
	}{
		{"NFD name", func(t *testing.T, dir string) { write(t, filepath.Join(dir, "e\u0301"), "") }, ""},
		{"hidden file", func(t *testing.T, dir string) { write(t, filepath.Join(dir, ".a"), "") }, ""},
		{"link to a file", func(t *testing.T, dir string) { link(t, "a", filepath.Join(dir, "l")) }, `"l" is a symbolic link`},
		{"link to nothing", func(t *testing.T, dir string) { link(t, "none", filepath.Join(dir, "sub/l")) }, `"sub/l" is a symbolic link`},
		{"FIFO", func(t *testing.T, dir string) {
			if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
				t.Skip(err)
			}
		}, `"pipe" is a FIFO`},
		{"empty folder", func(t *testing.T, dir string) {
			if err := os.Mkdir(filepath.Join(dir, "sub/none"), 0o755); err != nil {
				t.Fatal(err)
			}
		}, `"sub/none" is an empty folder`},
		{"case twin", func(t *testing.T, dir string) { write(t, filepath.Join(dir, "A"), "") }, `"a" is the twin of "A"`},
		{"case twin folder", func(t *testing.T, dir string) { write(t, filepath.Join(dir, "SUB/x"), "") }, `"sub" is the twin of "SUB"`},
		{"sharp s", func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, "ss"), "")
			write(t, filepath.Join(dir, "ß"), "")
		}, `"ß" is the twin of "ss"`},
		{"NFC and NFD", func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, "é"), "")
			write(t, filepath.Join(dir, "e\u0301"), "")
		}, "is the twin of"},
		{"not UTF-8", func(t *testing.T, dir string) { write(t, filepath.Join(dir, "\xff"), "") }, `"\xff" is a name that is not UTF-8`},
		{"line break", func(t *testing.T, dir string) { write(t, filepath.Join(dir, "a\nb"), "") }, "is a name with control characters"},
		{"backslash", func(t *testing.T, dir string) { write(t, filepath.Join(dir, `a\b`), "") }, "is a name with a backslash"},
		{"too deep", func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, strings.Repeat("d/", DatasetFolderDepthMax+1)+"x"), "")
		}, "is nested deeper than 64"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "d/a"), "a")
			write(t, filepath.Join(dir, "d/sub/b"), "b")
			c.make(t, filepath.Join(dir, "d"))
			_, err := pinDataset(t.Context(), dir, "d")
			if c.fault == "" && err != nil || c.fault != "" && (err == nil || !strings.Contains(err.Error(), c.fault)) {
				t.Errorf("error %v, want %q", err, c.fault)
			}
		})
	}
}

// Whatever differs in a dataset gives another digest.
func TestDatasetIdentity(t *testing.T) {
	pin := func(change func(dir string)) abi.Digest {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "d/rows.csv"), strings.Repeat("row\n", 10_001))
		write(t, filepath.Join(dir, "d/sub/x"), "x")
		change(filepath.Join(dir, "d"))
		d, err := pinDataset(t.Context(), dir, "d")
		if err != nil {
			t.Fatal(err)
		}
		return d.Digest
	}
	seen := map[abi.Digest]string{}
	for name, change := range map[string]func(dir string){
		"as it is":    func(string) {},
		"last row":    func(dir string) { write(t, filepath.Join(dir, "rows.csv"), strings.Repeat("row\n", 10_000)+"rot\n") },
		"CRLF":        func(dir string) { write(t, filepath.Join(dir, "rows.csv"), strings.Repeat("row\r\n", 10_001)) },
		"new file":    func(dir string) { write(t, filepath.Join(dir, "y"), "") },
		"less a file": func(dir string) { remove(t, dir, "sub") },
		"moved": func(dir string) {
			if err := os.Rename(filepath.Join(dir, "sub"), filepath.Join(dir, "tub")); err != nil {
				t.Fatal(err)
			}
		},
		"executable": func(dir string) {
			if err := os.Chmod(filepath.Join(dir, "rows.csv"), 0o755); err != nil {
				t.Fatal(err)
			}
		},
	} {
		d := pin(change)
		if other, taken := seen[d]; taken {
			t.Errorf("%q and %q have one digest", name, other)
		}
		seen[d] = name
	}
	if pin(func(string) {}) != pin(func(string) {}) {
		t.Error("one dataset has two digests")
	}
}

func TestDatasetAtAnAbsolutePath(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a b"), "abc")
	d, err := pinDataset(t.Context(), "/nowhere", "file://"+filepath.Join(dir, "a%20b"))
	if err != nil || d.Digest != abi.DigestOf([]byte("abc")) {
		t.Fatalf("%+v, %v", d, err)
	}
	if f, err := d.Open(""); err != nil {
		t.Error(err)
	} else if err := f.Close(); err != nil {
		t.Error(err)
	}
}

func TestLock(t *testing.T) {
	dir := checkout(t)
	p, _ := mustResolve(t, resolvable(t), dir)
	file := (&Lock{Plan: p, Manifest: mustParse(t, resolvable(t))}).Bytes()
	if !IsLock(file) || IsLock([]byte(resolvable(t))) || IsLock(mustParse(t, resolvable(t)).Canonical()) {
		t.Error("plan files and manifests are mistaken for each other")
	}
	l, err := ParseLock("flow.plan.json", file)
	if err != nil {
		t.Fatal(err)
	}
	resolver := Resolver{Root: dir, Prepare: prepareForTest}
	materials, err := l.Resolve(t.Context(), resolver)
	if err != nil || len(materials.Modules) != 4 || l.Plan.Digest() != p.Digest() {
		t.Fatalf("%v", err)
	}

	other := module(t, "executor", "inventory", "")
	write(t, filepath.Join(dir, "modules/inventory.wasm"), string(other))
	write(t, filepath.Join(dir, "data/records/b.json"), "c")
	_, err = l.Resolve(t.Context(), resolver)
	want := []string{
		" plan.datasets.records: dataset is ", " plan.steps.inventory: module \"modules/inventory.wasm\" is " + string(abi.DigestOf(other)),
	}
	got := lines(err)
	if len(got) != len(want) {
		t.Fatalf("differences %q", got)
	}
	for i := range want {
		if !strings.Contains(err.Error(), want[i]) {
			t.Errorf("no %q in %v", want[i], err)
		}
	}
}

func TestPlanFilesThatWereChanged(t *testing.T) {
	dir := checkout(t)
	p, _ := mustResolve(t, resolvable(t), dir)
	file := string((&Lock{Plan: p, Manifest: mustParse(t, resolvable(t))}).Bytes())
	for _, c := range []struct{ name, old, new, fault string }{
		{"not JSON", "{", "", "invalid JSON"},
		{"version", `"writ_plan":1`, `"writ_plan":2`, "writ_plan: 2 is not between 1 and 1"},
		{"plan version", `"plan_version":1`, `"plan_version":2`, "plan version 2 is not known"},
		{"unknown field", `"writ_plan":1`, `"writ_plan":1,"x":1`, `unknown field "x"`},
		{"unknown field in the plan", `"plan_version":1`, `"plan_version":1,"x":1`, "not a plan: "},
		{"field in other case", `"plan_version":1`, `"Plan_version":1`, "not a plan in its canonical form"},
		{"field missing", `"tenant_id":"acme","warnings":[]`, `"tenant_id":"acme"`, "not a plan in its canonical form"},
		{"manifest changed", `"justification":"tells people the result","source":"external"}],"replay`, `"justification":"tells nobody","source":"external"}],"replay`, "the plan is of manifest"},
		{"order changed", `"order":["inventory","judge","notify"]`, `"order":["judge","inventory","notify"]`, `step 0 is "inventory" and in the order it is "judge"`},
		{"step missing in the order", `"order":["inventory","judge","notify"]`, `"order":["inventory","judge"]`, "order has 2 steps and 3 are described"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := ParseLock("flow.plan.json", []byte(strings.Replace(file, c.old, c.new, 1)))
			if err == nil || !strings.Contains(err.Error(), c.fault) {
				t.Errorf("error %v, want %q", err, c.fault)
			}
		})
	}
	if _, err := ParseLock("x", bytes.Repeat([]byte(" "), PlanBytesMax+1)); err == nil || !strings.Contains(err.Error(), "more than the 16777216") {
		t.Errorf("too large: %v", err)
	}
	// A plan whose numbers were edited is caught when it is resolved again.
	at := strings.LastIndex(file, `"fuel":1000,`)
	edited, err := ParseLock("flow.plan.json", []byte(file[:at]+strings.Replace(file[at:], "1000", "9999", 1)))
	if err != nil || edited.Plan.Step("judge").Limits.Fuel != 9999 {
		t.Fatalf("edited plan: %v", err)
	}
	_, err = edited.Resolve(t.Context(), Resolver{Root: dir, Prepare: prepareForTest})
	if err == nil || !strings.Contains(err.Error(), "plan: this build makes plan "+string(p.Digest())) {
		t.Errorf("edited plan: %v", err)
	}
}

func TestResolveEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := Resolve(ctx, mustParse(t, resolvable(t)), Resolver{Root: checkout(t), Prepare: prepareForTest})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestEveryCodeIsExplained(t *testing.T) {
	docs := Codes()
	for _, code := range append([]string{CodePlanFile, CodePlanDiffers, CodeTooManyFaults, CodeTooLarge}, moduleCodes...) {
		if _, ok := docs[code]; !ok {
			t.Errorf("code %s is not explained", code)
		}
	}
	source, err := os.ReadFile("codes.go")
	if err != nil {
		t.Fatal(err)
	}
	constants, _, _ := strings.Cut(string(source), "// Codes explains")
	if got := strings.Count(constants, ` = "`); got != len(docs) {
		t.Errorf("%d codes and %d explanations", got, len(docs))
	}
	for code, doc := range docs {
		if doc.Cause == "" || doc.Remedy == "" {
			t.Errorf("code %s has no cause or remedy", code)
		}
	}
}

func FuzzParsePlan(f *testing.F) {
	f.Add([]byte(`{"writ_plan":1,"plan":{},"manifest":{}}`))
	f.Add([]byte(`{"plan_version":1,"order":["a"],"steps":[{"id":"a"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if p, err := ParsePlan("p", data); err == nil {
			again, err := ParsePlan("p", p.Canonical())
			if err != nil || again.Digest() != p.Digest() {
				t.Fatalf("plan reads back as another: %v", err)
			}
		}
		if l, err := ParseLock("p", data); err == nil {
			if _, err := ParseLock("p", l.Bytes()); err != nil {
				t.Fatalf("plan file reads back with %v", err)
			}
		}
	})
}
