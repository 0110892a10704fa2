package kernels_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/writrun/writ/conformance/kernels"
	"github.com/writrun/writ/host/prepare"
)

// built is where the kernels were compiled to, once per process.
var built = sync.OnceValues(func() (map[string][]byte, error) {
	dir, err := os.MkdirTemp("", "writ-kernels-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := kernels.Build(context.Background(), dir); err != nil {
		return nil, err
	}
	if err := kernels.BuildGuest(context.Background(), dir); err != nil {
		return nil, err
	}
	modules := map[string][]byte{}
	for _, k := range append(kernels.Kernels(), kernels.Guest()) {
		if modules[k.Name], err = os.ReadFile(filepath.Join(dir, k.Name+".wasm")); err != nil {
			return nil, err
		}
	}
	return modules, nil
})

// module returns a kernel as compiled, and as prepared.
func module(tb testing.TB, name string) (original, prepared []byte) {
	tb.Helper()
	modules, err := built()
	if errors.Is(err, kernels.ErrNoCompiler) {
		tb.Skipf("SKIPPED: %v", err)
	}
	if err != nil {
		tb.Fatal(err)
	}
	p, err := prepare.Prepare(modules[name], prepare.Options{})
	if err != nil {
		tb.Fatalf("%s: %v", name, err)
	}
	return modules[name], p.Wasm
}

// TestKernelsCompute shows that the kernels compute what they say, by the
// standard library or a simpler way in Go, on both engines, prepared or not.
func TestKernelsCompute(t *testing.T) {
	cases := []struct {
		name string
		n    int32
		want uint64 // 0 for any
	}{
		{"matmul", 1, matmul(1)},
		{"matmul", 37, matmul(37)},
		{"nbody", 1000, 0},
		{"mandelbrot", 20, mandelbrot(20)},
		{"sieve", 3, 2},
		{"sieve", 2, 1},
		{"sieve", 100, 25},
		{"sieve", 32768, 3512},
		{"sieve", 1_000_000, 78498},
		{"sha256", 0, sha(0)},
		{"sha256", 1, sha(1)},
		{"sha256", 100, sha(100)},
		{"fib", 1, 1},
		{"fib", 20, 6765},
		{"sort", 17, sorted(17)},
		{"sort", 10_000, sorted(10_000)},
		{"json", 0, 14695981039346656037 >> 1},
		{"json", 1, 0},
		{kernels.GoGuest, 2500, 0},
	}
	ways := append(waysOfWazero(), waysOfWasmtime()...)
	for _, k := range append(kernels.Kernels(), kernels.Guest()) {
		original, prepared := module(t, k.Name)
		var runners []runner
		for _, w := range ways {
			runners = append(runners, w.start(t, original, prepared))
		}
		for _, c := range cases {
			if c.name != k.Name {
				continue
			}
			want := c.want
			for i, run := range runners {
				got, err := run(c.n)
				if want == 0 && i == 0 {
					want = got
				}
				if err != nil || got != want || int64(got) == -1 {
					t.Errorf("%s(%d) = %d, %v on %s, %s; want %d", c.name, c.n, got, err, ways[i].engine, ways[i].name, want)
				}
			}
		}
	}
}

// TestPlanets compares with the energies that the Computer Language Benchmarks
// Game publishes for the same bodies.
func TestPlanets(t *testing.T) {
	original, _ := module(t, "nbody")
	for n, want := range map[int32]float64{0: -0.169075164, 1000: -0.169087605} {
		sum, err := waysOfWazero()[0].start(t, original, nil)(n)
		if got := math.Float64frombits(sum); err != nil || math.Abs(got-want) > 1e-9 {
			t.Errorf("after %d steps the energy is %.9f, want %.9f (%v)", n, got, want, err)
		}
	}
}

// draw is the sequence of kernel.h.
type draw uint32

func (d *draw) next() uint32 {
	*d = *d*1664525 + 1013904223
	return uint32(*d)
}

func matmul(n int) uint64 {
	d := draw(1)
	a, b := make([]float64, n*n), make([]float64, n*n)
	for i := range a {
		a[i] = float64(d.next()) / 4294967296
		b[i] = float64(d.next())/4294967296 - 0.5
	}
	var sum uint64
	for i := range n {
		for j := range n {
			c := 0.0
			for k := range n {
				c += float64(a[i*n+k] * b[k*n+j]) // the conversion forbids fusing
			}
			sum = sum*31 + math.Float64bits(c)
		}
	}
	return sum
}

func mandelbrot(n int) uint64 {
	var sum uint64
	for row := range n {
		for column := range n {
			ci, cr := 2*float64(row)/float64(n)-1, 2*float64(column)/float64(n)-1.5
			zr, zi, count := 0.0, 0.0, uint64(0)
			for count < 50 && float64(zr*zr)+float64(zi*zi) <= 4 {
				zr, zi = float64(zr*zr)-float64(zi*zi)+cr, float64(2*zr*zi)+ci
				count++
			}
			sum = sum*31 + count
		}
	}
	return sum
}

func sha(kib int) uint64 {
	d := draw(1)
	block := make([]byte, 1024)
	for i := range block {
		block[i] = byte(d.next() >> 24)
	}
	h := sha256.New()
	for range kib {
		h.Write(block)
	}
	return binary.BigEndian.Uint64(h.Sum(nil))
}

func sorted(n int) uint64 {
	d := draw(1)
	values := make([]int32, n)
	for i := range values {
		values[i] = int32(d.next())
	}
	slices.Sort(values[:n/2])
	slices.Sort(values[n/2:])
	var sum uint64
	for _, v := range values {
		sum = sum*31 + uint64(uint32(v))
	}
	return sum
}
