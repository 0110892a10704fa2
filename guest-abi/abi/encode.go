package abi

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"unicode/utf8"
)

// EncodeMessage writes v as this ABI's canonical JSON: map keys sorted, struct
// fields in order, nil slices as [], no HTML escaping, no spaces, no newline at
// the end. It fails on strings that are not UTF-8, which encoding/json would
// silently replace.
func EncodeMessage(v any) ([]byte, error) {
	canonical, err := canonicalValue(reflect.ValueOf(v), 0)
	if err != nil {
		return nil, fmt.Errorf("encode message: %w", err)
	}
	if canonical.IsValid() {
		v = canonical.Interface()
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("encode message: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// encodeDepthMax bounds how deep a value to encode may be, so that a cyclic one
// is an error.
const encodeDepthMax = 2 * MessageDepthMax

// canonicalValue returns v with nil slices made empty, or an error if v holds
// text that is not UTF-8. It copies what it changes.
func canonicalValue(v reflect.Value, depth int) (reflect.Value, error) {
	if depth > encodeDepthMax {
		return v, fmt.Errorf("value is nested deeper than %d", encodeDepthMax)
	}
	switch v.Kind() {
	case reflect.String:
		if !utf8.ValidString(v.String()) {
			return v, fmt.Errorf("string %.80q is not UTF-8", v.String())
		}
	case reflect.Pointer, reflect.Interface:
		return canonicalElem(v, depth)
	case reflect.Struct:
		return canonicalStruct(v, depth)
	case reflect.Map:
		return canonicalMap(v, depth)
	case reflect.Slice:
		return canonicalSlice(v, depth)
	}
	return v, nil
}

func canonicalElem(v reflect.Value, depth int) (reflect.Value, error) {
	if v.IsNil() {
		return v, nil
	}
	elem, err := canonicalValue(v.Elem(), depth+1)
	if err != nil || v.Kind() == reflect.Interface {
		return elem, err
	}
	p := reflect.New(elem.Type())
	p.Elem().Set(elem)
	return p, nil
}

func canonicalStruct(v reflect.Value, depth int) (reflect.Value, error) {
	switch v.Interface().(type) {
	case json.Marshaler, encoding.TextMarshaler:
		return v, nil
	}
	out := reflect.New(v.Type()).Elem()
	for i := range v.NumField() {
		f, err := canonicalValue(v.Field(i), depth+1)
		if err != nil {
			return v, err
		}
		out.Field(i).Set(f)
	}
	return out, nil
}

func canonicalMap(v reflect.Value, depth int) (reflect.Value, error) {
	out := reflect.MakeMapWithSize(v.Type(), v.Len())
	for it := v.MapRange(); it.Next(); {
		if _, err := canonicalValue(it.Key(), depth+1); err != nil {
			return v, err
		}
		e, err := canonicalValue(it.Value(), depth+1)
		if err != nil {
			return v, err
		}
		out.SetMapIndex(it.Key(), e)
	}
	return out, nil
}

func canonicalSlice(v reflect.Value, depth int) (reflect.Value, error) {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		if v.Type() == reflect.TypeFor[json.RawMessage]() && !utf8.Valid(v.Bytes()) {
			return v, errors.New("raw JSON is not UTF-8")
		}
		return v, nil
	}
	out := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
	for i := range v.Len() {
		e, err := canonicalValue(v.Index(i), depth+1)
		if err != nil {
			return v, err
		}
		out.Index(i).Set(e)
	}
	return out, nil
}
