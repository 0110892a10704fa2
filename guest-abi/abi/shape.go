package abi

import (
	"encoding/json"
	"reflect"
	"strings"
)

// valueKind is what a JSON value is.
type valueKind uint8

const (
	kindNull valueKind = iota
	kindBool
	kindInteger // a number without fraction and exponent
	kindNumber
	kindString
	kindArray
	kindObject
)

// String names the kind for errors.
func (k valueKind) String() string {
	return [...]string{"null", "a boolean", "an integer", "a number", "a string", "an array", "an object"}[k]
}

// shape is what JSON a Go type is read from. Unlike encoding/json it takes field
// names literally and tells null from absent. A nil shape stands for any JSON.
type shape struct {
	kind   valueKind
	fields map[string]*shape // of a struct
	elem   *shape            // of a slice or map
	open   bool              // a map: any key
}

// shapeOf returns the shape of t. Message types are not recursive.
func shapeOf(t reflect.Type) *shape {
	if t == reflect.TypeFor[json.RawMessage]() {
		return nil
	}
	switch t.Kind() {
	case reflect.Pointer:
		return shapeOf(t.Elem())
	case reflect.Struct:
		s := &shape{kind: kindObject, fields: map[string]*shape{}}
		s.addFields(t)
		return s
	case reflect.Map:
		return &shape{kind: kindObject, open: true, elem: shapeOf(t.Elem())}
	case reflect.Slice:
		return &shape{kind: kindArray, elem: shapeOf(t.Elem())}
	case reflect.String:
		return &shape{kind: kindString}
	case reflect.Bool:
		return &shape{kind: kindBool}
	case reflect.Float64:
		return &shape{kind: kindNumber}
	default:
		return &shape{kind: kindInteger}
	}
}

func (s *shape) addFields(t reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			s.addFields(f.Type)
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		s.fields[name] = shapeOf(f.Type)
	}
}

func (s *shape) accepts(k valueKind) bool {
	return s == nil || s.kind == k || s.kind == kindNumber && k == kindInteger
}

func (s *shape) element() *shape {
	if s == nil {
		return nil
	}
	return s.elem
}

func (s *shape) field(name string) (*shape, bool) {
	if s == nil {
		return nil, true
	}
	if s.open {
		return s.elem, true
	}
	f, ok := s.fields[name]
	return f, ok
}

// String names the shape for errors.
func (s *shape) String() string {
	if s == nil {
		return "a value"
	}
	return s.kind.String()
}
