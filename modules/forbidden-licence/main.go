// Command forbidden-licence is a rule module: it fails a target that claims a
// component under a licence its configuration forbids.
package main

import "github.com/writrun/writ/guest-abi/go/guest"

//go:wasmexport writ_verify
func writVerify(ptr, size uint32) uint64 { return guest.Verify(ptr, size, check) }

func main() {} // a module is a library; main never runs
