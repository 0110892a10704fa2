package trace

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"

	"github.com/writrun/writ/guest-abi/abi"
)

// Stored is how a payload is kept: its salt, and the bytes themselves or, for
// a payload above [InlineMax], the digest it has in the content store.
type Stored struct {
	Salt    [SaltBytes]byte
	Inline  []byte
	Content abi.Digest // "" for an inline payload
}

// Check reports what makes s no stored form of an event with header h.
// A referenced payload is checked where it is read.
func (s Stored) Check(h Header) error {
	if s.Content != "" {
		if len(s.Inline) > 0 || h.PayloadSize <= uint64(InlineMax(h.Kind)) {
			return errors.New("payload is kept in two places or in the wrong one")
		}
		return nil
	}
	if len(s.Inline) > InlineMax(h.Kind) {
		return fmt.Errorf("payload of %d bytes is not in the content store", len(s.Inline))
	}
	return CheckCommitment(h, s.Salt, s.Inline)
}

// PayloadSum returns the SHA-256 of the payload without reading content.
func (s Stored) PayloadSum() ([32]byte, error) {
	if s.Content != "" {
		return s.Content.Sum()
	}
	return sha256.Sum256(s.Inline), nil
}

// CheckCommitment reports whether payload is the one h commits to.
func CheckCommitment(h Header, salt [SaltBytes]byte, payload []byte) error {
	if uint64(len(payload)) != h.PayloadSize {
		return fmt.Errorf("payload has %d bytes and the header says %d", len(payload), h.PayloadSize)
	}
	if Commit(salt, payload) != h.Commitment {
		return errors.New("payload does not match the header's commitment")
	}
	return nil
}

// append appends s as three CBOR items: salt, inline bytes, content digest bytes.
func (s Stored) append(dst []byte) []byte {
	dst = AppendBytes(dst, s.Salt[:])
	dst = AppendBytes(dst, s.Inline)
	if s.Content == "" {
		return AppendBytes(dst, nil)
	}
	// Only digests the content store made are stored.
	sum, _ := s.Content.Sum()
	return AppendBytes(dst, sum[:])
}

// storedFrom makes a Stored of its three decoded items.
func storedFrom(salt, inline, content []byte) (s Stored, err error) {
	if len(salt) != SaltBytes {
		return s, fmt.Errorf("salt has %d bytes, not %d", len(salt), SaltBytes)
	}
	copy(s.Salt[:], salt)
	if len(inline) > 0 {
		s.Inline = inline
	}
	switch len(content) {
	case 0:
	case 32:
		s.Content = abi.DigestFromSum([32]byte(content))
	default:
		return s, fmt.Errorf("content digest has %d bytes, not 32", len(content))
	}
	return s, nil
}

const payloadsMagic = "writ payloads 1\n"

// PayloadsWriter writes the payloads file of a sealed run.
type PayloadsWriter struct {
	w   io.Writer
	buf []byte
}

// NewPayloadsWriter begins the payloads file of run.
func NewPayloadsWriter(w io.Writer, run abi.RunID) (*PayloadsWriter, error) {
	return &PayloadsWriter{w: w}, writePreamble(w, payloadsMagic, run)
}

// Add adds the payload of the event at a.
func (p *PayloadsWriter) Add(a Address, s Stored) error {
	entry := AppendArrayHead(nil, 5)
	entry = AppendText(entry, string(a.Lane))
	entry = AppendUint(entry, a.Seq)
	p.buf = AppendFrame(p.buf[:0], s.append(entry))
	_, err := p.w.Write(p.buf)
	return err
}

type payloadEntry struct {
	_       struct{} `cbor:",toarray"`
	Lane    Lane
	Seq     uint64
	Salt    []byte
	Inline  []byte
	Content []byte
}

// DecodePayloadEntry reads one entry of a payloads file.
func DecodePayloadEntry(b []byte) (Address, Stored, error) {
	var e payloadEntry
	if err := decodeExact(b, &e); err != nil {
		return Address{}, Stored{}, fmt.Errorf("payload entry: %w", err)
	}
	a, err := ParseAddress(Address{e.Lane, e.Seq}.String())
	if err != nil {
		return Address{}, Stored{}, fmt.Errorf("payload entry: %w", err)
	}
	s, err := storedFrom(e.Salt, e.Inline, e.Content)
	if err != nil {
		return Address{}, Stored{}, fmt.Errorf("payload entry %s: %w", a, err)
	}
	return a, s, nil
}

// ReadPayloads reads the payloads file of run and calls each with every entry
// and the place of its frame's body in the file.
func ReadPayloads(r io.Reader, run abi.RunID, each func(a Address, offset int64, size int) error) error {
	fr, err := readPreamble(r, payloadsMagic, run, FrameBytesMax)
	if err != nil {
		return err
	}
	for {
		offset := fr.Offset() + frameHeadBytes
		body, err := fr.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		a, _, err := DecodePayloadEntry(body)
		if err != nil {
			return err
		}
		if err := each(a, offset, len(body)); err != nil {
			return err
		}
	}
}

// writePreamble begins a file: its magic line, then a frame with the run's id.
func writePreamble(w io.Writer, magic string, run abi.RunID) error {
	_, err := w.Write(appendPreamble(nil, magic, run))
	return err
}

func appendPreamble(dst []byte, magic string, run abi.RunID) []byte {
	return AppendFrame(append(dst, magic...), AppendText(nil, string(run)))
}

// readPreamble reads what writePreamble wrote for run.
func readPreamble(r io.Reader, magic string, run abi.RunID, bodyBytesMax uint32) (*FrameReader, error) {
	got := make([]byte, len(magic))
	if n, err := io.ReadFull(r, got); err != nil {
		return nil, &FrameError{Torn: magic[:n] == string(got[:n]), Cause: "the file is shorter than its first line"}
	}
	if string(got) != magic {
		return nil, &FrameError{Cause: fmt.Sprintf("the file does not begin with %q", magic)}
	}
	fr := NewFrameReader(r, int64(len(magic)), bodyBytesMax)
	body, err := fr.Next()
	if errors.Is(err, io.EOF) {
		return nil, &FrameError{Offset: fr.Offset(), Torn: true, Cause: "the file ends after its first line"}
	}
	if err != nil {
		return nil, err
	}
	if want := AppendText(nil, string(run)); string(body) != string(want) {
		return nil, &FrameError{Offset: fr.Offset(), Cause: "the file is of another run"}
	}
	return fr, nil
}
