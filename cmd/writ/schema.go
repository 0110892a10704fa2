package main

import (
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/writrun/writ/engine"
	"github.com/writrun/writ/engine/flow"
	"github.com/writrun/writ/guest-abi/schema"
	"github.com/writrun/writ/policies"
)

// schemaEntry is one published schema.
type schemaEntry struct {
	what string // in a few words
	text func() ([]byte, error)
}

// schemas returns every published schema by name.
func schemas() map[string]schemaEntry {
	all := map[string]schemaEntry{
		"manifest": {"a manifest, the file that declares a flow", func() ([]byte, error) { return flow.Schema(), nil }},
	}
	for _, name := range schema.Names() {
		all[name] = schemaEntry{"guest ABI: " + strings.ReplaceAll(name, "-", " "), func() ([]byte, error) { return schema.Read(name) }}
	}
	for _, name := range policies.SchemaNames() {
		all[name] = schemaEntry{"policies: " + strings.Replace(name, "-", ", its ", 1), func() ([]byte, error) { return policies.Schema(name) }}
	}
	outputs := documents()
	maps.Copy(outputs, policyDocuments())
	for name, doc := range outputs {
		all[name] = schemaEntry{"output of " + doc.of, func() ([]byte, error) {
			return describe(name, "What "+doc.of+" prints with --output json.", doc.value)
		}}
	}
	return all
}

// document is a form of JSON output.
type document struct {
	of    string // the command that prints it
	value any
}

// documents are the forms of what commands print with --output json.
func documents() map[string]document {
	return map[string]document{
		"init":         {"writ init", initDocument{}},
		"plan":         {"writ plan", planDocument{}},
		"run":          {"writ run", engine.Result{}},
		"list":         {"writ list", listDocument{}},
		"refused":      {"writ list --refused", refusedDocument{}},
		"inspect":      {"writ inspect", engine.Summary{}},
		"events":       {"writ inspect --events", eventsDocument{}},
		"explain":      {"writ explain RUN", engine.Explanation{}},
		"code":         {"writ explain CODE", codeDocument{}},
		"module":       {"writ module inspect", moduleDocument{}},
		"replay":       {"writ replay", engine.Replay{}},
		"store-verify": {"writ store verify", verifyDocument{}},
		"version":      {"writ version", versionDocument{}},
		"error":        {"a command that fails", errorDocument{}},
	}
}

func (a *app) schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema [NAME]",
		Short: "Print the JSON Schema of a file or of a command's output",
		Long: `schema prints a JSON Schema (2020-12): of the manifest, of what guests and host
say to each other, of module metadata, or of what a command prints with
--output json. Without NAME it lists them.`,
		Example: `  writ schema
  writ schema manifest > manifest.schema.json`,
		Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return slices.Sorted(maps.Keys(schemas())), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: a.work(func(_ *cobra.Command, args []string) error {
			all := schemas()
			if len(args) == 0 {
				return a.listSchemas(all)
			}
			entry, ok := all[args[0]]
			if !ok {
				f := usagef("there is no schema %q", args[0])
				f.Hints = []string{"writ schema lists them"}
				return f
			}
			text, err := entry.text()
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(a.stdout, strings.TrimRight(string(text), "\n"))
			return err
		}),
	}
}

func (a *app) listSchemas(all map[string]schemaEntry) error {
	names := slices.Sorted(maps.Keys(all))
	if a.json() {
		return a.writeJSON(struct {
			Schemas []string `json:"schemas"`
		}{names})
	}
	var rows [][]string
	for _, name := range names {
		rows = append(rows, []string{name, all[name].what})
	}
	a.table([]string{"SCHEMA", "OF"}, rows)
	return nil
}

// describe returns the schema of a form of output, made from its Go type, so
// that the two cannot differ.
func describe(name, about string, value any) ([]byte, error) {
	s := typeSchema(reflect.TypeOf(value))
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = name
	s["description"] = about
	return json.MarshalIndent(s, "", "  ")
}

// typeSchema describes how encoding/json writes values of a type.
func typeSchema(t reflect.Type) map[string]any {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return map[string]any{"type": "string", "format": "date-time"}
	case t == reflect.TypeFor[json.RawMessage]():
		return map[string]any{} // any JSON
	case t.Implements(reflect.TypeFor[json.Marshaler]()) && t.Kind() == reflect.Slice:
		return map[string]any{} // bytes: the JSON they hold, else text
	}
	if t.Implements(reflect.TypeFor[encoding.TextMarshaler]()) {
		return map[string]any{"type": "string"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return typeSchema(t.Elem())
	case reflect.Struct:
		properties, required := map[string]any{}, []string{}
		addFields(t, properties, &required)
		return map[string]any{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": typeSchema(t.Elem())}
	case reflect.Slice, reflect.Array:
		return map[string]any{"type": "array", "items": typeSchema(t.Elem())}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Float32, reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return map[string]any{"type": "integer"}
	}
	panic(fmt.Sprintf("schema of %s", t)) // a form of output has no other kinds
}

func addFields(t reflect.Type, properties map[string]any, required *[]string) {
	for f := range t.Fields() {
		tag := f.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		switch {
		case f.Anonymous && name == "":
			addFields(f.Type, properties, required)
		case !f.IsExported() || name == "-":
		default:
			if name == "" {
				name = f.Name
			}
			properties[name] = typeSchema(f.Type)
			if !strings.Contains(options, "omit") {
				*required = append(*required, name)
			}
		}
	}
}
