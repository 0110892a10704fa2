// Command rules is a rule module: the eight reference rules, by rule id.
package main

import (
	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/guest-abi/go/guest"
)

//go:wasmexport writ_verify
func writVerify(ptr, size uint32) uint64 { return guest.Verify(ptr, size, verify) }

func main() {} // a module is a library; main never runs

func verify(c *guest.Check) (abi.VerifyResponse, error) {
	return guest.Rules(map[abi.ID]func(*guest.Check) (abi.VerifyResponse, error){
		"claim-has-evidence":    claimHasEvidence,
		"evidence-known":        evidenceKnown,
		"evidence-hash-matches": evidenceHashMatches,
		"confidence-in-range":   confidenceInRange,
		"claim-ids-unique":      claimIDsUnique,
		"artifact-hash-cited":   artifactHashCited,
		"contradiction":         contradiction,
		"schema":                conformsToSchema,
	})(c)
}

// none is the configuration of a rule that has none.
type none struct{}
