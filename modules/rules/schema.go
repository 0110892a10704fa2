package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"unicode/utf8"

	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/guest-abi/go/guest"
)

// schemaConfig is the configuration of the rule schema.
type schemaConfig struct {
	Claim  *schema `json:"claim"`  // for each claim, as the JSON object it is in the message
	Output *schema `json:"output"` // for the output of each step under verification
}

// schema is the part of JSON Schema 2020-12 this rule knows, with the meaning it
// has there. A keyword it does not know is refused: ignoring one would pass what
// was never checked.
type schema struct {
	Title                string             `json:"title"`
	Description          string             `json:"description"`
	Type                 types              `json:"type"`
	Enum                 []any              `json:"enum"`
	Const                json.RawMessage    `json:"const"`
	Required             []string           `json:"required"`
	Properties           map[string]*schema `json:"properties"`
	AdditionalProperties *bool              `json:"additionalProperties"`
	Items                *schema            `json:"items"`
	MinItems             *int               `json:"minItems"`
	MaxItems             *int               `json:"maxItems"`
	MinLength            *int               `json:"minLength"`
	MaxLength            *int               `json:"maxLength"`
	Minimum              *float64           `json:"minimum"`
	Maximum              *float64           `json:"maximum"`
}

// types is the keyword type: one name or several.
type types []string

// UnmarshalJSON reads a name or an array of names.
func (t *types) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*t = types{one}
	} else if err := json.Unmarshal(data, (*[]string)(t)); err != nil {
		return err
	}
	for _, name := range *t {
		if !slices.Contains([]string{"null", "boolean", "integer", "number", "string", "array", "object"}, name) {
			return fmt.Errorf("unknown type %q", name)
		}
	}
	return nil
}

// conformsToSchema: claims and outputs have the configured shape.
func conformsToSchema(c *guest.Check) (abi.VerifyResponse, error) {
	conf, err := guest.Config[schemaConfig](c.Request.Rule.Config)
	if err != nil {
		return abi.VerifyResponse{}, err
	}
	if conf.Claim == nil && conf.Output == nil {
		return abi.VerifyResponse{}, guest.Fail("invalid_config", "neither claim nor output has a schema")
	}
	f := guest.NewFindings(c)
	if conf.Claim != nil {
		if len(c.Request.Claims) == 0 {
			f.Doubt("nothing evaluated: no claims")
		}
		for _, claim := range c.Request.Claims {
			raw, err := abi.EncodeMessage(claim)
			if err != nil {
				return abi.VerifyResponse{}, err
			}
			judgeJSON(f, claim.ClaimID, conf.Claim, raw)
		}
	}
	if conf.Output != nil {
		if len(c.Request.Outputs) == 0 {
			f.Doubt("nothing evaluated: no outputs")
		}
		for _, o := range c.Request.Outputs {
			judgeJSON(f, string(o.StepID), conf.Output, o.Output)
		}
	}
	return f.Response("claims and outputs"), nil
}

func judgeJSON(f *guest.Findings, subject string, s *schema, raw json.RawMessage) {
	f.Evaluated()
	if len(raw) == 0 {
		f.Violation(subject, "there is no output")
		return
	}
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		f.Violation(subject, "not JSON: %v", err)
		return
	}
	if fault := s.fault("", v); fault != "" {
		f.Violation(subject, "%s", fault)
	}
}

// fault returns the first way in which v, found at path, breaks the schema, or "".
func (s *schema) fault(path string, v any) string {
	if s == nil {
		return ""
	}
	where := path
	if where == "" {
		where = "the value"
	}
	if len(s.Type) > 0 && !slices.ContainsFunc(s.Type, func(name string) bool { return hasType(v, name) }) {
		return fmt.Sprintf("%s is not of type %v", where, []string(s.Type))
	}
	if s.Enum != nil && !slices.ContainsFunc(s.Enum, func(e any) bool { return reflect.DeepEqual(e, v) }) {
		return where + " is not one of the allowed values"
	}
	if s.Const != nil && !equalsJSON(v, s.Const) {
		return fmt.Sprintf("%s is not %s", where, bytes.TrimSpace(s.Const))
	}
	switch v := v.(type) {
	case string:
		return outside(where+" has a length that", float64(utf8.RuneCountInString(v)), asFloat(s.MinLength), asFloat(s.MaxLength))
	case float64:
		return outside(where, v, s.Minimum, s.Maximum)
	case []any:
		return s.arrayFault(path, where, v)
	case map[string]any:
		return s.objectFault(path, where, v)
	}
	return ""
}

func (s *schema) arrayFault(path, where string, v []any) string {
	if fault := outside(where+" has a length that", float64(len(v)), asFloat(s.MinItems), asFloat(s.MaxItems)); fault != "" {
		return fault
	}
	for i, e := range v {
		if fault := s.Items.fault(fmt.Sprintf("%s[%d]", path, i), e); fault != "" {
			return fault
		}
	}
	return ""
}

func (s *schema) objectFault(path, where string, v map[string]any) string {
	for _, name := range s.Required {
		if _, ok := v[name]; !ok {
			return fmt.Sprintf("%s has no %q", where, name)
		}
	}
	names := make([]string, 0, len(v))
	for name := range v {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		property, ok := s.Properties[name]
		if !ok && s.AdditionalProperties != nil && !*s.AdditionalProperties {
			return fmt.Sprintf("%s has %q, which is not allowed", where, name)
		}
		if fault := property.fault(path+"."+name, v[name]); fault != "" {
			return fault
		}
	}
	return ""
}

func hasType(v any, name string) bool {
	switch v := v.(type) {
	case nil:
		return name == "null"
	case bool:
		return name == "boolean"
	case string:
		return name == "string"
	case []any:
		return name == "array"
	case map[string]any:
		return name == "object"
	case float64:
		return name == "number" || name == "integer" && v == math.Trunc(v)
	}
	return false
}

func equalsJSON(v any, raw json.RawMessage) bool {
	var other any
	return json.Unmarshal(raw, &other) == nil && reflect.DeepEqual(v, other)
}

// outside says that n is below lowest or above highest, where they are given.
func outside(what string, n float64, lowest, highest *float64) string {
	switch {
	case lowest != nil && n < *lowest:
		return fmt.Sprintf("%s is %v, below %v", what, n, *lowest)
	case highest != nil && n > *highest:
		return fmt.Sprintf("%s is %v, above %v", what, n, *highest)
	}
	return ""
}

func asFloat(n *int) *float64 {
	if n == nil {
		return nil
	}
	f := float64(*n)
	return &f
}
