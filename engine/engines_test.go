package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/writrun/writ/engine"
	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host/hosttest"
	"github.com/writrun/writ/host/trace"
	"github.com/writrun/writ/host/wazero"
)

// coreOf returns the digest of every core event's payload, by address, but of
// the run lane: that names the environment, and so under writ-det-0 the engine.
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
			if e.Kind.Core() && lane != trace.LaneRun {
				out[e.Address().String()+" "+e.Kind.String()] = abi.DigestOf(e.Payload)
			}
		}
	}
	return out
}

// TestEnginesLeaveTheSameRecord runs one flow under wazero's compiler and its
// interpreter: calls, fuel, outputs, stops and decisions are the same.
func TestEnginesLeaveTheSameRecord(t *testing.T) {
	const imports = `(import "writ_v1" "clock_now" (func $now (result i64))) (import "writ_v1" "random_fill" (func $random (param i32 i32) (result i32)))`
	w := newWorld(t)
	w.module("claims", abi.Executor, hosttest.Returning(imports, `(local.set $a (i32.const 300)) (loop $l
		(drop (call $now)) (drop (call $random (i32.const 4096) (i32.const 32)))
		(br_if $l (local.tee $a (i32.sub (local.get $a) (i32.const 1)))))`, oneClaim))
	w.module("traps", abi.Executor, hosttest.Returning("", "(drop (i32.div_u (i32.const 1) (local.get $a)))", emptyOutput))
	w.rules("r1", passes, "r1")
	req := w.plan(strict, `
steps:
  - {id: claims, module: claims.wasm, role: reasoning, claims: true}
  - {id: traps, module: traps.wasm, role: retrieval, claims: false}
verification:
  rules:
    - {rule_id: r1, module: r1.wasm, targets: [claims]}
  arbitration: {rule: unanimous}
`)
	req.Seed, req.ClockStart = &[32]byte{7}, time.Unix(1_700_000_000, 0)
	compiled := w.run(req)
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
	if compiled.ExecutionDigest == interpreted.ExecutionDigest {
		t.Error("the engine is part of the environment, and the execution digests are equal")
	}
}
