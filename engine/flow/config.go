package flow

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// checkConfig validates a config against the module's schema. A module without
// one takes any.
func (s *resolution) checkConfig(path string, config []byte, m *PreparedModule) {
	if len(m.Metadata.ConfigSchema) == 0 {
		return
	}
	place := path + ".config"
	schema, err := compileSchema(m.Metadata.ConfigSchema)
	if err != nil {
		s.failAt(path+".module", CodeModuleRefused, "mend config_schema in the module's metadata", "config_schema of module %s: %v", m.Metadata.Name, err)
		return
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(config))
	if err != nil {
		s.failAt(place, CodeConfigInvalid, "", "%v", err)
		return
	}
	var bad *jsonschema.ValidationError
	if err := schema.Validate(value); errors.As(err, &bad) {
		s.schemaFaults(place, bad, m)
	} else if err != nil {
		s.failAt(place, CodeConfigInvalid, "", "%v", err)
	}
}

// schemaFaults reports the innermost faults of a validation.
func (s *resolution) schemaFaults(place string, e *jsonschema.ValidationError, m *PreparedModule) {
	if len(e.Causes) > 0 {
		for _, cause := range e.Causes {
			s.schemaFaults(place, cause, m)
		}
		return
	}
	at, n := place, s.manifest.tree.find(place)
	for _, key := range e.InstanceLocation {
		if n = n.child(key); n == nil {
			break
		}
		at = join(at, key)
		s.places[at] = n.at
	}
	s.failAt(at, CodeConfigInvalid, fmt.Sprintf("config_schema of module %s %s", m.Metadata.Name, m.Metadata.Version),
		"does not fit the module: %s", e.ErrorKind.LocalizedString(message.NewPrinter(language.English)))
}

// compileSchema compiles a schema that may refer to nothing but itself.
func compileSchema(text []byte) (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	w := &schemaWeight{root: doc, targets: map[string]int{}}
	if total := w.of(doc); w.fault != nil {
		return nil, w.fault
	} else if total > SchemaWeightMax {
		return nil, fmt.Errorf("it unfolds to more than %d schemas", SchemaWeightMax)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(noLoader{})
	const at = "config_schema"
	if err := c.AddResource(at, doc); err != nil {
		return nil, err
	}
	return c.Compile(at)
}

// noLoader refuses every reference that leads out of a schema.
type noLoader struct{}

// Load refuses.
func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("schema refers to %q; it may refer to itself only", url)
}

// schemaWeight counts how many schemas a schema unfolds to when its references
// are followed. A module's author is not trusted with the time of whoever makes
// a plan: a few short definitions that each refer twice to the next one take
// for ever to validate.
type schemaWeight struct {
	root    any
	targets map[string]int // weight by reference; -1 while it is counted
	fault   error
}

func (w *schemaWeight) of(v any) int {
	total := 1
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			total = min(total+w.of(e), SchemaWeightMax+1)
		}
	case map[string]any:
		for key, e := range v {
			if ref, ok := e.(string); ok && (key == "$ref" || key == "$dynamicRef") {
				total = min(total+w.target(ref), SchemaWeightMax+1)
				continue
			}
			total = min(total+w.of(e), SchemaWeightMax+1)
		}
	}
	return total
}

func (w *schemaWeight) target(ref string) int {
	weight, known := w.targets[ref]
	switch {
	case known && weight < 0:
		w.fault = fmt.Errorf("definition %.80q refers to itself", ref)
		return 1
	case known:
		return weight
	}
	v, ok := w.lookup(ref)
	if !ok {
		w.fault = fmt.Errorf("reference %.80q leads nowhere; write it as #/$defs/NAME", ref)
		return 1
	}
	w.targets[ref] = -1
	w.targets[ref] = w.of(v)
	return w.targets[ref]
}

// lookup finds a definition by #/$defs/NAME, the one form of a reference.
func (w *schemaWeight) lookup(ref string) (any, bool) {
	name, ok := strings.CutPrefix(ref, "#/$defs/")
	root, isObject := w.root.(map[string]any)
	if !ok || !isObject || strings.ContainsAny(name, "/~%") {
		return nil, false
	}
	defs, _ := root["$defs"].(map[string]any)
	v, ok := defs[name]
	return v, ok
}
