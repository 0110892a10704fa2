package prepare

import "github.com/writrun/writ/guest-abi/abi"

// Limits of admission. They lie below those of every engine this project runs
// modules on, and a module above one is refused with the limit's name.
const (
	typesMax           = 20_000
	functionsMax       = 20_000 // imported and defined
	importsMax         = 1_024
	exportsMax         = 20_000
	globalsMax         = 20_000
	localsMax          = 4_096 // declared in one function, parameters not counted
	paramsMax          = 64
	resultsMax         = 16
	bodyBytesMax       = 512 << 10
	nestingMax         = 4_096
	branchTargetsMax   = 8_192 // of one br_table
	tablesMax          = 4
	tableEntriesMax    = 1 << 17
	memoriesMax        = 1
	pagesMax           = 65_535
	dataSegmentsMax    = 65_536
	elementSegmentsMax = 65_536
	elementEntriesMax  = 1 << 20 // of all segments together
	selectTypesMax     = 1
	nameBytesMax       = 64 << 10 // of one import, export or custom section name
	faultsMax          = 100      // listed in one Refusal

	// Engines hold one body to some 7 MB; only bodies of little but loops grow so far.
	preparedBodyBytesMax = 4 << 20

	moduleBytesMax   = abi.ModuleBytesMax
	preparedBytesMax = abi.PreparedBytesMax
	metadataBytesMax = abi.MetadataBytesMax
)
