package flow

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/writrun/writ/guest-abi/abi"
)

// reader collects faults and the place of every value it has seen.
type reader struct {
	file   string
	faults Errors
	places map[string]position // by path
}

func (r *reader) fail(at position, path, code, hint, format string, args ...any) {
	r.faults = append(r.faults, &Error{Code: code, File: r.file, Line: at.line, Column: at.column,
		Path: path, Message: fmt.Sprintf(format, args...), Hint: hint})
}

// failAt is fail for a path whose place was seen, or whose parent's was.
func (r *reader) failAt(path, code, hint, format string, args ...any) {
	at, seen := r.places[path]
	for p := path; !seen && p != ""; at, seen = r.places[p] {
		p = parentPath(p)
	}
	r.fail(at, path, code, hint, format, args...)
}

func parentPath(path string) string { return path[:max(strings.LastIndexAny(path, ".["), 0)] }

// object reads the fields of one object. Its methods do nothing on a nil
// object, which stands for a value of another type, already reported.
type object struct {
	*reader
	path  string
	node  *node
	names []string // asked for so far
}

func (r *reader) object(n *node, path string) *object {
	if !r.is(n, path, kindObject) {
		return nil
	}
	return &object{reader: r, path: path, node: n}
}

// is reports whether n has the kind; if not it says so.
func (r *reader) is(n *node, path string, want kind) bool {
	if n.kind == want {
		return true
	}
	if n.kind == kindBad {
		return false
	}
	hint := ""
	switch {
	case n.kind == kindNull:
		hint = "leave the field out, or give it a value"
	case want == kindText && (n.kind == kindNumber || n.kind == kindBool):
		hint = "quote it"
	}
	r.fail(n.at, path, CodeWrongType, hint, "found %s where %s is expected", n.kind, want)
	return false
}

// optional hands the named field to read if it is there.
func (o *object) optional(name string, read func(n *node, path string)) {
	if o == nil {
		return
	}
	o.names = append(o.names, name)
	f := o.node.field(name)
	if f == nil {
		return
	}
	path := join(o.path, name)
	o.places[path] = f.value.at
	read(f.value, path)
}

// required is optional, and reports a field that is not there.
func (o *object) required(name, hint string, read func(n *node, path string)) {
	if o == nil {
		return
	}
	if o.node.field(name) == nil {
		o.fail(o.node.at, join(o.path, name), CodeMissingField, hint, "field %q is missing", name)
	}
	o.optional(name, read)
}

// end reports every field nobody asked for.
func (o *object) end() {
	if o == nil {
		return
	}
	for _, f := range o.node.fields {
		if slices.Contains(o.names, f.key) {
			continue
		}
		o.fail(f.at, join(o.path, f.key), CodeUnknownField, "known here: "+strings.Join(o.nearest(f.key), ", "),
			"unknown field %.80q", f.key)
	}
}

// nearest returns the known name that is one or two edits from key, or else all.
func (o *object) nearest(key string) []string {
	for _, name := range o.names {
		if len(key) < 64 && distance(name, key) <= 2 {
			return []string{name}
		}
	}
	return o.names
}

// distance is the Levenshtein distance in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}

// list hands each item to read.
func (r *reader) list(n *node, path string, itemsMin, itemsMax int, read func(n *node, path string)) {
	if !r.is(n, path, kindList) {
		return
	}
	if len(n.items) < itemsMin {
		r.fail(n.at, path, CodeBadValue, "name at least one", "the list is empty")
	}
	if len(n.items) > itemsMax {
		r.fail(n.at, path, CodeBadValue, "", "%d items are more than %d", len(n.items), itemsMax)
		return
	}
	for i, item := range n.items {
		p := path + "[" + strconv.Itoa(i) + "]"
		r.places[p] = item.at
		read(item, p)
	}
}

// text reads text of 1 to bytesMax bytes without control characters.
func (r *reader) text(n *node, path string, bytesMax int) string {
	if !r.is(n, path, kindText) {
		return ""
	}
	switch {
	case n.text == "":
		r.fail(n.at, path, CodeBadValue, "", "is empty")
	case len(n.text) > bytesMax:
		r.fail(n.at, path, CodeBadValue, "", "%d bytes are more than %d", len(n.text), bytesMax)
	case !utf8.ValidString(n.text) || strings.ContainsFunc(n.text, isControl):
		r.fail(n.at, path, CodeBadValue, "", "%.80q holds control characters", n.text)
	default:
		return n.text
	}
	return ""
}

func isControl(c rune) bool { return c < ' ' || c >= 0x7f && c < 0xa0 }

// choice reads one of the named words.
func (r *reader) choice(n *node, path string, words ...string) string {
	if !r.is(n, path, kindText) {
		return ""
	}
	if !slices.Contains(words, n.text) {
		r.fail(n.at, path, CodeBadValue, "one of "+strings.Join(words, ", "), "%.80q is not known here", n.text)
		return ""
	}
	return n.text
}

func (r *reader) boolean(n *node, path string) bool {
	return r.is(n, path, kindBool) && n.text == "true"
}

// integer reads an integer of low to high.
func (r *reader) integer(n *node, path, code string, low, high uint64) uint64 {
	if !r.is(n, path, kindNumber) {
		return 0
	}
	v, err := strconv.ParseUint(n.text, 10, 64)
	if err != nil && !strings.HasPrefix(n.text, "-") {
		r.fail(n.at, path, CodeWrongType, "", "%s is not an integer", n.text)
		return 0
	}
	if err != nil || v < low || v > high {
		r.fail(n.at, path, code, "", "%s is not between %d and %d", n.text, low, high)
		return 0
	}
	return v
}

// fraction reads a number above low, or equal to it if closed, and at most 1.
func (r *reader) fraction(n *node, path string, low float64, closed bool) float64 {
	if !r.is(n, path, kindNumber) {
		return 0
	}
	v, err := strconv.ParseFloat(n.text, 64)
	if err != nil || v > 1 || v < low || v == low && !closed {
		bound := "above"
		if closed {
			bound = "at least"
		}
		r.fail(n.at, path, CodeBadValue, "", "%s is not %s %v and at most 1", n.text, bound, low)
		return 0
	}
	return v
}

func (r *reader) id(n *node, path string) abi.ID {
	if !r.is(n, path, kindText) {
		return ""
	}
	id, err := abi.ParseID(n.text)
	if err != nil {
		r.fail(n.at, path, CodeBadID, "ids are [a-z0-9][a-z0-9_-]{0,62}; run, control, flow and arbitration are reserved", "%v", err)
	}
	return id
}

// ids reads a list of ids without repetition.
func (r *reader) ids(n *node, path string) []abi.ID {
	var out []abi.ID
	r.list(n, path, 0, StepsMax, func(n *node, path string) {
		if id := r.id(n, path); id != "" && r.once(n, path, out, id) {
			out = append(out, id)
		}
	})
	return out
}

// words reads a list of words without repetition and sorts it.
func (r *reader) words(n *node, path string, allowed ...string) []string {
	var out []string
	r.list(n, path, 1, ListItemsMax, func(n *node, path string) {
		if w := r.choice(n, path, allowed...); w != "" && once(r, n, path, out, w) {
			out = append(out, w)
		}
	})
	slices.Sort(out)
	return out
}

func (r *reader) once(n *node, path string, seen []abi.ID, v abi.ID) bool {
	return once(r, n, path, seen, v)
}

func once[T ~string](r *reader, n *node, path string, seen []T, v T) bool {
	if slices.Contains(seen, v) {
		r.fail(n.at, path, CodeDuplicateID, "name it once", "%q is named twice", string(v))
		return false
	}
	return true
}

func (r *reader) digest(n *node, path string) abi.Digest {
	if !r.is(n, path, kindText) {
		return ""
	}
	d, err := abi.ParseDigest(n.text)
	if err != nil {
		r.fail(n.at, path, CodeBadValue, "", "%v", err)
	}
	return d
}
