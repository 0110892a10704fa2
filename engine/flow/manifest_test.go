package flow

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"

	"github.com/writrun/writ/guest-abi/abi"
)

//go:embed testdata/flow.yaml
var wholeFlow string

// minimal is the least a manifest states.
const minimal = `manifest: 1
flow_id: small
tenant_id: acme
flow_state: draft
determinism_level: strict
replay_mode: strict
replay_acceptability: exact_match
steps:
  - {id: only, module: m.wasm, role: agent, claims: false}
`

func mustParse(t *testing.T, text string) *Manifest {
	t.Helper()
	m, err := ParseManifest("flow.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// change replaces old by new in text, which must hold it once.
func change(t *testing.T, text, old, new string) string {
	t.Helper()
	if strings.Count(text, old) != 1 {
		t.Fatalf("%q is %d times in the text", old, strings.Count(text, old))
	}
	return strings.Replace(text, old, new, 1)
}

// lines writes each fault as line:column: path: message.
func lines(err error) []string {
	var faults Errors
	if !errors.As(err, &faults) {
		return []string{fmt.Sprint(err)}
	}
	var out []string
	for _, f := range faults {
		out = append(out, strings.TrimPrefix(f.Error(), f.File+":"))
	}
	return out
}

var manifestSchemaForTest = func() *jsonschema.Schema {
	s, err := compileSchema(Schema())
	if err != nil {
		panic(err)
	}
	return s
}()

// schemaAccepts asks the published schema about a manifest that can be read.
func schemaAccepts(t *testing.T, text string) bool {
	t.Helper()
	r := &reader{file: "flow.yaml", places: map[string]position{}}
	tree := parseYAML(r, []byte(text))
	if tree == nil || len(r.faults) > 0 {
		t.Fatalf("not YAML: %v", r.faults)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(tree.canonical()))
	if err != nil {
		t.Fatal(err)
	}
	return manifestSchemaForTest.Validate(v) == nil
}

func TestWholeManifest(t *testing.T) {
	m := mustParse(t, wholeFlow)
	notify := m.Steps[2]
	want := Effect{Driver: "http", Intent: "external",
		Allow:    []Allow{{Methods: []string{"GET", "POST"}, URLPrefix: "http://127.0.0.1:8787/release"}},
		Networks: []string{"127.0.0.0/8"}, RequestBytesMax: 1000, ResponseBytesMax: 2000, TimeoutMillis: 3000,
		Delivery: DeliveryIdempotent, AttemptsMax: 2, Secrets: []Secret{{"TOKEN", "Authorization"}}}
	if diff := cmp.Diff([]Effect{want}, notify.Effects); diff != "" {
		t.Errorf("effects (-want +got):\n%s", diff)
	}
	if got := string(m.Steps[1].Config); got != `{"limit":3,"names":["a","b"],"nothing":null,"ratio":0.5}` {
		t.Errorf("config %s", got)
	}
	limits := abi.Limits{Fuel: 1000, MemoryBytes: 131072, OutputBytes: 10, HostCalls: 5, LogBytes: 6, Effects: 7, Artifacts: 8}
	if m.Steps[1].Budget != limits || notify.Requires != RequiresPassPermissive || m.Seed == nil || m.Seed[31] != 31 {
		t.Errorf("budget %+v, requires %q, seed %v", m.Steps[1].Budget, notify.Requires, m.Seed)
	}
	if diff := cmp.Diff([]string{"judge", "flow"}, m.Rules[0].Targets); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(&Arbitration{ArbitrationQuorum, 0.75}, m.Arbitration); diff != "" {
		t.Error(diff)
	}
}

// Each case is one change to the whole manifest, accepted beside refused.
func TestManifestCases(t *testing.T) {
	for _, c := range []struct {
		name, old, new string
		faults         []string // none: accepted
		beyondSchema   bool     // the schema cannot say it
	}{
		{"comment", "manifest: 1", "manifest: 1 # one", nil, false},
		{"stack profile", "flow_id: gate", "flow_id: gate\nstack_profile: deep", nil, false},
		{"unknown stack profile", "flow_id: gate", "flow_id: gate\nstack_profile: huge", []string{`4:16: stack_profile: "huge" is not known here`}, false},
		{"quoted text", "flow_id: gate", `"flow_id": "gate"`, nil, false},
		{"text over lines", "justification: tells people the result", "justification: \"tells people\n      the result\"", nil, false},
		{"other version", "manifest: 1", "manifest: 2", []string{"2:11: manifest: 2 is not between 1 and 1"}, false},
		{"version as text", "manifest: 1", `manifest: "1"`, []string{"2:11: manifest: found text where a number is expected"}, false},
		{"unknown field", "flow_id: gate", "flow_id: gate\nflowid: x", []string{`4:1: flowid: unknown field "flowid"`}, false},
		{"unknown field inside", "role: agent", "role: agent\n    rule: x", []string{`39:5: steps[2].rule: unknown field "rule"`}, false},
		{"field in other case", "flow_id: gate", "flow_Id: gate", []string{`2:1: flow_id: field "flow_id" is missing`, `3:1: flow_Id: unknown field "flow_Id"`}, false},
		{"field without value", "role: agent", "role:", []string{"38:10: steps[2].role: found nothing where text is expected"}, false},
		{"field twice", "role: agent", "role: agent\n    role: agent", []string{`39:5: steps[2].role: field "role" is given twice, first at line 38`}, true},
		{"boolean as text", "claims: false\n    datasets", "claims: \"no\"\n    datasets", []string{"26:13: steps[0].claims: found text where a boolean is expected"}, false},
		{"list instead of an object", "clock: {kind: virtual, start: 2026-01-31T00:00:00Z, step_ns: 1000}", "clock: []", []string{"10:8: clock: found a list where an object is expected"}, false},
		{"id with capitals", "flow_id: gate", "flow_id: Gate", []string{`3:10: flow_id: id "Gate" has 'G' at byte 0; allowed is [a-z0-9][a-z0-9_-]{0,62}`}, false},
		{"reserved id", "id: inventory", "id: control", []string{`23:9: steps[0].id: id "control" is reserved`}, false},
		{"id of 63 bytes", "flow_id: gate", "flow_id: " + strings.Repeat("g", 63), nil, false},
		{"id of 64 bytes", "flow_id: gate", "flow_id: " + strings.Repeat("g", 64), []string{"3:10: flow_id: id of 64 bytes is longer than 63"}, false},
		{"duplicate step", "id: notify", "id: judge", []string{`36:9: steps[2].id: "judge" is already that of steps[1]`}, true},
		{"duplicate dataset", "id: records", "id: sbom", []string{`21:10: datasets[1].id: "sbom" is already that of datasets[0]`, `33:16: steps[1].datasets[0]: no dataset is named "records"`}, true},
		{"unknown need", "needs: [judge]", "needs: [jugde]", []string{`39:13: steps[2].needs[0]: no step is named "jugde"`}, true},
		{"need named twice", "needs: [judge]", "needs: [judge, judge]", []string{`39:20: steps[2].needs[1]: "judge" is named twice`}, false},
		{"unknown dataset", "datasets: [sbom]", "datasets: [bom]", []string{`27:16: steps[0].datasets[0]: no dataset is named "bom"`}, true},
		{"unknown target", "targets: [judge, flow]", "targets: [judge, flow, gate]", []string{`59:30: verification.rules[0].targets[2]: no step is named "gate"`}, true},
		{"needs itself", "needs: [inventory]", "needs: [judge]", []string{"32:12: steps[1].needs: steps need each other in a circle: judge needs judge"}, true},
		{"fuel of nothing", "fuel: 1000", "fuel: 0", []string{"35:20: steps[1].budget.fuel: 0 is not between 1 and 10000000000000"}, false},
		{"fuel at the ceiling", "fuel: 1000", "fuel: 10000000000000", nil, false},
		{"fuel above the ceiling", "fuel: 1000", "fuel: 10000000000001", []string{"35:20: steps[1].budget.fuel: 10000000000001 is not between 1 and 10000000000000"}, false},
		{"fuel below zero", "fuel: 1000", "fuel: -1", []string{"35:20: steps[1].budget.fuel: -1 is not between 1 and 10000000000000"}, false},
		{"fuel in parts", "fuel: 1000", "fuel: 1.5", []string{"35:20: steps[1].budget.fuel: 1.5 is not an integer"}, false},
		{"budget of an unknown thing", "fuel: 2000", "artifacts: 1", []string{`61:16: verification.rules[0].budget.artifacts: unknown field "artifacts"`}, false},
		{"integer at 2^53-1", "limit: 3", "limit: 9007199254740991", nil, false},
		{"threshold of half", "quorum_threshold: 0.75", "quorum_threshold: 0.5", []string{"62:49: verification.arbitration.quorum_threshold: 0.5 is not above 0.5 and at most 1"}, false},
		{"threshold of all", "quorum_threshold: 0.75", "quorum_threshold: 1", nil, false},
		{"threshold without quorum", "rule: quorum", "rule: unanimous", []string{"62:16: verification.arbitration.quorum_threshold: quorum_threshold and rule unanimous do not go together"}, false},
		{"quorum without threshold", ", quorum_threshold: 0.75", "", []string{"62:16: verification.arbitration.quorum_threshold: quorum_threshold and rule quorum do not go together"}, false},
		{"level and mode", "replay_mode: bounded", "replay_mode: observational", []string{
			"7:14: replay_mode: observational is not legal with determinism_level bounded",
			"9:18: replay_envelope: belongs to replay_mode bounded only, which is observational"}, true},
		{"no envelope", "replay_envelope: {min_claim_overlap: 0.9, max_contradiction_delta: 2}\n", "", []string{"2:1: replay_envelope: is missing where replay_mode is bounded"}, true},
		{"overlap above one", "min_claim_overlap: 0.9", "min_claim_overlap: 1.1", []string{"9:38: replay_envelope.min_claim_overlap: 1.1 is not at least 0 and at most 1"}, false},
		{"frozen flow, experimental data", "flow_state: validated", "flow_state: frozen", []string{"21:39: datasets[1].state: a frozen flow reads frozen datasets only, and records is experimental"}, true},
		{"clock with offset of none", "00:00:00Z", "00:00:00+00:00", nil, false},
		{"clock with offset", "00:00:00Z", "00:00:00+01:00", []string{`10:31: clock.start: "2026-01-31T00:00:00+01:00" is not an RFC 3339 time from 1970 to 2261, in UTC`}, false},
		{"clock before 1970", "2026-01-31", "1969-12-31", []string{`10:31: clock.start: "1969-12-31T00:00:00Z" is not an RFC 3339 time from 1970 to 2261, in UTC`}, true},
		{"clock on no day", "2026-01-31", "2026-02-31", []string{`10:31: clock.start: "2026-02-31T00:00:00Z" is not an RFC 3339 time from 1970 to 2261, in UTC`}, true},
		{"wall clock", "kind: virtual", "kind: wall", []string{`10:15: clock.kind: "wall" is not known here`}, false},
		{"seed in capitals", "0a0b0c0d", "0A0B0C0D", []string{`11:7: seed: seed "000102030405060708090A0B0C0D0e0f101112131415161718191a1b1c1d1e1f" is not 64 lower-case hex digits`}, false},
		{"version as number", `version: "1"`, "version: 1", []string{"17:14: datasets[0].version: found a number where text is expected"}, false},
		{"hash in short", "hash: sha256:ba7816bf", "hash: sha256:7816bf", []string{`19:11: datasets[0].hash: digest "sha256:7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" is not "sha256:" and 64 lower-case hex digits`}, false},
		{"data outside", "storage_uri: data/sbom.json", "storage_uri: ../sbom.json", []string{`20:18: datasets[0].storage_uri: path "../sbom.json" leads out of the manifest's folder`}, true},
		{"data at an absolute path", "storage_uri: data/sbom.json", "storage_uri: file:///srv/sbom.json", nil, false},
		{"data at a bare absolute path", "storage_uri: data/sbom.json", "storage_uri: /srv/sbom.json", []string{`20:18: datasets[0].storage_uri: path "/srv/sbom.json" is absolute`}, true},
		{"data on the web", "storage_uri: data/sbom.json", "storage_uri: https://example.org/sbom.json", []string{`20:18: datasets[0].storage_uri: storage_uri scheme "https" is not known; file is`}, true},
		{"data on another host", "storage_uri: data/sbom.json", "storage_uri: file://host/sbom.json", []string{"20:18: datasets[0].storage_uri: storage_uri of an absolute path is file:///PATH, without a host"}, true},
		{"module in odd spelling", "module: modules/judge.wasm", "module: modules//judge.wasm", []string{`29:13: steps[1].module: path "modules//judge.wasm" is not in its plain form "modules/judge.wasm"`}, true},
		{"effect without intent", "source: external", "source: human", []string{"44:17: steps[2].effects[0].intent: no nondeterminism_intent of source external covers this effect"}, true},
		{"human effect, no human source", "- driver: http\n        intent: external", "- driver: http\n        intent: human", []string{
			"44:17: steps[2].effects[0].intent: no nondeterminism_intent of source human covers this effect",
			"44:17: steps[2].effects[0].intent: draws on human_input, which is not among the allowed sources (data, external_oracle, seeded_rng)"}, true},
		{"data not allowed", "[seeded_rng, data, external_oracle]", "[seeded_rng, external_oracle]", []string{
			"27:15: steps[0].datasets: draws on data, which is not among the allowed sources (external_oracle, seeded_rng)",
			"33:15: steps[1].datasets: draws on data, which is not among the allowed sources (external_oracle, seeded_rng)"}, true},
		{"degrade", "exhaustion_action: halt", "exhaustion_action: degrade", []string{`12:91: entropy_budget.exhaustion_action: "degrade" is not known here`}, false},
		{"claims nobody verifies", "targets: [judge, flow]", "targets: [flow]", []string{
			"28:5: steps[1]: step judge makes claims and is the target of no rule",
			"40:15: steps[2].requires: step notify requires pass_permissive, and nothing it needs is the target of a rule"}, true},
		{"no claims, no rule", "targets: [judge, flow]", "targets: [flow, inventory, judge]", nil, false},
		{"at most once, twice", "delivery: idempotent", "delivery: at_most_once", []string{"51:23: steps[2].effects[0].attempts_max: delivery at_most_once has one attempt"}, true},
		{"network with host bits", "127.0.0.0/8", "127.0.0.1/8", []string{`46:20: steps[2].effects[0].networks[0]: "127.0.0.1/8" is not a network in its plain form`}, true},
		{"method in lower case", "[POST, GET]", "[post]", []string{`45:28: steps[2].effects[0].allow[0].methods[0]: "post" is not known here`}, false},
		{"header with a space", "header: Authorization", "header: X Y", []string{`52:41: steps[2].effects[0].secrets[0].header: "X Y" has other characters`}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := change(t, wholeFlow, c.old, c.new)
			_, err := ParseManifest("flow.yaml", []byte(text))
			var got []string
			if err != nil {
				got = lines(err)
			}
			if diff := cmp.Diff(c.faults, got); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
			if c.name == "field twice" {
				return // no JSON value has it
			}
			if accepted, want := schemaAccepts(t, text), c.faults == nil || c.beyondSchema; accepted != want {
				t.Errorf("the schema accepts it: %v; want %v", accepted, want)
			}
		})
	}
}

func TestEveryRequiredFieldIsRequired(t *testing.T) {
	for _, name := range []string{"manifest", "flow_id", "tenant_id", "flow_state", "determinism_level", "replay_mode", "replay_acceptability", "steps"} {
		text := "x-" + strings.SplitN("\n"+minimal, "\n"+name+":", 2)[0]
		var kept []string
		skip := false
		for line := range strings.Lines(minimal) {
			if !strings.HasPrefix(line, " ") {
				skip = strings.HasPrefix(line, name+":")
			}
			if !skip {
				kept = append(kept, line)
			}
		}
		text = strings.Join(kept, "")
		_, err := ParseManifest("flow.yaml", []byte(text))
		if want := fmt.Sprintf("%s: field %q is missing", name, name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("without %s: %v", name, err)
		}
		if schemaAccepts(t, text) {
			t.Errorf("the schema accepts a manifest without %s", name)
		}
	}
}

func TestUnreadableManifests(t *testing.T) {
	deep := func(n int) string {
		return minimal + "x: " + strings.Repeat("[", n) + strings.Repeat("]", n) + "\n"
	}
	for _, c := range []struct{ name, file, text, fault string }{
		{"empty", "f.yaml", "", "1:1: the file is empty"},
		{"comment only", "f.yaml", "# nothing\n", "1:1: "},
		{"a list", "f.yaml", "- manifest: 1\n", "1:1: found a list where an object is expected"},
		{"text", "f.yaml", "manifest\n", "1:1: found text where an object is expected"},
		{"byte order mark", "f.yaml", "\ufeffmanifest: 1\n", "1:1: the file begins with a byte order mark"},
		{"invalid UTF-8", "f.yaml", "manifest: 1\nflow_id: \"a\xff\"\n", "2:12: invalid UTF-8"},
		{"zero byte", "f.yaml", "manifest: 1\x00\n", "1:12: a control character"},
		{"two documents", "f.yaml", minimal + "---\n" + minimal, "the file holds 2 YAML documents"},
		{"anchor", "f.yaml", "a: &x 1\nb: *x\n", "1:4: anchors and aliases are not accepted"},
		{"alias bomb", "f.yaml", "a: &a [x,x]\nb: &b [*a,*a]\nc: &c [*b,*b]\nd: [*c,*c]\n", "anchors and aliases are not accepted"},
		{"merge key", "f.yaml", "a:\n  <<: {b: 1}\n", "2:3: merge keys are not accepted"},
		{"tag", "f.yaml", "a: !!binary aGk=\n", "1:4: tags are not accepted"},
		{"directive", "f.yaml", "%YAML 1.2\n---\na: 1\n", "directives are not accepted"},
		{"explicit key", "f.yaml", "? a\n: 1\n", "1:1: explicit keys (?) are not accepted"},
		{"tab for indentation", "f.yaml", "a:\n\tb: 1\n", "2:"},
		{"open list", "f.yaml", "a: [1, 2\n", "1:"},
		{"open quote", "f.yaml", "a: \"x\n", "1:"},
		{"key that is a number", "f.yaml", "1: x\n", `1:1: key "1" is not text`},
		{"octal", "f.yaml", "a: 0o17\n", `a: number "0o17" is not in the decimal form of JSON`},
		{"hexadecimal", "f.yaml", "a: 0x10\n", `a: number "0x10" is not in the decimal form of JSON`},
		{"underscores", "f.yaml", "a: 1_000\n", `a: number "1_000" is not in the decimal form of JSON`},
		{"infinity", "f.yaml", "a: .inf\n", `a: number ".inf" is not in the decimal form of JSON`},
		{"not a number", "f.yaml", "a: .nan\n", `a: number ".nan" is not in the decimal form of JSON`},
		{"beyond 2^53", "f.yaml", "a: 9007199254740992\n", "a: integer 9007199254740992 is beyond 2^53-1"},
		{"far beyond 2^64", "f.yaml", "a: 18446744073709551617\n", "a: integer 18446744073709551617 is beyond 2^53-1"},
		{"leading zeros", "f.yaml", "a: 008\n", `a: number "008" is not in the decimal form of JSON`},
		{"long hexadecimal", "f.yaml", "a: 0xffffffffffffffffff\n", `a: number "0xffffffffffffffffff" is not in the decimal form of JSON`},
		{"huge float", "f.yaml", "a: 1e400\n", "a: number 1e400 is beyond 2^53-1"},
		{"boolean in capitals", "f.yaml", "a: True\n", `a: "True" is not a plain boolean`},
		{"too deep", "f.yaml", deep(DepthMax + 1), "nested deeper than 64"},
		{"far too deep", "f.yaml", "a: " + strings.Repeat("[", 20000), "nested deeper than 64"},
		{"too deep by dashes", "f.yaml", strings.Repeat("- ", 10000), "nested deeper than 64"},
		{"too many words", "f.yaml", "a: [" + strings.Repeat("1,", YAMLTokensMax) + "1]", "more than 30000 words and signs"},
		{"too large", "f.yaml", strings.Repeat("#\n", ManifestBytesMax), "2097152 bytes are more than the 1048576 a manifest may have"},
		{"JSON with a comment", "f.json", "{ # no\n}", "1:3: invalid JSON"},
		{"JSON with a key twice", "f.json", "{\n \"a\": 1,\n \"a\": 2}", "3:2: invalid JSON: "},
		{"JSON too deep", "f.json", strings.Repeat("[", 100), "1:65: invalid JSON: "},
		{"JSON by its first byte", "-", "{,}", "1:2: invalid JSON"},
		{"JSON cut short", "-", `{"manifest": 1`, "1:15: invalid JSON"},
		{"JSON with a lone surrogate", "f.json", `{"a": "\ud800"}`, "1:"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := ParseManifest(c.file, []byte(c.text))
			if err == nil || !strings.Contains(err.Error(), c.fault) || !strings.HasPrefix(err.Error(), c.file+":") {
				t.Errorf("error %v, want %q", err, c.fault)
			}
		})
	}
}

func TestFaultsAreBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString(minimal)
	for i := range 3 * ErrorsMax {
		fmt.Fprintf(&b, "x%d: 1\n", i)
	}
	_, err := ParseManifest("flow.yaml", []byte(b.String()))
	var faults Errors
	if !errors.As(err, &faults) || len(faults) != ErrorsMax+1 || faults[ErrorsMax].Message != "200 more faults are not listed" {
		t.Errorf("%d faults: %v", len(faults), faults[len(faults)-1])
	}
}

func TestHints(t *testing.T) {
	for _, c := range []struct{ old, new, hint string }{
		{"flow_id: small", "flow_di: small", "known here: flow_id"},
		{"flow_state: draft", "flow_state: done", "one of draft, validated, frozen, deprecated"},
		{"claims: false", "claims: true", "add it to the targets of a rule, or state claims: false"},
		{"tenant_id: acme", "tenant_id: 7", "quote it"},
	} {
		_, err := ParseManifest("flow.yaml", []byte(change(t, minimal, c.old, c.new)))
		if err == nil || !strings.Contains(err.Error(), "("+c.hint+")") {
			t.Errorf("%s: %v", c.new, err)
		}
	}
}

func TestCycleIsNamedInFull(t *testing.T) {
	text := change(t, minimal, "  - {id: only, module: m.wasm, role: agent, claims: false}\n", `  - {id: z, module: m.wasm, role: agent, claims: false, needs: [c]}
  - {id: c, module: m.wasm, role: agent, claims: false, needs: [a, free]}
  - {id: a, module: m.wasm, role: agent, claims: false, needs: [b]}
  - {id: b, module: m.wasm, role: agent, claims: false, needs: [c]}
  - {id: free, module: m.wasm, role: agent, claims: false}
`)
	_, err := ParseManifest("flow.yaml", []byte(text))
	if want := "steps need each other in a circle: a needs b needs c needs a"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v", err)
	}
}

// Every combination of level, mode, acceptability and envelope is either legal
// by the table of the design or refused.
func TestLegalLevels(t *testing.T) {
	legalModes := map[string]string{"strict": "strict", "bounded": "strict bounded", "probabilistic": "bounded observational", "unconstrained": "observational"}
	legalKinds := map[string]string{"strict": "exact_match", "bounded": "exact_match invariant_preserving"}
	for level, modes := range legalModes {
		for _, mode := range []string{"strict", "bounded", "observational"} {
			for _, kind := range []string{"exact_match", "invariant_preserving", "statistically_bounded"} {
				for _, envelope := range []bool{false, true} {
					text := strings.NewReplacer("level: strict", "level: "+level, "mode: strict", "mode: "+mode, "exact_match", kind).Replace(minimal)
					if envelope {
						text += "replay_envelope: {min_claim_overlap: 1, max_contradiction_delta: 0}\n"
					}
					kinds, limited := legalKinds[level]
					want := slices.Contains(strings.Fields(modes), mode) && (!limited || slices.Contains(strings.Fields(kinds), kind)) && envelope == (mode == "bounded")
					if _, err := ParseManifest("flow.yaml", []byte(text)); (err == nil) != want {
						t.Errorf("%s %s %s envelope %v: %v", level, mode, kind, envelope, err)
					}
				}
			}
		}
	}
}

func TestStrictRefusesWhatIsNotDetermined(t *testing.T) {
	data := "datasets: [{id: d, version: v, state: experimental, storage_uri: d}]\n"
	for _, c := range []struct{ more, fault string }{
		{"", ""},
		{strings.Replace(data, "experimental", "deprecated", 1), ""},
		{data, "reads no experimental dataset"},
		{"entropy_budget: {allowed_sources: [data]}\n", ""},
		{"entropy_budget: {allowed_sources: [data, human_input]}\n", "draws on seeded_rng and data only"},
		{"nondeterminism_intent: [{source: llm, justification: j}]\n", "has no nondeterminism to declare"},
	} {
		_, err := ParseManifest("flow.yaml", []byte(minimal+c.more))
		if c.fault == "" && err != nil || c.fault != "" && (err == nil || !strings.Contains(err.Error(), c.fault)) {
			t.Errorf("%s: %v", c.more, err)
		}
	}
	effects := strings.Replace(wholeFlow, "determinism_level: bounded", "determinism_level: strict", 1)
	if _, err := ParseManifest("flow.yaml", []byte(effects)); err == nil || !strings.Contains(err.Error(), "determinism_level strict has no effects, and step notify has 1") {
		t.Errorf("effects under strict: %v", err)
	}
}

func TestRequiresDefault(t *testing.T) {
	for _, c := range []struct{ name, old, new, want string }{
		{"effects after claims", "    requires: pass_permissive\n", "", RequiresPass},
		{"stated", "requires: pass_permissive", "requires: pass", RequiresPass},
		{"stated permissive", "manifest: 1", "manifest: 1", RequiresPassPermissive},
		{"effects after no claims", "needs: [judge]\n    requires: pass_permissive\n", "needs: [inventory]\n", ""},
	} {
		m := mustParse(t, change(t, wholeFlow, c.old, c.new))
		if got := m.requires(m.step("notify")); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		if got := m.requires(m.step("judge")); got != "" {
			t.Errorf("%s: a step without effects requires %q", c.name, got)
		}
	}
}

func TestParseReach(t *testing.T) {
	for prefix, want := range map[string]Reach{
		"https://example.org":         {"https", "example.org", 443, "/"},
		"http://example.org/":         {"http", "example.org", 80, "/"},
		"http://127.0.0.1:8787/a/b":   {"http", "127.0.0.1", 8787, "/a/b"},
		"https://*.example.org:1/v1/": {"https", "*.example.org", 1, "/v1/"},
		"http://[::1]:80/x":           {"http", "::1", 80, "/x"},
	} {
		if got, err := ParseReach(prefix); err != nil || got != want {
			t.Errorf("%s: %+v, %v", prefix, got, err)
		}
	}
	for _, prefix := range []string{
		"", "example.org", "ftp://example.org", "HTTP://", "http://", "http:///x", "http://u@example.org", "http://u:p@example.org",
		"http://example.org?q", "http://example.org/?", "http://example.org#f", "http://example.org/#", "http://example.org:", "http://example.org:0",
		"http://example.org:65536", "http://example.org:080", "http://*", "http://*.org", "http://*.*.example.org", "http://a.*.org", "http://ex*mple.org",
		"http://Example.org", "http://exämple.org", "http://example.org.", "http://example..org", "http://-a.org", "http://127.1", "http://0x7f000001",
		"http://2130706433", "http://010.0.0.1", "http://[::ffff:1.2.3.4%25eth0]", "http://[0:0::1]", "http://example.org/a/../b", "http://example.org//a",
		"http://example.org/a%2fb", "http://example.org/%41%25", "http://example.org/./a", "http://a b.org", "http://example.org/a\\b", "http:example.org",
	} {
		if got, err := ParseReach(prefix); err == nil {
			t.Errorf("%q accepted as %+v", prefix, got)
		}
	}
}

// The same content has the same digest, however it is ordered, spaced or
// written; and JSON is read like YAML.
func TestDigestIsOfTheContent(t *testing.T) {
	m := mustParse(t, wholeFlow)
	again, err := ParseManifest("flow.json", m.Canonical())
	if err != nil || again.Digest() != m.Digest() {
		t.Fatalf("from JSON: %v", err)
	}
	ignore := cmp.FilterPath(func(p cmp.Path) bool {
		f, ok := p.Last().(cmp.StructField)
		return ok && (f.Name() == "file" || f.Name() == "tree" || f.Name() == "places")
	}, cmp.Ignore())
	if diff := cmp.Diff(m, again, ignore); diff != "" {
		t.Errorf("YAML and JSON differ:\n%s", diff)
	}
	if mustParse(t, change(t, wholeFlow, "limit: 3", "limit: 4")).Digest() == m.Digest() {
		t.Error("another config has the same digest")
	}
	rapid.Check(t, func(t *rapid.T) {
		text := shuffled(t, m.tree)
		got, err := ParseManifest("flow.json", []byte(text))
		if err != nil || got.Digest() != m.Digest() {
			t.Fatalf("%v\n%s", err, text)
		}
		inYAML, err := ParseManifest("flow.yaml", []byte(text))
		if err != nil || inYAML.Digest() != m.Digest() {
			t.Fatalf("as YAML: %v\n%s", err, text)
		}
	})
}

// shuffled writes n as JSON with its keys in any order and odd spaces.
func shuffled(t *rapid.T, n *node) string {
	space := rapid.SampledFrom([]string{"", " ", "\n "})
	var b strings.Builder
	switch n.kind {
	case kindList:
		b.WriteString("[")
		for i, item := range n.items {
			if i > 0 {
				b.WriteString("," + space.Draw(t, "space"))
			}
			b.WriteString(shuffled(t, item))
		}
		return b.String() + "]"
	case kindObject:
		b.WriteString("{")
		for i, f := range rapid.Permutation(n.fields).Draw(t, "fields") {
			if i > 0 {
				b.WriteString(",")
			}
			key, _ := json.Marshal(f.key)
			b.WriteString(space.Draw(t, "space") + string(key) + ": " + shuffled(t, f.value))
		}
		return b.String() + "}"
	}
	return string(n.canonical())
}

func TestCanonicalNumbers(t *testing.T) {
	for text, want := range map[string]string{
		"0": "0", "-0": "0", "-0.0": "0", "1.0": "1", "1.50": "1.5", "1e3": "1000", "1E-2": "0.01", "-7": "-7",
		"9007199254740991": "9007199254740991", "-9007199254740991": "-9007199254740991", "0.1": "0.1", "1e-7": "1e-7",
	} {
		if got, err := canonicalNumber(text); err != nil || got != want {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "+1", "01", "1.", ".5", "1e", "0x1", "1_0", "NaN", "Infinity", "9007199254740992", "-9007199254740992", "1e16", "1e999"} {
		if got, err := canonicalNumber(text); err == nil {
			t.Errorf("%q accepted as %s", text, got)
		}
	}
}

func FuzzParseManifest(f *testing.F) {
	f.Add("f.yaml", []byte(wholeFlow))
	f.Add("f.yaml", []byte(minimal))
	f.Add("f.json", mustCanonical(wholeFlow))
	f.Add("f.yaml", []byte("a: &x [*x]\n? b\n: !!str |\n  c\n"))
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		m, err := ParseManifest(name, data)
		if err != nil {
			var faults Errors
			if !errors.As(err, &faults) || len(faults) == 0 {
				t.Fatalf("error of another type: %v", err)
			}
			return
		}
		again, err := ParseManifest("f.json", m.Canonical())
		if err != nil || again.Digest() != m.Digest() {
			t.Fatalf("canonical form reads back as another: %v", err)
		}
	})
}

func mustCanonical(text string) []byte {
	m, err := ParseManifest("flow.yaml", []byte(text))
	if err != nil {
		panic(err)
	}
	return m.Canonical()
}
