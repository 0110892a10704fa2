package effect

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/writrun/writ/guest-abi/abi"
)

// Mask is what stands where a secret was.
const Mask = "[masked]"

// maskRoundsMax is how often masked bytes are looked through again: a mask may
// bring the parts of a secret together.
const maskRoundsMax = 4

// Masker removes secrets from bytes, however they are written: plain, in hex, in
// either base64 alphabet at any alignment, percent-encoded, JSON-escaped, wrapped
// into lines, and any of the latter around any of the former.
type Masker struct{ needles [][]byte }

// NewMasker returns a masker of secrets; of none it changes nothing.
func NewMasker(secrets map[string]Secret) *Masker {
	m := &Masker{}
	for _, s := range secrets {
		value := s.reveal()
		if value == "" {
			continue
		}
		m.needles = append(m.needles, forms(value)...)
		if strings.ContainsAny(value, " \t") {
			// As a web form writes it, and as it is left where lines are unwrapped.
			m.needles = append(m.needles, []byte(strings.ReplaceAll(value, " ", "+")),
				[]byte(strings.Join(strings.Fields(value), "")))
		}
	}
	return m
}

// forms returns the secret and its encodings. Of base64 at an alignment, the
// characters that other bytes have a part in are left out.
func forms(secret string) [][]byte {
	lower := hex.EncodeToString([]byte(secret))
	out := [][]byte{[]byte(secret), []byte(lower), []byte(strings.ToUpper(lower))}
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for shift := range 3 {
			text := enc.EncodeToString(append(make([]byte, shift), secret...))
			bits := 8 * (shift + len(secret))
			out = append(out, []byte(text[(8*shift+5)/6:bits/6]))
		}
	}
	return out
}

// view is bytes with some encoding undone, and for each byte where it came from.
type view struct {
	text       []byte
	start, end []int32 // in the original
}

// Mask returns b without secrets. ok is false if they could not be removed; then
// b must not be kept.
func (m *Masker) Mask(b []byte) (masked []byte, ok bool) {
	if len(m.needles) == 0 {
		return b, true
	}
	if len(b) > maskBytesMax {
		return nil, false
	}
	for range maskRoundsMax {
		spans := m.find(b)
		if len(spans) == 0 {
			return b, true
		}
		b = cover(b, spans)
	}
	return nil, false
}

// maskBytesMax bounds what is looked through: the largest response in base64
// and its frame.
const maskBytesMax = 64 << 20

// find marks every byte of b that a secret covers, in any view; nil means none.
// It looks through b in pieces that overlap by more than the longest form of a
// secret, so that what it needs does not grow with b.
func (m *Masker) find(b []byte) []bool {
	overlap := 0
	for _, needle := range m.needles {
		overlap = max(overlap, len(needle)*formGrowth)
	}
	var hit []bool
	for at := 0; at < len(b); at += maskPieceBytes {
		piece := b[at:min(len(b), at+maskPieceBytes+overlap)]
		found := m.findIn(piece)
		if found == nil {
			continue
		}
		if hit == nil {
			hit = make([]bool, len(b))
		}
		for i, covered := range found {
			hit[at+i] = hit[at+i] || covered
		}
	}
	return hit
}

const (
	maskPieceBytes = 1 << 20
	formGrowth     = 32 // a byte may be written as a pair of escapes, each on a line of its own
)

func (m *Masker) findIn(b []byte) []bool {
	var hit []bool
	mark := func(v view) {
		for _, needle := range m.needles {
			for at := 0; ; at++ {
				i := bytes.Index(v.text[at:], needle)
				if i < 0 {
					break
				}
				at += i
				if hit == nil {
					hit = make([]bool, len(b))
				}
				for k := v.start[at]; k < v.end[at+len(needle)-1]; k++ {
					hit[k] = true
				}
			}
		}
	}
	undo := []func(view) view{unescapeJSON, unescapePercent, unwrap}
	var look func(v view, left []int)
	look = func(v view, left []int) {
		mark(v)
		for i, f := range left {
			if slices.Contains(left[:i], f) {
				continue
			}
			next := undo[f](v)
			if len(next.text) == len(v.text) {
				continue // nothing to undo
			}
			rest := append(append([]int{}, left[:i]...), left[i+1:]...)
			look(next, rest)
		}
	}
	look(plainView(b), []int{0, 1, 2, 0}) // JSON may stand in a JSON string
	return hit
}

// cover puts one mask in place of each run of marked bytes.
func cover(b []byte, hit []bool) []byte {
	var out []byte
	for i := range b {
		switch {
		case !hit[i]:
			out = append(out, b[i])
		case i == 0 || !hit[i-1]:
			out = append(out, Mask...)
		}
	}
	return out
}

func plainView(b []byte) view {
	v := view{text: b, start: make([]int32, len(b)), end: make([]int32, len(b))}
	for i := range b {
		v.start[i], v.end[i] = int32(i), int32(i+1)
	}
	return v
}

func (v *view) add(c byte, of *view, from, to int) {
	v.text = append(v.text, c)
	v.start, v.end = append(v.start, of.start[from]), append(v.end, of.end[to-1])
}

// unwrap drops white space, also where it is written as a JSON escape.
func unwrap(of view) (v view) {
	for i := 0; i < len(of.text); i++ {
		switch c := of.text[i]; {
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
		case c == '\\' && i+1 < len(of.text) && strings.IndexByte("nrt", of.text[i+1]) >= 0:
			i++
		default:
			v.add(c, &of, i, i+1)
		}
	}
	return v
}

func unescapePercent(of view) (v view) {
	for i := 0; i < len(of.text); i++ {
		if of.text[i] == '%' && i+2 < len(of.text) {
			if c, err := strconv.ParseUint(string(of.text[i+1:i+3]), 16, 8); err == nil {
				v.add(byte(c), &of, i, i+3)
				i += 2
				continue
			}
		}
		v.add(of.text[i], &of, i, i+1)
	}
	return v
}

func unescapeJSON(of view) (v view) {
	const from, to = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
	for i := 0; i < len(of.text); i++ {
		if of.text[i] != '\\' || i+1 >= len(of.text) {
			v.add(of.text[i], &of, i, i+1)
			continue
		}
		if k := strings.IndexByte(from, of.text[i+1]); k >= 0 {
			v.add(to[k], &of, i, i+2)
			i++
			continue
		}
		c, size := escapedRune(of.text[i:])
		if size == 0 {
			v.add('\\', &of, i, i+1)
			continue
		}
		for _, b := range utf8.AppendRune(nil, c) {
			v.add(b, &of, i, i+size)
		}
		i += size - 1
	}
	return v
}

// escapedRune reads a \u escape, or two that are a surrogate pair.
func escapedRune(b []byte) (rune, int) {
	unit := func(b []byte) (rune, bool) {
		if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
			return 0, false
		}
		n, err := strconv.ParseUint(string(b[2:6]), 16, 16)
		return rune(n), err == nil
	}
	high, ok := unit(b)
	if !ok {
		return 0, 0
	}
	if low, ok := unit(b[6:]); ok && utf16.IsSurrogate(high) {
		if c := utf16.DecodeRune(high, low); c != utf8.RuneError {
			return c, 12
		}
	}
	return high, 6
}

// Outcome returns o without secrets. A response that cannot be freed of them, or
// that is not JSON any more without them, is withheld.
func (m *Masker) Outcome(o Outcome) Outcome {
	if len(m.needles) == 0 {
		return o
	}
	for _, text := range []*string{&o.Details.Error, &o.Details.Peer} {
		masked, ok := m.Mask([]byte(*text))
		if !ok {
			masked = []byte(Mask)
		}
		*text = string(masked)
	}
	if o.Response == nil {
		return o
	}
	masked, ok := m.Mask(o.Response)
	if ok && (json.Valid(masked) || !json.Valid(o.Response)) {
		o.Response = masked
		return o
	}
	o.Response, o.Withheld, o.Code = nil, true, abi.Unavailable
	return o
}
