package host

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/writrun/writ/guest-abi/abi"
)

// The layout of a vector of buffers, and how many buffers one call may name.
const (
	iovecBytes = 8
	iovecsMax  = 1024
)

// fd_read(fd, iovs_ptr, iovs_len, read_ptr)
func fdRead(c *Calls, stack []uint64) bool {
	if !c.enter(120) {
		return false
	}
	fd, count := uint32(stack[0]), uint32(stack[2])
	c.requestArray(2)
	c.requestUint(uint64(fd))
	d := c.descriptor(fd)
	if d != nil && d.node == nil && fd == stdin {
		c.requestUint(uint64(count))
		return c.putUint32(uint32(stack[3]), 0) && c.wasiOK(stack, 0)
	}
	n, e, ok := c.readVector(d, uint32(stack[1]), count, -1)
	return c.endRead(stack, uint32(stack[3]), d, n, e, ok)
}

// fd_pread(fd, iovs_ptr, iovs_len, offset i64, read_ptr)
func fdPread(c *Calls, stack []uint64) bool {
	if !c.enter(116) {
		return false
	}
	fd, offset := uint32(stack[0]), int64(stack[3])
	c.requestArray(3)
	c.requestUint(uint64(fd))
	c.requestInt(offset)
	d, e := c.seekable(fd)
	if e == 0 && offset < 0 {
		e = errnoInval
	}
	if e != 0 {
		c.requestUint(uint64(uint32(stack[2])))
		return c.wasiFail(stack, e)
	}
	n, e, ok := c.readVector(d, uint32(stack[1]), uint32(stack[2]), offset)
	return c.endRead(stack, uint32(stack[4]), nil, n, e, ok)
}

func (c *Calls) endRead(stack []uint64, out uint32, moved *descriptor, n uint32, e errno, ok bool) bool {
	switch {
	case !ok:
		return false
	case e != 0:
		return c.wasiFail(stack, e)
	case !c.putUint32(out, n):
		return false
	}
	if moved != nil {
		moved.position += int64(n)
	}
	return c.wasiOK(stack, int64(n))
}

// readVector reads into a vector of buffers, from offset or, if that is
// negative, from the descriptor's position. It appends the vector's size to the
// request.
func (c *Calls) readVector(d *descriptor, ptr, count uint32, offset int64) (total uint32, e errno, ok bool) {
	switch {
	case d == nil || d.node == nil:
		e = errnoBadf
	case d.node.dir:
		e = errnoIsdir
	case count > iovecsMax:
		e = errnoInval
	}
	if e != 0 {
		c.requestUint(uint64(count))
		return 0, e, true
	}
	if offset < 0 {
		offset = d.position
	}
	vector, size, ok := c.vector(ptr, count)
	if !ok {
		return 0, 0, false
	}
	c.requestUint(size)
	for len(vector) > 0 {
		to, length := vectorEntry(&vector)
		length = min(length, abi.ArgumentBytesMax-total)
		n, ok := c.readFile(&d.node.file, to, length, offset)
		if !ok {
			return 0, 0, false
		}
		total += n
		offset += int64(n)
		if n < length || total == abi.ArgumentBytesMax {
			break
		}
	}
	return total, 0, true
}

// vector returns a vector of buffers, each known to lie in memory, and the size
// of all.
func (c *Calls) vector(ptr, count uint32) (vector []byte, size uint64, ok bool) {
	vector, ok = c.bytesAt(ptr, count*iovecBytes)
	if !ok || !c.chargeBytes(uint64(len(vector))) {
		return nil, 0, false
	}
	for rest := vector; len(rest) > 0; {
		at, length := vectorEntry(&rest)
		if _, ok := c.bytesAt(at, length); !ok {
			return nil, 0, false
		}
		size += uint64(length)
	}
	return vector, size, true
}

func vectorEntry(vector *[]byte) (ptr, size uint32) {
	b := *vector
	*vector = b[iovecBytes:]
	return binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
}

// outOfMemoryText is what a standard-Go guest says before it ends.
const outOfMemoryText = "out of memory"

// fd_write(fd, iovs_ptr, iovs_len, written_ptr)
//
// Descriptors 1 and 2 are log lines. What is beyond the log budget is dropped,
// and the guest told it was written: a print is no reason to fail. One call
// takes at most logLineBytesMax; the guest writes the rest with the next.
func fdWrite(c *Calls, stack []uint64) bool {
	if !c.enter(126) {
		return false
	}
	fd, count := uint32(stack[0]), uint32(stack[2])
	d := c.descriptor(fd)
	e := errno(0)
	switch {
	case d == nil || d.node == nil && fd == stdin:
		e = errnoBadf
	case d.node != nil:
		e = errnoRofs
	case count > iovecsMax:
		e = errnoInval
	}
	if e != 0 {
		c.requestUint(uint64(fd))
		return c.wasiFail(stack, e)
	}
	vector, size, ok := c.vector(uint32(stack[1]), count)
	if !ok {
		return false
	}
	capped := size > logLineBytesMax && c.logLeft > logLineBytesMax
	text, ok := c.gather(vector, min(size, c.logLeft, logLineBytesMax))
	if !ok {
		return false
	}
	written := min(size, math.MaxInt32)
	if uint64(len(text)) < size {
		text = cutText(text)
	}
	if capped {
		written = uint64(len(text))
	}
	c.logLeft -= uint64(len(text))
	if !capped && uint64(len(text)) < size {
		c.logLeft = 0
	}
	if !c.chargeBytes(written) {
		return false
	}
	if fd == stderr && bytes.Contains(text, []byte(outOfMemoryText)) {
		c.saidOutOfMemory = true
	}
	c.requestLine(int64(fd), written, text)
	return c.putUint32(uint32(stack[3]), uint32(written)) && c.wasiOK(stack, int64(written))
}

// gather copies the first size bytes of a vector.
func (c *Calls) gather(vector []byte, size uint64) ([]byte, bool) {
	text := make([]byte, 0, size)
	for uint64(len(text)) < size {
		at, length := vectorEntry(&vector)
		part, ok := c.bytesAt(at, uint32(min(uint64(length), size-uint64(len(text)))))
		if !ok {
			return nil, false
		}
		text = append(text, part...)
	}
	return text, true
}
