package policies

import (
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// decisionTypes are the documents of a decision, of which its schemas are made.
type decisionTypes struct{ input, result any }

// decisionDocuments returns the documents of each decision, by its name.
func decisionDocuments() map[string]decisionTypes {
	return map[string]decisionTypes{
		"authority":   {AuthorityInput{}, authorityResult{}},
		"arbitration": {ArbitrationInput{}, arbitrationResult{}},
		"replay":      {ReplayInput{}, replayResult{}},
		"standing":    {StandingInput{}, standingResult{}},
	}
}

// SchemaNames lists the published schemas: for each decision what it is asked
// over, <decision>-input, and what it answers, <decision>-result.
func SchemaNames() []string {
	var names []string
	for _, decision := range slices.Sorted(maps.Keys(decisionDocuments())) {
		names = append(names, decision+"-input", decision+"-result")
	}
	return names
}

// Schema returns a published schema by name, as JSON Schema (2020-12). It is made
// of the Go type of the document, so that the two cannot differ.
func Schema(name string) ([]byte, error) {
	decision, which, _ := strings.Cut(name, "-")
	types, ok := decisionDocuments()[decision]
	if !ok || which != "input" && which != "result" {
		return nil, fmt.Errorf("there is no schema %.80q; there are %s", name, strings.Join(SchemaNames(), ", "))
	}
	value, about := types.input, "What a policy is asked over: "
	if which == "result" {
		value, about = types.result, "What a policy answers: "
	}
	s := typeSchema(reflect.TypeOf(value))
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = name
	s["description"] = about + decision + "."
	return json.MarshalIndent(s, "", "  ")
}

// inputSchemas is what the policies of a decision are type-checked against.
func inputSchemas(decision string) *ast.SchemaSet {
	set := ast.NewSchemaSet()
	set.Put(ast.SchemaRootRef, typeSchema(reflect.TypeOf(decisionDocuments()[decision].input)))
	return set
}

// typeSchema describes how encoding/json writes values of a type.
func typeSchema(t reflect.Type) map[string]any {
	if t.Kind() != reflect.Pointer && t.Implements(reflect.TypeFor[encoding.TextMarshaler]()) {
		return map[string]any{"type": "string"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return map[string]any{"anyOf": []any{map[string]any{"type": "null"}, typeSchema(t.Elem())}}
	case reflect.Struct:
		properties, required := map[string]any{}, []any{}
		addFields(t, properties, &required)
		return map[string]any{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
	case reflect.Slice:
		return map[string]any{"type": "array", "items": typeSchema(t.Elem())}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Int, reflect.Int64:
		return map[string]any{"type": "integer"}
	}
	panic(fmt.Sprintf("schema of %s", t)) // a document has no other kinds
}

func addFields(t reflect.Type, properties map[string]any, required *[]any) {
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			addFields(f.Type, properties, required)
			continue
		}
		field := f.Type
		if strings.Contains(options, "omit") && field.Kind() == reflect.Pointer {
			field = field.Elem() // it is left out, and never null
		}
		properties[name] = typeSchema(field)
		if !strings.Contains(options, "omit") {
			*required = append(*required, name)
		}
	}
}

// decisionOf is the decision a package answers, or "": data.writ.<decision>, or
// data.flow.<flow_id>.<decision>.
func decisionOf(path ast.Ref) string {
	var parts []string
	for _, t := range path {
		switch v := t.Value.(type) {
		case ast.Var:
			parts = append(parts, string(v))
		case ast.String:
			parts = append(parts, string(v))
		}
	}
	isOperators := len(parts) == 3 && parts[1] == "writ"
	isFlows := len(parts) == 4 && parts[1] == "flow"
	if isOperators || isFlows {
		last := parts[len(parts)-1]
		if _, ok := decisionDocuments()[last]; ok {
			return last
		}
	}
	return ""
}

// byDecision sorts modules by the decision their package answers.
func byDecision(modules map[string]*ast.Module) map[string]map[string]*ast.Module {
	sorted := map[string]map[string]*ast.Module{}
	for name, m := range modules {
		decision := decisionOf(m.Package.Path)
		if sorted[decision] == nil {
			sorted[decision] = map[string]*ast.Module{}
		}
		sorted[decision][name] = m
	}
	return sorted
}

// checkInputs finds reads of fields that a decision's input has not. Where the
// modules answer several decisions, or are not all of decisions, they are
// compiled once more for each, since a compiler knows one input; what it then
// finds outside the decision's package is left aside.
func checkInputs(modules map[string]*ast.Module) ast.Errors {
	var found ast.Errors
	for decision, own := range byDecision(modules) {
		if decision == "" {
			continue
		}
		c := newCompiler().WithSchemas(inputSchemas(decision))
		c.SetErrorLimit(0)
		c.Compile(modules)
		for _, err := range c.Errors {
			if err.Location != nil && own[err.Location.File] != nil {
				found = append(found, err)
			}
		}
	}
	found.Sort()
	return found
}
