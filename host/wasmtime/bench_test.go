//go:build cgo && !writ_nowasmtime

package wasmtime_test

import (
	"fmt"
	"testing"

	"github.com/writrun/writ/host"
	"github.com/writrun/writ/host/hosttest"
)

// BenchmarkHostCalls shows what a host call costs beside the other engine.
func BenchmarkHostCalls(b *testing.B) {
	both := newPair(b)
	for name, e := range map[string]host.Engine{"wasmtime": both.wasmtime, "wazero": both.wazero} {
		for call, imports := range map[string]string{
			"clock_now":   `(import "writ_v1" "clock_now" (func $f (result i64)))`,
			"random_fill": `(import "writ_v1" "random_fill" (func $f (param i32 i32) (result i32)))`,
		} {
			args := map[string]string{"random_fill": "(i32.const 2048) (i32.const 8)"}[call]
			b.Run(call+"/"+name, func(b *testing.B) {
				m := hosttest.Compile(b, e, hosttest.Prepared(b, hosttest.Returning(imports, fmt.Sprintf(`(local.set $a (i32.const %d))
				    (loop $l (drop (call $f %s)) (br_if $l (local.tee $a (i32.sub (local.get $a) (i32.const 1)))))`, b.N, args), "{}")))
				inv := invocation(host.NewRecorder(&hosttest.Discard{}, nil))
				inv.Limits.Fuel, inv.Limits.HostCalls = 1_000_000_000_000, 10_000_000
				b.ResetTimer()
				if out, err := host.Invoke(b.Context(), m, inv); err != nil || out.Stop != nil {
					b.Fatalf("%+v %v", out.Stop, err)
				}
			})
		}
	}
}

// BenchmarkInvoke shows what an instance and its calls cost.
func BenchmarkInvoke(b *testing.B) {
	both := newPair(b)
	for name, e := range map[string]host.Engine{"wasmtime": both.wasmtime, "wazero": both.wazero} {
		m := hosttest.Compile(b, e, hosttest.Prepared(b, hosttest.Echo()))
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				invoke(b, m)
			}
		})
	}
}
