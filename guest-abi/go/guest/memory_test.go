package guest

import (
	"testing"

	"github.com/writrun/writ/guest-abi/abi"
)

// TestMemory plays the host: it allocates, calls, reads the response and frees.
func TestMemory(t *testing.T) {
	request := []byte(`{"abi":1,"flow_id":"gate","step":{"id":"hello","role":"agent","config":{}}}`)
	echo := func(s *Step) (abi.StepOutput, error) { return abi.StepOutput{Output: s.Request.Step.Config}, nil }
	before := len(pins)
	ptr, other := alloc(uint32(len(request))), alloc(0)
	if ptr == other || ptr == 0 || other == 0 {
		t.Fatalf("two blocks at %d and %d", ptr, other)
	}
	copy(pins[ptr], request)
	result := Execute(ptr, uint32(len(request)), echo)
	at, size := uint32(result>>32), uint32(result)
	response := string(take(at, size))
	if want := `{"claims":[],"evidence":[],"artifacts":[],"output":{}}`; response != want {
		t.Errorf("response %s, want %s", response, want)
	}
	for _, p := range []uint32{ptr, other, at} {
		free(p, 0)
	}
	if len(pins) != before {
		t.Errorf("%d blocks are left", len(pins)-before)
	}
	free(ptr, 0) // twice is harmless
}

func TestMemoryOfABadHost(t *testing.T) {
	if ptr := alloc(messageBytesMax + 1); ptr != 0 {
		t.Errorf("a block above the limit is at %d", ptr)
	}
	ptr := alloc(4)
	defer free(ptr, 4)
	for name, message := range map[string][]byte{
		"longer than its block": take(ptr, 5),
		"freed or never made":   take(ptr+1000, 1),
		"at zero":               take(0, 1),
	} {
		if message != nil {
			t.Errorf("a message %s is read", name)
		}
	}
}

func TestFindings(t *testing.T) {
	c := &Check{Request: abi.VerifyRequest{Rule: abi.VerifyRule{ID: "r"}}}
	for _, tc := range []struct {
		name   string
		find   func(*Findings)
		status abi.Status
		reason string
	}{
		{"nothing evaluated", func(*Findings) {}, abi.Escalate, "nothing evaluated: no claims"},
		{"all well", func(f *Findings) { f.Evaluated() }, abi.Pass, "1 claims evaluated"},
		{"a violation", func(f *Findings) { f.Evaluated(); f.Violation("c", "m") }, abi.Fail, "1 violations in 1 claims"},
		{"a doubt", func(f *Findings) { f.Evaluated(); f.Doubt("d") }, abi.Escalate, "d"},
		{"a violation outweighs a doubt", func(f *Findings) { f.Doubt("d"); f.Violation("c", "m") }, abi.Fail, "1 violations in 0 claims"},
		{"many doubts", func(f *Findings) {
			for range 5 {
				f.Doubt("d")
			}
		}, abi.Escalate, "d; d; d; and 2 more"},
		{"more violations than a message holds", func(f *Findings) {
			for range abi.ViolationsMax + 1 {
				f.Violation("c", "m")
			}
		}, abi.Fail, "100001 violations in 0 claims; the first 100000 are listed"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := NewFindings(c)
			tc.find(f)
			if r := f.Response("claims"); r.Status != tc.status || r.Reason != tc.reason {
				t.Errorf("%s %q, want %s %q", r.Status, r.Reason, tc.status, tc.reason)
			}
		})
	}
}
