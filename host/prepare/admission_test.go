package prepare

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/writrun/writ/guest-abi/abi"
)

// guestText is a guest that keeps the contract, with room for more fields.
func guestText(more string) string {
	return `(module ` + more + ` (memory (export "memory") 1 4)
  (func (export "writ_alloc") (param i32) (result i32) (i32.const 0))
  (func (export "writ_free") (param i32 i32))
  (func (export "writ_execute") (param i32 i32) (result i64) (i64.const 0)))`
}

// anyFeature has wat2wasm write what admission is to refuse.
var anyFeature = []string{"--no-check", "--enable-all"}

// admissionCases are texts with the codes they are refused with; no codes mean
// that the module is admitted.
func admissionCases() []admissionCase {
	body := func(code string) string { return guestText(`(func ` + code + `)`) }
	return []admissionCase{
		{"a guest", guestText(""), nil},
		{"a rule", strings.Replace(guestText(""), "writ_execute", "writ_verify", 1), nil},
		{"with _start as well", guestText(`(func (export "_start"))`), nil},
		{"with _initialize", guestText(`(func (export "_initialize"))`), nil},
		{"_initialize with a parameter", guestText(`(func (export "_initialize") (param i32))`), []string{codeExportType}},
		{"a host call", guestText(`(import "writ_v1" "clock_now" (func (result i64)))`), nil},
		{"a host call of WASI", guestText(`(import "wasi_snapshot_preview1" "fd_write" (func (param i32 i32 i32 i32) (result i32)))`), nil},
		{"a host call of another type", guestText(`(import "writ_v1" "clock_now" (func (result i32)))`), []string{codeImportType}},
		{"every unmet import", guestText(`(import "writ_v1" "clock" (func (result i64))) (import "env" "f" (func (param f64)))
		  (import "writ_v1" "log" (func)) (import "env" "g" (global i32)) (import "env" "t" (table 1 funcref))`),
			[]string{codeImportUnknown, codeImportUnknown, codeImportType, codeImportKind, codeImportKind}},
		{"an imported memory", `(module (import "env" "memory" (memory 1)) (export "memory" (memory 0))
		  (func (export "writ_alloc") (param i32) (result i32) (i32.const 0)) (func (export "writ_free") (param i32 i32))
		  (func (export "writ_verify") (param i32 i32) (result i64) (i64.const 0)))`, []string{codeImportKind}},
		{"the refill import", guestText(`(import "writ_det" "refill" (func))`), []string{codeReservedName}},
		{"an export of the host", guestText(`(func (export "writ_det_fuel"))`), []string{codeReservedName}},
		{"no exports", `(module)`, []string{codeExportMissing, codeExportMissing, codeExportMissing, codeExportMissing}},
		{"exports of another kind", `(module (memory 1) (global (export "memory") i32 (i32.const 0)) (export "writ_alloc" (memory 0))
		  (func (export "writ_free") (param i32)) (func (export "writ_execute") (param i32 i32) (result i32) (i32.const 0)))`,
			[]string{codeExportType, codeExportType, codeExportType, codeExportType}},
		{"a command", `(module (memory (export "memory") 1) (func (export "_start")))`,
			[]string{codeExportMissing, codeExportMissing, codeExportMissing, codeCommand}},

		{"waPC", `(module (import "wapc" "__guest_request" (func (param i32 i32))) (memory (export "memory") 1) (func (export "__guest_call") (param i32 i32) (result i32) (i32.const 0)))`,
			[]string{codeImportUnknown, codeExportMissing, codeExportMissing, codeExportMissing, codeForeignABI}},
		{"Extism", guestText(`(import "extism:host/env" "alloc" (func (param i64) (result i64)))`), []string{codeImportUnknown, codeForeignABI}},
		{"proxy-wasm", guestText(`(import "env" "proxy_log" (func (param i32 i32 i32) (result i32)))`), []string{codeImportUnknown, codeForeignABI}},
		{"a compiled policy", guestText(`(import "env" "opa_abort" (func (param i32)))`), []string{codeImportUnknown, codeForeignABI}},
		{"a guest that has a foreign export too", guestText(`(func (export "cabi_realloc"))`), nil},

		{"atomics", body(`(drop (i32.atomic.load (i32.const 0)))`), []string{codeThreads}},
		{"fixed-width SIMD", body(`(v128.const i32x4 0 0 0 0) drop`), nil},
		{"tail call", body(`(return_call 0)`), []string{codeTailCalls}},
		{"exceptions", body(`try end`), []string{codeExceptions}},
		{"externref", body(`(drop (ref.null extern))`), []string{codeExternref}},
		{"funcref", body(`(drop (ref.null func))`), nil},

		{"a call past the end", body(`(call 4)`), []string{codeIndex}},
		{"a call to the last function", body(`(call 2) drop`), []string{codeType}},
		{"a global past the end", body(`(global.set 0 (i64.const 0))`), []string{codeIndex}},
		{"a local past the end", body(`(drop (local.get 0))`), []string{codeIndex}},
		{"a table past the end", body(`(call_indirect (param) (i32.const 0))`), []string{codeIndex}},
		{"two faulty bodies", guestText(`(func (i32.add)) (func (drop))`), []string{codeType, codeType}},
	}
}

// limitCases are those of [TestAdmission] about segments and limits.
func limitCases() []admissionCase {
	body := func(code string) string { return guestText(`(func ` + code + `)`) }
	return []admissionCase{
		{"a data segment at the end", guestText(`(data (i32.const 65536) "")`), nil},
		{"an empty data segment past the end", guestText(`(data (i32.const 65537) "")`), []string{codeOutOfBounds}},
		{"a data segment across the end", guestText(`(data (i32.const 65535) "ab")`), []string{codeOutOfBounds}},
		{"a negative offset", guestText(`(data (i32.const -1) "")`), []string{codeOutOfBounds}},
		{"an empty element segment past the end", guestText(`(table 1 funcref) (elem (i32.const 2))`), []string{codeOutOfBounds}},
		{"an element segment at the end", guestText(`(table 1 funcref) (elem (i32.const 1))`), nil},

		{"the largest memory", strings.Replace(guestText(""), "1 4", "4096 65536", 1), nil},
		{"a memory above the budget", strings.Replace(guestText(""), "1 4", "4097", 1), []string{codeAboveLimit}},
		{"the largest table", guestText(`(table 131072 funcref)`), nil},
		{"a table above the limit", guestText(`(table 131073 funcref)`), []string{codeAboveLimit}},
		{"four tables", guestText(strings.Repeat(`(table 1 funcref)`, 4)), nil},
		{"five tables", guestText(strings.Repeat(`(table 1 funcref)`, 5)), []string{codeAboveLimit}},
		{"4,096 locals", body(`(local ` + strings.Repeat("i32 ", 4096) + `)`), nil},
		{"4,097 locals", body(`(local ` + strings.Repeat("i32 ", 4097) + `)`), []string{codeAboveLimit}},
		{"64 parameters", body(`(param ` + strings.Repeat("i32 ", 64) + `)`), nil},
		{"65 parameters", body(`(param ` + strings.Repeat("i32 ", 65) + `)`), []string{codeAboveLimit}},
		{"17 results", body(`(result ` + strings.Repeat("i32 ", 17) + `) unreachable`), []string{codeAboveLimit}},
		{"nesting of 4,096", body(strings.Repeat("block ", 4096) + strings.Repeat("end ", 4096)), nil},
		{"nesting of 4,097", body(strings.Repeat("block ", 4097) + strings.Repeat("end ", 4097)), []string{codeAboveLimit}},
		{"br_table of 8,192", body(`(br_table ` + strings.Repeat("0 ", 8193) + `(i32.const 0))`), nil},
		{"br_table of 8,193", body(`(br_table ` + strings.Repeat("0 ", 8194) + `(i32.const 0))`), []string{codeAboveLimit}},
		{"a body of loops", body(strings.Repeat("loop end ", 50_000)), []string{codeAboveLimit}},
		{"a body of loops that grows too long", body(strings.Repeat("loop end ", 150_000)), []string{codeAboveLimit, codeAboveLimit}},
		{"a body above the limit", body(strings.Repeat("nop ", 512<<10)), []string{codeAboveLimit}},
	}
}

type admissionCase struct {
	name  string
	text  string
	codes []string
}

func TestAdmission(t *testing.T) {
	for _, c := range append(admissionCases(), limitCases()...) {
		t.Run(c.name, func(t *testing.T) {
			_, err := Prepare(wat(t, c.text, anyFeature...), Options{})
			if diff := cmp.Diff(c.codes, codesOf(err)); diff != "" {
				t.Errorf("codes (-want +got):\n%s\n%v", diff, err)
			}
		})
	}
}

// sections builds a module of sections, each an id and its content.
func sections(all ...[]byte) []byte {
	b := []byte("\x00asm\x01\x00\x00\x00")
	for _, s := range all {
		b = appendSection(b, s[0], s[1:])
	}
	return b
}

func custom(name, content string) []byte {
	return append(appendName([]byte{sectionCustom}, name), content...)
}

type binaryCase struct {
	name  string
	wasm  []byte
	codes []string
}

// fileCases are files that fail, or pass, before any body is read.
func fileCases(guest []byte) []binaryCase {
	types, funcs := emptyType, oneFunction
	return []binaryCase{
		{"nothing", nil, []string{codeNotWasm}},
		{"two bytes of the magic", []byte("\x00a"), []string{codeTruncated}},
		{"no version", []byte("\x00asm"), []string{codeTruncated}},
		{"version 2", []byte("\x00asm\x02\x00\x00\x00"), []string{codeMalformed}},
		{"a component", []byte("\x00asm\x0d\x00\x01\x00"), []string{codeComponent}},
		{"text", []byte("(module)"), []string{codeTextFormat}},
		{"text after a comment", []byte(";; hello\n(module)"), []string{codeTextFormat}},
		{"gzip", []byte("\x1f\x8b\x08"), []string{codeCompressed}},
		{"an ELF file", []byte("\x7fELF\x02"), []string{codeNotWasm}},
		{"a module above the limit", append(slices.Clone(guest), make([]byte, moduleBytesMax)...), []string{codeAboveLimit}},
		{"cut short", guest[:len(guest)-5], []string{codeTruncated}},
		{"no section", sections(), nil},
		{"sections out of order", sections([]byte{sectionMemory, 0}, []byte{sectionTable, 0}), []string{codeMalformed}},
		{"a section twice", sections(types, types), []string{codeMalformed}},
		{"a section that does not exist", sections([]byte{14, 0}), []string{codeMalformed}},
		{"a tag section", sections([]byte{sectionTag, 0}), []string{codeExceptions}},
		{"bytes left over", sections(append(types, 0)), []string{codeMalformed}},
		{"a struct type", sections([]byte{sectionType, 1, 0x5f, 0}), []string{codeGC}},
		{"a typed reference", sections([]byte{sectionType, 1, 0x60, 1, 0x64, 0}), []string{codeTypedReferences}},
		{"a shared memory", sections([]byte{sectionMemory, 1, 3, 1, 1}), []string{codeThreads}},
		{"a 64-bit memory", sections([]byte{sectionMemory, 1, 4, 1}), []string{codeMemory64}},
		{"two memories", sections([]byte{sectionMemory, 2, 0, 1, 0, 1}), []string{codeMultiMemory}},
		{"a count beyond the section", sections([]byte{sectionType, 0xff, 0x7f}), []string{codeTruncated}},
		{"4 billion types", sections([]byte{sectionType, 0xff, 0xff, 0xff, 0xff, 0x0f}), []string{codeAboveLimit}},
		{"4 billion locals", sections(types, funcs, oneBody(1, 0xff, 0xff, 0xff, 0xff, 0x0f, i32, opEnd)), []string{codeAboveLimit}},
		{"an integer of six bytes", sections([]byte{sectionType, 0x80, 0x80, 0x80, 0x80, 0x80, 0}), []string{codeMalformed}},
		{"an integer with a bit too many", sections([]byte{sectionType, 0x80, 0x80, 0x80, 0x80, 0x10}), []string{codeMalformed}},
		{"a number padded to five bytes", sections([]byte{sectionType, 0x81, 0x80, 0x80, 0x80, 0, 0x60, 0, 0}), nil},
	}
}

var (
	emptyType   = []byte{sectionType, 1, 0x60, 0, 0}
	oneFunction = []byte{sectionFunction, 1, 0}
)

// oneBody is a code section of one body.
func oneBody(body ...byte) []byte {
	return append([]byte{sectionCode, 1, byte(len(body))}, body...)
}

// bodyBytesCases are about bodies, expressions and custom sections.
func bodyBytesCases() []binaryCase {
	types, funcs, code := emptyType, oneFunction, oneBody
	return []binaryCase{
		{"a function without body", sections(types, funcs), []string{codeMalformed}},
		{"a body without function", sections(types, code(0, opEnd)), []string{codeMalformed}},
		{"a body", sections(types, funcs, code(0, opEnd)), nil},
		{"a body without end", sections(types, funcs, code(0, opNop)), []string{codeTruncated}},
		{"a body with two ends", sections(types, funcs, code(0, opEnd, opEnd)), []string{codeMalformed}},
		{"a block of a type past the end", sections(types, funcs, code(0, opBlock, 1, opEnd, opEnd)), []string{codeIndex}},
		{"a block of the last type", sections(types, funcs, code(0, opBlock, 0, opEnd, opEnd)), nil},
		{"a function of a type past the end", sections(types, []byte{sectionFunction, 1, 1}, code(0, opEnd)), []string{codeIndex}},
		{"relaxed SIMD", sections(types, funcs, code(0, opPrefixSIMD, 0x80, 0x02, opEnd)), []string{codeRelaxedSIMD}},
		{"a hole in the SIMD opcodes", sections(types, funcs, code(0, opPrefixSIMD, 0x9a, 0x01, opEnd)), []string{codeMalformed}},
		{"128-bit arithmetic", sections(types, funcs, code(0, opPrefixBulk, 19, opEnd)), []string{codeWideArithmetic}},
		{"ref.eq", sections(types, funcs, code(0, 0xd3, opEnd)), []string{codeGC}},
		{"call_ref", sections(types, funcs, code(0, 0x14, 0, opEnd)), []string{codeTypedReferences}},
		{"an opcode of no proposal", sections(types, funcs, code(0, 0xff, opEnd)), []string{codeMalformed}},
		{"a start function past the end", sections([]byte{sectionStart, 0}), []string{codeIndex}},
		{"a calculated constant", sections([]byte{sectionGlobal, 1, i32, 0, opI32Const, 1, 0x6a, opEnd}), []string{codeExtendedConst}},
		{"a custom section", sections(custom("name", "\xff")), nil},
		{"a custom section whose name is not UTF-8", sections(custom("\xff", "")), []string{codeMalformed}},
		{"metadata", sections(custom("writ.module", "{}")), nil},
		{"metadata twice", sections(custom("writ.module", "{}"), custom("writ.module", "{}")), []string{codeMetadataRepeated}},
		{"metadata at the limit", sections(custom("writ.module", strings.Repeat("x", metadataBytesMax))), nil},
		{"metadata above the limit", sections(custom("writ.module", strings.Repeat("x", metadataBytesMax+1))), []string{codeAboveLimit}},
		{"a thousand faulty exports", sections(append(appendU32([]byte{sectionExport}, 1000), bytes.Repeat([]byte{0, 0, 0}, 1000)...)),
			append(slices.Repeat([]string{codeIndex}, faultsMax-1), codeMoreFaults)},
	}
}

// TestBinaryAdmission lists what only bytes can say.
func TestBinaryAdmission(t *testing.T) {
	guest := wat(t, guestText(""))
	for _, c := range append(fileCases(guest), bodyBytesCases()...) {
		t.Run(c.name, func(t *testing.T) {
			_, err := prepare(c.wasm, anything)
			if diff := cmp.Diff(c.codes, codesOf(err)); diff != "" {
				t.Errorf("codes (-want +got):\n%s\n%v", diff, err)
			}
		})
	}
}

// TestTruncation: no prefix of a module is a module, and none makes trouble.
func TestTruncation(t *testing.T) {
	guest := wat(t, guestText(`(table 1 funcref) (elem (i32.const 0) 0) (data $d "abc") (func (memory.init $d (i32.const 0) (i32.const 0) (i32.const 0))) (global i32 (i32.const 1))`))
	for n := range guest {
		if _, err := Prepare(guest[:n], Options{}); err == nil {
			t.Errorf("the first %d of %d bytes were admitted", n, len(guest))
		}
	}
}

// TestRefusalText: an import is reported with what was found and expected.
func TestRefusalText(t *testing.T) {
	_, err := Prepare(wat(t, guestText(`(import "writ_v1" "clock_now" (func (param i32))) (import "env" "f" (func (param f32)))`)), Options{})
	want := `prepare module: 2 faults:
  import_type at byte 38 (import 0): "writ_v1"."clock_now": found (i32) -> (), expected () -> i64
  import_unknown at byte 58 (import 1): "env"."f": found (f32) -> (); there is no such host call, and none takes floats or vectors`
	if diff := cmp.Diff(want, fmt.Sprint(err)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var refusal *Refusal
	if !errors.As(err, &refusal) {
		t.Errorf("the error is a %T", err)
	}
}

// TestCodes: every code has a cause and a remedy.
func TestCodes(t *testing.T) {
	for code, doc := range Codes() {
		if code == "" || doc.Cause == "" || doc.Remedy == "" {
			t.Errorf("code %q: %+v", code, doc)
		}
	}
}

// TestMaxima: memory and table maxima are lowered to what is granted, never raised.
func TestMaxima(t *testing.T) {
	for _, c := range []struct {
		memory string
		budget uint64
		pages  uint32
	}{
		{"1", 3 * abi.PageBytes, 3},
		{"1", 3*abi.PageBytes + 1, 3},
		{"1 2", 3 * abi.PageBytes, 2},
		{"1 9", 3 * abi.PageBytes, 3},
		{"1 65536", 1 << 40, pagesMax},
		{"1", 0, 4096},
	} {
		wasm := wat(t, strings.Replace(guestText(`(table 1 funcref) (table 2 3 funcref)`), "1 4", c.memory, 1))
		p, err := Prepare(wasm, Options{MemoryBytesMax: c.budget})
		if err != nil {
			t.Fatal(err)
		}
		m := newModule(p.Wasm, anything)
		m.read()
		got := []limits{m.memories[0], m.tables[0].limits, m.tables[1].limits}
		want := []limits{{min: 1, max: c.pages, hasMax: true}, {min: 1, max: tableEntriesMax, hasMax: true}, {min: 2, max: 3, hasMax: true}}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(limits{})); diff != "" || p.Info.MemoryPagesMax != c.pages {
			t.Errorf("memory %s, budget %d: maximum %d (-want +got):\n%s", c.memory, c.budget, p.Info.MemoryPagesMax, diff)
		}
	}
}

// TestInfo: what a module says of itself is told, and custom sections are gone.
func TestInfo(t *testing.T) {
	wasm := append(wat(t, guestText(`(import "writ_v1" "clock_now" (func (result i64))) (func $s (drop (i32.extend8_s (i32.const 1)))) (start $s)`)),
		sections(custom("writ.module", `{"abi":1}`), custom("secret", "hello"))[8:]...)
	p, err := Prepare(wasm, Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := Info{
		Metadata: []byte(`{"abi":1}`), HasStart: true, Functions: 5, MemoryPagesMin: 1, MemoryPagesMax: 4,
		Imports: []Import{{"writ_v1", "clock_now", "function", "() -> i64"}},
		Exports: []Export{{"memory", "memory", ""}, {"writ_alloc", "function", "(i32) -> i32"},
			{"writ_free", "function", "(i32, i32) -> ()"}, {"writ_execute", "function", "(i32, i32) -> i64"}},
		Features: []string{"sign-ext"}, Inserted: Inserted{FuelCharges: 4}, OriginalBytes: len(wasm), PreparedBytes: len(p.Wasm),
	}
	if diff := cmp.Diff(want, p.Info); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	inspected, err := Inspect(wasm)
	want.MemoryPagesMax, want.PreparedBytes = inspected.MemoryPagesMax, inspected.PreparedBytes
	if diff := cmp.Diff(&want, inspected); diff != "" || err != nil {
		t.Errorf("inspect: %v (-want +got):\n%s", err, diff)
	}
	if bytes.Contains(p.Wasm, []byte("hello")) || bytes.Contains(p.Wasm, []byte("writ.module")) {
		t.Error("a custom section is still there")
	}
	if again, err := Prepare(wasm, Options{}); err != nil || again.Digest != p.Digest || p.Digest != abi.DigestOf(p.Wasm) || p.Original != abi.DigestOf(wasm) {
		t.Errorf("a second preparation differs: %v", err)
	}
	if _, err := Prepare(p.Wasm, Options{}); !slices.Contains(codesOf(err), codeReservedName) {
		t.Errorf("a prepared module was prepared again: %v", err)
	}
}

// TestActiveSegmentsAreDropped: an active data segment is empty once the module
// runs, also where the engine forgets to drop it; a passive one is not.
func TestActiveSegmentsAreDropped(t *testing.T) {
	for _, c := range []struct {
		name, segments, body string
		trap                 bool
	}{
		{"init of an active one", `(data (i32.const 0) "abc")`, `(memory.init 0 (i32.const 8) (i32.const 0) (i32.const 3))`, true},
		{"init of none of it", `(data (i32.const 0) "abc")`, `(memory.init 0 (i32.const 8) (i32.const 0) (i32.const 0))`, false},
		{"drop of an active one", `(data (i32.const 0) "abc")`, `(data.drop 0) (data.drop 0)`, false},
		{"init of a passive one", `(data "abc")`, `(memory.init 0 (i32.const 8) (i32.const 0) (i32.const 3))`, false},
		{"init of a dropped one", `(data "abc")`, `(data.drop 0) (memory.init 0 (i32.const 8) (i32.const 0) (i32.const 3))`, true},
		{"both kinds", `(data (i32.const 0) "abc") (data "defg")`, `(data.drop 0) (memory.init 1 (i32.const 8) (i32.const 0) (i32.const 4))`, false},
	} {
		wasm := wat(t, `(module (memory 1) `+c.segments+` (func (export "run") `+c.body+`))`)
		for engine := range engines {
			if _, _, err := invoke(t, engine, wasm, 1<<40, FuelSlice); (err != nil) != c.trap {
				t.Errorf("%s on the %s: error %v", c.name, engine, err)
			}
		}
	}
}

// TestWorkIsBounded: modules that would keep compilers busy are refused.
func TestWorkIsBounded(t *testing.T) {
	repeated := func(s string, n int) string { return strings.Repeat(s, n) }
	for _, c := range []struct {
		name, functions string
		limit           string // "" if it is admitted
	}{
		{"blocks in a row", `(func ` + repeated(`(block)`, 12_000) + `)`, ""},
		{"more blocks", `(func ` + repeated(`(block)`, 12_500) + `)`, "compile_work_max"},
		{"loops in a row", `(func ` + repeated(`(loop)`, 1_700) + `)`, ""},
		{"more loops", `(func ` + repeated(`(loop)`, 1_800) + `)`, "compile_work_max"},
		{"loops over functions", repeated(`(func `+repeated(`(loop)`, 100)+`)`, 290), ""},
		{"loops over more functions", repeated(`(func `+repeated(`(loop)`, 100)+`)`, 310), "compile_work_max"},
		{"ifs over locals", `(func (local ` + repeated(`i64 `, 4_000) + `) ` + repeated(`(if (i32.const 1) (then))`, 700) + `)`, ""},
		{"more ifs over locals", `(func (local ` + repeated(`i64 `, 4_000) + `) ` + repeated(`(if (i32.const 1) (then))`, 800) + `)`, "compile_work_max"},
		{"bulk instructions", repeated(`(func `+repeated(`(memory.fill (i32.const 0) (i32.const 0) (i32.const 0))`, 10_000)+`)`, 10), ""},
		{"more bulk instructions", repeated(`(func `+repeated(`(memory.fill (i32.const 0) (i32.const 0) (i32.const 0))`, 10_000)+`)`, 11), "bulk_instructions_max"},
	} {
		_, err := prepare(wat(t, `(module (memory 1) `+c.functions+`)`), anything)
		if c.limit == "" && err != nil || c.limit != "" && (err == nil || !strings.Contains(err.Error(), c.limit)) {
			t.Errorf("%s: %v, want a refusal by %q", c.name, err, c.limit)
		}
	}
}
