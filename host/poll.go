package host

import (
	"encoding/binary"
	"math"
)

// The layout of poll_oneoff's arrays, and how long they may be.
const (
	subscriptionBytes = 48
	eventBytes        = 32
	subscriptionsMax  = 1024

	subscriptionClock = 0
	subscriptionRead  = 1
	subscriptionWrite = 2

	clockFlagAbsolute = 1
)

// subscription is one entry of poll_oneoff's input.
type subscription struct {
	userdata uint64
	kind     byte
	err      errno // of a subscription that cannot be waited for
	ready    bool  // without waiting
	deadline int64 // of a clock
}

// poll_oneoff(in_ptr, out_ptr, count, events_ptr)
//
// Nothing sleeps. A descriptor is always ready; where only clocks are waited
// for, the lane's clock jumps to the earliest deadline.
func pollOneoff(c *Calls, stack []uint64) bool {
	if !c.enter(137) {
		return false
	}
	count := uint32(stack[2])
	if count == 0 || count > subscriptionsMax {
		c.requestUint(uint64(count))
		return c.wasiFail(stack, errnoInval)
	}
	in, ok := c.bytesAt(uint32(stack[0]), count*subscriptionBytes)
	if !ok {
		return false
	}
	out, ok := c.bytesAt(uint32(stack[1]), count*eventBytes)
	if !ok || !c.chargeBytes(uint64(len(in)+len(out))) {
		return false
	}
	if _, ok := c.bytesAt(uint32(stack[3]), 4); !ok {
		return false
	}
	c.requestMemory(in)
	subs := make([]subscription, count)
	for i := range subs {
		if subs[i], ok = c.subscription(in[i*subscriptionBytes:]); !ok {
			return c.wasiFail(stack, errnoInval)
		}
	}
	c.wait(subs)
	events := uint32(0)
	for _, s := range subs {
		if s.ready || s.kind == subscriptionClock && s.deadline <= c.clock {
			writeEvent(out[events*eventBytes:][:eventBytes], s)
			events++
		}
	}
	return c.putUint32(uint32(stack[3]), events) && c.wasiOK(stack, int64(events))
}

// subscription reads one entry. It fails on a kind there is not.
func (c *Calls) subscription(b []byte) (subscription, bool) {
	s := subscription{userdata: binary.LittleEndian.Uint64(b), kind: b[8]}
	id := binary.LittleEndian.Uint32(b[16:])
	switch s.kind {
	case subscriptionClock:
		timeout := int64(min(binary.LittleEndian.Uint64(b[24:]), math.MaxInt64))
		s.err = checkClock(id)
		s.ready = s.err != 0
		s.deadline = timeout
		if binary.LittleEndian.Uint16(b[40:])&clockFlagAbsolute == 0 {
			s.deadline = c.clock + min(timeout, math.MaxInt64-c.clock)
		}
	case subscriptionRead, subscriptionWrite:
		s.ready = true
		if c.descriptor(id) == nil {
			s.err = errnoBadf
		}
	default:
		return s, false
	}
	return s, true
}

// wait moves the clock to the earliest deadline if nothing is ready.
func (c *Calls) wait(subs []subscription) {
	earliest := int64(math.MaxInt64)
	for _, s := range subs {
		if s.ready {
			return
		}
		earliest = min(earliest, s.deadline)
	}
	c.clock = max(c.clock, earliest)
}

func writeEvent(to []byte, s subscription) {
	clear(to)
	binary.LittleEndian.PutUint64(to, s.userdata)
	binary.LittleEndian.PutUint16(to[8:], uint16(s.err))
	to[10] = s.kind
	if s.err == 0 && s.kind != subscriptionClock {
		binary.LittleEndian.PutUint64(to[16:], 1) // bytes ready; a file at its end reads 0
	}
}
