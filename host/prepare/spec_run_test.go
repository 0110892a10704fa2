package prepare

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const spectest = `(module
  (func (export "print")) (func (export "print_i32") (param i32)) (func (export "print_i64") (param i64))
  (func (export "print_f32") (param f32)) (func (export "print_f64") (param f64))
  (func (export "print_i32_f32") (param i32 f32)) (func (export "print_f64_f64") (param f64 f64))
  (global (export "global_i32") i32 (i32.const 666)) (global (export "global_i64") i64 (i64.const 666))
  (global (export "global_f32") f32 (f32.const 666.6)) (global (export "global_f64") f64 (f64.const 666.6))
  (table (export "table") 10 20 funcref) (memory (export "memory") 1 2))`

// specRules admit what the specification's tests need beside guests.
var specRules = rules{pagesMax: anything.pagesMax, anyImport: true, anyExport: true, anySize: true}

type testingT = *testing.T

// allowedSkips are the reasons for which a command may be left out.
var allowedSkips = map[string]string{
	"text format":        "the module is text, which preparation does not read",
	codeOutOfBounds:      "active segments that are out of bounds are refused before instantiation",
	"refused on purpose": "an action on a module that is refused",
}

// specTally counts what became of the commands of a script.
type specTally struct {
	run     int
	skipped map[string]int
}

// TestSpecificationResults: each action of the test suite has the results it is
// expected to have, to the bit, in the original module and in the prepared one,
// the same trap, and uses the same fuel on every engine. Where bits of NaNs are
// left open, prepared modules give the positive canonical NaN.
func TestSpecificationResults(t *testing.T) {
	host := wat(t, spectest)
	table := map[string]specTally{}
	eachScript(t, func(name string, s specScript, files map[string][]byte) {
		table[name] = runScript(t, name, s, files, host)
	})
	total := specTally{skipped: map[string]int{}}
	for _, name := range slices.Sorted(maps.Keys(table)) {
		row := table[name]
		t.Logf("%-30s %6d run  skipped: %v", name, row.run, row.skipped)
		total.run += row.run
		for reason, n := range row.skipped {
			total.skipped[reason] += n
			if allowedSkips[reason] == "" {
				t.Errorf("%s: %d commands skipped: %s", name, n, reason)
			}
		}
	}
	t.Logf("%d scripts, %d commands run on %v, skipped: %v", len(table), total.run, slices.Sorted(maps.Keys(specEngines(t))), total.skipped)
}

// script runs one script on the original and on every engine.
type script struct {
	t        *testing.T
	name     string
	original *side
	sides    map[string]*side
	tally    specTally
}

func runScript(t *testing.T, name string, s specScript, files map[string][]byte, host []byte) specTally {
	r := &script{t: t, name: name, sides: map[string]*side{}, tally: specTally{skipped: map[string]int{}}}
	var err error
	if r.original, err = newSide(wazeroSpec{newMachine(t, engines["compiler"](), 0, 1)}, false, host); err != nil {
		t.Fatal(err)
	}
	defer r.original.close()
	for engine, open := range specEngines(t) {
		if r.sides[engine], err = newSide(open(), true, host); err != nil {
			t.Fatalf("%s: %v", engine, err)
		}
		defer r.sides[engine].close()
	}
	for i, c := range s.Commands {
		r.command(c, files[c.Filename], registeredAs(s.Commands[i+1:], c))
	}
	return r.tally
}

func (r *script) command(c specCommand, wasm []byte, as string) {
	switch c.Type {
	case "module", "assert_uninstantiable":
		r.module(c, wasm, as)
	case "action", "assert_return", "assert_trap", "assert_exhaustion":
		r.action(c)
	case "register":
		r.tally.run++ // see registeredAs
	case "assert_invalid", "assert_malformed", "assert_unlinkable":
		switch _, err := prepare(wasm, specRules); {
		case c.ModuleType == "text":
			r.tally.skipped["text format"]++
		case c.Type == "assert_unlinkable":
			r.unlinkable(c, wasm)
		case err == nil:
			r.t.Errorf("%s:%d: %s was admitted", r.name, c.Line, c.Type)
		default:
			r.tally.run++
		}
	default:
		r.tally.skipped[c.Type]++
	}
}

func (r *script) module(c specCommand, wasm []byte, as string) {
	if c.ModuleType == "text" {
		r.tally.skipped["text format"]++
		return
	}
	p, err := prepare(wasm, specRules)
	if err != nil {
		r.original.last = nil
		for _, s := range r.sides {
			s.last = nil
		}
		reason := codesOf(err)[0]
		if c.Type == "assert_uninstantiable" && reason == codeOutOfBounds {
			r.tally.run++ // it must not come to life, and does not
			return
		}
		r.tally.skipped[reason]++
		return
	}
	want := r.original.load(c.Name, as, wasm)
	for engine, s := range r.sides {
		got := s.load(c.Name, as, p.Wasm)
		// wazero skips segments that are out of an imported table's bounds; guests
		// cannot import tables.
		if got != want && !(c.Type == "assert_uninstantiable" && strings.HasPrefix(got, "error: ")) {
			r.t.Errorf("%s:%d %s on %s: prepared %s, original %s", r.name, c.Line, c.Type, engine, got, want)
		}
	}
	r.tally.run++
}

// unlinkable requires that no engine instantiates a module.
func (r *script) unlinkable(c specCommand, wasm []byte) {
	r.tally.run++
	p, err := prepare(wasm, specRules)
	if err != nil {
		return
	}
	for engine, s := range r.sides {
		if _, err := s.start("", p.Wasm); err == nil {
			r.t.Errorf("%s:%d: a module that cannot be linked was, on %s", r.name, c.Line, engine)
		}
	}
}

func (r *script) action(c specCommand) {
	want := r.original.act(c.Action)
	if want == "no module" {
		r.tally.skipped["refused on purpose"]++
		return
	}
	r.tally.run++
	expected, open := c.expects()
	if c.Type == "assert_return" && !open && want != expected {
		r.t.Errorf("%s:%d %s: the original gives %s, want %s", r.name, c.Line, c.Action.Field, want, expected)
	}
	first := ""
	var fuel *int64
	for _, engine := range slices.Sorted(maps.Keys(r.sides)) {
		s := r.sides[engine]
		got := s.act(c.Action)
		first = cmp.Or(first, got)
		// Where the bits are open, what an instruction copies stays as it was.
		if got != first || got != want && !(open && got == expected) {
			r.t.Errorf("%s:%d %s %s on %s: %s, want %s", r.name, c.Line, c.Type, c.Action.Field, engine, got, want)
		}
		left := s.fuelLeft(c.Action)
		if fuel == nil {
			fuel = &left
		} else if *fuel != left {
			r.t.Errorf("%s:%d %s: fuel left is %d on %s and %d elsewhere", r.name, c.Line, c.Action.Field, left, engine, *fuel)
		}
	}
}

// expects returns the results a command expects, and whether the bits of a NaN
// among them are open: it is the positive canonical one then.
func (c specCommand) expects() (text string, open bool) {
	want := []uint64{}
	for _, v := range c.Expected {
		bits, isOpen := v.canonicalBits()
		want, open = append(want, bits...), open || isOpen
	}
	return fmt.Sprint(want), open
}

var openNaN = regexp.MustCompile(`"nan:(canonical|arithmetic)"`)

// canonicalBits returns the value as wazero passes it, where NaNs of open bits
// are canonical, and whether there is one.
func (v specValue) canonicalBits() ([]uint64, bool) {
	canonical := map[string]string{"f32": strconv.Itoa(0x7fc00000), "f64": strconv.Itoa(0x7ff8000000000000)}
	typ := v.Type
	if typ == "v128" {
		typ = v.LaneType
	}
	isOpen := openNaN.Match(v.Value)
	v.Value = openNaN.ReplaceAll(v.Value, []byte(strconv.Quote(canonical[typ])))
	return v.bits(), isOpen
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
