package prepare

import (
	"maps"

	"github.com/writrun/writ/guest-abi/abi"
)

// Codes of faults. [Codes] explains each.
const (
	codeAboveLimit       = "above_limit"
	codeCommand          = "command_module"
	codeComponent        = "component"
	codeCompressed       = "compressed"
	codeExceptions       = "feature_exceptions"
	codeExportMissing    = "export_missing"
	codeExportType       = "export_type"
	codeExtendedConst    = "feature_extended_const"
	codeExternref        = "feature_externref"
	codeForeignABI       = "foreign_abi"
	codeGC               = "feature_gc"
	codeImportKind       = "import_kind"
	codeImportType       = "import_type"
	codeImportUnknown    = "import_unknown"
	codeIndex            = "index_out_of_range"
	codeInvalid          = "invalid"
	codeMalformed        = "malformed"
	codeMemory64         = "feature_memory64"
	codeMetadataRepeated = "metadata_repeated"
	codeMoreFaults       = "more_faults"
	codeMultiMemory      = "feature_multi_memory"
	codeNotWasm          = "not_wasm"
	codeOutOfBounds      = "segment_out_of_bounds"
	codeRelaxedSIMD      = "feature_relaxed_simd"
	codeReservedName     = "reserved_name"
	codeTailCalls        = "feature_tail_calls"
	codeTextFormat       = "text_format"
	codeThreads          = "feature_threads"
	codeTruncated        = "truncated"
	codeType             = "type_mismatch"
	codeTypedReferences  = "feature_typed_references"
	codeWideArithmetic   = "feature_wide_arithmetic"
)

const turnOff = "Build without it: turn the feature off in the compiler, and look for a library that turns it on."

// Codes returns the meaning of every fault code. The map is the caller's own.
func Codes() map[string]abi.CodeDoc {
	docs := map[string]abi.CodeDoc{
		codeAboveLimit: {Cause: "Something in the module, or its prepared form, is above the named limit.",
			Remedy: "Make the module smaller there, or, for memory_bytes, grant it more in the manifest."},
		codeInvalid: {Cause: "The module breaks a validation rule of the WebAssembly specification.",
			Remedy: "The compiler or a tool that edited the module is at fault; rebuild, or check it with wasm-validate."},
		codeIndex: {Cause: "An index is past the end of what it counts: a type, function, table, memory, global, segment, local or label.",
			Remedy: "The compiler or a tool that edited the module is at fault; rebuild, or check it with wasm-validate."},
		codeType: {Cause: "An instruction, expression or segment has operands of another type than it needs.",
			Remedy: "The compiler or a tool that edited the module is at fault; rebuild, or check it with wasm-validate."},
		codeMalformed: {Cause: "The bytes are not a well-formed module: a section, number, name or opcode cannot be read.",
			Remedy: "Check that the file arrived complete and unchanged; rebuild it if it did."},
		codeTruncated: {Cause: "The module ends in the middle of something.", Remedy: "Fetch or build the file again; compare its size and digest."},
		codeOutOfBounds: {Cause: "An active data or element segment lies outside the minimum of its memory or table, even if it is empty.",
			Remedy: "Raise the minimum, or make the segment passive."},
		codeMoreFaults: {Cause: "The module has more faults than are listed.", Remedy: "Mend those listed and look again."},

		codeImportUnknown: {Cause: "The module imports a function the host does not offer.",
			Remedy: "Use only the host calls of writ_v1 and wasi_snapshot_preview1; remove the library that needs the import."},
		codeImportType: {Cause: "The module imports a host call with another type than it has.", Remedy: "Build it against this ABI version's SDK."},
		codeImportKind: {Cause: "The module imports a memory, table or global. The host offers functions only.",
			Remedy: "Let the module define and export its own; for C, drop --import-memory and --import-table."},
		codeExportMissing: {Cause: "The module lacks an export that the host needs.",
			Remedy: "Export memory, writ_alloc, writ_free, and writ_execute or writ_verify; the SDKs do this."},
		codeExportType: {Cause: "An export has another kind or type than the ABI says.", Remedy: "Give it the expected type; the SDKs do this."},
		codeReservedName: {Cause: "The module uses a name that preparation adds to modules.",
			Remedy: "Rename the export or import. A module that was already prepared must not be prepared again: use the original."},
		codeMetadataRepeated: {Cause: "There are two writ.module sections, and no rule which one holds.",
			Remedy: "Remove the section before packing metadata again."},
		codeCommand: {Cause: "The module is a command: it has _start and no entry point a host can call with a message.",
			Remedy: "Build a reactor (Go: -buildmode=c-shared, C and Rust: a library without main) that exports writ_execute or writ_verify."},
		codeForeignABI: {Cause: "The module was made for another host, whose calls and messages differ.",
			Remedy: "Build its logic against an SDK of this ABI. A Rego policy belongs in a flow bundle, not in a module."},
		codeComponent: {Cause: "The file is a component, not a core module.",
			Remedy: "Build for a core target such as wasm32-wasip1 and leave out the step that makes a component."},
		codeTextFormat: {Cause: "The file is in the text format.", Remedy: "Translate it with wat2wasm first."},
		codeCompressed: {Cause: "The file is compressed or an archive.", Remedy: "Unpack it first; its digest is taken over the plain module."},
		codeNotWasm:    {Cause: "The file is not a WebAssembly module.", Remedy: "Check the path: a module begins with the bytes 00 61 73 6d."},
	}
	maps.Copy(docs, featureCodes())
	return docs
}

func featureCodes() map[string]abi.CodeDoc {
	return map[string]abi.CodeDoc{
		codeThreads: {Cause: "The module uses threads: shared memory or atomic instructions. Their order differs from run to run.", Remedy: turnOff},
		codeRelaxedSIMD: {Cause: "The module uses relaxed SIMD, whose results differ from machine to machine.",
			Remedy: "Build without it: fixed-width SIMD is admitted."},
		codeMemory64:        {Cause: "The module uses 64-bit memory.", Remedy: turnOff},
		codeMultiMemory:     {Cause: "The module uses more than one memory.", Remedy: turnOff},
		codeGC:              {Cause: "The module uses garbage-collected types.", Remedy: turnOff},
		codeExceptions:      {Cause: "The module uses exception handling.", Remedy: turnOff},
		codeTypedReferences: {Cause: "The module uses typed function references.", Remedy: turnOff},
		codeTailCalls:       {Cause: "The module uses tail calls, which no stack rule covers.", Remedy: turnOff},
		codeExternref:       {Cause: "The module uses externref. The host hands out no references.", Remedy: turnOff},
		codeExtendedConst:   {Cause: "The module calculates in a constant expression.", Remedy: turnOff},
		codeWideArithmetic:  {Cause: "The module uses 128-bit arithmetic instructions.", Remedy: turnOff},
	}
}
