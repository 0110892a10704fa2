package prepare

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

// kernels are loops and calls of different shapes, each exported as "run".
var kernels = map[string]string{
	"sum": `(module (func (export "run") (param $n i32) (result i32) (local $s i32)
	  (loop $l (local.set $s (i32.add (i32.mul (local.get $s) (i32.const 31)) (local.get $n)))
	   (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1))))) (local.get $s)))`,
	"fib": `(module (func $f (export "run") (param $n i32) (result i32)
	  (if (result i32) (i32.lt_u (local.get $n) (i32.const 2)) (then (local.get $n))
	   (else (i32.add (call $f (i32.sub (local.get $n) (i32.const 1))) (call $f (i32.sub (local.get $n) (i32.const 2))))))))`,
	"sieve": `(module (memory (export "memory") 16) (func (export "run") (param $n i32) (result i32) (local $i i32) (local $j i32) (local $c i32)
	  (memory.fill (i32.const 0) (i32.const 0) (local.get $n))
	  (local.set $i (i32.const 2))
	  (block $done (loop $outer
	    (br_if $done (i32.ge_u (local.get $i) (local.get $n)))
	    (if (i32.eqz (i32.load8_u (local.get $i))) (then
	      (local.set $c (i32.add (local.get $c) (i32.const 1)))
	      (local.set $j (i32.mul (local.get $i) (local.get $i)))
	      (block $b (loop $in (br_if $b (i32.ge_u (local.get $j) (local.get $n)))
	        (i32.store8 (local.get $j) (i32.const 1))
	        (local.set $j (i32.add (local.get $j) (local.get $i))) (br $in)))))
	    (local.set $i (i32.add (local.get $i) (i32.const 1)))
	    (br $outer)))
	  (local.get $c)))`,
	"collatz": `(module (func (export "run") (param $n i32) (result i32) (local $x i64) (local $s i32)
	  (loop $o (local.set $x (i64.extend_i32_u (local.get $n)))
	   (block $d (loop $l
	     (br_if $d (i64.le_u (local.get $x) (i64.const 1)))
	     (local.set $s (i32.add (local.get $s) (i32.const 1)))
	     (if (i64.eqz (i64.and (local.get $x) (i64.const 1)))
	       (then (local.set $x (i64.shr_u (local.get $x) (i64.const 1))))
	       (else (local.set $x (i64.add (i64.mul (local.get $x) (i64.const 3)) (i64.const 1)))))
	     (br $l)))
	   (br_if $o (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
	  (local.get $s)))`,
	"matmul": `(module (memory (export "memory") 16) (func (export "run") (param $n i32) (result i32) (local $i i32) (local $j i32) (local $k i32) (local $a f64)
	  (loop $li (local.set $j (i32.const 0)) (loop $lj (local.set $k (i32.const 0)) (local.set $a (f64.const 0))
	    (loop $lk (local.set $a (f64.add (local.get $a) (f64.mul
	       (f64.load (i32.shl (i32.add (i32.mul (local.get $i) (local.get $n)) (local.get $k)) (i32.const 3)))
	       (f64.load (i32.shl (i32.add (i32.mul (local.get $k) (local.get $n)) (local.get $j)) (i32.const 3))))))
	      (br_if $lk (i32.lt_u (local.tee $k (i32.add (local.get $k) (i32.const 1))) (local.get $n))))
	    (f64.store (i32.shl (i32.add (i32.mul (local.get $i) (local.get $n)) (local.get $j)) (i32.const 3)) (local.get $a))
	    (br_if $lj (i32.lt_u (local.tee $j (i32.add (local.get $j) (i32.const 1))) (local.get $n))))
	   (br_if $li (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))
	  (i32.const 0)))`,
}

// kernelArgs makes each kernel run for some milliseconds.
var kernelArgs = map[string]uint64{"sum": 10_000_000, "fib": 27, "sieve": 1_000_000, "collatz": 30_000, "matmul": 150}

// BenchmarkKernel compares each kernel before and after preparation on wazero's compiler.
func BenchmarkKernel(b *testing.B) {
	for _, name := range []string{"sum", "fib", "sieve", "collatz", "matmul"} {
		original := wat(b, kernels[name])
		for _, form := range []string{"original", "prepared"} {
			b.Run(name+"/"+form, func(b *testing.B) {
				wasm := original
				if form == "prepared" {
					wasm = mustPrepare(b, original)
				}
				m := newMachine(b, engines["compiler"](), 1<<60, FuelSlice)
				run := m.instantiate(b, wasm).ExportedFunction("run")
				for b.Loop() {
					if _, err := run.Call(context.Background(), kernelArgs[name]); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// largeModule has functions bodies of a compiler's kind, and is megabytes long.
func largeModule(t testing.TB) []byte {
	var b strings.Builder
	b.WriteString(`(module (memory 1) (table 1 funcref)`)
	for i := range 4000 {
		fmt.Fprintf(&b, `(func (param $a i32) (param $b i32) (result i32) (local $i i32)
		  (block $x (br_if $x (i32.eqz (local.get $a)))
		    (loop $l (i32.store offset=%d (local.get $i) (i32.add (local.get $a) (i32.load (local.get $b))))
		      (if (i32.and (local.get $i) (i32.const 7)) (then (local.set $a (call %d (local.get $b) (local.get $i)))) (else (br_if $x (local.get $b))))
		      (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $b))))
		    (loop $q (br_if $q (local.tee $b (i32.sub (local.get $b) (i32.const 1))))))
		  (local.get $a))`, i, (i*31)%4000)
	}
	b.WriteString(")")
	return wat(t, b.String())
}

// BenchmarkPrepare is the speed of preparation in bytes of the original.
func BenchmarkPrepare(b *testing.B) {
	wasm := largeModule(b)
	b.SetBytes(int64(len(wasm)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := prepare(wasm, anything); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCompile is the time wazero's compiler takes before and after preparation.
func BenchmarkCompile(b *testing.B) {
	original := largeModule(b)
	for name, wasm := range map[string][]byte{"original": original, "prepared": mustPrepare(b, original)} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				m := newMachine(b, engines["compiler"](), 0, FuelSlice)
				if _, err := m.rt.CompileModule(context.Background(), wasm); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
