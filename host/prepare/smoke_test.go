package prepare

import (
	"context"
	"testing"
)

func TestSmoke(t *testing.T) {
	wasm := wat(t, `(module
  (import "writ_v1" "clock_now" (func $clock (result i64)))
  (memory (export "memory") 1)
  (table 3 funcref) (elem (i32.const 0) $sum $free $alloc)
  (global $g funcref (ref.func $free))
  (func $alloc (export "writ_alloc") (param i32) (result i32) (i32.const 1024))
  (func $free (export "writ_free") (param i32 i32))
  (func $start)  (start $start)
  (func $sum (export "sum") (param i32) (result i32) (local i32)
    (loop $l (local.set 1 (i32.add (local.get 1) (local.get 0)))
      (br_if $l (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
    (local.get 1))
  (func (export "writ_execute") (param i32 i32) (result i64)
    (i64.extend_i32_u (call_indirect (param i32) (result i32) (i32.const 10) (i32.const 0)))))`)
	p, err := Prepare(wasm, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", p.Info)
	for name, config := range engines {
		m := newMachine(t, config(), 1e9, FuelSlice)
		_, err := m.rt.NewHostModuleBuilder("writ_v1").NewFunctionBuilder().WithFunc(func() int64 { return 0 }).Export("clock_now").Instantiate(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		mod := m.instantiate(t, p.Wasm)
		res, err := mod.ExportedFunction("writ_execute").Call(context.Background(), 0, 0)
		if err != nil || res[0] != 55 {
			t.Fatal(res, err)
		}
		t.Log(name, m.left(mod))
	}
}
