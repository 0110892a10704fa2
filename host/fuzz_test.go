package host

import (
	"encoding/binary"
	"testing"

	"github.com/writrun/writ/guest-abi/abi"
)

// FuzzHostCalls makes host calls with any arguments on any memory. Whatever a
// guest passes, the host neither panics nor reads outside its memory, every
// record is well formed, and a call is either answered and recorded or ends the
// guest.
func FuzzHostCalls(f *testing.F) {
	argument := func(values ...uint64) (b []byte) {
		for _, v := range values {
			b = binary.LittleEndian.AppendUint64(b, v)
		}
		return b
	}
	for i, h := range Functions() {
		f.Add(uint8(i), argument(make([]uint64, len(h.Params))...), []byte("docs/a.txt"))
		f.Add(uint8(i), argument(3, 16, 10, 16, 1, 0, 0, 0, 64), []byte("................docs/sub/b.txt"))
		f.Add(uint8(i), argument(0, 128, 1, 96, 1<<63, 1<<32, 7, 7, 7), []byte{8: 1})
		f.Add(uint8(i), argument(1<<32-1, 1<<32-1, 1<<32-1, 1<<64-1, 1<<32-1, 1<<64-1, 1<<64-1, 9, 9), []byte{})
	}
	f.Fuzz(func(t *testing.T, which uint8, arguments, content []byte) {
		functions := Functions()
		h := functions[int(which)%len(functions)]
		memory := make(fakeMemory, 2*abi.PageBytes)
		copy(memory, content)
		w := newWorldOf(t, memory, func(i *Invocation) { i.Effects, i.Artifacts, i.Limits.Fuel = true, artifacts{}, 1_000_000 })
		w.effects = func(c EffectCall) (EffectReply, error) { return EffectReply{Response: c.Request}, nil }
		stack := make([]uint64, max(len(h.Params), 1))
		for i := range stack {
			if len(arguments) >= 8 {
				stack[i], arguments = binary.LittleEndian.Uint64(arguments), arguments[8:]
			}
		}
		for range 3 { // descriptors and positions change between calls
			w.record = nil
			before := w.calls.remaining()
			ok := h.Call(w.calls, append([]uint64(nil), stack...))
			switch {
			case w.calls.fault != nil:
				t.Fatalf("%s: a guest made the host fail: %v", h.Name, w.calls.fault)
			case ok != (w.calls.stop == nil):
				t.Fatalf("%s: answered %v, stop %+v", h.Name, ok, w.calls.stop)
			case ok && len(w.record) == 0 && h.Name != "effect" && h.Name != "response_read":
				t.Fatalf("%s: answered without a record", h.Name)
			case w.calls.remaining() >= before:
				t.Fatalf("%s: costs nothing", h.Name)
			case !ok:
				return
			}
		}
	})
}
