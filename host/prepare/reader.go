package prepare

import (
	"fmt"
	"unicode/utf8"
)

// reader decodes the Wasm binary format. The first failure sticks: later reads
// return zero values and do not move, so callers check once per construct.
type reader struct {
	data  []byte // the whole module, so that positions are offsets in it
	pos   int
	end   int // reads stop here
	fault *Fault
}

func (r *reader) fail(offset int, code, format string, args ...any) {
	if r.fault == nil {
		r.fault = &Fault{Code: code, Offset: offset, Detail: fmt.Sprintf(format, args...)}
	}
}

func (r *reader) done() bool { return r.fault != nil || r.pos >= r.end }

func (r *reader) failShort(what string) {
	if r.end == len(r.data) {
		r.fail(r.pos, codeTruncated, "the module ends inside %s", what)
		return
	}
	r.fail(r.pos, codeMalformed, "%s passes the end of its section or body", what)
}

func (r *reader) byte() byte {
	if r.fault != nil {
		return 0
	}
	if r.pos >= r.end {
		r.failShort("a byte")
		return 0
	}
	b := r.data[r.pos]
	r.pos++
	return b
}

func (r *reader) bytes(n uint32, what string) []byte {
	if r.fault != nil {
		return nil
	}
	if uint64(n) > uint64(r.end-r.pos) {
		r.failShort(what)
		return nil
	}
	b := r.data[r.pos : r.pos+int(n)]
	r.pos += int(n)
	return b
}

// u32 reads an unsigned LEB128 of at most 32 bits.
func (r *reader) u32() uint32 {
	if r.fault == nil && r.pos < r.end && r.data[r.pos] < 0x80 {
		r.pos++
		return uint32(r.data[r.pos-1])
	}
	start := r.pos
	var v uint32
	for shift := 0; shift < 35; shift += 7 {
		b := r.byte()
		if shift == 28 && b > 0x0f {
			r.fail(start, codeMalformed, "integer does not fit 32 bits")
			return 0
		}
		v |= uint32(b&0x7f) << shift
		if b < 0x80 {
			return v
		}
	}
	return 0
}

// signed reads a signed LEB128 of at most bits bits.
func (r *reader) signed(bits int) int64 {
	start := r.pos
	var v int64
	for shift := 0; ; shift += 7 {
		b := r.byte()
		if r.fault != nil {
			return 0
		}
		if left := bits - shift; left < 7 && !signExtends(b, left) {
			r.fail(start, codeMalformed, "integer does not fit %d bits", bits)
			return 0
		}
		v |= int64(b&0x7f) << shift
		if b < 0x80 {
			if shift+7 < 64 {
				return v << (57 - shift) >> (57 - shift)
			}
			return v
		}
	}
}

// signExtends reports whether b is a last LEB byte of which only the low left
// bits count: no continuation, and the others repeat the sign bit.
func signExtends(b byte, left int) bool {
	if b >= 0x80 || left <= 0 {
		return false
	}
	rest := b >> (left - 1)
	return rest == 0 || rest == 0x7f>>(left-1)
}

func (r *reader) name(what string) string {
	n := r.u32()
	start := r.pos
	b := r.bytes(n, what)
	if r.fault == nil && len(b) > nameBytesMax {
		r.fail(start, codeAboveLimit, "%s of %d bytes is above the limit name_bytes_max %d", what, len(b), nameBytesMax)
		return ""
	}
	if r.fault == nil && !utf8.Valid(b) {
		r.fail(start, codeMalformed, "%s is not UTF-8", what)
		return ""
	}
	return string(b)
}

// count reads the length of a vector whose elements take at least one byte each
// and refuses it before anything of that size is allocated.
func (r *reader) count(limit string, most uint32) uint32 {
	start := r.pos
	n := r.u32()
	if r.fault != nil {
		return 0
	}
	if n > most {
		r.fail(start, codeAboveLimit, "%d is above the limit %s %d", n, limit, most)
		return 0
	}
	if uint64(n) > uint64(r.end-r.pos) {
		r.failShort("a vector of " + fmt.Sprint(n) + " elements")
		return 0
	}
	return n
}
