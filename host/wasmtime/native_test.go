//go:build cgo && !writ_nowasmtime

package wasmtime_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/writrun/writ/host"
	"github.com/writrun/writ/host/hosttest"
	"github.com/writrun/writ/host/wasmtime"
)

// deepFrames recurses 1,500 times through a function that says the same products
// before and after its call, so that a compiler may keep them over it: in a frame
// far larger than its locals and operands.
func deepFrames(products int) string {
	var b strings.Builder
	one := func(k int) {
		fmt.Fprintf(&b, "(local.set $a (i64.rotl (local.get $a) (i64.mul (local.get $x) (i64.const %d))))\n", 1_000_003+2*k)
	}
	b.WriteString("(func $f (param $n i32) (param $x i64) (result i64) (local $a i64)\n")
	for k := range products {
		one(k)
	}
	b.WriteString("(i64.store (i32.const 1024) (local.get $a))\n")
	b.WriteString("(if (local.get $n) (then (local.set $a (call $f (i32.sub (local.get $n) (i32.const 1)) (i64.add (local.get $x) (i64.const 1))))))\n")
	for k := range products {
		one(products - 1 - k)
	}
	b.WriteString("(local.get $a))")
	return hosttest.With(hosttest.Returning("", "(drop (call $f (i32.const 1500) (i64.const 7)))", "{}"), b.String())
}

func TestANativeStackThatEndsFirstIsAFaultOfTheEngine(t *testing.T) {
	e := newEngine(t, wasmtime.Config{})
	fuel := func(i *host.Invocation) { i.Limits.Fuel = 1_000_000_000 }
	few := run(t, hosttest.Compile(t, e, hosttest.Prepared(t, deepFrames(10))), fuel)
	if string(few.Outcome.Output) != "{}" || few.Err != "" {
		t.Errorf("10 products: %+v, %q, want an output", few.Outcome, few.Err)
	}
	many := run(t, hosttest.Compile(t, e, hosttest.Prepared(t, deepFrames(600))), fuel)
	if many.Outcome.Stop != nil || !strings.Contains(many.Err, "native stack") || !strings.Contains(many.Err, "another engine") {
		t.Errorf("600 products: %+v, %q, want an error about the native stack", many.Outcome, many.Err)
	}
}
