package abi

import (
	"fmt"
	"math"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// ObjectKeysMax is the most keys one JSON object of a message may have.
const ObjectKeysMax = 1 << 20

// objectKeysListed is how many keys of an object are compared one by one before
// a map is worth its cost.
const objectKeysListed = 16

// JSONError says where bytes stop being JSON this ABI accepts.
type JSONError struct {
	Offset int    // in bytes, from zero
	Reason string // what is wrong there
}

// Error returns the reason and the offset.
func (e *JSONError) Error() string {
	return fmt.Sprintf("invalid JSON at byte %d: %s", e.Offset, e.Reason)
}

// CheckJSON checks that data is exactly one JSON text (RFC 8259) that every
// reader understands alike: UTF-8, no byte order mark, no duplicate keys, no
// lone surrogates, integers within ±[IntegerMax], other numbers finite as
// float64, nested at most depthMax deep, nothing after it. The error is a
// [*JSONError]. It takes linear time and does not recurse.
func CheckJSON(data []byte, depthMax int) error {
	return checkShape(data, depthMax, nil)
}

// checkShape is CheckJSON for JSON that must also have the given shape; a nil
// shape stands for any.
func checkShape(data []byte, depthMax int, s *shape) error {
	c := checker{data: data, depthMax: depthMax}
	if err := c.text(s); err != nil {
		return err
	}
	return nil
}

// checker scans one JSON text.
type checker struct {
	data     []byte
	at       int // offset of the next byte
	depthMax int
	open     []frame
	keys     []string // keys of all open objects, oldest first
}

// frame is an object or array that is not yet closed.
type frame struct {
	closer byte // '}' or ']'
	shape  *shape
	first  int                 // index in checker.keys of the object's first key
	set    map[string]struct{} // the object's keys, once there are many
}

func (c *checker) fail(offset int, format string, args ...any) *JSONError {
	return &JSONError{offset, fmt.Sprintf(format, args...)}
}

func (c *checker) space() {
	for c.at < len(c.data) {
		switch c.data[c.at] {
		case ' ', '\t', '\n', '\r':
			c.at++
		default:
			return
		}
	}
}

// peek returns the next byte, or 0 at the end; 0 itself is never part of JSON.
func (c *checker) peek() byte {
	if c.at < len(c.data) {
		return c.data[c.at]
	}
	return 0
}

func (c *checker) unexpected(wanted string) *JSONError {
	if c.at >= len(c.data) {
		return c.fail(c.at, "text ends where %s is expected", wanted)
	}
	return c.fail(c.at, "found %q where %s is expected", c.data[c.at:c.at+1], wanted)
}

// text scans the whole text. Each turn of the loop reads one value, then closes
// what ends after it.
func (c *checker) text(s *shape) *JSONError {
	c.space()
	for {
		opened, err := c.value(s)
		if err != nil {
			return err
		}
		for {
			c.space()
			if len(c.open) == 0 {
				if c.at < len(c.data) {
					return c.fail(c.at, "more bytes after the value")
				}
				return nil
			}
			if c.peek() == c.open[len(c.open)-1].closer {
				c.at++
				c.close()
				opened = false
				continue
			}
			break
		}
		if s, err = c.next(opened); err != nil {
			return err
		}
	}
}

// next reads up to the start of the next element of the innermost open object
// or array and returns the shape it must have.
func (c *checker) next(first bool) (*shape, *JSONError) {
	f := &c.open[len(c.open)-1]
	if !first {
		if c.peek() != ',' {
			return nil, c.unexpected("',' or '" + string(rune(f.closer)) + "'")
		}
		c.at++
		c.space()
	}
	if f.closer == ']' {
		return f.shape.element(), nil
	}
	start := c.at
	if c.peek() != '"' {
		return nil, c.unexpected("a key")
	}
	key, err := c.str(true)
	if err != nil {
		return nil, err
	}
	if err := c.addKey(f, key, start); err != nil {
		return nil, err
	}
	s, known := f.shape.field(key)
	if !known {
		return nil, c.fail(start, "unknown field %.80q", key)
	}
	c.space()
	if c.peek() != ':' {
		return nil, c.unexpected("':'")
	}
	c.at++
	c.space()
	return s, nil
}

func (c *checker) addKey(f *frame, key string, start int) *JSONError {
	keys := c.keys[f.first:]
	if len(keys) >= ObjectKeysMax {
		return c.fail(start, "object has more than %d keys", ObjectKeysMax)
	}
	twice := false
	if f.set != nil {
		_, twice = f.set[key]
		f.set[key] = struct{}{}
	} else {
		for _, k := range keys {
			twice = twice || k == key
		}
	}
	if twice {
		return c.fail(start, "key %.80q appears twice", key)
	}
	c.keys = append(c.keys, key)
	if f.set == nil && len(keys)+1 == objectKeysListed {
		f.set = make(map[string]struct{}, 2*objectKeysListed)
		for _, k := range c.keys[f.first:] {
			f.set[k] = struct{}{}
		}
	}
	return nil
}

func (c *checker) close() {
	c.keys = c.keys[:c.open[len(c.open)-1].first]
	c.open = c.open[:len(c.open)-1]
}

// value reads a scalar, or the opening of an object or array.
func (c *checker) value(s *shape) (opened bool, err *JSONError) {
	start := c.at
	var found valueKind
	switch b := c.peek(); {
	case b == '{':
		found, opened = kindObject, true
		c.at++
		c.open = append(c.open, frame{closer: '}', shape: s, first: len(c.keys)})
	case b == '[':
		found, opened = kindArray, true
		c.at++
		c.open = append(c.open, frame{closer: ']', shape: s, first: len(c.keys)})
	case b == '"':
		found = kindString
		_, err = c.str(false)
	case b == '-' || b >= '0' && b <= '9':
		found, err = c.number()
	case b == 't':
		found, err = kindBool, c.word("true")
	case b == 'f':
		found, err = kindBool, c.word("false")
	case b == 'n':
		found, err = kindNull, c.word("null")
	default:
		err = c.unexpected("a value")
	}
	if err == nil && len(c.open) > c.depthMax {
		err = c.fail(start, "nested deeper than %d", c.depthMax)
	}
	if err == nil && !s.accepts(found) {
		err = c.fail(start, "found %s where %s is expected", found, s)
	}
	return opened, err
}

func (c *checker) word(w string) *JSONError {
	for i := range len(w) {
		if c.peek() != w[i] {
			return c.unexpected(w)
		}
		c.at++
	}
	return nil
}

func (c *checker) digits() *JSONError {
	if b := c.peek(); b < '0' || b > '9' {
		return c.unexpected("a digit")
	}
	for c.peek() >= '0' && c.peek() <= '9' {
		c.at++
	}
	return nil
}

func (c *checker) number() (valueKind, *JSONError) {
	start := c.at
	if c.peek() == '-' {
		c.at++
	}
	if c.peek() == '0' {
		c.at++
		if b := c.peek(); b >= '0' && b <= '9' {
			return 0, c.fail(start, "number begins with a superfluous 0")
		}
	} else if err := c.digits(); err != nil {
		return 0, err
	}
	kind := kindInteger
	if c.peek() == '.' {
		kind = kindNumber
		c.at++
		if err := c.digits(); err != nil {
			return 0, err
		}
	}
	if b := c.peek(); b == 'e' || b == 'E' {
		kind = kindNumber
		c.at++
		if b := c.peek(); b == '+' || b == '-' {
			c.at++
		}
		if err := c.digits(); err != nil {
			return 0, err
		}
	}
	return kind, c.magnitude(kind, start)
}

// magnitude checks the size of the number in data[start:at].
func (c *checker) magnitude(kind valueKind, start int) *JSONError {
	text := c.data[start:c.at]
	if kind == kindInteger {
		n, err := strconv.ParseInt(string(text[:min(len(text), 24)]), 10, 64)
		if err != nil || n > IntegerMax || n < -IntegerMax {
			return c.fail(start, "integer is beyond ±%d; write it as a string", IntegerMax)
		}
		return nil
	}
	f, err := strconv.ParseFloat(string(text), 64)
	if err != nil || math.IsInf(f, 0) {
		return c.fail(start, "number is too large for a float64")
	}
	return nil
}

// str reads a string. Its value is made only when wanted.
func (c *checker) str(wanted bool) (string, *JSONError) {
	c.at++
	start := c.at
	var value []byte // set from the first escape on
	for {
		plain := c.at
		if err := c.plain(); err != nil {
			return "", err
		}
		if wanted && (value != nil || c.data[c.at] == '\\') {
			value = append(value, c.data[plain:c.at]...)
		}
		if c.data[c.at] == '"' {
			break
		}
		r, err := c.escape()
		if err != nil {
			return "", err
		}
		if wanted {
			value = utf8.AppendRune(value, r)
		}
	}
	end := c.at
	c.at++
	if !wanted {
		return "", nil
	}
	if value != nil {
		return string(value), nil
	}
	return string(c.data[start:end]), nil
}

// plain reads up to the next quote or backslash.
func (c *checker) plain() *JSONError {
	for c.at < len(c.data) {
		switch b := c.data[c.at]; {
		case b == '"' || b == '\\':
			return nil
		case b < 0x20:
			return c.fail(c.at, "control character %q in a string", b)
		case b < utf8.RuneSelf:
			c.at++
		default:
			r, size := utf8.DecodeRune(c.data[c.at:])
			if r == utf8.RuneError && size == 1 {
				return c.fail(c.at, "bytes are not UTF-8")
			}
			c.at += size
		}
	}
	return c.fail(c.at, "text ends inside a string")
}

// escape reads one escape, or two that make one character.
func (c *checker) escape() (rune, *JSONError) {
	start := c.at
	c.at++
	b := c.peek()
	c.at++
	switch b {
	case '"', '\\', '/':
		return rune(b), nil
	case 'b':
		return '\b', nil
	case 'f':
		return '\f', nil
	case 'n':
		return '\n', nil
	case 'r':
		return '\r', nil
	case 't':
		return '\t', nil
	case 'u':
	default:
		return 0, c.fail(start, "unknown escape in a string")
	}
	r, ok := c.hex4()
	if !ok {
		return 0, c.fail(start, "\\u is not followed by four hex digits")
	}
	if !utf16.IsSurrogate(r) {
		return r, nil
	}
	if c.peek() == '\\' && c.at+1 < len(c.data) && c.data[c.at+1] == 'u' {
		c.at += 2
		if low, ok := c.hex4(); ok {
			if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
				return pair, nil
			}
		}
	}
	return 0, c.fail(start, "lone surrogate in a string")
}

func (c *checker) hex4() (rune, bool) {
	if len(c.data)-c.at < 4 {
		return 0, false
	}
	var r rune
	for _, b := range c.data[c.at : c.at+4] {
		switch {
		case b >= '0' && b <= '9':
			r = r<<4 | rune(b-'0')
		case b >= 'a' && b <= 'f':
			r = r<<4 | rune(b-'a'+10)
		case b >= 'A' && b <= 'F':
			r = r<<4 | rune(b-'A'+10)
		default:
			return 0, false
		}
	}
	c.at += 4
	return r, true
}
