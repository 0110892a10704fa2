package engines_test

import (
	"encoding/binary"
	"testing"

	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host/hosttest"
)

// loopPasses is how often the loop before a trap runs: over several slices of fuel.
const loopPasses = 1_000_000

// paidEnds are all the ways in which a guest can end itself, as what comes after
// a loop, with what they need beside the entry. $n is 0 then.
var paidEnds = []struct{ cause, body, definitions string }{
	{"", ``, ``},
	{"unreachable", `(unreachable)`, ``},
	{"integer_divide_by_zero", `(drop (i32.div_u (i32.const 1) (local.get $n)))`, ``},
	{"integer_divide_by_zero", `(drop (i64.rem_s (i64.const 1) (i64.extend_i32_u (local.get $n))))`, ``},
	{"integer_overflow", `(drop (i32.div_s (i32.const 0x80000000) (i32.sub (local.get $n) (i32.const 1))))`, ``},
	{"integer_overflow", `(drop (i64.trunc_f64_s (f64.const 1e300)))`, ``},
	{"invalid_conversion", `(drop (i32.trunc_f32_s (f32.const nan)))`, ``},
	{"memory_out_of_bounds", `(drop (i64.load8_u (i32.sub (local.get $n) (i32.const 1))))`, ``},
	{"memory_out_of_bounds", `(v128.store (i32.const 65535) (v128.const i64x2 1 2))`, ``},
	{"memory_out_of_bounds", `(memory.copy (i32.const 65000) (local.get $n) (i32.const 1000))`, ``},
	{"invalid_table_access", `(call_indirect (local.get $n))`, `(table 1 funcref)`},
	{"invalid_table_access", `(call_indirect (i32.const 7))`, `(table 1 funcref)`},
	{"invalid_table_access", `(drop (table.get 0 (i32.const 7)))`, `(table 1 funcref)`},
	{"indirect_call_type", `(call_indirect (local.get $n))`, `(table 1 funcref) (elem (i32.const 0) $execute)`},
	{"stack_overflow", `(call $deep)`, `(func $deep (call $deep))`},
	{"exit", `(call $exit (i32.const 1))`, ``},
	{"bad_pointer", `(drop (call $random (i32.const 65535) (i32.const 2)))`, ``},
}

// TestALoopBeforeAnEndIsPaid: whatever ends a guest, the loop before it costs
// what it costs a guest that returns, on every engine.
func TestALoopBeforeAnEndIsPaid(t *testing.T) {
	on := enginesOf(t)
	var perLoop uint64
	for _, c := range paidEnds {
		p := hosttest.Prepared(t, `(module
		  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
		  (import "writ_v1" "random_fill" (func $random (param i32 i32) (result i32)))
		  (memory (export "memory") 1)
		  (func (export "writ_alloc") (param i32) (result i32) (i32.const 1024))
		  (func (export "writ_free") (param i32 i32))
		  `+c.definitions+`
		  (func $execute (export "writ_execute") (param $ptr i32) (param $len i32) (result i64) (local $n i32)
		    (local.set $n (i32.load (local.get $ptr)))
		    (block $done (loop $l
		      (br_if $done (i32.eqz (local.get $n)))
		      (local.set $n (i32.sub (local.get $n) (i32.const 1)))
		      (br $l)))
		    `+c.body+`
		    (i64.const 0x40000000004)))`)
		s := compile(t, on, p)
		var used [2]uint64
		for i, passes := range []uint32{0, loopPasses} {
			got, different := s.invoke(t, invocation(binary.LittleEndian.AppendUint32(nil, passes), abi.Limits{}))
			if different != "" || got.Err != "" || got.cause() != c.cause {
				t.Errorf("%s after %d passes: %+v, error %q\n%s", c.body, passes, got.Outcome.Stop, got.Err, different)
			}
			used[i] = got.Outcome.FuelUsed
		}
		if c.cause == "" {
			perLoop = used[1] - used[0]
		}
		if got := used[1] - used[0]; got != perLoop || got < 3*loopPasses {
			t.Errorf("%s: the loop before it costs %d fuel, and %d before a return", c.body, got, perLoop)
		}
		s.close(t)
	}
}
