//go:build cgo && !writ_nowasmtime

package wasmtime_test

import (
	"errors"
	"testing"

	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host"
	"github.com/writrun/writ/host/hosttest"
	"github.com/writrun/writ/host/prepare"
	"github.com/writrun/writ/host/wasmtime"
)

// instantiate makes an instance of a module that was not prepared and makes no
// host calls.
func instantiate(t *testing.T, src string) host.Instance {
	t.Helper()
	wasm := hosttest.Wat(t, src)
	p := &prepare.Prepared{Wasm: wasm, Digest: abi.DigestOf(wasm), Original: abi.DigestOf(wasm)}
	i, err := hosttest.Compile(t, newEngine(t, wasmtime.Config{}), p).Instantiate(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for range 2 { // a second Close changes nothing
			if err := i.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
	return i
}

func TestAnInstanceIsDeadAfterATrap(t *testing.T) {
	i := instantiate(t, `(module
	  (func (export "trap") unreachable)
	  (func $deep (export "deep") (call $deep))
	  (func (export "good") (result i32) (i32.const -1)))`)
	if got, present, err := i.Call(t.Context(), "good"); got != 0xffff_ffff || !present || err != nil {
		t.Errorf("good: %#x %v %v, want an i32 of ones, zero-extended", got, present, err)
	}
	var trap *host.Trap
	if _, _, err := i.Call(t.Context(), "trap"); !errors.As(err, &trap) || trap.Cause != host.StopUnreachable {
		t.Errorf("trap: %v", err)
	}
	if _, present, err := i.Call(t.Context(), "good"); err == nil || errors.As(err, &trap) || !present {
		t.Errorf("good after a trap: present %v, %v, want an error that is not a trap", present, err)
	}
}

func TestTheEndOfTheNativeStackIsNoTrap(t *testing.T) {
	i := instantiate(t, `(module (func $deep (export "deep") (param i32) (result i32)
	  (i32.add (i32.const 1) (call $deep (i32.add (local.get 0) (i32.const 1))))))`)
	var trap *host.Trap
	if _, _, err := i.Call(t.Context(), "deep", 1); err == nil || errors.As(err, &trap) {
		t.Errorf("%v, want an error that is not a trap", err)
	}
}

func TestMemoryIsFetchedAgainAfterGrowth(t *testing.T) {
	i := instantiate(t, `(module (memory (export "memory") 1)
	  (func (export "grow") (param i32) (result i32) (memory.grow (local.get 0)))
	  (func (export "read") (param i32) (result i32) (i32.load (local.get 0))))`)
	m := i.Memory()
	before, ok := m.Read(65_532, 4)
	if !ok || m.Size() != 65_536 || cap(before) != 4 {
		t.Fatalf("size %d, %v", m.Size(), ok)
	}
	for _, r := range [][2]uint32{{65_533, 4}, {65_537, 0}, {0, 65_537}, {0xffff_ffff, 1}, {1, 0xffff_ffff}} {
		if _, ok := m.Read(r[0], r[1]); ok {
			t.Errorf("%d bytes at %d were read", r[1], r[0])
		}
	}
	copy(before, "abcd")
	if _, ok := m.Read(65_536, 0); !ok {
		t.Error("no bytes at the end were not read")
	}
	// By as much as there may be, so that the bytes may well move.
	if got, _, err := i.Call(t.Context(), "grow", 65_534); got != 1 || err != nil || m.Size() != 65_535<<16 {
		t.Fatalf("grow: %d %v, size %d", got, err, m.Size())
	}
	if got, _, err := i.Call(t.Context(), "grow", 1); got != 0xffff_ffff || err != nil {
		t.Errorf("growth to 65,536 pages: %d %v, want -1", int32(got), err)
	}
	if b, ok := m.Read(65_532, 4); !ok || string(b) != "abcd" {
		t.Errorf("after growth: %q %v", b, ok)
	}
	if b, ok := m.Read(65_535<<16-4, 4); !ok {
		t.Error("the new end was not read")
	} else {
		copy(b, "wxyz")
	}
	if got, _, err := i.Call(t.Context(), "read", 0xfffe_fffc); got != 0x7a79_7877 || err != nil {
		t.Errorf("what the host wrote: %#x %v", got, err)
	}
	if err := i.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, ok := m.Read(0, 1); ok || m.Size() != 0 {
		t.Error("memory of a closed instance was read")
	}
	if _, _, err := i.Call(t.Context(), "grow", 1); err == nil {
		t.Error("a closed instance was called")
	}
}

func TestOnlyCountersAndMemoriesOfTheRightKindCount(t *testing.T) {
	i := instantiate(t, `(module (func (export "memory")) (func (export "f") (param f32) (result i32 i32) unreachable)
	  (global (export "writ_det_fuel") i64 (i64.const 1)) (global (export "writ_det_stack") (mut i32) (i32.const 1)))`)
	if i.Memory() != nil || i.Fuel() != nil || i.Stack() != nil {
		t.Errorf("memory %v, fuel %v, stack %v, want none", i.Memory(), i.Fuel(), i.Stack())
	}
	for _, args := range [][]uint32{nil, {1}, {1, 2}} {
		if _, present, err := i.Call(t.Context(), "f", args...); present || err != nil {
			t.Errorf("f with %d arguments: present %v, %v", len(args), present, err)
		}
	}
	i = instantiate(t, `(module (global (export "writ_det_fuel") (mut i64) (i64.const -1)) (global (export "writ_det_stack") (mut i64) (i64.const 7)))`)
	i.Fuel().Set(1 << 63)
	if i.Fuel().Get() != 1<<63 || i.Stack().Get() != 7 {
		t.Errorf("fuel %d, stack %d", i.Fuel().Get(), i.Stack().Get())
	}
}
