package host

// CodeDoc says what a code means and what to do about it.
type CodeDoc struct {
	Cause  string
	Remedy string
}

// Codes documents every [StopCause].
func Codes() map[string]CodeDoc {
	const mend = "Mend the module: the phase and function say where."
	docs := map[StopCause]CodeDoc{
		StopUnreachable:       {"The guest ran into an unreachable instruction, which is how most languages end a program that panics.", "See the guest's log with writ inspect RUN --step STEP --events, and mend the module."},
		StopMemoryBounds:      {"The guest read or wrote outside its memory.", mend},
		StopTableAccess:       {"The guest called through a table at an index that is out of bounds or empty.", mend},
		StopIndirectCallType:  {"The guest called through a table a function of another type.", mend},
		StopIntegerOverflow:   {"The guest made an integer that its type cannot hold, from a float or by division.", mend},
		StopDivideByZero:      {"The guest divided an integer by zero.", mend},
		StopInvalidConversion: {"The guest made an integer of a float that is no number.", mend},
		StopStackOverflow:     {"The guest's calls were nested too deep. Under writ-det-0 the depth is the engine's.", "Make the recursion shallower."},
		StopFuel:              {"The guest used up its fuel.", "Raise budget.fuel of the step or rule if the work is worth it; an endless loop uses any amount."},
		StopHostCalls:         {"The guest made more host calls than it may.", "Raise budget.host_calls, or read more with each call."},
		StopOutputBytes:       {"The guest's message is longer than it may be.", "Raise budget.output_bytes, or put large results into artifacts."},
		StopOutputPointer:     {"The guest returned a pointer and length outside its memory.", mend},
		StopBadPointer:        {"The guest gave a host call a pointer and length outside its memory.", mend},
		StopExit:              {"The guest called proc_exit.", "A module is called and returns; it must not exit."},
		StopMemory:            {"The guest could not get the memory it needed.", "Raise budget.memory_bytes, or have the module read its data in pieces."},
		StopMissingExport:     {"The guest lacks the export that was to be called.", "Export it; guest-abi/README.md lists what a module must have."},
	}
	out := make(map[string]CodeDoc, len(docs))
	for cause, doc := range docs {
		out[string(cause)] = doc
	}
	return out
}
