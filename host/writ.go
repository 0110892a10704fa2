package host

import (
	"bytes"
	"context"
	"crypto/hkdf"
	"crypto/sha256"
	"fmt"
	"math"
	"math/rand/v2"
	"unicode/utf8"

	"github.com/writrun/writ/guest-abi/abi"
)

// randomInfo precedes the lane in the key derivation of its random stream.
const randomInfo = "writ/random/1/"

// Bounds of log, and of writes to the standard streams.
const (
	logLineBytesMax = 64 << 10 // text recorded of one call
	logLevelMax     = 3        // debug 0, info 1, warn 2, error 3
)

// advance moves the lane's clock by nanos, which is not negative, and returns
// its value. At the end of the range the clock stands still.
func (c *Calls) advance(nanos int64) int64 {
	if c.clock > math.MaxInt64-nanos {
		c.clock = math.MaxInt64
	} else {
		c.clock += nanos
	}
	return c.clock
}

// clock_now() -> i64
func clockNow(c *Calls, stack []uint64) bool {
	return c.enter(1) && c.answer(stack, c.advance(c.clockStep))
}

// random_fill(ptr, len) -> i32
func randomFill(c *Calls, stack []uint64) bool {
	if !c.enter(2) {
		return false
	}
	ptr, size := uint32(stack[0]), uint32(stack[1])
	c.requestUint(uint64(size))
	if size > abi.RandomBytesMax {
		return c.answer32(stack, int32(abi.TooLarge))
	}
	if !c.fillRandom(ptr, size) {
		return false
	}
	return c.answer32(stack, 0)
}

// fillRandom fills guest memory from the lane's stream.
func (c *Calls) fillRandom(ptr, size uint32) bool {
	to, ok := c.bytesAt(ptr, size)
	if !ok || !c.chargeBytes(uint64(size)) {
		return false
	}
	if c.random == nil {
		key, err := hkdf.Key(sha256.New, c.seed[:], nil, randomInfo+string(c.lane), 32)
		if err != nil {
			return c.failed(fmt.Errorf("derive the key of the random stream: %w", err))
		}
		c.random = rand.NewChaCha8([32]byte(key))
	}
	c.random.Read(to) // never fails
	return true
}

// effect(driver_ptr, driver_len, req_ptr, req_len) -> i64
//
// An effect that is performed is recorded by its own events. One that the host
// refuses is recorded as a call, so that the attempt shows.
func effect(c *Calls, stack []uint64) bool {
	if !c.enter(3) {
		return false
	}
	driverSize, requestSize := uint32(stack[1]), uint32(stack[3])
	if driverSize > abi.DriverBytesMax || requestSize > abi.ArgumentBytesMax {
		c.requestArray(2)
		c.requestUint(uint64(driverSize))
		c.requestUint(uint64(requestSize))
		return c.refuse(stack, abi.TooLarge)
	}
	driver, ok := c.bytesAt(uint32(stack[0]), driverSize)
	if !ok {
		return false
	}
	request, ok := c.bytesAt(uint32(stack[2]), requestSize)
	if !ok || !c.chargeBytes(uint64(requestSize)) {
		return false
	}
	code := abi.Code(0)
	switch {
	case !utf8.Valid(driver):
		code = abi.Invalid
	case !c.effectsGranted:
		code = abi.NotGranted
	case uint64(c.effects) >= c.limits.Effects:
		code = abi.BudgetExhausted
	}
	if code != 0 {
		c.requestArray(2)
		c.requestText(driver)
		c.requestMemory(request)
		return c.refuse(stack, code)
	}
	return c.perform(stack, string(driver), bytes.Clone(request))
}

// responseBytesMax bounds a driver's response.
const responseBytesMax = 64 << 20

func (c *Calls) perform(stack []uint64, driver string, request []byte) bool {
	call := EffectCall{Driver: driver, Ordinal: c.effects, Request: request, Fuel: c.remaining()}
	c.effects++
	c.response, c.hasResponse = nil, false
	reply, err := c.boundaryEffect(call)
	switch {
	case err != nil:
		return c.failed(fmt.Errorf("effect %d of driver %q: %w", call.Ordinal, driver, err))
	case reply.Code > 0 || len(reply.Response) > responseBytesMax:
		return c.failed(fmt.Errorf("effect %d of driver %q: reply of code %d and %d bytes is not allowed", call.Ordinal, driver, reply.Code, len(reply.Response)))
	case c.canceled.Load():
		// The outcome is recorded; what the guest would do with it is not.
		return c.failed(context.Cause(c.ctx))
	}
	c.current = 0
	if reply.Code != 0 {
		stack[0] = uint64(int64(reply.Code))
		return true
	}
	c.response, c.hasResponse = reply.Response, true
	stack[0] = uint64(len(reply.Response))
	return true
}

// boundaryEffect turns a driver's panic into an error: drivers are registered by
// whoever embeds the sandbox.
func (c *Calls) boundaryEffect(call EffectCall) (reply EffectReply, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("driver panicked: %v", p)
		}
	}()
	return c.boundary.Effect(c.ctx, call)
}

// response_read(offset i64, ptr, len) -> i64, not recorded: it is determined.
func responseRead(c *Calls, stack []uint64) bool {
	if !c.enter(4) {
		return false
	}
	offset, size := int64(stack[0]), uint32(stack[2])
	code := abi.Code(0)
	switch {
	case size > abi.ArgumentBytesMax:
		code = abi.TooLarge
	case !c.hasResponse:
		code = abi.NotFound
	case offset < 0 || offset > int64(len(c.response)):
		code = abi.Invalid
	}
	if code != 0 {
		stack[0], c.current = uint64(int64(code)), 0
		return true
	}
	to, ok := c.bytesAt(uint32(stack[1]), size)
	if !ok || !c.chargeBytes(uint64(size)) {
		return false
	}
	stack[0], c.current = uint64(copy(to, c.response[offset:])), 0
	return true
}

// log(level, ptr, len) -> i32
func logLine(c *Calls, stack []uint64) bool {
	if !c.enter(10) {
		return false
	}
	level, size := int32(stack[0]), uint32(stack[2])
	if size > abi.ArgumentBytesMax || level < 0 || level > logLevelMax {
		c.requestArray(2)
		c.requestInt(int64(level))
		c.requestUint(uint64(size))
		if size > abi.ArgumentBytesMax {
			return c.answer32(stack, int32(abi.TooLarge))
		}
		return c.answer32(stack, int32(abi.Invalid))
	}
	line, ok := c.bytesAt(uint32(stack[1]), size)
	if !ok || !c.chargeBytes(uint64(size)) {
		return false
	}
	kept, code := line, abi.Code(0)
	if bytesMax := min(c.logLeft, logLineBytesMax); uint64(size) > bytesMax {
		kept = cutText(line[:bytesMax])
	}
	if uint64(len(line)) > c.logLeft {
		code, c.logLeft = abi.BudgetExhausted, 0
	} else {
		c.logLeft -= uint64(len(kept))
	}
	c.requestLine(int64(level), uint64(size), kept)
	return c.answer32(stack, int32(code))
}

// requestLine appends [level or descriptor, bytes written, truncated, text].
func (c *Calls) requestLine(level int64, size uint64, kept []byte) {
	c.requestArray(4)
	c.requestInt(level)
	c.requestUint(size)
	c.requestBool(uint64(len(kept)) < size)
	c.requestText(kept)
}

// cutText returns text without a character that is cut off at its end.
func cutText(text []byte) []byte {
	for back := 1; back <= min(utf8.UTFMax, len(text)); back++ {
		if at := len(text) - back; utf8.RuneStart(text[at]) {
			if !utf8.FullRune(text[at:]) {
				return text[:at]
			}
			break
		}
	}
	return text
}
