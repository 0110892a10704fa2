// Command goguest is a guest that uses what of Go's runtime could differ between
// two runs: goroutines, select, maps, the garbage collector, floats, fmt, time,
// math/rand and the file system. It answers with all of it.
package main

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/guest-abi/go/guest"
)

//go:wasmexport writ_execute
func writExecute(ptr, size uint32) uint64 { return guest.Execute(ptr, size, execute) }

func main() {} // a module is a library; main never runs

// report is the step's output.
type report struct {
	Goroutines string            `json:"goroutines"`
	Selects    string            `json:"selects"`
	MapOrder   string            `json:"map_order"`
	Collected  string            `json:"collected"`
	Floats     []string          `json:"floats"`
	NaNs       map[string]string `json:"nans"`
	Random     []string          `json:"random"`
	Times      []string          `json:"times"`
	Files      []string          `json:"files"`
	Panic      string            `json:"panic"`
	Stack      int               `json:"stack"`
	Big        string            `json:"big"`
}

func execute(s *guest.Step) (abi.StepOutput, error) {
	files, err := readFiles()
	if err != nil {
		return abi.StepOutput{}, err
	}
	now, err := s.Now()
	if err != nil {
		return abi.StepOutput{}, err
	}
	r := report{
		Goroutines: goroutines(), Selects: selects(), MapOrder: mapOrder(), Collected: collect(),
		Floats: floats(s.Request.Step.ID), NaNs: nans(), Random: random(), Times: append(times(), fmt.Sprint(now)),
		Files: files, Panic: recovered(), Stack: depth(400), Big: factorial(60),
	}
	s.Logf(guest.Info, "%+v", r)
	fmt.Fprintln(os.Stderr, "goroutines left:", runtime.NumGoroutine())
	content := []byte(strings.Join(r.Floats, "\n"))
	artifact, err := s.PutArtifact("floats", "text/plain", content)
	if err != nil {
		return abi.StepOutput{}, err
	}
	output, err := abi.EncodeMessage(r)
	return abi.StepOutput{Output: output, Artifacts: []abi.Artifact{artifact}}, err
}

// goroutines tells in which order workers took jobs, which is the scheduler's.
func goroutines() string {
	jobs := make(chan int)
	var mu sync.Mutex
	var order []string
	var wait sync.WaitGroup
	for worker := range 5 {
		wait.Go(func() {
			for job := range jobs {
				mu.Lock()
				order = append(order, fmt.Sprintf("%d:%d", worker, job))
				mu.Unlock()
				if job%3 == worker%3 {
					runtime.Gosched()
				}
			}
		})
	}
	for job := range 40 {
		jobs <- job
	}
	close(jobs)
	wait.Wait()
	return strings.Join(order, " ")
}

// selects tells which of two ready channels select took, which is random.
func selects() string {
	a, b := make(chan int, 64), make(chan int, 64)
	for i := range 64 {
		a <- i
		b <- i
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	var took strings.Builder
	for range 64 {
		select {
		case <-a:
			took.WriteByte('a')
		case <-b:
			took.WriteByte('b')
		}
	}
	<-ctx.Done()
	return took.String() + " " + ctx.Err().Error()
}

// mapOrder tells in which order a map is gone through, which is random.
func mapOrder() string {
	m := map[string]int{}
	for i := range 50 {
		m[fmt.Sprintf("k%d", i)] = i
	}
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	return strings.Join(keys, " ")
}

type list struct {
	next  *list
	bytes []byte
}

// collect makes garbage, and tells how often and how much was collected.
func collect() string {
	var kept *list
	finalized := 0
	for i := range 20_000 {
		n := &list{bytes: make([]byte, 64+i%1000)}
		n.bytes[0] = byte(i)
		if i%100 == 0 {
			n.next = kept
			kept = n
			runtime.SetFinalizer(&n.bytes[0], func(*byte) { finalized++ })
		}
	}
	runtime.GC()
	sum := 0
	for n := kept; n != nil; n = n.next {
		sum += int(n.bytes[0])
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return fmt.Sprintf("sum %d, %d mallocs, %d frees, %d collections, heap %d of %d", sum, m.Mallocs, m.Frees, m.NumGC, m.HeapAlloc, m.Sys)
}

func floats(id abi.ID) []string {
	x := float64(len(id)) / 7 // so that nothing is computed when compiled
	var out []string
	for i, f := range []func(float64) float64{math.Sqrt, math.Sin, math.Exp, math.Log, math.Gamma, math.Cbrt, math.Floor, math.Trunc, math.Atan} {
		y := f(x * float64(i+1))
		out = append(out, fmt.Sprintf("%v %e %.3g %x", y, y, y, math.Float64bits(y)))
		out = append(out, fmt.Sprint(float32(y), int64(y*1e6), uint32(int64(y*1e3))))
	}
	values := make([]float64, 100)
	for i := range values {
		values[i] = math.Mod(x*float64(i*i), 13) - 6
	}
	sort.Float64s(values)
	return append(out, fmt.Sprintf("%.17g", values))
}

// nans tells the bits of NaNs made in several ways, which are the engine's own
// unless preparation sees to it.
func nans() map[string]string {
	zero, inf := float64(len(os.Args)*0), math.Inf(len(os.Args)+1)
	zero32, payload := float32(zero), math.Float64frombits(0x7ff4000000000123)
	return map[string]string{
		"0/0": fmt.Sprintf("%x", math.Float64bits(zero/zero)), "inf-inf": fmt.Sprintf("%x", math.Float64bits(inf-inf)),
		"0*inf": fmt.Sprintf("%x", math.Float64bits(zero*inf)), "sqrt(-1)": fmt.Sprintf("%x", math.Float64bits(math.Sqrt(zero-1))),
		"payload+1": fmt.Sprintf("%x", math.Float64bits(payload+1+zero)), "-payload": fmt.Sprintf("%x", math.Float64bits(-payload)),
		"float32": fmt.Sprintf("%x", math.Float32bits(zero32/zero32)), "narrowed": fmt.Sprintf("%x", math.Float32bits(float32(payload+zero))),
		"max": fmt.Sprintf("%x", math.Float64bits(max(payload, zero))),
	}
}

func random() []string {
	own := rand.New(rand.NewPCG(1, 2))
	return []string{fmt.Sprint(rand.Uint64(), rand.Perm(10)), fmt.Sprint(rand.NormFloat64()), fmt.Sprint(own.Float64(), own.IntN(1000))}
}

func times() []string {
	start := time.Now()
	time.Sleep(3 * time.Second)
	timer := time.NewTimer(50 * time.Millisecond)
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	ticks := 0
	for done := false; !done; {
		select {
		case <-timer.C:
			done = true
		case <-ticker.C:
			ticks++
		}
	}
	return []string{start.UTC().Format(time.RFC3339Nano), time.Since(start).String(), fmt.Sprint(ticks, " ticks")}
}

// readFiles reads the datasets as files.
func readFiles() ([]string, error) {
	var out []string
	err := fs.WalkDir(os.DirFS("/"), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile("/" + name)
		out = append(out, fmt.Sprintf("%s %q", name, data))
		return err
	})
	slices.SortFunc(out, func(a, b string) int { return cmp.Compare(b, a) })
	return out, err
}

func recovered() (text string) {
	defer func() { text = fmt.Sprint(recover()) }()
	var m map[string]int
	m["x"]++
	return "no panic"
}

// depth makes goroutine stacks grow, which moves them.
func depth(n int) int {
	var frame [64]int
	frame[n%64] = n
	if n == 0 {
		return 0
	}
	return depth(n-1) + frame[n%64] - n + 1
}

func factorial(n int64) string { return new(big.Int).MulRange(1, n).String() }
