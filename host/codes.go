package host

import "github.com/writrun/writ/guest-abi/abi"

// Codes documents every [StopCause].
func Codes() map[string]abi.CodeDoc {
	const mend = "Mend the module: the phase and function say where."
	docs := map[StopCause]abi.CodeDoc{
		StopUnreachable:       {Cause: "The guest ran into an unreachable instruction, which is how most languages end a program that panics.", Remedy: "See the guest's log with writ inspect RUN --step STEP --events, and mend the module."},
		StopMemoryBounds:      {Cause: "The guest read or wrote outside its memory.", Remedy: mend},
		StopTableAccess:       {Cause: "The guest called through a table at an index that is out of bounds or empty.", Remedy: mend},
		StopIndirectCallType:  {Cause: "The guest called through a table a function of another type.", Remedy: mend},
		StopIntegerOverflow:   {Cause: "The guest made an integer that its type cannot hold, from a float or by division.", Remedy: mend},
		StopDivideByZero:      {Cause: "The guest divided an integer by zero.", Remedy: mend},
		StopInvalidConversion: {Cause: "The guest made an integer of a float that is no number.", Remedy: mend},
		StopStackOverflow:     {Cause: "The guest's calls were nested deeper than the stack budget of the profile.", Remedy: "Make the recursion shallower, or ask for the deep profile in the manifest."},
		StopFuel:              {Cause: "The guest used up its fuel.", Remedy: "Raise budget.fuel of the step or rule if the work is worth it; an endless loop uses any amount."},
		StopHostCalls:         {Cause: "The guest made more host calls than it may.", Remedy: "Raise budget.host_calls, or read more with each call."},
		StopOutputBytes:       {Cause: "The guest's message is longer than it may be.", Remedy: "Raise budget.output_bytes, or put large results into artifacts."},
		StopOutputPointer:     {Cause: "The guest returned a pointer and length outside its memory.", Remedy: mend},
		StopBadPointer:        {Cause: "The guest gave a host call a pointer and length outside its memory.", Remedy: mend},
		StopExit:              {Cause: "The guest called proc_exit.", Remedy: "A module is called and returns; it must not exit."},
		StopMemory:            {Cause: "The guest could not get the memory it needed.", Remedy: "Raise budget.memory_bytes, or have the module read its data in pieces."},
		StopMissingExport:     {Cause: "The guest lacks the export that was to be called.", Remedy: "Export it; guest-abi/README.md lists what a module must have."},
	}
	out := make(map[string]abi.CodeDoc, len(docs))
	for cause, doc := range docs {
		out[string(cause)] = doc
	}
	return out
}
