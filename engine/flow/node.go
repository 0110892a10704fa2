package flow

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/writrun/writ/guest-abi/abi"
)

// position is a place in a file, both counted from 1. The zero position is none.
type position struct{ line, column int }

// kind is what a value in a manifest is.
type kind uint8

const (
	kindNull kind = iota
	kindBool
	kindNumber
	kindText
	kindList
	kindObject
	kindBad // already reported: nothing more is said of it
)

// String names the kind for errors.
func (k kind) String() string {
	return [...]string{"nothing", "a boolean", "a number", "text", "a list", "an object", "a bad value"}[k]
}

// node is a value with its place, whether it was written in YAML or JSON.
type node struct {
	kind   kind
	at     position
	text   string // of a text; the canonical spelling of a number or boolean
	items  []*node
	fields []field // in the order of the file, keys unique
}

type field struct {
	key   string
	at    position
	value *node
}

func (n *node) field(key string) *field {
	for i := range n.fields {
		if n.fields[i].key == key {
			return &n.fields[i]
		}
	}
	return nil
}

// child returns the field or the item a key stands for, or nil.
func (n *node) child(key string) *node {
	if n == nil {
		return nil
	}
	if i, err := strconv.Atoi(key); err == nil && n.kind == kindList && i >= 0 && i < len(n.items) {
		return n.items[i]
	}
	if f := n.field(key); f != nil {
		return f.value
	}
	return nil
}

// find returns the node at a path of the manifest format, or nil.
func (n *node) find(path string) *node {
	for _, key := range strings.FieldsFunc(path, func(c rune) bool { return strings.ContainsRune(".[]", c) }) {
		n = n.child(key)
	}
	return n
}

// canonicalNumber returns the one spelling of a JSON number.
func canonicalNumber(text string) (string, error) {
	if !json.Valid([]byte(text)) {
		return "", fmt.Errorf("number %.40q is not in the decimal form of JSON", text)
	}
	if !strings.ContainsAny(text, ".eE") {
		v, err := strconv.ParseInt(text, 10, 64)
		if err != nil || v > abi.IntegerMax || v < -abi.IntegerMax {
			return "", fmt.Errorf("integer %.40s is beyond 2^53-1", text)
		}
		return strconv.FormatInt(v, 10), nil
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.Abs(v) > abi.IntegerMax {
		return "", fmt.Errorf("number %.40s is beyond 2^53-1", text)
	}
	if v == 0 {
		return "0", nil // not -0
	}
	b, err := json.Marshal(v)
	return string(b), err
}

// canonical returns n as JSON with sorted keys, no spaces and one spelling of
// every number and text.
func (n *node) canonical() []byte {
	var b bytes.Buffer
	n.write(&b)
	return b.Bytes()
}

// write recurses at most DepthMax deep: both readers bound their trees.
func (n *node) write(b *bytes.Buffer) {
	switch n.kind {
	case kindNull:
		b.WriteString("null")
	case kindBool, kindNumber:
		b.WriteString(n.text)
	case kindText:
		writeText(b, n.text)
	case kindList:
		b.WriteByte('[')
		for i, item := range n.items {
			if i > 0 {
				b.WriteByte(',')
			}
			item.write(b)
		}
		b.WriteByte(']')
	case kindObject:
		b.WriteByte('{')
		sorted := slices.Clone(n.fields)
		slices.SortFunc(sorted, func(x, y field) int { return strings.Compare(x.key, y.key) })
		for i, f := range sorted {
			if i > 0 {
				b.WriteByte(',')
			}
			writeText(b, f.key)
			b.WriteByte(':')
			f.value.write(b)
		}
		b.WriteByte('}')
	}
}

func writeText(b *bytes.Buffer, s string) {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	// A string always encodes; a bytes.Buffer always takes it.
	_ = e.Encode(s)
	b.Truncate(b.Len() - 1)
}
