package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/writrun/writ/engine"
	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host/hosttest"
	"github.com/writrun/writ/host/wazero"
)

// coreOf returns the digest of every core event's payload, by address.
func (w *world) coreOf(id abi.RunID) map[string]abi.Digest {
	w.t.Helper()
	tr, err := engine.Open(w.tenant, id)
	if err != nil {
		w.t.Fatal(err)
	}
	defer tr.Close()
	out := map[string]abi.Digest{}
	for _, lane := range tr.Lanes() {
		for e, err := range tr.Events(lane) {
			if err != nil {
				w.t.Fatal(err)
			}
			if e.Kind.Core() {
				out[e.Address().String()+" "+e.Kind.String()] = abi.DigestOf(e.Payload)
			}
		}
	}
	return out
}

// TestEnginesLeaveTheSameRecord runs one flow under wazero's compiler and its
// interpreter: calls, fuel, outputs, stops and decisions are the same. Calls that
// overflow and NaNs are among them.
func TestEnginesLeaveTheSameRecord(t *testing.T) {
	const imports = `(import "writ_v1" "clock_now" (func $now (result i64))) (import "writ_v1" "random_fill" (func $random (param i32 i32) (result i32)))`
	w := newWorld(t)
	w.module("claims", abi.Executor, hosttest.Returning(imports, `(local.set $a (i32.const 300)) (loop $l
		(drop (call $now)) (drop (call $random (i32.const 4096) (i32.const 32)))
		(br_if $l (local.tee $a (i32.sub (local.get $a) (i32.const 1)))))`, oneClaim))
	w.module("traps", abi.Executor, hosttest.Returning("", "(drop (i32.div_u (i32.const 1) (local.get $a)))", emptyOutput))
	w.module("deep", abi.Executor, hosttest.With(hosttest.Returning("", "(call $f (i32.const 100000))", emptyOutput),
		`(func $f (param i32) (if (local.get 0) (then (call $f (i32.sub (local.get 0) (i32.const 1))))))`))
	w.module("nan", abi.Executor, hosttest.Returning("", `(if (i64.ne (i64.reinterpret_f64 (f64.sqrt (f64.const -1))) (i64.const 0x7ff8000000000000)) (then unreachable))`, emptyOutput))
	w.rules("r1", passes, "r1")
	req := w.plan(strict, `
steps:
  - {id: claims, module: claims.wasm, role: reasoning, claims: true}
  - {id: traps, module: traps.wasm, role: retrieval, claims: false}
  - {id: deep, module: deep.wasm, role: retrieval, claims: false}
  - {id: nan, module: nan.wasm, role: retrieval, claims: false}
verification:
  rules:
    - {rule_id: r1, module: r1.wasm, targets: [claims]}
  arbitration: {rule: unanimous}
`)
	req.Seed, req.ClockStart = &[32]byte{7}, time.Unix(1_700_000_000, 0)
	compiled := w.run(req)
	for i, want := range []string{"", "stack_overflow", "", "integer_divide_by_zero"} {
		if s := compiled.Steps[i]; s.Cause != want {
			t.Errorf("step %s: %s %q, want %q", s.StepID, s.State, s.Cause, want)
		}
	}
	interpreter, err := wazero.New(t.Context(), wazero.Config{Interpreter: true})
	if err != nil {
		t.Fatal(err)
	}
	defer interpreter.Close(context.Background())
	w.engine = interpreter
	interpreted := w.run(req)
	want, got := w.coreOf(compiled.RunID), w.coreOf(interpreted.RunID)
	if diff := cmp.Diff(want, got); diff != "" || len(want) < 8 {
		t.Errorf("%d events under the compiler (-), interpreter (+):\n%s", len(want), diff)
	}
	if compiled.ExecutionDigest != interpreted.ExecutionDigest {
		t.Errorf("execution digest %s under the compiler, %s interpreted", compiled.ExecutionDigest, interpreted.ExecutionDigest)
	}
}
