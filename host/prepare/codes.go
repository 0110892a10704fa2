package prepare

import "maps"

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

// CodeDoc explains a fault code to a person.
type CodeDoc struct {
	Cause  string // what is wrong
	Remedy string // what to do about it
}

const turnOff = "Build without it: turn the feature off in the compiler, and look for a library that turns it on."

// Codes returns the meaning of every fault code. The map is the caller's own.
func Codes() map[string]CodeDoc {
	docs := map[string]CodeDoc{
		codeAboveLimit: {"Something in the module, or its prepared form, is above the named limit.",
			"Make the module smaller there, or, for memory_bytes, grant it more in the manifest."},
		codeInvalid: {"The module breaks a validation rule of the WebAssembly specification.",
			"The compiler or a tool that edited the module is at fault; rebuild, or check it with wasm-validate."},
		codeIndex: {"An index is past the end of what it counts: a type, function, table, memory, global, segment, local or label.",
			"The compiler or a tool that edited the module is at fault; rebuild, or check it with wasm-validate."},
		codeType: {"An instruction, expression or segment has operands of another type than it needs.",
			"The compiler or a tool that edited the module is at fault; rebuild, or check it with wasm-validate."},
		codeMalformed: {"The bytes are not a well-formed module: a section, number, name or opcode cannot be read.",
			"Check that the file arrived complete and unchanged; rebuild it if it did."},
		codeTruncated: {"The module ends in the middle of something.", "Fetch or build the file again; compare its size and digest."},
		codeOutOfBounds: {"An active data or element segment lies outside the minimum of its memory or table, even if it is empty.",
			"Raise the minimum, or make the segment passive."},
		codeMoreFaults: {"The module has more faults than are listed.", "Mend those listed and look again."},

		codeImportUnknown: {"The module imports a function the host does not offer.",
			"Use only the host calls of writ_v1 and wasi_snapshot_preview1; remove the library that needs the import."},
		codeImportType: {"The module imports a host call with another type than it has.", "Build it against this ABI version's SDK."},
		codeImportKind: {"The module imports a memory, table or global. The host offers functions only.",
			"Let the module define and export its own; for C, drop --import-memory and --import-table."},
		codeExportMissing: {"The module lacks an export that the host needs.",
			"Export memory, writ_alloc, writ_free, and writ_execute or writ_verify; the SDKs do this."},
		codeExportType: {"An export has another kind or type than the ABI says.", "Give it the expected type; the SDKs do this."},
		codeReservedName: {"The module uses a name that preparation adds to modules.",
			"Rename the export or import. A module that was already prepared must not be prepared again: use the original."},
		codeMetadataRepeated: {"There are two writ.module sections, and no rule which one holds.",
			"Remove the section before packing metadata again."},
		codeCommand: {"The module is a command: it has _start and no entry point a host can call with a message.",
			"Build a reactor (Go: -buildmode=c-shared, C and Rust: a library without main) that exports writ_execute or writ_verify."},
		codeForeignABI: {"The module was made for another host, whose calls and messages differ.",
			"Build its logic against an SDK of this ABI. A Rego policy belongs in a flow bundle, not in a module."},
		codeComponent: {"The file is a component, not a core module.",
			"Build for a core target such as wasm32-wasip1 and leave out the step that makes a component."},
		codeTextFormat: {"The file is in the text format.", "Translate it with wat2wasm first."},
		codeCompressed: {"The file is compressed or an archive.", "Unpack it first; its digest is taken over the plain module."},
		codeNotWasm:    {"The file is not a WebAssembly module.", "Check the path: a module begins with the bytes 00 61 73 6d."},
	}
	maps.Copy(docs, featureDocs())
	return docs
}

func featureDocs() map[string]CodeDoc {
	return map[string]CodeDoc{
		codeThreads: {"The module uses threads: shared memory or atomic instructions. Their order differs from run to run.", turnOff},
		codeRelaxedSIMD: {"The module uses relaxed SIMD, whose results differ from machine to machine.",
			"Build without it: fixed-width SIMD is admitted."},
		codeMemory64:        {"The module uses 64-bit memory.", turnOff},
		codeMultiMemory:     {"The module uses more than one memory.", turnOff},
		codeGC:              {"The module uses garbage-collected types.", turnOff},
		codeExceptions:      {"The module uses exception handling.", turnOff},
		codeTypedReferences: {"The module uses typed function references.", turnOff},
		codeTailCalls:       {"The module uses tail calls, which no stack rule covers.", turnOff},
		codeExternref:       {"The module uses externref. The host hands out no references.", turnOff},
		codeExtendedConst:   {"The module calculates in a constant expression.", turnOff},
		codeWideArithmetic:  {"The module uses 128-bit arithmetic instructions.", turnOff},
	}
}
