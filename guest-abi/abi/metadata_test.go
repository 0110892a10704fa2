package abi

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const goodMetadata = `{"abi":1,"kind":"rule","name":"rules","version":"1.2.3","description":"d","license":"Apache-2.0 OR MIT","source":"s",
"wants":[{"capability":"datasets","reason":"r"},{"capability":"effect:http","reason":"r"}],
"config_schema":{"type":"object","properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{}}},
"rules":[{"rule_id":"one","severity":"error","randomness":"deterministic","target":"any"},{"rule_id":"two","severity":"info","randomness":"sampled","target":"step"}]}`

func TestParseMetadata(t *testing.T) {
	m, err := ParseMetadata([]byte(goodMetadata))
	if err != nil {
		t.Fatal(err)
	}
	if m.Rules[1].RuleID != "two" || m.Wants[1].Capability != "effect:http" {
		t.Errorf("read as %+v", m)
	}
}

func TestParseMetadataFaults(t *testing.T) {
	for _, c := range []struct {
		name, old, new string // one change to goodMetadata
		faults         []string
	}{
		{"version of the ABI", `"abi":1`, `"abi":2`, []string{"abi is 2; this is version 1"}},
		{"two rules of one id", `"two"`, `"one"`, []string{`rules[1]: rule_id "one" appears twice`}},
		{"an executor with rules", `"kind":"rule"`, `"kind":"executor"`, []string{"an executor module names rules"}},
		{"two wants of one capability", `effect:http`, `datasets`, []string{`wants[1]: "datasets" is named twice`}},
		{"want without reason", `"reason":"r"},{`, `"reason":" "},{`, []string{`wants[0]: "datasets" has no reason`}},
		{"effect without driver", `effect:http`, `effect:`, []string{"wants[1]: driver: id is empty"}},
		{"reference to a file", `"#/$defs/a"`, `"a.json"`, []string{`config_schema: reference "a.json" leads outside; write it as #/$defs/NAME`}},
		{"an id elsewhere", `"type":"object"`, `"$id":"https://example.org/s"`, []string{`config_schema: reference "https://example.org/s" leads outside; write it as #/$defs/NAME`}},
		{"a schema that is no object", `{"type":"object","properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{}}}`, `true`, []string{"config_schema is not an object"}},
		{"several at once", `"abi":1,"kind":"rule","name":"rules","version":"1.2.3","description":"d"`,
			`"abi":0,"kind":"x","name":"Rules","version":"1.2","description":""`, []string{
				"abi is 0; this is version 1", `kind is "x"; it is executor or rule`,
				`name: id "Rules" has 'R' at byte 0; allowed is [a-z0-9][a-z0-9_-]{0,62}`,
				`version "1.2" is not a semantic version such as 1.2.3`, "description is empty",
			}},
		{"unknown severity, randomness and target", `"severity":"info","randomness":"sampled","target":"step"`, `"severity":"fatal","randomness":"some","target":"all"`, []string{
			`rules[1]: severity is "fatal"; it is one of info, warning, error`,
			`rules[1]: randomness is "some"; it is one of deterministic, sampled, statistical`,
			`rules[1]: target is "all"; it is one of step, flow, any`,
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.Replace(goodMetadata, c.old, c.new, 1)
			if text == goodMetadata {
				t.Fatal("the case changes nothing")
			}
			_, err := ParseMetadata([]byte(text))
			var fault *MetadataError
			if !errors.As(err, &fault) {
				t.Fatalf("error %v", err)
			}
			if diff := cmp.Diff(c.faults, fault.Faults); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseMetadataBounds(t *testing.T) {
	for _, c := range []struct{ name, text, fault string }{
		{"none", "", "there is none: the module needs a custom section"},
		{"too long", goodMetadata + strings.Repeat(" ", MetadataBytesMax), "more than 65536"},
		{"too deep", `{"config_schema":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + `}`, "nested deeper than 64"},
		{"unknown field", `{"abi":1,"author":"me"}`, `byte 9: unknown field "author"`},
		{"wrong type", `{"abi":"1"}`, "byte 7: found a string where an integer is expected"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := ParseMetadata([]byte(c.text)); err == nil || !strings.Contains(err.Error(), c.fault) {
				t.Errorf("error %v, want %q", err, c.fault)
			}
		})
	}
}

func TestCheckImports(t *testing.T) {
	for _, c := range []struct {
		name           string
		wants, imports []string
		faults         []string
	}{
		{"nothing", nil, nil, nil},
		{"more than it imports", []string{"clock", "effect:http"}, nil, nil},
		{"as much as it imports", []string{"datasets", "effect:http"}, []string{"dataset_size", "dataset_read", "effect", "response_read"}, nil},
		{"less than it imports", []string{"artifacts"}, []string{"artifact_put", "clock_now", "effect"}, []string{
			"the module imports clock_now and does not want clock", "the module imports effect and does not want effect:DRIVER",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var m Metadata
			for _, w := range c.wants {
				m.Wants = append(m.Wants, Want{w, "r"})
			}
			err := m.CheckImports(c.imports)
			var fault *MetadataError
			if errors.As(err, &fault) != (c.faults != nil) {
				t.Fatalf("error %v", err)
			}
			if fault != nil {
				if diff := cmp.Diff(c.faults, fault.Faults); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
	for _, c := range HostCalls {
		if _, ok := capabilities[c.Name]; ok != (c.Module == ModuleWrit) {
			t.Errorf("%s.%s has a capability: %v", c.Module, c.Name, ok)
		}
	}
}

func TestSemver(t *testing.T) {
	good := []string{"0.0.0", "1.2.3", "10.20.30", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-0.3.7", "1.0.0-x-y-z.--", "1.0.0+20130313144700", "1.0.0-beta+exp.sha.5114f85", "1.0.0+001"}
	bad := []string{"", "1", "1.2", "1.2.3.4", "v1.2.3", "01.2.3", "1.02.3", "1.2.03", "1.2.3-", "1.2.3+", "1.2.3-01", "1.2.3-a..b", "1.2.x", "1.2.3 ", "-1.2.3", "1.2.3-é", "1.-2.3"}
	for _, s := range good {
		if !isSemver(s) {
			t.Errorf("%q refused", s)
		}
	}
	for _, s := range bad {
		if isSemver(s) {
			t.Errorf("%q accepted", s)
		}
	}
}

func custom(name string, content ...byte) []byte {
	body := append([]byte{byte(len(name))}, name...)
	body = append(body, content...)
	return append([]byte{0, byte(len(body))}, body...)
}

func TestMetadataSection(t *testing.T) {
	header := []byte("\x00asm\x01\x00\x00\x00")
	join := func(parts ...[]byte) []byte { return bytes.Join(append([][]byte{header}, parts...), nil) }
	for _, c := range []struct {
		name, found, fault string
		wasm               []byte
	}{
		{"one", "{}", "", join(custom(MetadataSection, '{', '}'))},
		{"between others", "x", "", join(custom("name", 1), custom(MetadataSection, 'x'), []byte{1, 1, 0})},
		{"empty", "", "", join(custom(MetadataSection))},
		{"none", "", "module has no", join(custom("name"), []byte{1, 1, 0})},
		{"other name with the same start", "", "module has no", join(custom(MetadataSection + "s"))},
		{"two", "", "2 \"writ.module\" sections", join(custom(MetadataSection), custom(MetadataSection))},
		{"no header", "", "not a WebAssembly core module", []byte("\x00asm")},
		{"component", "", "not a WebAssembly core module", []byte("\x00asm\x0d\x00\x01\x00")},
		{"no size", "", "section at byte 8 runs past", join([]byte{0})},
		{"size past the end", "", "section at byte 8 runs past", join([]byte{0, 5, 1, 'a'})},
		{"size of 6 bytes", "", "section at byte 8 runs past", join([]byte{0, 0x80, 0x80, 0x80, 0x80, 0x80, 0})},
		{"size of 2^35", "", "section at byte 8 runs past", join([]byte{0, 0x80, 0x80, 0x80, 0x80, 0x7f})},
		{"name past the section", "", "name that runs past", join([]byte{0, 1, 9})},
		{"custom section without name", "", "name that runs past", join([]byte{0, 0})},
		{"too large", "", "larger than 65536", join([]byte{0, 0x8d, 0x80, 0x04, 11}, []byte(MetadataSection), make([]byte, MetadataBytesMax+1))},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := FindMetadata(c.wasm)
			if c.fault == "" && (err != nil || string(got) != c.found) {
				t.Errorf("found %q, %v; want %q", got, err, c.found)
			}
			if c.fault != "" && (err == nil || !strings.Contains(err.Error(), c.fault)) {
				t.Errorf("error %v, want %q", err, c.fault)
			}
		})
	}

	packed, err := AppendMetadata(header, []byte(goodMetadata))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := FindMetadata(packed); err != nil || string(got) != goodMetadata {
		t.Errorf("packed and found %q, %v", got, err)
	}
	if _, err := AppendMetadata(packed, []byte(goodMetadata)); err == nil {
		t.Error("a second section was added")
	}
	if _, err := AppendMetadata(header, []byte("{}")); err == nil {
		t.Error("bad metadata was added")
	}
	if _, err := AppendMetadata(nil, []byte(goodMetadata)); err == nil {
		t.Error("metadata was added to no module")
	}
}

func FuzzFindMetadata(f *testing.F) {
	f.Add([]byte("\x00asm\x01\x00\x00\x00\x00\x0d\x0bwrit.module{"))
	f.Fuzz(func(t *testing.T, wasm []byte) {
		found, err := FindMetadata(wasm)
		if err == nil && !bytes.Contains(wasm, found) {
			t.Fatal("found what is not there")
		}
	})
}
