package engines_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/writrun/writ/host"
	"github.com/writrun/writ/host/prepare"
)

// binaryenFlags are the features that modules of wasm-opt may use.
var binaryenFlags = []string{"--mvp-features", "--enable-sign-ext", "--enable-mutable-globals",
	"--enable-nontrapping-float-to-int", "--enable-bulk-memory", "--enable-simd", "--enable-multivalue"}

// Places in the memory of a binaryen module, which has 16 pages at the least.
const (
	binaryenLogAt     = 16<<16 - 32
	binaryenResultsAt = 16<<16 - 8192
	binaryenInputAt   = 16<<16 - 64
)

// binaryenArgument is an argument for a function of a binaryen module.
func binaryenArgument(chance *rand.Rand, typ string) string {
	lane := func() uint64 { return bits64[chance.IntN(len(bits64))] }
	switch typ {
	case "i32":
		return fmt.Sprintf("(i32.const %d)", int32(ints[chance.IntN(len(ints))]))
	case "i64":
		return fmt.Sprintf("(i64.const %d)", int64(ints[chance.IntN(len(ints))]))
	case "f32":
		return fmt.Sprintf("(f32.reinterpret_i32 (i32.const %d))", int32(bits32[chance.IntN(len(bits32))]))
	case "f64":
		return fmt.Sprintf("(f64.reinterpret_i64 (i64.const %d))", int64(lane()))
	}
	return fmt.Sprintf("(v128.const i64x2 %#x %#x)", lane(), lane())
}

var (
	binaryenLog    = regexp.MustCompile(`(?m)^ \(import "fuzzing-support" "(log-\w+)" \(func \$\S+ \(param \w+\)\)\)\n`)
	binaryenExport = regexp.MustCompile(`(?m)^ \(export "[^"]*" \(func (\$[^ )]+)\)\)\n`)
	binaryenFunc   = regexp.MustCompile(`(?m)^ \(func (\$[^ )]+)((?: \(param \$\d+ \w+\))*)((?: \(result [^)]*\))?)$`)
	binaryenAlign  = regexp.MustCompile(` align=\d+`) // wasm-opt prints some that wasm-as refuses
	binaryenParam  = regexp.MustCompile(`\(param \$\d+ (\w+)\)`)
)

// asGuest turns the text of a module for fuzzing into that of an executor: what
// it logs goes to the host, and its entry calls its functions in turn, from the
// one its request names on.
func asGuest(seed uint64, text string, bare bool) string {
	chance := rand.New(rand.NewPCG(seed, 2))
	text = binaryenAlign.ReplaceAllString(binaryenLog.ReplaceAllString(text, ""), "")
	funcs := map[string][]string{}
	for _, f := range binaryenFunc.FindAllStringSubmatch(text, -1) {
		funcs[f[1]] = f
	}
	var entry strings.Builder
	for i, e := range binaryenExport.FindAllStringSubmatch(text, -1) {
		f := funcs[e[1]]
		if f == nil || e[1] == "$hangLimitInitializer" {
			continue
		}
		call := "(call " + e[1]
		for _, p := range binaryenParam.FindAllStringSubmatch(f[2], -1) {
			call += " " + binaryenArgument(chance, p[1])
		}
		call += ")"
		switch result := strings.Fields(strings.Trim(f[3], " ()")); {
		case len(result) == 2:
			call = fmt.Sprintf("(%s.store (i32.const %d) %s)", result[1], binaryenResultsAt+16*i, call)
		case len(result) > 2:
			call = "(drop " + call + ")"
		}
		fmt.Fprintf(&entry, "(if (i32.le_u (i32.load8_u (local.get $ptr)) (i32.const %d)) (block (drop (call $writ-clock)) (call $hangLimitInitializer) %s))\n", i, call)
	}
	text = binaryenExport.ReplaceAllString(text, "")
	head, body, _ := strings.Cut(text, "\n")
	body = strings.TrimSuffix(strings.TrimSpace(body), ")")
	var tail strings.Builder
	for typ, size := range map[string]int{"i32": 4, "i64": 8, "f32": 4, "f64": 8, "v128": 16} {
		fmt.Fprintf(&tail, "(func $log-%s (param $x %s) (%s.store (i32.const %d) (local.get $x)) (drop (call $writ-log (i32.const 0) (i32.const %d) (i32.const %d))))\n",
			typ, typ, typ, binaryenLogAt, binaryenLogAt, size)
	}
	if bare {
		fmt.Fprintf(&tail, "(global $fuel (mut i64) (i64.const %d)) (export %q (global $fuel)) (export %q (global $fuel))\n", bareFuel, prepare.FuelGlobal, prepare.StackGlobal)
	}
	return head + `
(import "writ_v1" "clock_now" (func $writ-clock (result i64)))
(import "writ_v1" "log" (func $writ-log (param i32 i32 i32) (result i32)))
` + body + tail.String() + fmt.Sprintf(`
(func (export "writ_alloc") (param i32) (result i32) (i32.const %d))
(func (export "writ_free") (param i32 i32))
(func (export "writ_execute") (param $ptr i32) (param $len i32) (result i64)
%s (i64.extend_i32_u (i32.mul (memory.size) (i32.const 65536)))))`, binaryenInputAt, entry.String())
}

// binaryenText has wasm-opt make a module from random bytes. Modules of even
// seeds hold no NaN and no SIMD, so that the engine's own NaNs are not seen.
func binaryenText(t *testing.T, tool, dir string, seed uint64) string {
	t.Helper()
	in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out.wat")
	chance := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16)})
	input := make([]byte, 1000+seed%7*700)
	chance.Read(input)
	if err := os.WriteFile(in, input, 0o600); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"-ttf", in, "-S", "-o", out}, binaryenFlags...)
	if seed%2 == 0 {
		args = append(args, "--disable-simd", "--denan")
	}
	if msg, err := exec.Command(tool, args...).CombinedOutput(); err != nil {
		t.Fatalf("seed %d: wasm-opt: %v\n%s", seed, err, msg)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func assemble(t *testing.T, tool, dir, text string) []byte {
	t.Helper()
	in, out := filepath.Join(dir, "guest.wat"), filepath.Join(dir, "guest.wasm")
	if err := os.WriteFile(in, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	args := append([]string{in, "-o", out}, binaryenFlags...)
	if msg, err := exec.Command(tool, args...).CombinedOutput(); err != nil {
		t.Fatalf("wasm-as: %v\n%s\n%s", err, msg, text)
	}
	wasm, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

// TestBinaryenModules: modules that wasm-opt makes for fuzzing leave the same on
// every engine, and, as far as they hold no NaN, what they leave without
// preparation.
func TestBinaryenModules(t *testing.T) {
	var tools [2]string
	for i, name := range []string{"wasm-opt", "wasm-as"} {
		tool, err := exec.LookPath(name)
		if err != nil {
			t.Skipf("SKIPPED, %s is missing: install binaryen (apt-get install binaryen)", name)
		}
		tools[i] = tool
	}
	var all, bare ends
	forEachSeed(t, func(t *testing.T, on []host.Engine, seed uint64) {
		dir := t.TempDir()
		defer os.RemoveAll(dir) // before the test ends: there may be thousands
		text := binaryenText(t, tools[0], dir, seed)
		p, err := prepare.Prepare(assemble(t, tools[1], dir, asGuest(seed, text, false)), prepare.Options{})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		s := compile(t, on, p)
		defer s.close(t)
		r := trial{seed: seed, ends: &all}
		// Unprepared, wazero keeps the bytes of active segments.
		if seed%2 == 0 && p.Info.Inserted.Segments == 0 {
			b := compile(t, on[:1], unprepared(assemble(t, tools[1], dir, asGuest(seed, text, true))))
			defer b.close(t)
			r.compare = func(inv host.Invocation, got ended) { compareUnprepared(t, seed, b, inv, got, &bare) }
		}
		r.run(t, s)
	})
	all.require(t, "", "fuel_exhausted", "memory_out_of_bounds", "unreachable", "invalid_table_access")
	bare.require(t, "", "memory_out_of_bounds", "unreachable")
}
