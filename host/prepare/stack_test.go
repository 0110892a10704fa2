package prepare

import (
	"fmt"
	"testing"
)

// stackCases are functions $f of one parameter n that call themselves n times.
var stackCases = []struct {
	name    string
	head    string // parameters and locals after $n
	down    string // the call of $f with n-1
	frame   int    // of $f
	between int    // frame of the function between two calls of $f
}{
	{"a small frame", ``, `(call $f (local.get $n))`, 1 + 2 + slotsPerCall, 0},
	{"operands count", `(local i64 i64 i64)`, `(i64.const 1) (i64.const 2) (i64.const 3) (i64.const 4) (call $f (local.get $n)) drop drop drop drop`, 4 + 5 + slotsPerCall, 0},
	{"locals count", `(local i64 i64 i64 i64 i64 i64 i64 i64 i64)`, `(call $f (local.get $n))`, 10 + 2 + slotsPerCall, 0},
	{"a v128 counts twice", `(local v128 v128 v128 v128)`, `(drop (local.get 2)) (call $f (local.get $n))`, 1 + 8 + 2*2 + slotsPerCall, 0},
	{"through a table", ``, `(call_indirect (type $t) (local.get $n) (i32.const 0))`, 1 + 2 + slotsPerCall, 0},
	{"through another function", ``, `(call $g (local.get $n))`, 1 + 2 + slotsPerCall, 1 + 1 + slotsPerCall},
	{"a call of what calls nothing is free", ``, `(call $leaf) (call $f (local.get $n))`, 1 + 2 + slotsPerCall, 0},
	{"what a call took is given back", ``, `(call $twice) (call $twice) (call $f (local.get $n))`, 1 + 2 + slotsPerCall, 0},
}

// TestStack states how many frames fit, on both engines, and that the budget
// is the same at each call of the host.
func TestStack(t *testing.T) {
	for _, c := range stackCases {
		for _, deep := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, deep %v", c.name, deep), func(t *testing.T) {
				wasm := wat(t, `(module (type $t (func (param i32))) (table 1 1 funcref) (elem (i32.const 0) $f)
				  (func $leaf) (func $twice (call $leaf) (call $leaf)) (func $g (param i32) (call $f (local.get 0)))
				  (func $f (param $n i32) `+c.head+` (if (i32.eqz (local.get $n)) (then (return)))
				    (local.set $n (i32.sub (local.get $n) (i32.const 1))) `+c.down+`)
				  (func (export "run") (param $n i32) (call $f (local.get $n))))`)
				r := rules{pagesMax: anything.pagesMax, anyImport: true, anyExport: true, deep: deep}
				frame, turn, run := r.slots(uint64(c.frame)), r.slots(uint64(c.frame)), r.slots(1+1+slotsPerCall)
				if c.between > 0 {
					turn += r.slots(uint64(c.between))
				}
				fits := (r.stackSlots() - run - frame) / turn
				for engine, config := range engines {
					if deep && engine == "interpreter" {
						continue
					}
					p, err := prepare(wasm, r)
					if err != nil {
						t.Fatal(err)
					}
					m := newMachine(t, config(), 1<<40, FuelSlice)
					mod := m.instantiate(t, p.Wasm)
					for _, n := range []uint64{fits + 1, fits, fits + 1, fits} {
						_, err := callWithin(mod, r.stackSlots(), "run", n)
						if over := n > fits; (err != nil) != over || over && err != errStackOverflow {
							t.Errorf("%s: %d turns of %d slots: error %v", engine, n, turn, err)
						}
					}
				}
			})
		}
	}
}
