package engines_test

import (
	"errors"
	"testing"

	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host/hosttest"
	"github.com/writrun/writ/host/prepare"
)

// FuzzModules: any bytes are refused with a fault, or are a module that every
// engine compiles, and that ends the same on each.
func FuzzModules(f *testing.F) {
	f.Add([]byte("\x00asm\x01\x00\x00\x00"))
	f.Add(hosttest.Wat(f, hosttest.Echo()))
	for seed := range uint64(8) {
		f.Add(randomModule(seed, flavour{}))
	}
	on := enginesOf(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := prepare.Prepare(data, prepare.Options{MemoryBytesMax: 1 << 20})
		if err != nil {
			var refusal *prepare.Refusal
			if !errors.As(err, &refusal) || len(refusal.Faults) == 0 {
				t.Fatalf("the error is a %T: %v", err, err)
			}
			return
		}
		s := compile(t, on, p)
		defer s.close(t)
		got, different := s.invoke(t, invocation([]byte{0}, abi.Limits{Fuel: 1_000_000, MemoryBytes: 1 << 20, HostCalls: 1000}))
		if different != "" || got.Err != "" {
			t.Errorf("%s %s", different, got.Err)
		}
	})
}
