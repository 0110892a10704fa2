package flow

import (
	"fmt"
	"regexp"
	"strings"

	yaml "github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// looksNumeric matches what some YAML reader takes for a number when it is not
// quoted.
var looksNumeric = regexp.MustCompile(`^[-+]?(0[xob][0-9a-fA-F_]+|\.?[0-9][0-9_]*(\.[0-9_]*)?([eE][-+]?[0-9_]+)?)$`)

// parseYAML reads one YAML document of the plain kind: no anchors, aliases,
// tags, merge keys or directives, so that what a reader sees is what is meant
// and nothing grows beyond the file.
func parseYAML(r *reader, data []byte) *node {
	if strings.TrimSpace(string(data)) == "" {
		r.fail(position{1, 1}, "", CodeSyntax, "start with: manifest: 1", "the file is empty")
		return nil
	}
	tokens := lexer.Tokenize(string(data))
	if !r.plainTokens(tokens) {
		return nil
	}
	file, err := parseTokens(tokens)
	if err != nil {
		r.syntax(err)
		return nil
	}
	if len(file.Docs) != 1 {
		at := position{1, 1}
		if len(file.Docs) > 1 && file.Docs[1].Start != nil {
			at = tokenPosition(file.Docs[1].Start)
		}
		r.fail(at, "", CodeSyntax, "keep one document per file", "the file holds %d YAML documents", len(file.Docs))
		return nil
	}
	if file.Docs[0].Body == nil {
		r.fail(position{1, 1}, "", CodeSyntax, "start with: manifest: 1", "the document is empty")
		return nil
	}
	return r.yamlNode(file.Docs[0].Body, "", 0)
}

// parseTokens shields the caller from a parser that panics on odd input.
func parseTokens(tokens token.Tokens) (file *ast.File, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the YAML reader gave up: %v", p)
		}
	}()
	return parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
}

// plainTokens refuses what the parser would have to expand, and nesting that it
// would follow too deep.
func (r *reader) plainTokens(tokens token.Tokens) bool {
	// The parser takes quadratic time in places.
	if len(tokens) > YAMLTokensMax {
		return r.notPlain(tokens[YAMLTokensMax], fmt.Sprintf("more than %d words and signs", YAMLTokensMax), "write so large a manifest in JSON, or put lists into datasets")
	}
	depth, onLine, line := 0, 0, 0
	for _, t := range tokens {
		switch t.Type {
		case token.AnchorType, token.AliasType:
			return r.notPlain(t, "anchors and aliases are not accepted", "write the value out where it is used")
		case token.MergeKeyType:
			return r.notPlain(t, "merge keys are not accepted", "write the fields out where they are used")
		case token.TagType:
			return r.notPlain(t, "tags are not accepted", "quote the value if it is text")
		case token.DirectiveType:
			return r.notPlain(t, "directives are not accepted", "delete the line")
		case token.MappingKeyType:
			return r.notPlain(t, "explicit keys (?) are not accepted", "write key: value")
		case token.SequenceStartType, token.MappingStartType:
			depth++
		case token.SequenceEndType, token.MappingEndType:
			depth--
		case token.SequenceEntryType:
			if t.Position.Line != line {
				line, onLine = t.Position.Line, 0
			}
			onLine++
		case token.InvalidType:
			message := t.Error
			if message == "" {
				message = "invalid YAML"
			}
			r.fail(tokenPosition(t), "", CodeSyntax, "", "%s", message)
			return false
		}
		if depth > DepthMax || onLine > DepthMax {
			return r.notPlain(t, fmt.Sprintf("nested deeper than %d", DepthMax), "")
		}
	}
	return true
}

func (r *reader) notPlain(t *token.Token, message, hint string) bool {
	r.fail(tokenPosition(t), "", CodeSyntax, hint, "%s", message)
	return false
}

func (r *reader) syntax(err error) {
	at, message := position{1, 1}, err.Error()
	if e, ok := err.(yaml.Error); ok {
		message = e.GetMessage()
		if t := e.GetToken(); t != nil {
			at = tokenPosition(t)
		}
	}
	r.fail(at, "", CodeSyntax, "check the indentation and the quotes around here", "invalid YAML: %s", message)
}

func tokenPosition(t *token.Token) position {
	if t == nil || t.Position == nil {
		return position{1, 1}
	}
	return position{max(t.Position.Line, 1), max(t.Position.Column, 1)}
}

// yamlNode turns a parsed value into a node, reporting what has no plain meaning.
func (r *reader) yamlNode(v ast.Node, path string, depth int) *node {
	n := &node{at: tokenPosition(v.GetToken())}
	if _, scalar := v.(ast.ScalarNode); !scalar && depth >= DepthMax {
		r.fail(n.at, path, CodeSyntax, "", "nested deeper than %d", DepthMax)
		n.kind = kindBad
		return n
	}
	switch v := v.(type) {
	case *ast.NullNode:
		n.kind = kindNull
	case *ast.BoolNode:
		n.kind, n.text = kindBool, v.GetToken().Value
		if n.text != "true" && n.text != "false" {
			r.fail(n.at, path, CodeSyntax, "write true or false, or quote it as text", "%.40q is not a plain boolean", n.text)
			n.kind = kindBad
		}
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		n.kind = kindNumber
		return r.number(n, v.GetToken().Value, path)
	case *ast.StringNode:
		n.kind, n.text = kindText, v.Value
		if v.GetToken().Type == token.StringType && looksNumeric.MatchString(v.Value) {
			// The parser makes text of numbers it cannot hold.
			n.kind = kindNumber
			return r.number(n, v.Value, path)
		}
	case *ast.LiteralNode:
		n.kind, n.text = kindText, v.Value.Value
	case *ast.SequenceNode:
		n.kind = kindList
		for i, item := range v.Values {
			n.items = append(n.items, r.yamlNode(item, fmt.Sprintf("%s[%d]", path, i), depth+1))
		}
	case *ast.MappingNode:
		n.kind = kindObject
		n.at = tokenPosition(v.Start)
		if len(v.Values) > 0 && !v.IsFlowStyle {
			n.at = tokenPosition(v.Values[0].Key.GetToken())
		}
		r.yamlFields(n, v.Values, path, depth)
	case *ast.MappingValueNode:
		n.kind, n.at = kindObject, tokenPosition(v.Key.GetToken())
		r.yamlFields(n, []*ast.MappingValueNode{v}, path, depth)
	default:
		r.fail(n.at, path, CodeSyntax, "", "%s is not accepted", strings.ToLower(v.Type().YAMLName()))
		n.kind = kindBad
	}
	return n
}

func (r *reader) yamlFields(n *node, values []*ast.MappingValueNode, path string, depth int) {
	if len(values) > ObjectFieldsMax {
		r.fail(n.at, path, CodeBadValue, "", "%d fields are more than %d", len(values), ObjectFieldsMax)
		return
	}
	for _, v := range values {
		at := tokenPosition(v.Key.GetToken())
		key, ok := v.Key.(*ast.StringNode)
		if !ok {
			r.fail(at, path, CodeSyntax, "quote the key", "key %.40q is not text", v.Key.GetToken().Value)
			continue
		}
		value := &node{at: at}
		if v.Value != nil {
			value = r.yamlNode(v.Value, join(path, key.Value), depth+1)
		}
		r.addField(n, field{key.Value, at, value}, path)
	}
}

// number gives n the canonical spelling of text.
func (r *reader) number(n *node, text, path string) *node {
	canonical, err := canonicalNumber(text)
	if err != nil {
		r.fail(n.at, path, CodeNumber, "write a decimal number up to 2^53-1, or quote it as text", "%v", err)
		n.kind = kindBad
	}
	n.text = canonical
	return n
}

// addField adds f unless its key is taken.
func (r *reader) addField(n *node, f field, path string) {
	if first := n.field(f.key); first != nil {
		r.fail(f.at, join(path, f.key), CodeDuplicateKey, "keep one of them",
			"field %.80q is given twice, first at line %d", f.key, first.at.line)
		return
	}
	n.fields = append(n.fields, f)
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
