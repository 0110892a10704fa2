//go:build !race

// Under the race detector wazero's compiler takes minutes for the guest in Go;
// there is nothing concurrent here.

package kernels_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/writrun/writ/conformance/kernels"
	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host"
	"github.com/writrun/writ/host/hosttest"
	"github.com/writrun/writ/host/prepare"
	"github.com/writrun/writ/host/wazero"
)

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
	for _, k := range append(kernels.Kernels(), kernels.Guest()) {
		original, prepared := module(t, k.Name)
		ways := append(waysOfWazero(), waysOfWasmtime()...)
		if k.Name == kernels.GoGuest { // large: the engines' own knobs are left to the figures
			ways = slices.DeleteFunc(ways, func(w way) bool { return !w.compared() })
		}
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

// TestKernelsAreExecutors runs each kernel as a step would.
func TestKernelsAreExecutors(t *testing.T) {
	engine, err := wazero.New(t.Context(), wazero.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Close(context.Background()) })
	for _, k := range kernels.Kernels() {
		original, prepared := module(t, k.Name)
		sum, err := waysOfWazero()[0].start(t, original, nil)(20)
		if err != nil {
			t.Fatal(err)
		}
		m := hosttest.Compile(t, engine, &prepare.Prepared{Wasm: prepared, Digest: abi.DigestOf(prepared)})
		out, err := host.Invoke(t.Context(), m, host.Invocation{Lane: "kernel", Entry: abi.ExportExecute, Input: []byte("20"),
			ClockStartNanos: 1, Boundary: host.NewRecorder(&hosttest.Discard{}, nil)})
		if err != nil || out.Stop != nil {
			t.Fatalf("%s: %v %+v", k.Name, err, out.Stop)
		}
		response, err := abi.DecodeExecuteResponse(out.Output)
		if want := fmt.Sprintf(`"%d"`, sum); err != nil || string(response.Output) != want {
			t.Errorf("%s: output %s, %v; want %s", k.Name, response.Output, err, want)
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
