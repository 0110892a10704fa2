package guest

// messageBytesMax is the largest block writ_alloc gives: the ceiling of a message.
const messageBytesMax = 64 << 20

// pins holds every block the host knows the address of, by address. The garbage
// collector does not see the host's references, so a block lives until writ_free.
// An instance has one thread and is called for one request at a time.
var pins = map[uint32][]byte{}

// alloc pins size bytes and returns their address, or 0 if size is too large.
//
//go:wasmexport writ_alloc
func alloc(size uint32) uint32 {
	if size > messageBytesMax {
		return 0
	}
	return pin(make([]byte, size, max(size, 1)))
}

// free ends the life of a block that alloc or an entry point returned. An address
// that is not one is ignored.
//
//go:wasmexport writ_free
func free(ptr, size uint32) { delete(pins, ptr) }

// pin keeps block alive and returns its address.
func pin(block []byte) uint32 {
	ptr := address(block)
	pins[ptr] = block
	return ptr
}

// take returns the message at ptr, which is nil unless it lies in a block of
// alloc's.
func take(ptr, size uint32) []byte {
	block := pins[ptr]
	if uint64(size) > uint64(len(block)) {
		return nil
	}
	return block[:size]
}

// give pins a response and packs its address and length.
func give(response []byte) uint64 {
	return uint64(pin(response))<<32 | uint64(len(response))
}
