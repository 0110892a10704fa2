package evidence

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host/trace"
)

// fullDisk is what a full disk answers.
const fullDisk = unix.ENOSPC

// durableEffect records what one effect makes durable: an intent and an
// outcome of 256 bytes each.
func durableEffect(tb testing.TB, w LaneWriter, intent, outcome []byte) {
	for _, e := range []trace.Event{
		{Kind: trace.KindEffectIntent, Cause: trace.CauseTool, Attempt: 1, Payload: intent},
		{Kind: trace.KindEffectOutcome, Cause: trace.CauseTool, Attempt: 1, Payload: outcome},
	} {
		if _, err := w.Append(e); err != nil {
			tb.Error(err)
		}
		if err := w.Sync(); err != nil {
			tb.Error(err)
		}
	}
}

func effectPayloads(tb testing.TB) (intent, outcome []byte) {
	text := make([]byte, 256)
	return payload(tb, trace.EffectIntent{Driver: "http", Request: text}), payload(tb, trace.EffectOutcome{Status: "ok", Response: text})
}

// bareWriter does what a durable effect cannot do without: two writes of 256
// bytes at the end of a file, each followed by an fsync.
type bareWriter struct {
	f   *os.File
	end int64
}

func newBareWriter(tb testing.TB, dir string, n int) *bareWriter {
	return &bareWriter{f: must[*os.File](tb)(os.Create(filepath.Join(dir, fmt.Sprintf("bare-%d", n))))}
}

func (b *bareWriter) effect(tb testing.TB, block []byte) {
	for range 2 {
		if _, err := b.f.WriteAt(block, b.end); err != nil {
			tb.Error(err)
		}
		b.end += int64(len(block))
		if err := unix.Fdatasync(int(b.f.Fd())); err != nil {
			tb.Error(err)
		}
	}
}

// BenchmarkFigureDurableEffect compares the median time of a durable effect
// with that of the bare writes, taken in turns on the same disk.
func BenchmarkFigureDurableEffect(b *testing.B) {
	const rounds = 500
	_, tenant, j := admitted(b, 1)
	intent, outcome := effectPayloads(b)
	w, bare, block := j.Lane(step), newBareWriter(b, tenant.dir, 0), make([]byte, 256)
	var ours, theirs []time.Duration
	for range rounds {
		start := time.Now()
		durableEffect(b, w, intent, outcome)
		between := time.Now()
		bare.effect(b, block)
		ours, theirs = append(ours, between.Sub(start)), append(theirs, time.Since(between))
	}
	slices.Sort(ours)
	slices.Sort(theirs)
	a, e := ours[rounds/2], theirs[rounds/2]
	b.Logf("figure: durable effect of 256 bytes: %v, %.2f times two bare write+fsync of %v (at most 1.5)", a, float64(a)/float64(e), e)
}

// BenchmarkFigureDurableEffects64 lets 64 runs make effects durable at once,
// and 64 bare writers, in turns, and gives the median share of a turn.
func BenchmarkFigureDurableEffects64(b *testing.B) {
	const writers, effects, rounds = 64, 8, 41
	s := initStore(b, options(b))
	tenant := tenantOf(b, s)
	intent, outcome := effectPayloads(b)
	block := make([]byte, 256)
	var runs []LaneWriter
	var bares []*bareWriter
	for n := range writers {
		runs = append(runs, must[*Journal](b)(tenant.Admit(admission(n))).Lane(step))
		bares = append(bares, newBareWriter(b, tenant.dir, n))
	}
	var ours, theirs time.Duration
	var shares []float64
	for range rounds {
		a := atOnce(writers, effects, func(n int) { durableEffect(b, runs[n], intent, outcome) })
		e := atOnce(writers, effects, func(n int) { bares[n].effect(b, block) })
		ours, theirs, shares = ours+a, theirs+e, append(shares, float64(e)/float64(a))
	}
	slices.Sort(shares)
	const total = rounds * writers * effects
	b.Logf("figure: durable effects of 64 concurrent runs: %.2f of what 64 bare writers do (at least 0.7); %.0f/s and %.0f/s over all turns",
		shares[rounds/2], total/ours.Seconds(), total/theirs.Seconds())
}

func atOnce(writers, times int, do func(n int)) time.Duration {
	start := time.Now()
	var all sync.WaitGroup
	for n := range writers {
		all.Go(func() {
			for range times {
				do(n)
			}
		})
	}
	all.Wait()
	return time.Since(start)
}

// BenchmarkRecordedCalls reports the time per host call of recording and
// sealing a run, which must not depend on how many there are.
func BenchmarkRecordedCalls(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := initStore(b, options(b))
			tenant := tenantOf(b, s)
			batch := calls(250)
			var appending time.Duration
			for i := 0; b.Loop(); i++ {
				j := must[*Journal](b)(tenant.Admit(Admission{FlowID: "gate", Admission: trace.Admission{RunID: abi.NewRunID([16]byte{byte(i >> 8), byte(i)})}}))
				start := time.Now()
				for range n / 250 {
					must[trace.Address](b)(j.Append(step, trace.Event{Kind: trace.KindHostCalls, Cause: 1, Payload: batch, Span: 250}))
				}
				appending += time.Since(start)
				appendEvent(b, j, trace.LaneRun, trace.KindExecutionEnd, trace.ExecutionEnd{State: "succeeded", Result: "pass"})
				must[Sealed](b)(j.Seal([]trace.Lane{trace.LaneRun, step, trace.LaneControl}, runEnd))
			}
			b.ReportMetric(float64(appending.Nanoseconds())/float64(b.N)/float64(n), "ns/call")
		})
	}
}
