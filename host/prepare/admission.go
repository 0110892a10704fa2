package prepare

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/writrun/writ/guest-abi/abi"
)

// readHeader checks size, magic and version, and reports whether reading can go
// on. What is recognisably something else is told so.
func (m *module) readHeader() bool {
	d := m.data
	refuse := func(code, format string, args ...any) bool {
		m.faults.add(0, code, "", format, args...)
		return false
	}
	switch {
	case len(d) > moduleBytesMax:
		return refuse(codeAboveLimit, "the module has %d bytes, above the limit module_bytes_max %d", len(d), moduleBytesMax)
	case len(d) == 0:
		return refuse(codeNotWasm, "the file is empty")
	case bytes.HasPrefix(bytes.TrimLeft(d[:min(len(d), 4096)], " \t\r\n"), []byte("(")) || bytes.HasPrefix(d, []byte(";;")):
		return refuse(codeTextFormat, "this is the text format")
	case bytes.HasPrefix(d, []byte{0x1f, 0x8b}), bytes.HasPrefix(d, []byte("PK\x03\x04")), bytes.HasPrefix(d, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		return refuse(codeCompressed, "this is a compressed file")
	case !bytes.HasPrefix(d, []byte("\x00asm")):
		if len(d) < 4 && bytes.HasPrefix([]byte("\x00asm"), d) {
			return refuse(codeTruncated, "the module ends inside its first four bytes")
		}
		return refuse(codeNotWasm, "the file begins with %x and a module with 0061736d", d[:min(len(d), 4)])
	case len(d) < 8:
		return refuse(codeTruncated, "the module ends inside its version")
	case d[6] == 1 && d[7] == 0:
		return refuse(codeComponent, "this is a component")
	case !bytes.Equal(d[4:8], []byte{1, 0, 0, 0}):
		return refuse(codeMalformed, "version %x is not 01000000", d[4:8])
	}
	return true
}

// checkImports compares the imports with the host calls and reports every one
// that has no match.
func (m *module) checkImports() {
	offered := make(map[[2]string]funcType, len(abi.HostCalls))
	for _, c := range abi.HostCalls {
		offered[[2]string{c.Module, c.Name}] = funcType{typeBytes(c.Params), typeBytes(c.Results)}
	}
	for i, e := range m.imports {
		where := fmt.Sprintf("import %d", i)
		add := func(code, format string, args ...any) {
			m.faults.add(e.offset, code, where, "%.80q.%.80q: %s", e.module, e.name, fmt.Sprintf(format, args...))
		}
		if e.module == RefillModule {
			add(codeReservedName, "the module %s is the host's own", RefillModule)
			continue
		}
		want, known := offered[[2]string{e.module, e.name}]
		if e.kind != kindFunction {
			add(codeImportKind, "a %s is imported", kindName(e.kind))
			continue
		}
		found := m.types[e.typeIndex]
		switch {
		case !known && takesFloats(found):
			add(codeImportUnknown, "found %s; there is no such host call, and none takes floats or vectors", found)
		case !known:
			add(codeImportUnknown, "found %s; there is no such host call", found)
		case !found.equal(want):
			add(codeImportType, "found %s, expected %s", found, want)
		}
	}
}

func takesFloats(t funcType) bool {
	return bytes.ContainsAny(t.params, string([]byte{f32, f64, v128})) || bytes.ContainsAny(t.results, string([]byte{f32, f64, v128}))
}

func typeBytes(types []abi.ValueType) []byte {
	b := make([]byte, len(types))
	for i, t := range types {
		b[i] = byte(t)
	}
	return b
}

// checkExports asks for what the host needs to call a guest.
func (m *module) checkExports() {
	if e, ok := m.export(abi.ExportMemory); !ok {
		m.exportMissing("a memory", abi.ExportMemory)
	} else if e.kind != kindMemory {
		m.faults.add(e.offset, codeExportType, "export "+e.name, "found a %s, expected a memory", kindName(e.kind))
	}
	ii := []byte{i32, i32}
	m.checkExport(abi.ExportAlloc, funcType{ii[:1], ii[:1]}, true)
	m.checkExport(abi.ExportFree, funcType{ii, nil}, true)
	m.checkExport(abi.ExportInitialize, funcType{}, false)
	entry := funcType{ii, []byte{i64}}
	executes := m.checkExport(abi.ExportExecute, entry, false)
	verifies := m.checkExport(abi.ExportVerify, entry, false)
	if executes || verifies {
		return
	}
	m.exportMissing("a function "+entry.String(), abi.ExportExecute+" or "+abi.ExportVerify)
	if _, ok := m.export(abi.ExportStart); ok {
		m.faults.add(0, codeCommand, "", "the module exports %s and neither %s nor %s", abi.ExportStart, abi.ExportExecute, abi.ExportVerify)
	}
}

func (m *module) exportMissing(what, name string) {
	m.faults.add(len(m.data), codeExportMissing, "", "%s must be exported as %s", what, name)
}

// checkExport reports whether there is an export of that name, and adds a fault
// if it has another type or is needed and missing.
func (m *module) checkExport(name string, want funcType, needed bool) bool {
	e, ok := m.export(name)
	switch {
	case !ok && needed:
		m.exportMissing("a function "+want.String(), name)
	case ok && e.kind != kindFunction:
		m.faults.add(e.offset, codeExportType, "export "+name, "found a %s, expected a function %s", kindName(e.kind), want)
	case ok && !m.typeOf(e.index).equal(want):
		m.faults.add(e.offset, codeExportType, "export "+name, "found %s, expected %s", m.typeOf(e.index), want)
	}
	return ok
}

// checkForeign recognises modules made for other hosts and names that belong to
// preparation.
func (m *module) checkForeign() {
	for _, e := range m.exports {
		if strings.HasPrefix(e.name, reservedPrefix) {
			m.faults.add(e.offset, codeReservedName, "", "export %.80q begins with %s", e.name, reservedPrefix)
		}
	}
	if m.rules.anyExport || len(m.faults.faults) == 0 {
		return // a module that keeps the contract is no foreign one
	}
	if host := m.foreignHost(); host != "" {
		m.faults.add(0, codeForeignABI, "", "this looks like a module for %s", host)
	}
}

// foreignHost names the host a module's imports and exports were made for, or
// returns "".
func (m *module) foreignHost() string {
	for _, e := range m.exports {
		switch {
		case e.name == "__guest_call":
			return "waPC"
		case e.name == "opa_eval_ctx_new" || e.name == "opa_wasm_abi_version":
			return "Open Policy Agent (a compiled policy)"
		case strings.HasPrefix(e.name, "proxy_abi_version_"), e.name == "proxy_on_context_create":
			return "proxy-wasm"
		case e.name == "canonical_abi_realloc" || e.name == "cabi_realloc":
			return "the component model (a core module before it was made a component)"
		}
	}
	for _, e := range m.imports {
		switch {
		case e.module == "wapc":
			return "waPC"
		case strings.HasPrefix(e.module, "extism:"), e.module == "env" && strings.HasPrefix(e.name, "extism_"):
			return "Extism"
		case e.module == "env" && strings.HasPrefix(e.name, "opa_"):
			return "Open Policy Agent (a compiled policy)"
		case e.module == "env" && strings.HasPrefix(e.name, "proxy_"):
			return "proxy-wasm"
		case e.module == "gojs" || e.module == "go":
			return "a browser (Go built with GOOS=js; build with GOOS=wasip1)"
		case e.module == "wbg" || strings.HasPrefix(e.module, "__wbindgen"):
			return "a browser (wasm-bindgen)"
		case e.module == "env" && e.name == "abort":
			return "AssemblyScript's default runtime (build with --use abort=)"
		case e.module == "env" && strings.HasPrefix(e.name, "emscripten_"):
			return "a browser (Emscripten)"
		case e.module == "wasi_unstable" || strings.HasPrefix(e.module, "wasi:"):
			return "another version of WASI (" + abi.ModuleWASI + " is the one offered)"
		}
	}
	return ""
}
