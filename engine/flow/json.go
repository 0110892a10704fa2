package flow

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/writrun/writ/guest-abi/abi"
)

// parseJSON reads one JSON text, as strictly as messages of guests are read.
func parseJSON(r *reader, data []byte, depthMax int) *node {
	if err := abi.CheckJSON(data, depthMax); err != nil {
		at, message := position{1, 1}, err.Error()
		var bad *abi.JSONError
		if errors.As(err, &bad) {
			at, message = positionAt(data, bad.Offset), bad.Reason
		}
		r.fail(at, "", CodeSyntax, "", "invalid JSON: %s", message)
		return nil
	}
	d := &jsonReader{reader: r, data: data, tokens: json.NewDecoder(bytes.NewReader(data))}
	d.tokens.UseNumber()
	return d.value("")
}

// jsonReader builds nodes of a text that [abi.CheckJSON] has accepted, so its
// recursion is bounded and its keys are unique.
type jsonReader struct {
	*reader
	data   []byte
	tokens *json.Decoder
	lines  lineCounter
}

// next returns the next token and its place.
func (d *jsonReader) next() (json.Token, position) {
	start := int(d.tokens.InputOffset())
	for start < len(d.data) && bytes.IndexByte([]byte(" \t\r\n,:"), d.data[start]) >= 0 {
		start++
	}
	t, err := d.tokens.Token()
	if err != nil {
		// The text was checked: there is always a next token where one is due.
		return nil, position{}
	}
	return t, d.lines.at(d.data, start)
}

func (d *jsonReader) value(path string) *node {
	t, at := d.next()
	return d.valueOf(t, at, path)
}

func (d *jsonReader) valueOf(t json.Token, at position, path string) *node {
	n := &node{at: at}
	switch t := t.(type) {
	case bool:
		n.kind, n.text = kindBool, fmt.Sprint(t)
	case json.Number:
		n.kind = kindNumber
		return d.number(n, t.String(), path)
	case string:
		n.kind, n.text = kindText, t
	case json.Delim:
		if t == '[' {
			n.kind = kindList
			d.list(n, path)
		} else {
			n.kind = kindObject
			d.object(n, path)
		}
	}
	return n
}

func (d *jsonReader) list(n *node, path string) {
	for d.tokens.More() {
		n.items = append(n.items, d.value(fmt.Sprintf("%s[%d]", path, len(n.items))))
	}
	d.next()
}

func (d *jsonReader) object(n *node, path string) {
	for d.tokens.More() {
		t, at := d.next()
		key, _ := t.(string)
		n.fields = append(n.fields, field{key, at, d.value(join(path, key))})
	}
	d.next()
}

// lineCounter finds the places of offsets that only grow, in linear time.
type lineCounter struct{ offset, line, lineStart int }

func (c *lineCounter) at(data []byte, offset int) position {
	for ; c.offset < offset; c.offset++ {
		if data[c.offset] == '\n' {
			c.line++
			c.lineStart = c.offset + 1
		}
	}
	return position{c.line + 1, utf8.RuneCount(data[c.lineStart:offset]) + 1}
}

func positionAt(data []byte, offset int) position {
	var c lineCounter
	return c.at(data, min(offset, len(data)))
}
