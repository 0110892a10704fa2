package evidence

import (
	"fmt"

	"github.com/writrun/writ/guest-abi/abi"
)

// ReplayDone says what a replay of a run showed.
type ReplayDone struct {
	RunID           abi.RunID  `json:"run_id"`
	Verdict         string     `json:"verdict"`
	Engine          string     `json:"engine"`           // that it ran on, with its version
	ExecutionDigest abi.Digest `json:"execution_digest"` // of the record
	Policy          abi.Digest `json:"policy"`           // that gave the verdict
	Code            string     `json:"code"`             // of the first divergence, "" for none
	Divergence      string     `json:"divergence"`       // address of the first divergence, "" for none
}

// RecordReplay records what a replay showed and signs a head over it.
func (t *Tenant) RecordReplay(r ReplayDone) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.ready(); err != nil {
		return err
	}
	if r.Verdict == "" || r.RunID == "" {
		return fmt.Errorf("record replay: run %q, verdict %q", r.RunID, r.Verdict)
	}
	if err := t.record(&Record{Type: TypeReplayDone, ReplayDone: &r}); err != nil {
		return err
	}
	return t.signHead()
}
