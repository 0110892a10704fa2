package prepare

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero/api"
)

const spectest = `(module
  (func (export "print")) (func (export "print_i32") (param i32)) (func (export "print_i64") (param i64))
  (func (export "print_f32") (param f32)) (func (export "print_f64") (param f64))
  (func (export "print_i32_f32") (param i32 f32)) (func (export "print_f64_f64") (param f64 f64))
  (global (export "global_i32") i32 (i32.const 666)) (global (export "global_i64") i64 (i64.const 666))
  (global (export "global_f32") f32 (f32.const 666.6)) (global (export "global_f64") f64 (f64.const 666.6))
  (table (export "table") 10 20 funcref) (memory (export "memory") 1 2))`

// side is a script's state on one machine: the original modules or the prepared.
type side struct {
	*machine
	prepared bool
	named    map[string]api.Module
	last     api.Module
}

func newSide(t *testing.T, engine string, prepared bool, spectest []byte) *side {
	s := &side{machine: newMachine(t, engines[engine](), 1<<60, FuelSlice), prepared: prepared, named: map[string]api.Module{}}
	if _, err := s.start("spectest", spectest); err != nil {
		t.Fatal(err)
	}
	return s
}

// load instantiates the module of a command. The name is one a later register
// command gives it, if any: wazero names modules when it makes them.
func (s *side) load(name, as string, wasm []byte) string {
	s.last = nil
	if s.prepared {
		p, err := prepare(wasm, anything)
		if err != nil {
			return "refused"
		}
		wasm = p.Wasm
	}
	mod, err := s.start(as, wasm)
	if err != nil {
		return outcome(nil, err)
	}
	s.last = mod
	if name != "" {
		s.named[name] = mod
	}
	return "ok"
}

// act performs an action and returns its results or its trap as text.
func (s *side) act(a specAction) string {
	mod := s.last
	if a.Module != "" {
		mod = s.named[a.Module]
	}
	if mod == nil {
		return "no module"
	}
	if a.Type == "get" {
		return fmt.Sprint(mod.ExportedGlobal(a.Field).Get())
	}
	var args []uint64
	for _, v := range a.Args {
		args = append(args, v.bits()...)
	}
	return outcome(call(mod, a.Field, args...))
}

// fuelLeft is the fuel that is left after an action.
func (s *side) fuelLeft(a specAction) int64 {
	mod := s.last
	if a.Module != "" {
		mod = s.named[a.Module]
	}
	if mod == nil {
		return 0
	}
	return s.left(mod)
}

// outcome writes results as bits, and an error as its first line, without the
// function names in the stack below it.
func outcome(results []uint64, err error) string {
	if err != nil {
		line, _, _ := strings.Cut(err.Error(), "\n")
		if strings.HasPrefix(line, "start function[") { // the original's, which runs at instantiation
			_, line, _ = strings.Cut(line, " failed: ")
		}
		return "error: " + line
	}
	return fmt.Sprint(results)
}

// bits returns the value as wazero passes it.
func (v specValue) bits() []uint64 {
	if v.Type != "v128" {
		var s string
		if json.Unmarshal(v.Value, &s) != nil || s == "null" {
			return []uint64{0}
		}
		n, _ := strconv.ParseUint(s, 10, 64)
		return []uint64{n}
	}
	var lanes []string
	if err := json.Unmarshal(v.Value, &lanes); err != nil {
		return []uint64{0, 0}
	}
	width := 128 / len(lanes)
	halves := make([]uint64, 2)
	for i, lane := range lanes {
		n, _ := strconv.ParseUint(lane, 10, 64)
		at := i * width
		halves[at/64] |= n << (at % 64)
	}
	return halves
}

// allowsNaN reports whether got is what the command expects where it leaves the
// bits of NaNs open: the positive canonical NaN.
func (c specCommand) allowsNaN(got string) bool {
	open := false
	var want []uint64
	for _, v := range c.Expected {
		bits, isOpen := v.canonicalBits()
		want, open = append(want, bits...), open || isOpen
	}
	return open && got == fmt.Sprint(want)
}

// canonicalBits returns the value as wazero passes it, where NaNs of open bits
// are canonical, and whether there is one.
func (v specValue) canonicalBits() ([]uint64, bool) {
	canonical := map[string]string{"f32": strconv.Itoa(0x7fc00000), "f64": strconv.Itoa(0x7ff8000000000000)}
	var nan = regexp.MustCompile(`"nan:(canonical|arithmetic)"`)
	typ := v.Type
	if typ == "v128" {
		typ = v.LaneType
	}
	isOpen := nan.Match(v.Value)
	v.Value = nan.ReplaceAll(v.Value, []byte(strconv.Quote(canonical[typ])))
	return v.bits(), isOpen
}

// TestSpecificationResults: each action of the test suite has the same results,
// to the bit, and the same trap in the original and in the prepared module, and
// uses the same fuel on the compiler and on the interpreter.
func TestSpecificationResults(t *testing.T) {
	host := wat(t, spectest)
	counts := map[string]int{}
	eachScript(t, func(name string, s specScript, files map[string][]byte) {
		original, prepared := newSide(t, "compiler", false, host), newSide(t, "compiler", true, host)
		second := newSide(t, "interpreter", true, host)
		compared := 0
		for i, c := range s.Commands {
			var got, want string
			switch c.Type {
			case "module", "assert_uninstantiable":
				as := registeredAs(s.Commands[i+1:], c)
				if got = prepared.load(c.Name, as, files[c.Filename]); got == "refused" {
					original.last = nil
					counts["modules refused"]++
					continue
				}
				want = original.load(c.Name, as, files[c.Filename])
				second.load(c.Name, as, files[c.Filename])
				counts["modules"]++
			case "action", "assert_return", "assert_trap", "assert_exhaustion":
				if got, want = prepared.act(c.Action), original.act(c.Action); got == "no module" {
					counts["actions on refused modules"]++
					continue
				}
				counts["actions"]++
				if other := second.act(c.Action); other != got {
					t.Errorf("%s:%d %s: %s on the compiler and %s on the interpreter", name, c.Line, c.Action.Field, got, other)
				}
				if a, b := prepared.fuelLeft(c.Action), second.fuelLeft(c.Action); a != b {
					t.Errorf("%s:%d %s: fuel left is %d on the compiler and %d on the interpreter", name, c.Line, c.Action.Field, a, b)
				}
				compared++
			}
			if got != want && !c.allowsNaN(got) {
				t.Errorf("%s:%d %s %s: prepared %s, original %s", name, c.Line, c.Type, c.Action.Field, got, want)
			}
		}
		if compared > 0 {
			counts["scripts with actions"]++
		}
		original.rt.Close(context.Background())
		prepared.rt.Close(context.Background())
		second.rt.Close(context.Background())
	})
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("%6d %s", counts[what], what)
	}
}

// registeredAs finds the name under which later modules import the module of c.
func registeredAs(later []specCommand, c specCommand) string {
	for _, l := range later {
		switch {
		case l.Type == "register" && (l.Name == "" || l.Name == c.Name):
			return l.As
		case l.Type == "module" && c.Name == "":
			return ""
		}
	}
	return ""
}
