package host

import (
	"encoding/binary"

	"github.com/writrun/writ/guest-abi/abi"
)

// errno is an error number of wasi_snapshot_preview1. The record of a WASI call
// has its negative as the result, or what the call yields: a number of bytes or
// events, a descriptor, a time, or 0.
type errno uint16

// The error numbers this host uses.
const (
	errnoBadf        errno = 8
	errnoExist       errno = 20
	errnoIlseq       errno = 25
	errnoInval       errno = 28
	errnoIsdir       errno = 31
	errnoMfile       errno = 33
	errnoNametoolong errno = 37
	errnoNoent       errno = 44
	errnoNotdir      errno = 54
	errnoNotsup      errno = 58
	errnoRofs        errno = 69
	errnoSpipe       errno = 70
	errnoNotcapable  errno = 76
)

// wasiFail records and returns an error number.
func (c *Calls) wasiFail(stack []uint64, e errno) bool {
	stack[0] = uint64(e)
	return c.note(-int64(e))
}

// wasiOK records what a call yields and returns success.
func (c *Calls) wasiOK(stack []uint64, yields int64) bool {
	stack[0] = 0
	return c.note(yields)
}

// refused makes the function of a call that this host never performs. Its
// arguments are recorded with the pointers left out, which are all it looks at.
func refused(number uint16, e errno) func(*Calls, []uint64) bool {
	return func(c *Calls, stack []uint64) bool { return c.enter(number) && c.wasiFail(stack, e) }
}

// refusedDescriptor is refused for calls on a descriptor.
func refusedDescriptor(number uint16, e errno) func(*Calls, []uint64) bool {
	return func(c *Calls, stack []uint64) bool {
		if !c.enter(number) {
			return false
		}
		fd := uint32(stack[0])
		c.requestUint(uint64(fd))
		if c.descriptor(fd) == nil {
			return c.wasiFail(stack, errnoBadf)
		}
		return c.wasiFail(stack, e)
	}
}

// acceptedDescriptor makes the function of a call that has no effect here.
func acceptedDescriptor(number uint16) func(*Calls, []uint64) bool {
	return func(c *Calls, stack []uint64) bool {
		if !c.enter(number) {
			return false
		}
		fd := uint32(stack[0])
		c.requestUint(uint64(fd))
		if c.descriptor(fd) == nil {
			return c.wasiFail(stack, errnoBadf)
		}
		return c.wasiOK(stack, 0)
	}
}

// emptyList is args_get and environ_get: there is nothing to write.
func emptyList(number uint16) func(*Calls, []uint64) bool {
	return func(c *Calls, stack []uint64) bool { return c.enter(number) && c.wasiOK(stack, 0) }
}

// emptySizes is args_sizes_get and environ_sizes_get (count_ptr, bytes_ptr).
func emptySizes(number uint16) func(*Calls, []uint64) bool {
	return func(c *Calls, stack []uint64) bool {
		return c.enter(number) && c.putUint32(uint32(stack[0]), 0) && c.putUint32(uint32(stack[1]), 0) && c.wasiOK(stack, 0)
	}
}

// putUint32 and putUint64 write one number into guest memory.
func (c *Calls) putUint32(ptr, v uint32) bool {
	to, ok := c.bytesAt(ptr, 4)
	if ok {
		binary.LittleEndian.PutUint32(to, v)
	}
	return ok
}

func (c *Calls) putUint64(ptr uint32, v uint64) bool {
	to, ok := c.bytesAt(ptr, 8)
	if ok {
		binary.LittleEndian.PutUint64(to, v)
	}
	return ok
}

// Clock ids of WASI. Both are the lane's clock; those of processor time are not
// offered.
const (
	clockRealtime  = 0
	clockMonotonic = 1
)

// checkClock says what is wrong with a clock id, or 0.
func checkClock(id uint32) errno {
	if id == clockRealtime || id == clockMonotonic {
		return 0
	}
	return errnoNotsup
}

// clock_res_get(id, resolution_ptr)
func clockResGet(c *Calls, stack []uint64) bool {
	if !c.enter(104) {
		return false
	}
	id := uint32(stack[0])
	c.requestUint(uint64(id))
	if e := checkClock(id); e != 0 {
		return c.wasiFail(stack, e)
	}
	resolution := max(c.clockStep, 1)
	return c.putUint64(uint32(stack[1]), uint64(resolution)) && c.wasiOK(stack, resolution)
}

// clock_time_get(id, precision i64, time_ptr)
func clockTimeGet(c *Calls, stack []uint64) bool {
	if !c.enter(105) {
		return false
	}
	id := uint32(stack[0])
	c.requestUint(uint64(id))
	if e := checkClock(id); e != 0 {
		return c.wasiFail(stack, e)
	}
	to, ok := c.bytesAt(uint32(stack[2]), 8)
	if !ok {
		return false
	}
	now := c.advance(c.clockStep)
	binary.LittleEndian.PutUint64(to, uint64(now))
	return c.wasiOK(stack, now)
}

// proc_exit(code)
func procExit(c *Calls, stack []uint64) bool {
	if !c.enter(138) {
		return false
	}
	code := uint32(stack[0])
	c.requestUint(uint64(code))
	if !c.note(0) {
		return false
	}
	c.current = 138
	return c.exited(code)
}

// random_get(ptr, len)
func randomGet(c *Calls, stack []uint64) bool {
	if !c.enter(141) {
		return false
	}
	ptr, size := uint32(stack[0]), uint32(stack[1])
	c.requestUint(uint64(size))
	if size > abi.RandomBytesMax {
		return c.wasiFail(stack, errnoInval)
	}
	return c.fillRandom(ptr, size) && c.wasiOK(stack, 0)
}

// sched_yield()
func schedYield(c *Calls, stack []uint64) bool { return c.enter(140) && c.wasiOK(stack, 0) }
