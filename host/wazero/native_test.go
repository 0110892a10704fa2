package wazero_test

import (
	"strings"
	"testing"

	"github.com/writrun/writ/host"
	"github.com/writrun/writ/host/hosttest"
	"github.com/writrun/writ/host/wazero"
)

// deepFrames recurses 1,400 times through a function of many calls. The compiler
// gives every value that is kept over a call a place of its own in the frame,
// however few are kept at a time.
func deepFrames(calls int) string {
	return hosttest.With(hosttest.Returning("", "(drop (call $f (i32.const 1400) (i64.const 7)))", "{}"), `
  (func $g (param i64) (result i64) (i64.add (local.get 0) (i64.const 3)))
  (func $f (param $n i32) (param $x i64) (result i64) (local $a i64) (local $b i64)
    (if (local.get $n)
      (then (local.set $a (call $f (i32.sub (local.get $n) (i32.const 1)) (local.get $x))))
      (else `+strings.Repeat(`
        (local.set $a (i64.add (local.get $b) (call $g (local.tee $b (i64.add (local.get $a) (local.get $x))))))`, calls)+`))
    (local.get $a))`)
}

func TestANativeStackThatEndsFirstIsAFaultOfTheEngine(t *testing.T) {
	e := newEngine(t, wazero.Config{})
	few := hosttest.Compile(t, e, hosttest.Prepared(t, deepFrames(10)))
	if out := invoke(t, few); string(out.Output) != "{}" {
		t.Errorf("10 calls: %+v, want an output", out)
	}
	many := hosttest.Compile(t, e, hosttest.Prepared(t, deepFrames(16_000)))
	out, err := host.Invoke(t.Context(), many, invocation(host.NewRecorder(&hosttest.Discard{}, nil)))
	if err == nil || !strings.Contains(err.Error(), "native stack") || !strings.Contains(err.Error(), "another engine") {
		t.Errorf("16,000 calls: %+v, %v, want an error about the native stack", out, err)
	}
}
