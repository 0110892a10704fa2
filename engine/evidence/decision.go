package evidence

import (
	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host/trace"
)

// decisionInputBytesMax is how large an input is kept beside a refusal; half of
// what a text may have, since it is encoded.
const decisionInputBytesMax = TextBytesMax / 2

// DecisionRecord says what a policy was asked that refused a request. It follows
// the admission_refused record; decisions of runs are in their traces.
type DecisionRecord struct {
	Entrypoint string     `json:"entrypoint"`
	Policy     abi.Digest `json:"policy"`
	Seed       trace.Hex  `json:"seed"`  // of the policy's randomness
	Asked      abi.Digest `json:"asked"` // salted commitment to the input, the text beside the record
	Result     string     `json:"result"`
}

// Decision is what a policy was asked, and what it said.
type Decision struct {
	Entrypoint string
	Policy     abi.Digest
	Seed       []byte
	Input      []byte // of more than half a mebibyte nothing is kept
	Result     string
}

func (t *Tenant) decisionRecord(d *Decision) (*Record, error) {
	commitment, err := t.keepText([]string{string(d.Input)})
	return &Record{Type: TypeDecision, Decision: &DecisionRecord{Entrypoint: d.Entrypoint, Policy: d.Policy, Seed: d.Seed, Asked: commitment, Result: d.Result}}, err
}
