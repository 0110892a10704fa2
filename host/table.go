package host

import "github.com/writrun/writ/guest-abi/abi"

// Function is one host function: its place in the ABI and what it does.
type Function struct {
	abi.HostCall
	// Call takes its arguments from stack and leaves its result in stack[0]. If it
	// returns false the engine must unwind the guest and not run it again.
	Call func(c *Calls, stack []uint64) bool
}

// Functions returns every function a guest may import, in the order of
// abi.HostCalls. It is the only place where guests reach anything, for every
// engine.
func Functions() []Function {
	implemented := implementations()
	table := make([]Function, 0, len(abi.HostCalls))
	for _, h := range abi.HostCalls {
		table = append(table, Function{h, implemented[h.Number]})
	}
	return table
}

func implementations() map[uint16]func(*Calls, []uint64) bool {
	return map[uint16]func(*Calls, []uint64) bool{
		1:  clockNow,
		2:  randomFill,
		3:  effect,
		4:  responseRead,
		5:  datasetSize,
		6:  datasetRead,
		7:  artifactPut,
		8:  artifactSize,
		9:  artifactRead,
		10: logLine,

		100: emptyList(100),
		101: emptySizes(101),
		102: emptyList(102),
		103: emptySizes(103),
		104: clockResGet,
		105: clockTimeGet,
		106: acceptedDescriptor(106),
		107: refusedDescriptor(107, errnoRofs),
		108: fdClose,
		109: acceptedDescriptor(109),
		110: fdFdstatGet,
		111: fdFdstatSetFlags,
		112: refusedDescriptor(112, errnoNotsup),
		113: fdFilestatGet,
		114: refusedDescriptor(114, errnoRofs),
		115: refusedDescriptor(115, errnoRofs),
		116: fdPread,
		117: fdPrestatGet,
		118: fdPrestatDirName,
		119: refusedDescriptor(119, errnoRofs),
		120: fdRead,
		121: fdReaddir,
		122: fdRenumber,
		123: fdSeek,
		124: acceptedDescriptor(124),
		125: fdTell,
		126: fdWrite,
		127: refusedPath(127, 0, 1),
		128: pathFilestatGet,
		129: refusedPath(129, 0, 2),
		130: refusedPath(130, 4, 5),
		131: pathOpen,
		132: pathReadlink,
		133: refusedPath(133, 0, 1),
		134: refusedPath(134, 0, 1),
		135: refusedPath(135, 2, 3),
		136: refusedPath(136, 0, 1),
		137: pollOneoff,
		138: procExit,
		139: refused(139, errnoNotsup),
		140: schedYield,
		141: randomGet,
		142: refusedDescriptor(142, errnoNotsup),
		143: refusedDescriptor(143, errnoNotsup),
		144: refusedDescriptor(144, errnoNotsup),
		145: refusedDescriptor(145, errnoNotsup),
	}
}
