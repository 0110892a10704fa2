package kernels_test

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/writrun/writ/conformance/kernels"
	"github.com/writrun/writ/host/hosttest"
	"github.com/writrun/writ/host/prepare"
)

func median[T float64 | time.Duration](values []T) T {
	values = slices.Sorted(slices.Values(values))
	return values[len(values)/2]
}

// figure prints a line for make bench; the log of a benchmark ends after ten.
func figure(format string, args ...any) { fmt.Printf("figure: "+format+"\n", args...) }

// processorTime is what the calling thread has used. Unlike time that passes, it
// leaves out what other processes of a busy machine take.
func processorTime(b *testing.B) time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now); err != nil {
		b.Fatal(err)
	}
	return time.Duration(now.Nano())
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// BenchmarkFigurePrepared times every kernel each way, taken in turns, and gives
// the median of the ratios to the unprepared module of the same turn. Times are
// the processor's, the guest's thread alone.
func BenchmarkFigurePrepared(b *testing.B) {
	const rounds = 7
	ways := append(waysOfWazero(), waysOfWasmtime()...)
	heading := fmt.Sprintf("%-10s", "kernel")
	for _, w := range ways {
		heading += fmt.Sprintf(" %22s", w.engine+" "+w.name)
	}
	figure("%s", heading)
	logs := make([]float64, len(ways)) // of the ratios, summed over the kernels in C
	for _, k := range append(kernels.Kernels(), kernels.Guest()) {
		turns, ratios := timeInTurns(b, k, ways, rounds)
		row := fmt.Sprintf("%-10s", k.Name)
		for i, w := range ways {
			if w.name == "original" {
				row += fmt.Sprintf(" %19.1f ms", milliseconds(median(turns[i])))
				continue
			}
			ratio := median(ratios[i])
			row += fmt.Sprintf(" %22.3f", ratio)
			if k.Name != kernels.GoGuest {
				logs[i] += math.Log(ratio)
			}
		}
		figure("%s", row)
	}
	for i, w := range ways {
		if w.name != "original" {
			limit := map[string]string{"wazero prepared": " (at most 1.30)", "wasmtime prepared": " (at most 1.20)"}[w.engine+" "+w.name]
			figure("geometric mean over the kernels in C, %s %s: %.3f%s", w.engine, w.name,
				math.Exp(logs[i]/float64(len(kernels.Kernels()))), limit)
		}
	}
}

// timeInTurns runs a kernel each way in each round. Ratios are to the latest
// way named original before it.
func timeInTurns(b *testing.B, k kernels.Kernel, ways []way, rounds int) (turns [][]time.Duration, ratios [][]float64) {
	original, prepared := module(b, k.Name)
	runners := make([]runner, len(ways))
	turns, ratios = make([][]time.Duration, len(ways)), make([][]float64, len(ways))
	var want uint64
	for i, w := range ways {
		runners[i] = w.start(b, original, prepared)
		got, err := runners[i](k.N) // the first turn warms up
		if i == 0 {
			want = got
		}
		if err != nil || got != want {
			b.Fatalf("%s on %s, %s: %d, %v; want %d", k.Name, w.engine, w.name, got, err, want)
		}
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for range rounds {
		var base time.Duration
		for i, w := range ways {
			start := processorTime(b)
			if _, err := runners[i](k.N); err != nil {
				b.Fatal(err)
			}
			took := processorTime(b) - start
			if w.name == "original" {
				base = took
			}
			turns[i] = append(turns[i], took)
			ratios[i] = append(ratios[i], float64(took)/float64(base))
		}
	}
	return turns, ratios
}

// samples are a guest in Go, one in C and one in the text format.
func samples(b *testing.B) []sample {
	goOriginal, goPrepared := module(b, kernels.GoGuest)
	cOriginal, cPrepared := module(b, "json")
	wat := hosttest.Wat(b, strings.Replace(hosttest.Echo(), "(module", `(module (func (export "run") (param i32) (result i64) (i64.const 7))`, 1))
	p, err := prepare.Prepare(wat, prepare.Options{})
	if err != nil {
		b.Fatal(err)
	}
	return []sample{{"Go", goOriginal, goPrepared}, {"C", cOriginal, cPrepared}, {"WAT", wat, p.Wasm}}
}

type sample struct {
	language           string
	original, prepared []byte
}

// BenchmarkFigurePrepare gives how fast modules are prepared, by the processor time
// of one thread.
func BenchmarkFigurePrepare(b *testing.B) {
	const rounds, bytesMin = 9, 2 << 20 // prepared in a round
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for _, s := range samples(b) {
		times := max(1, bytesMin/len(s.original))
		var speeds []float64
		for range rounds {
			start := processorTime(b)
			for range times {
				if _, err := prepare.Prepare(s.original, prepare.Options{}); err != nil {
					b.Fatal(err)
				}
			}
			speeds = append(speeds, float64(times*len(s.original))/1e6/(processorTime(b)-start).Seconds())
		}
		figure("prepare a %s guest of %d bytes: %.1f MB/s; prepared it has %d bytes, %.2f times as many",
			s.language, len(s.original), median(speeds), len(s.prepared), float64(len(s.prepared))/float64(len(s.original)))
	}
}

// BenchmarkFigureStart gives how long it takes to compile a module, and from
// compiled to the end of the first call, unprepared and prepared, taken in turns.
func BenchmarkFigureStart(b *testing.B) {
	const rounds = 7
	ways := slices.DeleteFunc(append(waysOfWazero(), waysOfWasmtime()...), func(w way) bool { return !w.compared() })
	for _, s := range samples(b) {
		compiling, starting := make([][]time.Duration, len(ways)), make([][]time.Duration, len(ways))
		for range rounds {
			for i, w := range ways {
				c, f := startOnce(b, w, s)
				compiling[i], starting[i] = append(compiling[i], c), append(starting[i], f)
			}
		}
		for i := 0; i < len(ways); i += 2 {
			before, after := milliseconds(median(compiling[i])), milliseconds(median(compiling[i+1]))
			figure("%s compiles a %s guest in %.2f ms, prepared in %.2f ms: %.2f times as long", ways[i].engine, s.language, before, after, after/before)
			before, after = milliseconds(median(starting[i])), milliseconds(median(starting[i+1]))
			figure("%s, from instantiation to the end of the first call, %s guest: %.3f ms, prepared %.3f ms", ways[i].engine, s.language, before, after)
		}
	}
}

func startOnce(b *testing.B, w way, s sample) (compiling, starting time.Duration) {
	e, err := w.open()
	if err != nil {
		b.Fatal(err)
	}
	defer e.close()
	wasm := s.original
	if w.prepared {
		wasm = s.prepared
	}
	start := time.Now()
	m, err := e.compile(wasm)
	if err != nil {
		b.Fatal(err)
	}
	compiled := time.Now()
	run, err := m.instantiate()
	if err == nil {
		_, err = run(0)
	}
	if err != nil {
		b.Fatal(err)
	}
	return compiled.Sub(start), time.Since(compiled)
}
