package host_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

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

// TestRecorderCutsLongBatches: a batch of several calls stays within what the
// record keeps inline, and a longer call is a batch by itself.
func TestRecorderCutsLongBatches(t *testing.T) {
	const most = trace.BatchInlineBytesMax
	cases := []struct {
		name  string
		sizes []int // of requests, in bytes
		spans []uint64
	}{
		{"short calls", []int{10, 20, 30}, []uint64{3}},
		{"two that fit", []int{most / 3, most / 3}, []uint64{2}},
		{"a third that does not", []int{most / 3, most / 3, most / 2}, []uint64{2, 1}},
		{"one that is too long between short ones", []int{10, 2 * most, 10, 10}, []uint64{1, 1, 2}},
		{"all too long", []int{most, most}, []uint64{1, 1}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			sink := &hosttest.Sink{}
			r := host.NewRecorder(sink, nil)
			for _, n := range c.sizes {
				if err := r.HostCall(&trace.Call{Fn: 10, Request: trace.AppendBytes(nil, make([]byte, n))}); err != nil {
					t.Fatal(err)
				}
			}
			if err := r.Flush(); err != nil {
				t.Fatal(err)
			}
			var spans []uint64
			for _, e := range sink.Events {
				spans = append(spans, e.Span)
				if e.Span > 1 && len(e.Payload) > most {
					t.Errorf("a batch of %d calls has %d bytes", e.Span, len(e.Payload))
				}
			}
			if diff := cmp.Diff(c.spans, spans); diff != "" {
				t.Errorf("calls per batch (-want +got):\n%s", diff)
			}
			if got := sink.Calls(t); len(got) != len(c.sizes) {
				t.Errorf("%d calls read back as %d", len(c.sizes), len(got))
			}
		})
	}
}
