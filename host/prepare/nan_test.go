package prepare

import (
	"strings"
	"testing"
)

const (
	quiet32 = 0x7fc00000
	quiet64 = 0x7ff8000000000000
)

// nanCases are bodies of (func (export "run") (param $n i64) (result i64)) with
// the bits they give. $x, $y, $z are f64 locals, $p and $q f32, $v a v128; $n is
// the bits of a NaN with a payload, $f a function (f64) -> f64 that returns its
// argument. sites is at how many places NaNs are made canonical.
var nanCases = []struct {
	name  string
	body  string
	want  uint64
	sites int
}{
	{"a result is seen", `(i64.reinterpret_f64 (f64.add (f64.reinterpret_i64 (local.get $n)) (f64.const 1)))`, quiet64, 1},
	{"a sign is not kept", `(i64.reinterpret_f64 (f64.div (f64.const 0) (f64.const 0)))`, quiet64, 1},
	{"arithmetic over arithmetic", `(i64.reinterpret_f64 (f64.sqrt (f64.mul (f64.sub (f64.const 1) (f64.const 2)) (f64.const 3))))`, quiet64, 1},
	{"a comparison does not look", `(i64.extend_i32_u (f64.eq (f64.sqrt (f64.const -1)) (f64.const 1)))`, 0, 0},
	{"a saturating truncation does not look", `(i64.trunc_sat_f64_s (f64.sqrt (f64.const -1)))`, 0, 0},
	{"a drop does not look", `(drop (f64.sqrt (f64.const -1))) (i64.const 3)`, 3, 0},
	{"demotion and promotion", `(i64.reinterpret_f64 (f64.promote_f32 (f32.demote_f64 (f64.reinterpret_i64 (local.get $n)))))`, quiet64, 1},
	{"min and max", `(i64.reinterpret_f64 (f64.min (f64.const 1) (f64.max (f64.const 2) (f64.reinterpret_i64 (local.get $n)))))`, quiet64, 1},
	{"bits the program gives pass through", `(i64.reinterpret_f64 (f64.reinterpret_i64 (local.get $n)))`, 0xfff0000000012345, 0},
	{"through locals", `(local.set $x (f64.reinterpret_i64 (local.get $n))) (i64.reinterpret_f64 (local.get $x))`, 0xfff0000000012345, 0},
	{"through memory", `(f64.store (i32.const 8) (f64.reinterpret_i64 (local.get $n))) (f64.store (i32.const 16) (f64.load (i32.const 8))) (i64.load (i32.const 16))`, 0xfff0000000012345, 0},
	{"through a call", `(i64.reinterpret_f64 (call $f (f64.reinterpret_i64 (local.get $n))))`, 0xfff0000000012345, 0},
	{"through select", `(i64.reinterpret_f64 (select (f64.reinterpret_i64 (local.get $n)) (f64.const 1) (i32.const 1)))`, 0xfff0000000012345, 0},
	{"through neg, abs and copysign", `(i64.reinterpret_f64 (f64.neg (f64.abs (f64.copysign (f64.reinterpret_i64 (local.get $n)) (f64.const 1)))))`, 0xfff0000000012345, 0},
	{"a constant", `(i64.reinterpret_f64 (f64.const -nan:0x4242))`, 0xfff0000000004242, 0},
	{"neg sees the sign", `(i64.reinterpret_f64 (f64.neg (f64.sqrt (f64.const -1))))`, quiet64 | 1<<63, 1},
	{"copysign sees the sign", `(i64.reinterpret_f64 (f64.copysign (f64.const 1) (f64.sqrt (f64.const -1))))`, 0x3ff0000000000000, 1},
	{"a store", `(f64.store (i32.const 8) (f64.sqrt (f64.const -1))) (i64.load (i32.const 8))`, quiet64, 1},
	{"a global", `(global.set $g (f64.sqrt (f64.const -1))) (i64.reinterpret_f64 (global.get $g))`, quiet64, 1},
	{"an argument", `(i64.reinterpret_f64 (call $f (f64.sqrt (f64.const -1))))`, quiet64, 1},
	{"a branch", `(i64.reinterpret_f64 (block (result f64) (br 0 (f64.sqrt (f64.const -1)))))`, quiet64, 1},
	{"a branch that is not taken", `(i64.reinterpret_f64 (block (result f64) (br_if 0 (f64.sqrt (f64.const -1)) (i32.const 0))))`, quiet64, 1},
	{"a branch through a table", `(i64.reinterpret_f64 (block (result f64) (br_table 0 0 (f64.sqrt (f64.const -1)) (i32.const 0))))`, quiet64, 1},
	{"a block", `(i64.reinterpret_f64 (block (result f64) (f64.sqrt (f64.const -1))))`, quiet64, 1},
	{"arms", `(i64.reinterpret_f64 (if (result f64) (i32.const 1) (then (f64.sqrt (f64.const -1))) (else (f64.const 1))))`, quiet64, 1},
	{"a select", `(i64.reinterpret_f64 (select (f64.sqrt (f64.const -1)) (f64.const 1) (i32.const 1)))`, quiet64, 1},
	{"a local is read once", `(local.set $x (f64.sqrt (f64.const -1))) (i64.reinterpret_f64 (local.get $x))`, quiet64, 1},
	{"a local is read by arithmetic", `(local.set $x (f64.sqrt (f64.const -1))) (local.set $y (f64.add (local.get $x) (f64.const 1))) (i64.reinterpret_f64 (local.get $y))`, quiet64, 1},
	{"a local is copied", `(local.set $x (f64.sqrt (f64.const -1))) (local.set $y (local.get $x)) (i64.reinterpret_f64 (local.get $y))`, quiet64, 1},
	{"a local that is only compared", `(local.set $x (f64.sqrt (f64.const -1))) (i64.extend_i32_u (f64.lt (local.get $x) (f64.const 1)))`, 0, 0},
	{"a local that may hold the program's bits", `(local.set $x (f64.reinterpret_i64 (local.get $n))) (if (i32.const 0) (then (local.set $x (f64.sqrt (f64.const -1))))) (i64.reinterpret_f64 (local.get $x))`, 0xfff0000000012345, 1},
	{"a local copied from one that may", `(local.set $x (f64.reinterpret_i64 (local.get $n))) (local.set $y (local.get $x)) (if (i32.const 0) (then (local.set $y (f64.sqrt (f64.const -1))))) (i64.reinterpret_f64 (local.get $y))`, 0xfff0000000012345, 1},
	{"a local copied from one that may, the copy first", `(loop (local.set $y (local.get $x)) (local.set $x (f64.reinterpret_i64 (local.get $n))) (br_if 0 (f64.eq (local.get $y) (f64.const 0)))) (if (i32.const 0) (then (local.set $y (f64.sqrt (f64.const -1))))) (i64.reinterpret_f64 (local.get $y))`, 0xfff0000000012345, 1},
	{"tee", `(i64.reinterpret_f64 (local.tee $x (f64.sqrt (f64.const -1))))`, quiet64, 1},
	{"tee of the program's bits", `(i64.reinterpret_f64 (local.tee $x (f64.reinterpret_i64 (local.get $n))))`, 0xfff0000000012345, 0},
	{"a local that is read often is made canonical where it is set", `(local.set $x (f64.sqrt (f64.const -1))) (f64.store (i32.const 8) (local.get $x)) (f64.store (i32.const 16) (local.get $x)) (i64.load (i32.const 16))`, quiet64, 1},
	{"a sum in a loop is made canonical after it", `(loop $l (local.set $x (f64.mul (local.get $x) (f64.const inf))) (br_if $l (f64.eq (local.get $x) (local.get $x))) (local.set $y (f64.sub (f64.const inf) (f64.const inf)))) (i64.reinterpret_f64 (f64.neg (local.get $y)))`, quiet64 | 1<<63, 1},
	{"f32", `(i64.extend_i32_u (i32.reinterpret_f32 (f32.add (f32.reinterpret_i32 (i32.const 0xffa00001)) (f32.const 1))))`, quiet32, 1},
	{"f32 bits the program gives", `(local.set $p (f32.reinterpret_i32 (i32.const 0xffa00001))) (i64.extend_i32_u (i32.reinterpret_f32 (local.get $p)))`, 0xffa00001, 0},
	{"f32 rounding", `(local.set $p (f32.nearest (f32.reinterpret_i32 (i32.const 0xffa00001)))) (i64.extend_i32_u (i32.reinterpret_f32 (local.get $p)))`, quiet32, 1},
	{"f32x4", `(i64x2.extract_lane 0 (f32x4.add (v128.const i32x4 0xffa00001 0x7f800001 0 0) (v128.const f32x4 1 1 1 1)))`, quiet32<<32 | quiet32, 1},
	{"f32x4 over f32x4", `(i64x2.extract_lane 0 (f32x4.sqrt (f32x4.sub (v128.const f32x4 -1 -1 -1 -1) (v128.const f32x4 1 1 1 1))))`, quiet32<<32 | quiet32, 1},
	{"f64x2", `(i64x2.extract_lane 1 (f64x2.min (v128.const i64x2 1 0xfff4000000000001) (v128.const f64x2 1 1)))`, quiet64, 1},
	{"f64x2 lanes that are numbers", `(i64x2.extract_lane 0 (f64x2.min (v128.const i64x2 1 0xfff4000000000001) (v128.const f64x2 1 1)))`, 1, 1},
	{"f64x2 of what f32x4 makes", `(i64x2.extract_lane 0 (f64x2.add (f32x4.sqrt (v128.const f32x4 4 4 4 4)) (v128.const f64x2 0 0)))`, 0x4000000040000000, 2},
	{"lanes seen as integers", `(i64x2.extract_lane 0 (i64x2.add (f64x2.sqrt (v128.const f64x2 -1 -1)) (v128.const i64x2 1 1)))`, quiet64 + 1, 1},
	{"pmin and pmax copy", `(i64x2.extract_lane 0 (f64x2.pmax (v128.const i64x2 0xfff4000000000001 0) (v128.const f64x2 1 1)))`, 0xfff4000000000001, 0},
	{"a v128 local", `(local.set $v (f64x2.sqrt (v128.const f64x2 -1 -1))) (i64x2.extract_lane 0 (local.get $v))`, quiet64, 1},
	{"promote_low", `(i64x2.extract_lane 0 (f64x2.promote_low_f32x4 (v128.const i32x4 0xffa00001 0 0 0)))`, quiet64, 1},
	{"demote_zero", `(i64x2.extract_lane 0 (f32x4.demote_f64x2_zero (v128.const i64x2 0xfff4000000000001 0)))`, quiet32, 1},
	{"so many places that branches would be dear to compile", strings.Repeat(`(f64.store (i32.const 8) (f64.sqrt (f64.const -1)))`, nanBranchesMax+1) + `(f32.store (i32.const 0) (f32.sqrt (f32.const -1))) (i64.load (i32.const 8))`, quiet64, nanBranchesMax + 2},
	{"unreachable code is left alone", `(block (br 0) (drop (i64.reinterpret_f64 (f64.sqrt (f64.const -1))))) (i64.const 1)`, 1, 0},
}

// TestNaN states what becomes of NaNs, on both engines.
func TestNaN(t *testing.T) {
	for _, c := range nanCases {
		t.Run(c.name, func(t *testing.T) {
			wasm := wat(t, `(module (memory 1) (global $g (mut f64) (f64.const 0)) (func $f (param f64) (result f64) (local.get 0))
			  (func (export "run") (param $n i64) (result i64) (local $x f64) (local $y f64) (local $z f64) (local $p f32) (local $q f32) (local $v v128) `+c.body+`))`)
			for engine := range engines {
				got, _, err := invoke(t, engine, wasm, 1<<40, FuelSlice, 0xfff0000000012345)
				if err != nil || got[0] != c.want {
					t.Errorf("%s: %#x, error %v; want %#x", engine, got, err, c.want)
				}
			}
			p, err := prepare(wasm, anything)
			if err != nil || p.Info.Inserted.NaNs != c.sites {
				t.Errorf("NaNs are made canonical at %d places, error %v; want %d", p.Info.Inserted.NaNs, err, c.sites)
			}
		})
	}
}
