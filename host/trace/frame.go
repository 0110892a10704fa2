package trace

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// FrameError says where a file of frames or groups ends to be readable.
type FrameError struct {
	Offset int64  // of the first byte that is not part of a whole frame
	Torn   bool   // the file just ends there, as after a crash while appending; otherwise it is damaged
	Cause  string // what is wrong
}

// Error says what is wrong at which byte.
func (e *FrameError) Error() string { return fmt.Sprintf("at byte %d: %s", e.Offset, e.Cause) }

// A frame is: length of the body (4 bytes, big-endian), CRC-32C of these four
// bytes, body, CRC-32C of the body. The first sum keeps a changed length from
// passing for an unfinished write. The sums find accidents; digests and
// commitments over the content find everything else.
const (
	frameHeadBytes = 8
	frameTailBytes = 4
)

func crc(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// AppendFrame appends a frame around body.
func AppendFrame(dst, body []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(body)))
	dst = binary.BigEndian.AppendUint32(dst, crc(dst[len(dst)-4:]))
	dst = append(dst, body...)
	return binary.BigEndian.AppendUint32(dst, crc(body))
}

// FrameReader reads frames in order.
type FrameReader struct {
	r      *bufio.Reader
	max    uint32
	offset int64
	body   []byte
}

// NewFrameReader reads frames with bodies of at most bodyBytesMax bytes from
// r, whose first byte is at offset in its file.
func NewFrameReader(r io.Reader, offset int64, bodyBytesMax uint32) *FrameReader {
	return &FrameReader{r: bufio.NewReaderSize(r, 64<<10), max: bodyBytesMax, offset: offset}
}

// Offset returns where the next frame begins.
func (f *FrameReader) Offset() int64 { return f.offset }

// Next returns the next frame's body, which is valid until the next call. It
// returns io.EOF after the last whole frame, and a *FrameError for a torn or
// damaged one.
func (f *FrameReader) Next() ([]byte, error) {
	var head [frameHeadBytes]byte
	if n, err := io.ReadFull(f.r, head[:]); err != nil {
		return nil, shortRead(f.offset, n, err)
	}
	size := binary.BigEndian.Uint32(head[:4])
	if head == [frameHeadBytes]byte{} {
		return nil, zeroTail(f.offset, f.r)
	}
	if binary.BigEndian.Uint32(head[4:]) != crc(head[:4]) || size == 0 || size > f.max {
		return nil, &FrameError{Offset: f.offset, Cause: "length of the frame is damaged"}
	}
	need := int(size) + frameTailBytes
	if cap(f.body) < need {
		f.body = make([]byte, need)
	}
	f.body = f.body[:need]
	if n, err := io.ReadFull(f.r, f.body); err != nil {
		return nil, shortRead(f.offset, n+len(head), err)
	}
	body := f.body[:size]
	if binary.BigEndian.Uint32(f.body[size:]) != crc(body) {
		return nil, &FrameError{Offset: f.offset, Cause: "content of the frame is damaged"}
	}
	f.offset += int64(frameHeadBytes + need)
	return body, nil
}

// shortRead turns a read that ended after n bytes of the frame at offset into
// its error.
func shortRead(offset int64, n int, err error) error {
	switch {
	case n == 0 && errors.Is(err, io.EOF):
		return io.EOF
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return &FrameError{Offset: offset, Torn: true, Cause: "the last write is unfinished"}
	default:
		return fmt.Errorf("read at byte %d: %w", offset, err)
	}
}

// zeroTail decides about a frame that begins with zeros: a file system may grow
// a file before its content is written, so zeros to the end are an unfinished
// write and anything after them is damage.
func zeroTail(offset int64, r io.Reader) error {
	buf := make([]byte, 4<<10)
	for {
		n, err := r.Read(buf)
		if len(bytes.Trim(buf[:n], "\x00")) > 0 {
			return &FrameError{Offset: offset, Cause: "zeros where a frame should be"}
		}
		if errors.Is(err, io.EOF) {
			return &FrameError{Offset: offset, Torn: true, Cause: "zeros to the end of the file"}
		}
		if err != nil {
			return fmt.Errorf("read at byte %d: %w", offset, err)
		}
	}
}
