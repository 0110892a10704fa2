package prepare

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero/api"
)

// invoke prepares a module and calls its export "run" with a fresh budget. It
// returns the results, the fuel used, and the error.
func invoke(t *testing.T, engine string, wasm []byte, budget, slice int64, args ...uint64) ([]uint64, int64, error) {
	t.Helper()
	m := newMachine(t, engines[engine](), budget, slice)
	mod := m.instantiate(t, mustPrepare(t, wasm))
	results, err := mod.ExportedFunction("run").Call(context.Background(), args...)
	return results, budget - m.left(mod), err
}

const (
	twelve  = `(drop (i32.const 1)) (drop (i32.const 1)) (drop (i32.const 1)) (drop (i32.const 1)) (drop (i32.const 1)) (drop (i32.const 1))`
	big     = twelve + `(drop (i32.const 1))` // a block that pays for itself
	bigCost = 14
	arm     = `(drop (i32.const 1)) (drop (i32.const 1)) (drop (i32.const 1)) (drop (i32.const 1))` // two of them are more than costMerged
)

// bodyCases are bodies of (func (export "run") (param $n i32) (result i32)) with
// the fuel that they use, counted by hand.
var bodyCases = []struct {
	name string
	body string
	n    uint64
	fuel int64
}{
	{"entry and one instruction", `(i32.const 7)`, 0, costCall + 1},
	{"nop, block and end are free", `nop (block) (block nop) (i32.const 7)`, 0, costCall + 1},
	{"eight locals cost one", `(local i64 i64 i64 i64 i64 i64 i64) (i32.const 7)`, 0, costCall + 1 + 1},
	{"straight code", `(i32.add (local.get $n) (i32.mul (i32.const 2) (i32.const 3)))`, 1, costCall + 5},
	{"then arm, small arms are both paid", `(if (result i32) (local.get $n) (then (i32.const 1)) (else (drop (i32.const 1)) (i32.const 2)))`, 1, costCall + 2 + 1 + 3},
	{"else arm, small arms are both paid", `(if (result i32) (local.get $n) (then (i32.const 1)) (else (drop (i32.const 1)) (i32.const 2)))`, 0, costCall + 2 + 1 + 3},
	{"then arm", `(if (local.get $n) (then ` + big + `) (else ` + big + big + `)) (i32.const 1)`, 1, costCall + 2 + bigCost + 1},
	{"else arm", `(if (local.get $n) (then ` + big + `) (else ` + big + big + `)) (i32.const 1)`, 0, costCall + 2 + 2*bigCost + 1},
	{"the largest block that is paid with another", `(if (local.get $n) (then ` + twelve + `)) (i32.const 1)`, 0, costCall + 2 + costMerged + 1},
	{"the smallest block that is not", `(if (local.get $n) (then ` + twelve + `(return (i32.const 1)))) (i32.const 1)`, 0, costCall + 2 + 1},
	{"after an if", `(if (local.get $n) (then nop)) (i32.const 1)`, 1, costCall + 2 + 1},
	{"a return in an arm leaves the rest unpaid", `(if (local.get $n) (then (return (i32.const 1)))) ` + big + `(i32.const 2)`, 1, costCall + 2 + 2},
	{"without the return the rest is paid", `(if (local.get $n) (then (return (i32.const 1)))) ` + big + `(i32.const 2)`, 0, costCall + 2 + 2 + bigCost + 1},
	{"br_if taken", `(block $b (br_if $b (local.get $n)) ` + big + `) (i32.const 2)`, 1, costCall + 2 + 1},
	{"br_if not taken", `(block $b (br_if $b (local.get $n)) ` + big + `) (i32.const 2)`, 0, costCall + 2 + bigCost + 1},
	{"br over two blocks skips what stands between", `(block $a (block (br_if $a (local.get $n))) ` + big + `) (i32.const 2)`, 1, costCall + 2 + 1},
	{"br_if 1 not taken pays what stands between", `(block $a (block (br_if $a (local.get $n))) ` + big + `) (i32.const 2)`, 0, costCall + 2 + bigCost + 1},
	{"br_table", `(block $a (block $b (br_table $a $b (local.get $n))) ` + big + `) (i32.const 2)`, 0, costCall + 2 + 1},
	{"br_table default", `(block $a (block $b (br_table $a $b (local.get $n))) ` + big + `) (i32.const 2)`, 9, costCall + 2 + bigCost + 1},
	{"a branch out of two quiet loops", `(block $o (loop $l (loop $q (br_if $o (local.get $n)) (br_if $q (i32.const 1)) (br $l)))) (i32.const 1)`, 1, costCall + 2*costLoop + 2 + 2 + 1 + 1},
	{"a branch from a quiet loop to a loop that calls", `(local $i i32) (loop $l (call $f) (loop $q
	  (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))) (i32.const 1)`, 3, costCall + 3*(costLoop+1+costCall+costLoop+5) + 1},
	{"a quiet loop with operands", `(i32.const 0) (loop $l (param i32) (result i32) (i32.add (i32.const 1))
	  (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))`, 5, costCall + 1 + 5*(costLoop+7)},
	{"unreachable code is free", `(br 0 (i32.const 1)) (loop (drop (i32.const 1)) (br 0)) (drop (i32.const 1))`, 0, costCall + 2},
	{"a loop of ten passes", `(loop $l (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1))))) (local.get $n)`, 10, costCall + 10*(costLoop+5) + 1},
	{"the arms of a switch are paid by those that run", `(block $d (block $c (block $b (block $a (br_table $a $b $c $d (local.get $n)))
	  ` + arm + ` br 2) ` + arm + ` br 1) ` + arm + `) (i32.const 1)`, 3, costCall + 2 + 8 + 1},
	{"an empty loop costs a pass", `(loop) (i32.const 1)`, 0, costCall + costLoop + 1},
	{"a loop that calls", `(loop $l (call $f) (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1))))) (local.get $n)`, 10, costCall + 10*(costLoop+6+costCall) + 1},
	{"a quiet loop in a loop that calls", `(local $i i32) (loop $l (call $f) (local.set $i (i32.const 4))
	  (loop $q (br_if $q (local.tee $i (i32.sub (local.get $i) (i32.const 1)))))
	  (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1))))) (local.get $n)`, 3, costCall + 3*(costLoop+1+costCall+2+4*(costLoop+5)+5) + 1},
	{"a loop that calls after a quiet loop", `(local $i i32) (local.set $i (i32.const 4))
	  (loop $q (br_if $q (local.tee $i (i32.sub (local.get $i) (i32.const 1)))))
	  (loop $l (call $f) (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1))))) (local.get $n)`, 3, costCall + 2 + 4*(costLoop+5) + 3*(costLoop+6+costCall) + 1},
	{"memory.fill by length", `(memory.fill (i32.const 0) (i32.const 1) (local.get $n)) (i32.const 1)`, 1600, costCall + 5 + 1600/bytesPerFuel},
	{"memory.copy by length", `(memory.copy (i32.const 0) (i32.const 8) (local.get $n)) (i32.const 1)`, 1600, costCall + 5 + 1600/bytesPerFuel},
	{"memory.init by length", `(memory.init $d (i32.const 0) (i32.const 0) (local.get $n)) (i32.const 1)`, 32, costCall + 5 + 32/bytesPerFuel},
	{"memory.grow by pages", `(memory.grow (local.get $n))`, 3, costCall + 2 + 3*fuelPerPage},
	{"memory.grow that fails", `(memory.grow (local.get $n))`, 1 << 31, costCall + 2 + pagesMax*fuelPerPage},
	{"table.grow by entries", `(table.grow 0 (ref.null func) (local.get $n))`, 100, costCall + 3 + 100*fuelPerEntry},
	{"table.grow that fails", `(table.grow 0 (ref.null func) (local.get $n))`, 1 << 31, costCall + 3 + tableEntriesMax*fuelPerEntry},
	{"table.fill by entries", `(table.fill 0 (i32.const 0) (ref.null func) (local.get $n)) (i32.const 1)`, 5, costCall + 5 + 5*fuelPerEntry},
	{"table.copy by entries", `(table.copy (i32.const 0) (i32.const 1) (local.get $n)) (i32.const 1)`, 5, costCall + 5 + 5*fuelPerEntry},
	{"table.init by entries", `(table.init 0 $e (i32.const 0) (i32.const 0) (local.get $n)) (i32.const 1)`, 2, costCall + 5 + 2*fuelPerEntry},
	{"a bulk instruction in a loop", `(loop $l (memory.fill (i32.const 0) (i32.const 1) (i32.const 160))
	  (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1))))) (local.get $n)`, 10, costCall + 10*(costLoop+9+160/bytesPerFuel) + 1},
}

func bodyModule(t *testing.T, body string) []byte {
	return wat(t, `(module (memory 1 8) (data $d "`+strings.Repeat("x", 64)+`") (table 10 1000 funcref) (elem $e func $f $f)
	  (func $f) (type $t (func (param i32)))
	  (func (export "run") (param $n i32) (result i32) `+body+`))`)
}

// TestFuelCosts states what each construct costs, on both engines, and that the
// size of a slice does not matter.
func TestFuelCosts(t *testing.T) {
	for _, c := range bodyCases {
		t.Run(c.name, func(t *testing.T) {
			wasm := bodyModule(t, c.body)
			for engine := range engines {
				for _, slice := range []int64{FuelSlice, 1, 7} {
					if slice < 10 && c.fuel > 1e6 {
						continue
					}
					if _, fuel, err := invoke(t, engine, wasm, 1<<40, slice, c.n); err != nil || fuel != c.fuel {
						t.Errorf("%s, slice %d: used %d, error %v; want %d", engine, slice, fuel, err, c.fuel)
					}
				}
			}
		})
	}
}

// TestTrapsHavePaid: code that works and then traps has paid for the work.
func TestTrapsHavePaid(t *testing.T) {
	work := `(loop $l (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))`
	for _, trap := range []string{
		`unreachable`,
		`(i32.div_s (i32.const 1) (local.get $n))`,
		`(i32.rem_u (i32.const 1) (local.get $n))`,
		`(i32.div_s (i32.const 0x80000000) (i32.const -1))`,
		`(i32.load (i32.const -1))`,
		`(i32.store (i32.const -1) (i32.const 0)) (i32.const 0)`,
		`(i32.trunc_f64_s (f64.const nan))`,
		`(i32.trunc_f32_u (f32.const 1e30))`,
		`(call_indirect (type $t) (i32.const 0) (i32.const 99)) (i32.const 0)`,
		`(call_indirect (type $t) (i32.const 0) (i32.const 0)) (i32.const 0)`,
		`(table.set 0 (i32.const 0) (ref.func $f)) (call_indirect (type $t) (i32.const 0) (i32.const 0)) (i32.const 0)`,
		`(memory.fill (i32.const -1) (i32.const 0) (i32.const 64)) (i32.const 0)`,
		`(memory.init $d (i32.const 0) (i32.const 0) (i32.const 999)) (i32.const 0)`,
		`(table.init 0 $e (i32.const 0) (i32.const 0) (i32.const 9)) (i32.const 0)`,
		`(table.get 0 (i32.const 99)) (drop) (i32.const 0)`,
	} {
		wasm := bodyModule(t, work+trap)
		_, compiled, err := invoke(t, "compiler", wasm, 1<<40, FuelSlice, 1000)
		_, interpreted, second := invoke(t, "interpreter", wasm, 1<<40, FuelSlice, 1000)
		if err == nil || second == nil || compiled != interpreted || compiled < 1000*(costLoop+5) {
			t.Errorf("%s: fuel %d and %d, errors %v and %v", trap, compiled, interpreted, err, second)
		}
	}
}

// callTree is 45 functions of which each calls the next twice.
func callTree(t *testing.T) []byte {
	var b strings.Builder
	b.WriteString(`(module (func (export "run") (call $f0))`)
	for i := range 45 {
		fmt.Fprintf(&b, "(func $f%d (call $f%d) (call $f%d))", i, i+1, i+1)
	}
	b.WriteString("(func $f45))")
	return wat(t, b.String())
}

// TestStops: programs that would not end are stopped after their budget, with
// the counter at the same place on both engines.
func TestStops(t *testing.T) {
	const budget, debtMax = 3_000_000, 10_000
	leaf := strings.Repeat(`(drop (i32.const 1))`, costUnchecked)
	for name, wasm := range map[string][]byte{
		"call tree":         callTree(t),
		"endless loop":      wat(t, `(module (func (export "run") (loop (br 0))))`),
		"endless recursion": wat(t, `(module (func $f (export "run") (call $g)) (func $g (if (i32.const 1) (then (loop (br 0))))))`),
		"endless grow":      wat(t, `(module (memory 1) (func (export "run") (loop (drop (memory.grow (i32.const 1))) (br 0))))`),
		"endless fill":      wat(t, `(module (memory 16) (func (export "run") (loop (memory.fill (i32.const 0) (i32.const 0) (i32.const 65536)) (br 0))))`),
		"calls of a leaf":   wat(t, `(module (func $f `+leaf+`) (func (export "run") `+strings.Repeat("(call $f)", budget/costUnchecked)+`))`),
		"loop in a loop":    wat(t, `(module (func (export "run") (loop (loop (br_if 0 (i32.const 0)) (br 1)))))`),
	} {
		t.Run(name, func(t *testing.T) {
			_, compiled, err := invoke(t, "compiler", wasm, budget, FuelSlice)
			_, interpreted, second := invoke(t, "interpreter", wasm, budget, FuelSlice)
			if !errors.Is(err, errOutOfFuel) || !errors.Is(second, errOutOfFuel) {
				t.Errorf("errors %v and %v", err, second)
			}
			if compiled != interpreted || compiled <= budget || compiled > budget+debtMax {
				t.Errorf("used %d and %d of %d", compiled, interpreted, budget)
			}
		})
	}
}

// TestHostSeesNoDebt: however small the slices, the counter is not below zero
// when a guest calls the host, directly or through a table.
func TestHostSeesNoDebt(t *testing.T) {
	ctx := context.Background()
	for _, call := range []string{`(call $host)`, `(call_indirect (type $t) (i32.const 0))`} {
		wasm := wat(t, `(module (import "host" "call" (func $host (type $t))) (type $t (func))
		  (table 1 funcref) (elem (i32.const 0) $host)
		  (func (export "run") (if (i32.const 1) (then (drop (i64.add (i64.const 1) (i64.const 2))) `+call+`))))`)
		for engine, config := range engines {
			m := newMachine(t, config(), 1000, 1)
			var seen []int64
			look := api.GoModuleFunc(func(_ context.Context, mod api.Module, _ []uint64) {
				seen = append(seen, int64(mod.ExportedGlobal(FuelGlobal).Get()))
			})
			if _, err := m.rt.NewHostModuleBuilder("host").NewFunctionBuilder().WithGoModuleFunction(look, nil, nil).Export("call").Instantiate(ctx); err != nil {
				t.Fatal(err)
			}
			if _, err := m.instantiate(t, mustPrepare(t, wasm)).ExportedFunction("run").Call(ctx); err != nil {
				t.Fatal(err)
			}
			if len(seen) != 1 || seen[0] != 0 {
				t.Errorf("%s on the %s: the host saw %v, want [0]", call, engine, seen)
			}
		}
	}
}

// TestStartIsMetered: a start function becomes an export, so that it runs when
// the host says and within the budget.
func TestStartIsMetered(t *testing.T) {
	p, err := prepare(wat(t, `(module (func $s (loop (br 0))) (start $s))`), anything)
	if err != nil {
		t.Fatal(err)
	}
	m := newMachine(t, engines["compiler"](), 100, FuelSlice)
	mod, err := m.start("", p.Wasm)
	if !p.Info.HasStart || !errors.Is(err, errOutOfFuel) || mod.ExportedFunction(StartExport) == nil {
		t.Errorf("has start %v, error %v", p.Info.HasStart, err)
	}
	if g, ok := mod.ExportedGlobal(FuelGlobal).(api.MutableGlobal); !ok || int64(g.Get()) >= 0 {
		t.Errorf("the fuel global is %v after a stop", g)
	}
}
