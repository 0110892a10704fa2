package abi

// CodeDoc explains a stable code, of a fault, a refusal or a stop, to the person
// who met it. Every package that gives codes has a function Codes that maps each
// of them to its CodeDoc, and writ explain prints it.
type CodeDoc struct {
	Cause  string // what was found, as a sentence
	Remedy string // what to do about it, as a sentence
}
