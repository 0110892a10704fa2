package policies

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/writrun/writ/guest-abi/abi"
)

// encodeValue writes a value of Rego as canonical JSON: keys sorted, sets as
// sorted arrays, numbers as Rego has them. It stops at bytesMax, since a small
// value can hold another in many places.
func encodeValue(v ast.Value, bytesMax int) ([]byte, error) {
	b, err := appendValue(nil, v, bytesMax)
	if err == nil && len(b) > bytesMax {
		err = fmt.Errorf("the result has more than the %d bytes allowed", bytesMax)
	}
	return b, err
}

func appendValue(b []byte, v ast.Value, bytesMax int) ([]byte, error) {
	if len(b) > bytesMax {
		return b, nil // encodeValue refuses it
	}
	switch v := v.(type) {
	case ast.Null:
		return append(b, "null"...), nil
	case ast.Boolean:
		return fmt.Append(b, bool(v)), nil
	case ast.Number:
		if !json.Valid([]byte(v)) {
			return b, fmt.Errorf("%.40q is not a number of JSON", string(v))
		}
		return append(b, v...), nil
	case ast.String:
		text, err := abi.EncodeMessage(string(v))
		return append(b, text...), err
	case *ast.Array:
		elements := make([]*ast.Term, 0, v.Len())
		v.Foreach(func(e *ast.Term) { elements = append(elements, e) })
		return appendArray(b, elements, bytesMax)
	case ast.Set:
		return appendArray(b, v.Slice(), bytesMax)
	case ast.Object:
		return appendObject(b, v, bytesMax)
	}
	return b, fmt.Errorf("a %s is no value of JSON", ast.ValueName(v))
}

func appendArray(b []byte, elements []*ast.Term, bytesMax int) ([]byte, error) {
	b = append(b, '[')
	for i, e := range elements {
		if i > 0 {
			b = append(b, ',')
		}
		var err error
		if b, err = appendValue(b, e.Value, bytesMax); err != nil {
			return b, err
		}
	}
	return append(b, ']'), nil
}

// appendObject writes keys that are not text as their JSON, as OPA does.
func appendObject(b []byte, o ast.Object, bytesMax int) ([]byte, error) {
	type field struct {
		name  string
		value ast.Value
	}
	var fields []field
	var err error
	o.Foreach(func(k, v *ast.Term) {
		name, ok := k.Value.(ast.String)
		if !ok {
			text, failed := encodeValue(k.Value, bytesMax)
			name, err = ast.String(text), failed
		}
		fields = append(fields, field{string(name), v.Value})
	})
	if err != nil {
		return b, err
	}
	slices.SortFunc(fields, func(x, y field) int { return strings.Compare(x.name, y.name) })
	b = append(b, '{')
	for i, f := range fields {
		if i > 0 {
			b = append(b, ',')
			if fields[i-1].name == f.name {
				return b, fmt.Errorf("an object has the key %.80q twice", f.name)
			}
		}
		name, err := abi.EncodeMessage(f.name)
		if err != nil {
			return b, err
		}
		b = append(append(b, name...), ':')
		if b, err = appendValue(b, f.value, bytesMax); err != nil {
			return b, err
		}
	}
	return append(b, '}'), nil
}
