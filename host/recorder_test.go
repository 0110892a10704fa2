package host_test

import (
	"math"
	"testing"

	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host"
	"github.com/writrun/writ/host/hosttest"
	"github.com/writrun/writ/host/trace"
)

// The journal looks only at the number of calls in a batch, so a recorder's
// batches must be well-formed by the way they are built: the sink checks each.
func TestRecorderBatchesCanBeReadBack(t *testing.T) {
	requests := []trace.Item{nil, {}, trace.AppendUint(nil, 0), trace.AppendUint(nil, math.MaxUint64), trace.AppendInt(nil, math.MinInt64),
		trace.AppendBytes(nil, make([]byte, 5000)), trace.AppendText(trace.AppendArrayHead(nil, 1), "naïve")}
	numbers := []int64{0, 23, 24, 255, 256, 65535, 65536, math.MaxInt64, -1, -24, -25, math.MinInt64}
	for _, count := range []int{1, 23, 24, 255, 256, 257, 700} {
		sink := &hosttest.Sink{}
		r := host.NewRecorder(sink, nil)
		for i := range count {
			n := numbers[i%len(numbers)]
			call := trace.Call{Fn: abi.HostCalls[i%len(abi.HostCalls)].Number, Request: requests[i%len(requests)], Result: n, Fuel: uint64(n)}
			if err := r.HostCall(&call); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.Flush(); err != nil {
			t.Fatal(err)
		}
		if got := len(sink.Calls(t)); got != count {
			t.Errorf("%d calls read back as %d", count, got)
		}
		for _, e := range sink.Events {
			if n, err := trace.CallCount(e.Payload); err != nil || n != e.Span {
				t.Errorf("batch of %d calls says %d: %v", e.Span, n, err)
			}
		}
	}
}
