package policies

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/open-policy-agent/opa/v1/ast"
)

// parseValue reads a JSON document as Rego's value. It comes to what OPA's own
// reader comes to, which makes Go's maps on the way and takes twice as long.
func parseValue(doc []byte) (ast.Value, error) {
	if !json.Valid(doc) {
		var v any
		if err := json.Unmarshal(doc, &v); err != nil {
			return nil, fmt.Errorf("invalid JSON: %w", err)
		}
		return nil, errors.New("invalid JSON")
	}
	p := parser{rest: string(doc)}
	return p.value()
}

// parser reads what json.Valid has found to be JSON, so it looks only for where
// things end; json.Valid bounds the depth as well.
type parser struct{ rest string }

// next skips space and returns the byte that follows.
func (p *parser) next() byte {
	p.rest = strings.TrimLeft(p.rest, " \t\r\n")
	return p.rest[0]
}

func (p *parser) value() (ast.Value, error) {
	switch p.next() {
	case '{':
		return p.object()
	case '[':
		return p.array()
	case '"':
		return p.text(), nil
	case 't':
		p.rest = p.rest[len("true"):]
		return ast.Boolean(true), nil
	case 'f':
		p.rest = p.rest[len("false"):]
		return ast.Boolean(false), nil
	case 'n':
		p.rest = p.rest[len("null"):]
		return ast.NullValue, nil
	}
	return p.number()
}

func (p *parser) array() (ast.Value, error) {
	var elements []*ast.Term
	p.rest = p.rest[1:]
	for p.next() != ']' {
		v, err := p.value()
		if err != nil {
			return nil, err
		}
		elements = append(elements, ast.NewTerm(v))
		if p.next() == ',' {
			p.rest = p.rest[1:]
		}
	}
	p.rest = p.rest[1:]
	return ast.NewArray(elements...), nil
}

// object lets the last of equal keys stand, as encoding/json does.
func (p *parser) object() (ast.Value, error) {
	o := ast.NewObject()
	p.rest = p.rest[1:]
	for p.next() != '}' {
		k := p.text()
		p.next()
		p.rest = p.rest[1:] // the colon
		v, err := p.value()
		if err != nil {
			return nil, err
		}
		o.Insert(ast.InternedTerm(string(k)), ast.NewTerm(v))
		if p.next() == ',' {
			p.rest = p.rest[1:]
		}
	}
	p.rest = p.rest[1:]
	return o, nil
}

func (p *parser) text() ast.String {
	end := 1
	plain := true
	for ; p.rest[end] != '"'; end++ {
		switch c := p.rest[end]; {
		case c == '\\':
			end++
			plain = false
		case c >= utf8.RuneSelf:
			plain = false
		}
	}
	raw := p.rest[:end+1]
	p.rest = p.rest[end+1:]
	if plain {
		return ast.String(raw[1:end])
	}
	var s string
	if err := json.Unmarshal([]byte(raw), &s); err != nil {
		panic("policies: read a string that was valid: " + err.Error())
	}
	return ast.String(s)
}

// longNumber is from where on OPA may refuse a number.
const longNumber = 20

func (p *parser) number() (ast.Value, error) {
	end := strings.IndexFunc(p.rest, func(r rune) bool { return !strings.ContainsRune("+-.0123456789eE", r) })
	if end < 0 {
		end = len(p.rest)
	}
	raw := p.rest[:end]
	p.rest = p.rest[end:]
	if len(raw) > longNumber || strings.ContainsAny(raw, "eE") {
		return ast.InterfaceToValue(json.Number(raw))
	}
	return ast.Number(raw), nil
}
