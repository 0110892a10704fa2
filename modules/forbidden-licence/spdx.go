package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// The limits of one expression.
const (
	expressionBytesMax = 8192
	nestingMax         = 64
)

// opinion is what an expression amounts to; the better one is the larger.
type opinion uint8

const (
	forbidden opinion = iota
	unknown
	allowed
)

// node is a parsed SPDX expression: a licence id, or operands joined by AND or OR.
type node struct {
	id       string
	operator string // "AND" or "OR" when id is empty
	operands []*node
}

// judge takes the best of alternatives and the worst of what applies together.
func (n *node) judge(list []string) opinion {
	if n.id != "" {
		switch {
		case n.id == noAssertion || n.id == "NONE":
			return unknown
		case isForbidden(n.id, list):
			return forbidden
		}
		return allowed
	}
	result := n.operands[0].judge(list)
	for _, o := range n.operands[1:] {
		if n.operator == "OR" {
			result = max(result, o.judge(list))
		} else {
			result = min(result, o.judge(list))
		}
	}
	return result
}

// isForbidden compares as SPDX does, without regard to case. "GPL-2.0+" and
// "GPL-2.0-or-later" are one licence, and so are "GPL-2.0" and "GPL-2.0-only".
func isForbidden(id string, list []string) bool {
	return slices.ContainsFunc(list, func(f string) bool { return spelling(f) == spelling(id) })
}

// spelling maps the deprecated ids of the GNU licences to the current ones.
func spelling(id string) string {
	id = strings.ToLower(id)
	if !strings.HasPrefix(id, "gpl-") && !strings.HasPrefix(id, "lgpl-") && !strings.HasPrefix(id, "agpl-") {
		return id
	}
	if base, ok := strings.CutSuffix(id, "+"); ok {
		return base + "-or-later"
	}
	if strings.HasSuffix(id, "-only") || strings.HasSuffix(id, "-or-later") {
		return id
	}
	return id + "-only"
}

// parser reads an expression word by word.
type parser struct {
	words []string
	depth int
}

// parse reads an SPDX licence expression (SPDX 2.3, annex D). AND binds tighter
// than OR. An exception after WITH changes nothing: it only adds permissions to a
// licence that is on the list or not.
func parse(text string) (*node, error) {
	if len(text) > expressionBytesMax {
		return nil, fmt.Errorf("longer than %d bytes", expressionBytesMax)
	}
	spaced := strings.ReplaceAll(strings.ReplaceAll(text, "(", " ( "), ")", " ) ")
	p := parser{words: strings.Fields(spaced)}
	n, err := p.alternatives()
	if err == nil && len(p.words) > 0 {
		err = fmt.Errorf("unexpected %q", p.words[0])
	}
	return n, err
}

func (p *parser) peek() string {
	if len(p.words) == 0 {
		return ""
	}
	return p.words[0]
}

func (p *parser) alternatives() (*node, error) { return p.joined("OR", p.together) }

func (p *parser) together() (*node, error) { return p.joined("AND", p.licence) }

func (p *parser) joined(operator string, operand func() (*node, error)) (*node, error) {
	first, err := operand()
	if err != nil {
		return nil, err
	}
	n := &node{operator: operator, operands: []*node{first}}
	for strings.EqualFold(p.peek(), operator) {
		p.words = p.words[1:]
		next, err := operand()
		if err != nil {
			return nil, err
		}
		n.operands = append(n.operands, next)
	}
	return n, nil
}

func (p *parser) licence() (*node, error) {
	word := p.peek()
	if word == "" {
		return nil, errors.New("ends where a licence is expected")
	}
	p.words = p.words[1:]
	if word == "(" {
		if p.depth++; p.depth > nestingMax {
			return nil, fmt.Errorf("nested deeper than %d", nestingMax)
		}
		n, err := p.alternatives()
		if err != nil {
			return nil, err
		}
		if p.peek() != ")" {
			return nil, errors.New("a parenthesis is not closed")
		}
		p.words = p.words[1:]
		p.depth--
		return n, nil
	}
	if !isLicenceID(word) {
		return nil, fmt.Errorf("%q is no licence id", word)
	}
	if strings.EqualFold(p.peek(), "WITH") {
		p.words = p.words[1:]
		if !isLicenceID(p.peek()) {
			return nil, errors.New("WITH is not followed by an exception")
		}
		p.words = p.words[1:]
	}
	return &node{id: word}, nil
}

// isLicenceID reports whether s has the form of a licence id and is no operator.
func isLicenceID(s string) bool {
	switch strings.ToUpper(s) {
	case "", "AND", "OR", "WITH":
		return false
	}
	return strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-.+:") == ""
}
