package evidence

import (
	"fmt"

	"github.com/writrun/writ/guest-abi/abi"
)

// What became of an egress.
const (
	EgressDone    = "done"
	EgressPartial = "partial" // some of it was not delivered
)

// EgressRecord says that something left the store.
type EgressRecord struct {
	What   string     `json:"what"`
	Where  abi.Digest `json:"where"`  // salted commitment to the text beside the record
	Digest abi.Digest `json:"digest"` // of the bytes that left
	Items  uint64     `json:"items"`
	Result string     `json:"result"` // done or partial
}

func (e *EgressRecord) check() error {
	if e.Result != EgressDone && e.Result != EgressPartial {
		return fmt.Errorf("result of an egress is %.40q", e.Result)
	}
	for _, d := range []abi.Digest{e.Where, e.Digest} {
		if _, err := abi.ParseDigest(string(d)); err != nil {
			return err
		}
	}
	return nil
}

// Egress is something that left the store.
type Egress struct {
	What   string // for instance "decision inputs"
	Where  string // free text, kept beside the record
	Digest abi.Digest
	Items  uint64
	Whole  bool // all of it was delivered
}

// RecordEgress records what left the store and signs a head over it.
func (t *Tenant) RecordEgress(e Egress) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.ready(); err != nil {
		return err
	}
	r := &EgressRecord{What: e.What, Digest: e.Digest, Items: e.Items, Result: EgressPartial}
	if e.Whole {
		r.Result = EgressDone
	}
	if _, err := abi.ParseDigest(string(e.Digest)); err != nil {
		return fmt.Errorf("record egress: %w", err)
	}
	var err error
	if r.Where, err = t.keepText([]string{e.Where}); err != nil {
		return fmt.Errorf("record egress: %w", err)
	}
	if err := t.record(&Record{Type: TypeEgress, Egress: r}); err != nil {
		return err
	}
	return t.signHead()
}
