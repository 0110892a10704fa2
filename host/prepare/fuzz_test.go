package prepare

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/tetratelabs/wazero"
)

// FuzzPrepare: any bytes are refused, or give a module that is itself valid and
// that wazero compiles.
func FuzzPrepare(f *testing.F) {
	f.Add([]byte("\x00asm\x01\x00\x00\x00"))
	f.Add(wat(f, guestText(`(import "writ_v1" "clock_now" (func (result i64))) (table 2 funcref) (elem (i32.const 0) 0) (data (i32.const 0) "abc")
	  (global (mut i32) (i32.const 1)) (func $s (local f64) (loop (br_if 0 (i32.const 0)))) (start $s)`)))
	f.Add(wat(f, `(module (memory 1) (data $d "x") (table 1 funcref) (elem $e func $f) (type $v (func (param i32) (result i32 i32)))
	  (func $f (export "f") (param i32) (result i32) (block $b (br_table $b 0 (local.get 0)))
	    (memory.init $d (i32.const 0) (i32.const 0) (local.get 0)) (table.init $e (i32.const 0) (i32.const 0) (local.get 0))
	    (drop (i8x16.shuffle 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 (v128.const i32x4 0 0 0 0) (v128.load (i32.const 0))))
	    (if (result i32) (call_indirect (param i32) (result i32) (i32.const 0) (i32.const 0)) (then (i32.trunc_sat_f64_s (f64.const 1))) (else (unreachable)))))`))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := prepare(data, anything)
		if err != nil {
			var refusal *Refusal
			if !errors.As(err, &refusal) || len(refusal.Faults) == 0 || len(refusal.Faults) > faultsMax {
				t.Fatalf("the error is a %T: %v", err, err)
			}
			return
		}
		if again, err := prepare(data, anything); err != nil || !bytes.Equal(p.Wasm, again.Wasm) {
			t.Fatalf("a second preparation differs: %v", err)
		}
		for _, fault := range newRead(p.Wasm).faults.faults {
			if fault.Code != codeReservedName && fault.Code != codeAboveLimit {
				t.Fatalf("the prepared module is invalid: %v", fault)
			}
		}
		ctx := context.Background()
		rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
		defer rt.Close(ctx)
		if _, err := rt.CompileModule(ctx, p.Wasm); err != nil {
			t.Fatalf("wazero refuses the prepared module: %v", err)
		}
	})
}
