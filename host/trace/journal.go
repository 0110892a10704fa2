package trace

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/writrun/writ/guest-abi/abi"
)

// A journal is a preamble and groups. A group is: length of its frames (4
// bytes, big-endian), CRC-32C of the MAC before and these four bytes, frames,
// MAC. Each MAC is HMAC-SHA-256(key, MAC before ‖ frames); the MAC before the
// first group is HMAC-SHA-256(key, "writ/journal/1" ‖ run id). Frames are CBOR
// arrays one after the other.
const (
	journalMagic = "writ journal 1\n"

	// GroupHeadBytes is what a group needs before its frames.
	GroupHeadBytes = 8
	macBytes       = sha256.Size
	groupBytesMax  = GroupBytesMax + FrameBytesMax
)

// MAC is the code that closes a group and begins the next.
type MAC [macBytes]byte

// JournalPreamble returns the bytes a journal of run begins with, and the MAC
// its first group is chained to.
func JournalPreamble(key []byte, run abi.RunID) ([]byte, MAC) {
	m := hmac.New(sha256.New, key)
	m.Write([]byte("writ/journal/1"))
	m.Write([]byte(run))
	return appendPreamble(nil, journalMagic, run), MAC(m.Sum(nil))
}

// Closer closes the groups of journals with one key. It is not safe for
// concurrent use.
type Closer struct {
	h hash.Hash // keyed once: an effect waits for each group
}

// NewCloser returns a closer for key.
func NewCloser(key []byte) *Closer { return &Closer{h: hmac.New(sha256.New, key)} }

// Close makes a group of buf, which begins with GroupHeadBytes bytes to be
// filled in and goes on with frames, and returns it with the MAC that closes it.
func (c *Closer) Close(before MAC, buf []byte) ([]byte, MAC) {
	frames := buf[GroupHeadBytes:]
	binary.BigEndian.PutUint32(buf, uint32(len(frames)))
	binary.BigEndian.PutUint32(buf[4:], lengthSum(before, buf[:4]))
	mac := c.sum(before, frames)
	return append(buf, mac[:]...), mac
}

func lengthSum(before MAC, length []byte) uint32 {
	return crc(append(before[:], length...))
}

func (c *Closer) sum(before MAC, frames []byte) (mac MAC) {
	c.h.Reset()
	c.h.Write(before[:])
	c.h.Write(frames)
	c.h.Sum(mac[:0])
	return mac
}

// Types of journal frames.
const (
	frameEvent  = 1 // header, salt, inline payload, content digest
	frameLayout = 2 // lanes of the layout, in order; there may be several
	frameSeal   = 3 // the run has ended and is to be sealed; nothing follows
)

// layoutFrameLanes keeps a layout frame well below FrameBytesMax.
const layoutFrameLanes = 256

// AppendEventFrame appends the frame of an event to a journal group.
func AppendEventFrame(dst, header []byte, s Stored) []byte {
	dst = AppendArrayHead(dst, 5)
	dst = AppendUint(dst, frameEvent)
	dst = AppendBytes(dst, header)
	return s.append(dst)
}

// SealFrames returns the frames that say a run has ended and in which order
// its lanes are to be laid out, each to be added to a group.
func SealFrames(layout []Lane) [][]byte {
	var frames [][]byte
	for part := range partsOf(layout, layoutFrameLanes) {
		f := AppendUint(AppendArrayHead(nil, 2), frameLayout)
		f = AppendArrayHead(f, len(part))
		for _, lane := range part {
			f = AppendText(f, string(lane))
		}
		frames = append(frames, f)
	}
	return append(frames, AppendUint(AppendArrayHead(nil, 1), frameSeal))
}

func partsOf(lanes []Lane, size int) func(func([]Lane) bool) {
	return func(yield func([]Lane) bool) {
		for len(lanes) > 0 {
			n := min(size, len(lanes))
			if !yield(lanes[:n]) {
				return
			}
			lanes = lanes[n:]
		}
	}
}

// Frame is one decoded frame of a journal: an event, a part of the layout, or
// the seal.
type Frame struct {
	Header    Header
	HeaderRaw []byte // nil if the frame is no event
	Stored    Stored
	Layout    []Lane
	Seal      bool
}

type eventFrame struct {
	_       struct{} `cbor:",toarray"`
	Type    uint8
	Header  []byte
	Salt    []byte
	Inline  []byte
	Content []byte
}

type layoutFrame struct {
	_     struct{} `cbor:",toarray"`
	Type  uint8
	Lanes []Lane
}

// DecodeFrame reads the frame b begins with and returns its length.
func DecodeFrame(b []byte) (Frame, int, error) {
	n, err := checkItem(b, 0)
	if err != nil {
		return Frame{}, 0, fmt.Errorf("journal frame: %w", err)
	}
	f, err := decodeFrame(b[:n])
	if err != nil {
		return Frame{}, 0, fmt.Errorf("journal frame: %w", err)
	}
	return f, n, nil
}

func decodeFrame(b []byte) (f Frame, err error) {
	switch {
	case len(b) > FrameBytesMax:
		return f, fmt.Errorf("%d bytes are more than %d", len(b), FrameBytesMax)
	case bytes.Equal(b, []byte{4<<5 | 1, frameSeal}):
		return Frame{Seal: true}, nil
	case bytes.HasPrefix(b, []byte{4<<5 | 2, frameLayout}):
		var l layoutFrame
		if err := decodeExact(b, &l); err != nil {
			return f, err
		}
		for _, lane := range l.Lanes {
			if _, err := ParseLane(string(lane)); err != nil {
				return f, err
			}
		}
		return Frame{Layout: l.Lanes}, nil
	case !bytes.HasPrefix(b, []byte{4<<5 | 5, frameEvent}):
		return f, errors.New("type is unknown")
	}
	var e eventFrame
	if err := decodeExact(b, &e); err != nil {
		return f, err
	}
	f.HeaderRaw = e.Header
	if f.Header, err = DecodeHeader(e.Header); err != nil {
		return f, err
	}
	if f.Stored, err = storedFrom(e.Salt, e.Inline, e.Content); err != nil {
		return f, err
	}
	return f, f.Stored.Check(f.Header)
}

// JournalReader reads a journal group by group and checks the chain of MACs.
type JournalReader struct {
	r      io.Reader
	closer *Closer
	mac    MAC
	offset int64
	buf    []byte
}

// NewJournalReader begins to read the journal of run. It returns a *FrameError
// with Torn set if the file ends before its first group.
func NewJournalReader(r io.Reader, key []byte, run abi.RunID) (*JournalReader, error) {
	preamble, mac := JournalPreamble(key, run)
	got := make([]byte, len(preamble))
	n, err := io.ReadFull(r, got)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	if !bytes.Equal(got[:n], preamble[:n]) {
		return nil, &FrameError{Cause: "the file is not the journal of run " + string(run)}
	}
	if n < len(preamble) {
		return nil, &FrameError{Torn: true, Cause: "the journal is unfinished"}
	}
	return &JournalReader{r: r, closer: NewCloser(key), mac: mac, offset: int64(n)}, nil
}

// Offset returns where the next group begins.
func (j *JournalReader) Offset() int64 { return j.offset }

// MAC returns the MAC the next group is chained to.
func (j *JournalReader) MAC() MAC { return j.mac }

// Next returns the frames of the next group, valid until the next call, and
// the offset of their first byte. It returns io.EOF after the last whole
// group, and a *FrameError for a torn or damaged one.
func (j *JournalReader) Next() (frames []byte, at int64, err error) {
	var head [GroupHeadBytes]byte
	n, err := io.ReadFull(j.r, head[:])
	if err != nil {
		return nil, 0, shortRead(j.offset, n, err)
	}
	size := binary.BigEndian.Uint32(head[:4])
	if head == [GroupHeadBytes]byte{} {
		return nil, 0, zeroTail(j.offset, j.r)
	}
	if binary.BigEndian.Uint32(head[4:]) != lengthSum(j.mac, head[:4]) || size == 0 || size > groupBytesMax {
		return nil, 0, &FrameError{Offset: j.offset, Cause: "length of the group is damaged"}
	}
	need := int(size) + macBytes
	if cap(j.buf) < need {
		j.buf = make([]byte, need)
	}
	j.buf = j.buf[:need]
	if n, err := io.ReadFull(j.r, j.buf); err != nil {
		return nil, 0, shortRead(j.offset, n+len(head), err)
	}
	frames = j.buf[:size]
	mac := j.closer.sum(j.mac, frames)
	if !hmac.Equal(mac[:], j.buf[size:]) {
		return nil, 0, &FrameError{Offset: j.offset, Cause: "the group does not match its authentication code"}
	}
	at = j.offset + GroupHeadBytes
	j.mac, j.offset = mac, at+int64(need)
	return frames, at, nil
}
