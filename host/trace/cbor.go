package trace

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"unicode/utf8"

	"github.com/fxamacker/cbor/v2"
)

// encoding is the one form records are written in. Empty and absent lists
// encode alike, so that no difference without a meaning reaches a digest.
var encoding = sync.OnceValue(func() cbor.EncMode {
	o := cbor.CoreDetEncOptions()
	o.NilContainers = cbor.NilContainerAsEmpty
	o.IndefLength = cbor.IndefLengthForbidden
	o.TagsMd = cbor.TagsForbidden
	m, err := o.EncMode()
	if err != nil {
		panic(err) // constant options
	}
	return m
})

var decoding = sync.OnceValue(func() cbor.DecMode {
	m, err := cbor.DecOptions{
		DupMapKey:         cbor.DupMapKeyEnforcedAPF,
		MaxNestedLevels:   NestingMax,
		MaxArrayElements:  ContainerMax,
		MaxMapPairs:       ContainerMax,
		IndefLength:       cbor.IndefLengthForbidden,
		TagsMd:            cbor.TagsForbidden,
		ExtraReturnErrors: cbor.ExtraDecErrorUnknownField,
		UTF8:              cbor.UTF8RejectInvalid,
		FieldNameMatching: cbor.FieldNameMatchingCaseSensitive,
	}.DecMode()
	if err != nil {
		panic(err) // constant options
	}
	return m
})

// EncodePayload returns v in core-deterministic CBOR. It fails on text that is
// not UTF-8, on floating-point numbers and on more than PayloadBytesMax bytes.
func EncodePayload(v any) ([]byte, error) {
	b, err := encoding().Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode payload: %w", err)
	}
	if err := CheckPayload(b); err != nil {
		return nil, fmt.Errorf("encode payload: %w", err)
	}
	return b, nil
}

// DecodePayload reads into v, a pointer to the struct of the payload's kind,
// what [EncodePayload] wrote, and refuses every other form: unknown or missing
// fields, duplicate keys, trailing bytes and any encoding but the shortest.
func DecodePayload(b []byte, v any) error {
	if len(b) > PayloadBytesMax {
		return fmt.Errorf("decode payload: %d bytes are more than %d", len(b), PayloadBytesMax)
	}
	return decodeExact(b, v)
}

// decodeExact decodes b and requires that encoding the result gives b again.
func decodeExact(b []byte, v any) error {
	if err := decoding().Unmarshal(b, v); err != nil {
		return fmt.Errorf("decode %T: %w", v, err)
	}
	again, err := encoding().Marshal(v)
	if err != nil {
		return fmt.Errorf("decode %T: %w", v, err)
	}
	if !bytes.Equal(b, again) {
		return fmt.Errorf("decode %T: not in the form it is written in (core-deterministic CBOR, every field present)", v)
	}
	return nil
}

// CheckPayload reports whether b is one core-deterministic CBOR item of the
// kind records are made of: integers, text, bytes, arrays, maps, booleans and null.
func CheckPayload(b []byte) error {
	if len(b) > PayloadBytesMax {
		return fmt.Errorf("%d bytes are more than %d", len(b), PayloadBytesMax)
	}
	n, err := checkItem(b, 0)
	if err != nil {
		return err
	}
	if n != len(b) {
		return fmt.Errorf("%d bytes follow the item", len(b)-n)
	}
	return nil
}

var errShort = errors.New("item is cut short")

// checkItem returns the length of the item b begins with.
func checkItem(b []byte, depth int) (int, error) {
	if depth > NestingMax {
		return 0, fmt.Errorf("nesting is deeper than %d", NestingMax)
	}
	major, arg, n, err := itemHead(b)
	if err != nil {
		return 0, err
	}
	switch major {
	case 0, 1:
		return n, nil
	case 2, 3:
		if arg > uint64(len(b)-n) {
			return 0, errShort
		}
		if end := n + int(arg); major == 2 || utf8.Valid(b[n:end]) {
			return end, nil
		}
		return 0, errors.New("text is not UTF-8")
	case 4:
		return checkMembers(b, n, arg, depth, false)
	case 5:
		return checkMembers(b, n, arg, depth, true)
	case 7:
		if n == 1 && arg >= 20 && arg <= 22 {
			return n, nil
		}
	}
	return 0, fmt.Errorf("item of major type %d, value %d is not allowed", major, arg)
}

// checkMembers checks the members of an array, or of a map whose keys must be
// in bytewise order without a duplicate.
func checkMembers(b []byte, n int, count uint64, depth int, isMap bool) (int, error) {
	if count > ContainerMax {
		return 0, fmt.Errorf("container of %d members has more than %d", count, ContainerMax)
	}
	var last []byte
	for range count {
		size, err := checkItem(b[n:], depth+1)
		if err != nil {
			return 0, err
		}
		key := b[n : n+size]
		n += size
		if !isMap {
			continue
		}
		if last != nil && bytes.Compare(last, key) >= 0 {
			return 0, errors.New("map keys are not in order or not unique")
		}
		last = key
		size, err = checkItem(b[n:], depth+1)
		if err != nil {
			return 0, err
		}
		n += size
	}
	return n, nil
}

// itemHead reads an item's head, which must be in its shortest form.
func itemHead(b []byte) (major byte, arg uint64, n int, err error) {
	if len(b) == 0 {
		return 0, 0, 0, errShort
	}
	major, info := b[0]>>5, b[0]&31
	if info < 24 {
		return major, uint64(info), 1, nil
	}
	if info > 27 {
		return 0, 0, 0, errors.New("item of indefinite or reserved length is not allowed")
	}
	width := 1 << (info - 24)
	if len(b) < 1+width {
		return 0, 0, 0, errShort
	}
	var wide [8]byte
	copy(wide[8-width:], b[1:1+width])
	arg = binary.BigEndian.Uint64(wide[:])
	if least := [4]uint64{24, 1 << 8, 1 << 16, 1 << 32}[info-24]; arg < least {
		return 0, 0, 0, errors.New("number is not in its shortest form")
	}
	return major, arg, 1 + width, nil
}

// appendHead appends an item's head in its shortest form.
func appendHead(dst []byte, major byte, arg uint64) []byte {
	major <<= 5
	switch {
	case arg < 24:
		return append(dst, major|byte(arg))
	case arg < 1<<8:
		return append(dst, major|24, byte(arg))
	case arg < 1<<16:
		return binary.BigEndian.AppendUint16(append(dst, major|25), uint16(arg))
	case arg < 1<<32:
		return binary.BigEndian.AppendUint32(append(dst, major|26), uint32(arg))
	default:
		return binary.BigEndian.AppendUint64(append(dst, major|27), arg)
	}
}
