package host

import (
	"crypto/sha256"
	"unicode/utf8"

	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host/trace"
)

// inlineBytesMax is how long a memory argument may be to stand in a record as
// it is. A longer one is recorded as its size and digest.
const inlineBytesMax = 64

// The methods below append items to the request of the call in progress. Each
// request is one item, or an array begun with requestArray.

func (c *Calls) requestArray(count int) { c.request = trace.AppendArrayHead(c.request[:0], count) }

func (c *Calls) requestUint(v uint64) { c.request = trace.AppendUint(c.request, v) }

func (c *Calls) requestInt(v int64) { c.request = trace.AppendInt(c.request, v) }

func (c *Calls) requestBool(v bool) {
	item := byte(0xf4)
	if v {
		item = 0xf5
	}
	c.request = append(c.request, item)
}

func (c *Calls) requestNull() { c.request = append(c.request, 0xf6) }

// requestText appends b as text if it is UTF-8, else as bytes.
func (c *Calls) requestText(b []byte) {
	if utf8.Valid(b) {
		c.request = trace.AppendText(c.request, string(b))
		return
	}
	c.request = trace.AppendBytes(c.request, b)
}

// requestMemory appends a memory argument: itself, or [size, digest].
func (c *Calls) requestMemory(b []byte) {
	if len(b) <= inlineBytesMax {
		c.requestText(b)
		return
	}
	sum := sha256.Sum256(b)
	c.request = trace.AppendArrayHead(c.request, 2)
	c.requestUint(uint64(len(b)))
	c.request = trace.AppendBytes(c.request, sum[:])
}

// requestDigest appends the 32 bytes of d, or null if d is none.
func (c *Calls) requestDigest(d abi.Digest) {
	sum, err := d.Sum()
	if err != nil {
		c.requestNull()
		return
	}
	c.request = trace.AppendBytes(c.request, sum[:])
}
