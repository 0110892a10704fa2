package schema_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/writrun/writ/guest-abi/schema"
	"github.com/writrun/writ/guest-abi/vectors"
)

func read(t *testing.T, name string) any {
	t.Helper()
	data, err := schema.Read(name)
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// compile compiles a schema with no way to fetch another.
func compile(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(jsonschema.SchemeURLLoader{})
	if err := c.AddResource("urn:test:"+name, read(t, name)); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("urn:test:" + name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// beyondSchema names the refused vectors that no schema can refuse.
var beyondSchema = []string{
	"no bytes", "trailing bytes", "duplicate key", "integer beyond 2^53 in output", "lone surrogate in output",
	"fractional size", "repeated evidence id", "dataset twice", "reference outside", "the rule's own error",
}

// TestSchemasAgree runs every message vector against the schema of its message.
func TestSchemasAgree(t *testing.T) {
	data, err := vectors.Files.ReadFile("messages.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct{ Name, Message, Text, Fault string }
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	compiled := map[string]*jsonschema.Schema{}
	for _, name := range schema.Names() {
		compiled[strings.ReplaceAll(name, "-", "_")] = compile(t, name)
	}
	for _, c := range cases {
		t.Run(c.Message+"/"+c.Name, func(t *testing.T) {
			refused := c.Fault != ""
			if slices.Contains(beyondSchema, c.Name) {
				return
			}
			v, err := jsonschema.UnmarshalJSON(strings.NewReader(c.Text))
			if err != nil {
				t.Fatal(err)
			}
			err = compiled[c.Message].Validate(v)
			if (err != nil) != refused {
				t.Errorf("abi refuses: %v; the schema says %v\n%s", refused, err, c.Text)
			}
		})
	}
}

// TestSharedDefinitionsAreEqual: files stand alone, so they repeat definitions.
func TestSharedDefinitionsAreEqual(t *testing.T) {
	first := map[string]any{}
	for _, name := range schema.Names() {
		s := read(t, name).(map[string]any)
		for def, v := range s["$defs"].(map[string]any) {
			if earlier, ok := first[def]; ok {
				if diff := cmp.Diff(earlier, v); diff != "" {
					t.Errorf("%s: $defs/%s differs:\n%s", name, def, diff)
				}
			}
			first[def] = v
		}
	}
}

func TestRead(t *testing.T) {
	want := []string{"execute-request", "execute-response", "metadata", "verify-request", "verify-response"}
	if diff := cmp.Diff(want, schema.Names()); diff != "" {
		t.Error(diff)
	}
	if _, err := schema.Read("../go"); err == nil || !strings.Contains(err.Error(), "there are execute-request") {
		t.Errorf("an unknown schema: %v", err)
	}
}
