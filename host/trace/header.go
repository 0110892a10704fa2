package trace

import (
	"crypto/sha256"
	"fmt"
	"time"
)

// Header is what the trace root covers of an event: where it is, what it is,
// when the local clock says it was, and a commitment to its payload. It holds
// no plain digest of the payload, so that a payload dropped later cannot be
// guessed from it.
type Header struct {
	Lane        Lane     `cbor:"1,keyasint" json:"lane"`
	Seq         uint64   `cbor:"2,keyasint" json:"seq"`
	Kind        Kind     `cbor:"3,keyasint" json:"kind"`
	Cause       Cause    `cbor:"4,keyasint" json:"cause"`
	Attempt     uint32   `cbor:"5,keyasint" json:"attempt"`
	AtNanos     int64    `cbor:"6,keyasint" json:"at_ns"` // since 1970, the local clock's claim
	PayloadSize uint64   `cbor:"7,keyasint" json:"payload_size"`
	Commitment  [32]byte `cbor:"8,keyasint" json:"-"`
}

// Address returns where the event is.
func (h Header) Address() Address { return Address{Lane: h.Lane, Seq: h.Seq} }

// At returns the local clock's claim.
func (h Header) At() time.Time { return time.Unix(0, h.AtNanos).UTC() }

// Encode returns the header in core-deterministic CBOR: the bytes that are
// kept and hashed. It is meant for a header that [Header.Check] accepts.
func (h Header) Encode() []byte {
	b := make([]byte, 0, 96+len(h.Lane))
	b = append(b, 5<<5|8)
	b = AppendText(append(b, 1), string(h.Lane))
	b = AppendUint(append(b, 2), h.Seq)
	b = AppendUint(append(b, 3), uint64(h.Kind))
	b = AppendUint(append(b, 4), uint64(h.Cause))
	b = AppendUint(append(b, 5), uint64(h.Attempt))
	b = AppendInt(append(b, 6), h.AtNanos)
	b = AppendUint(append(b, 7), h.PayloadSize)
	return AppendBytes(append(b, 8), h.Commitment[:])
}

// Check reports what makes h no header of this version.
func (h Header) Check() error {
	if _, err := ParseLane(string(h.Lane)); err != nil {
		return err
	}
	switch {
	case h.Seq >= LaneEventsMax:
		return fmt.Errorf("sequence number %d is above %d", h.Seq, uint64(LaneEventsMax))
	case h.Kind.String() == "":
		return fmt.Errorf("kind %d is unknown", uint8(h.Kind))
	case h.Cause.String() == "":
		return fmt.Errorf("cause %d is unknown", uint8(h.Cause))
	case h.PayloadSize > PayloadBytesMax:
		return fmt.Errorf("payload of %d bytes is larger than %d", h.PayloadSize, PayloadBytesMax)
	case h.Kind.Core() == (h.Lane == LaneControl):
		return fmt.Errorf("kind %s does not belong in lane %s", h.Kind, h.Lane)
	}
	return nil
}

// DecodeHeader reads what [Header.Encode] wrote and refuses every other form.
func DecodeHeader(b []byte) (Header, error) {
	var h Header
	if len(b) > HeaderBytesMax {
		return Header{}, fmt.Errorf("decode header: %d bytes are more than %d", len(b), HeaderBytesMax)
	}
	if err := decodeExact(b, &h); err != nil {
		return Header{}, fmt.Errorf("decode header: %w", err)
	}
	if err := h.Check(); err != nil {
		return Header{}, fmt.Errorf("decode header %.80s/%d: %w", h.Lane, h.Seq, err)
	}
	return h, nil
}

// SaltBytes is the length of the salt of a commitment.
const SaltBytes = 16

// Commit returns SHA-256("writ/payload/1" ‖ salt ‖ payload).
func Commit(salt [SaltBytes]byte, payload []byte) [32]byte {
	const prefix = "writ/payload/1"
	var room [1024]byte // most payloads are small: no allocation for them
	if len(payload) <= len(room)-len(prefix)-SaltBytes {
		b := append(append(append(room[:0], prefix...), salt[:]...), payload...)
		return sha256.Sum256(b)
	}
	h := sha256.New()
	h.Write([]byte(prefix))
	h.Write(salt[:])
	h.Write(payload)
	return [32]byte(h.Sum(nil))
}
