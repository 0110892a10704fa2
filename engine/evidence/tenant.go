package evidence

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host/trace"
)

// Tenant is one tenant's part of a store. It is safe for concurrent use.
type Tenant struct {
	store *Store
	id    abi.TenantID
	dir   string
	disk  *disk
	key   *headKey // nil for a reader without the key directory

	content *Content

	mu       sync.Mutex
	ledger   ledger
	newest   *head
	damage   *Problem // why the tenant takes no more work
	runs     map[abi.RunID]*RunSummary
	order    []abi.RunID // by admission
	requests map[string]abi.RunID
	datasets map[string]DatasetSeen
	open     map[abi.RunID]*Journal
}

// States of a run as far as the ledger knows.
const (
	StateAdmitted    = "admitted" // has a journal: running, or interrupted
	StateQuarantined = "quarantined"
)

// RunSummary is what the ledger says of a run.
type RunSummary struct {
	RunID      abi.RunID  `json:"run_id"`
	FlowID     abi.ID     `json:"flow_id"`
	State      string     `json:"state"`  // admitted, quarantined, succeeded or failed
	Result     string     `json:"result"` // "" until the run is sealed
	Decision   string     `json:"decision"`
	Permissive bool       `json:"permissive"`
	AdmittedAt time.Time  `json:"admitted_at"`
	SealedAt   time.Time  `json:"sealed_at,omitzero"` // or quarantined at; zero before
	TraceRoot  abi.Digest `json:"trace_root"`         // "" until the run is sealed
	Events     uint64     `json:"events"`
	RequestID  string     `json:"request_id"`
	Plan       abi.Digest `json:"plan"`
	LastGood   string     `json:"last_good,omitempty"` // of a quarantined run

	endIndex uint64 // of the run_sealed or quarantined record
}

// Sealed reports whether the run has a trace.
func (r RunSummary) Sealed() bool { return r.TraceRoot != "" }

func (t *Tenant) path(name string) string { return filepath.Join(t.dir, name) }

func dirOf(path string) string { return filepath.Dir(path) }

// openTenant opens or, for a writer, makes a tenant.
func (s *Store) openTenant(id abi.TenantID) (*Tenant, error) {
	t := &Tenant{store: s, id: id, dir: filepath.Join(s.dir, "tenants", id.String()), disk: s.disk, open: map[abi.RunID]*Journal{}}
	t.ledger = ledger{path: t.path("ledger"), disk: s.disk}
	t.content = &Content{dir: t.contentDir(), disk: s.disk, readOnly: s.readOnly}
	_, err := os.Stat(t.dir)
	if errors.Is(err, fs.ErrNotExist) && s.readOnly {
		return nil, &Problem{Code: CodeTenantUnknown, Detail: fmt.Sprintf("the store holds nothing of tenant %s", id), cause: err}
	}
	if !s.readOnly {
		if err := t.makeDirs(); err != nil {
			return nil, err
		}
	}
	if err := t.loadKey(); err != nil {
		return nil, err
	}
	if err := t.load(); err != nil {
		return nil, err
	}
	if s.readOnly {
		return t, nil
	}
	return t, t.recover()
}

// makeDirs makes what is missing of the tenant's directories.
func (t *Tenant) makeDirs() error {
	dirs := []string{t.dir, t.path("journal"), t.path("trace"), t.path("heads"), t.path("texts"), t.path("quarantine"), t.path("content"), t.contentDir()}
	for _, dir := range dirs {
		if _, err := os.Stat(dir); err == nil {
			continue
		}
		if err := t.disk.mkdir(dir); err != nil {
			return err
		}
	}
	return nil
}

func (t *Tenant) contentDir() string { return filepath.Join(t.dir, "content", "sha256") }

// loadKey reads the tenant's key and makes one for a tenant without records.
// A reader can do without.
func (t *Tenant) loadKey() error {
	key, err := t.store.readHeadKey(t.id)
	if CodeOf(err) == CodeKeyMissing && t.store.readOnly {
		return nil
	}
	if CodeOf(err) == CodeKeyMissing && t.unused() {
		if err := t.store.makeHeadKey(t.id); err != nil {
			return err
		}
		key, err = t.store.readHeadKey(t.id)
	}
	t.key = key
	return err
}

// unused reports whether nothing was ever recorded of the tenant.
func (t *Tenant) unused() bool {
	_, err := os.Stat(t.ledger.path)
	return errors.Is(err, fs.ErrNotExist)
}

// load reads the ledger and compares it with the newest head.
func (t *Tenant) load() error {
	t.reset()
	sizes, _, err := t.headSizes()
	if err != nil {
		return err
	}
	if len(sizes) > 0 && t.key != nil {
		t.newest, err = t.readHead(slices.Max(sizes))
		if CodeOf(err) == CodeHeadDamaged {
			t.harm(err)
		} else if err != nil {
			return err
		}
	}
	matched := t.newest == nil || t.newest.size == 0
	err = t.ledger.scan(func(r *Record, _ []byte) error {
		if t.newest != nil && t.ledger.tree.Size() == t.newest.size {
			matched = t.ledger.tree.Sum() == t.newest.root
			if !matched {
				t.harm(t.rewritten(t.newest.size))
			}
		}
		return t.apply(r)
	})
	if code := CodeOf(err); code == CodeLedgerDamaged {
		t.harm(err)
	} else if err != nil && code != CodeLedgerTorn {
		return err
	}
	if size := t.ledger.tree.Size(); !matched && size < t.newest.size {
		t.harm(t.behind(size, t.newest.size))
	}
	return nil
}

// reload reads the ledger again, for a reader.
func (t *Tenant) reload(run abi.RunID) (RunSummary, error) {
	t.mu.Lock()
	t.ledger, t.newest, t.damage = ledger{path: t.ledger.path, disk: t.disk}, nil, nil
	err := t.load()
	t.mu.Unlock()
	if err != nil {
		return RunSummary{}, err
	}
	return t.Run(run)
}

// reset forgets what was read of the ledger.
func (t *Tenant) reset() {
	t.runs, t.order = map[abi.RunID]*RunSummary{}, nil
	t.requests, t.datasets = map[string]abi.RunID{}, map[string]DatasetSeen{}
}

func (t *Tenant) behind(size, signed uint64) *Problem {
	return &Problem{Code: CodeLedgerBehindHead, Path: t.disk.rel(t.ledger.path),
		Detail: fmt.Sprintf("the ledger has %d records and a signed head says %d", size, signed)}
}

func (t *Tenant) rewritten(size uint64) *Problem {
	return &Problem{Code: CodeHeadMismatch, Path: t.disk.rel(t.ledger.path),
		Detail: fmt.Sprintf("the first %d records do not have the root that was signed for them", size)}
}

// harm remembers the first reason to take no more work for this tenant.
func (t *Tenant) harm(err error) {
	var p *Problem
	if errors.As(err, &p) && t.damage == nil {
		t.damage = p
	}
}

// apply brings a record into the tenant's state.
func (t *Tenant) apply(r *Record) error {
	at := time.Unix(0, r.AtNanos).UTC()
	switch {
	case r.RunAdmitted != nil:
		a := r.RunAdmitted
		if t.runs[a.RunID] != nil {
			return t.contradiction(r, a.RunID, "is admitted twice")
		}
		t.runs[a.RunID] = &RunSummary{RunID: a.RunID, FlowID: a.FlowID, State: StateAdmitted, AdmittedAt: at, RequestID: a.RequestID, Plan: a.Plan}
		t.order = append(t.order, a.RunID)
		if a.RequestID != "" {
			t.requests[a.RequestID] = a.RunID
		}
	case r.RunSealed != nil:
		run := t.runs[r.RunSealed.RunID]
		if run == nil || run.State != StateAdmitted {
			return t.contradiction(r, r.RunSealed.RunID, "is sealed and was not running")
		}
		e := r.RunSealed
		run.State, run.Result, run.Decision, run.Permissive = e.State, e.Result, e.Decision, e.Permissive
		run.TraceRoot, run.Events, run.SealedAt, run.endIndex = e.TraceRoot, e.Events, at, r.Index
	case r.Quarantined != nil:
		run := t.runs[r.Quarantined.RunID]
		if run == nil || run.State != StateAdmitted {
			return t.contradiction(r, r.Quarantined.RunID, "is quarantined and was not running")
		}
		run.State, run.SealedAt, run.LastGood, run.endIndex = StateQuarantined, at, r.Quarantined.LastGood, r.Index
	case r.DatasetSeen != nil:
		t.datasets[datasetKey(*r.DatasetSeen)] = *r.DatasetSeen
	}
	return nil
}

func (t *Tenant) contradiction(r *Record, run abi.RunID, what string) *Problem {
	return &Problem{Code: CodeLedgerDamaged, Path: t.disk.rel(t.ledger.path), Detail: fmt.Sprintf("record %d: run %s %s", r.Index, run, what)}
}

// ready reports why the tenant takes no more work.
func (t *Tenant) ready() error {
	if err := t.store.Ready(); err != nil {
		return err
	}
	if t.damage != nil {
		return t.damage
	}
	if t.ledger.f == nil {
		return t.ledger.open()
	}
	return nil
}

// record appends records to the ledger; t.mu is held.
func (t *Tenant) record(records ...*Record) error {
	if err := t.ready(); err != nil {
		return err
	}
	for _, r := range records {
		r.AtNanos = t.store.now().UnixNano()
	}
	if err := t.ledger.append(records); err != nil {
		return err
	}
	for _, r := range records {
		if err := t.apply(r); err != nil {
			return err
		}
	}
	return nil
}

// Content returns the tenant's content store.
func (t *Tenant) Content() *Content { return t.content }

// Runs lists the tenant's runs, newest first, from the ledger.
func (t *Tenant) Runs() ([]RunSummary, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	runs := make([]RunSummary, 0, len(t.order))
	for _, id := range slices.Backward(t.order) {
		runs = append(runs, *t.runs[id])
	}
	return runs, nil
}

// Run returns what the ledger says of one run.
func (t *Tenant) Run(id abi.RunID) (RunSummary, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	run := t.runs[id]
	if run == nil {
		return RunSummary{}, &Problem{Code: CodeRunUnknown, Detail: fmt.Sprintf("tenant %s has no run %q", t.id, id)}
	}
	return *run, nil
}

// FindRequest returns the run that was admitted with a request id.
func (t *Tenant) FindRequest(requestID string) (RunSummary, bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	id, ok := t.requests[requestID]
	if !ok {
		return RunSummary{}, false, nil
	}
	return *t.runs[id], true, nil
}

// Ledger calls each with every record, in order, and with the text kept beside
// it. It reads the file.
func (t *Tenant) Ledger(each func(index uint64, r Record) error) error {
	l := ledger{path: t.ledger.path, disk: t.disk}
	err := l.scan(func(r *Record, _ []byte) error {
		if commitment := r.text(); commitment != "" {
			lines, err := t.readText(commitment)
			if err != nil {
				return err
			}
			r.Reasons = lines
		}
		return each(r.Index, *r)
	})
	if CodeOf(err) == CodeLedgerTorn {
		return nil // being written, or never finished: not a record
	}
	return err
}

// Head returns the newest signed head, and the size and root it is for. It
// returns nil and 0 if none was signed yet.
func (t *Tenant) Head() (checkpoint []byte, size uint64, root abi.Digest) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.newest == nil {
		return nil, 0, ""
	}
	return t.newest.text, t.newest.size, abi.DigestFromSum(t.newest.root)
}

// PublicKey returns the key that verifies this tenant's heads, in the form of
// signed notes, or "" if the key directory does not have it.
func (t *Tenant) PublicKey() string {
	if t.key == nil {
		return ""
	}
	return t.key.public
}

// Problem returns why the tenant takes no more work, nil if it does.
func (t *Tenant) Problem() *Problem {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.damage
}

func (t *Tenant) close() error {
	t.mu.Lock()
	journals := make([]*Journal, 0, len(t.open))
	for _, j := range t.open {
		journals = append(journals, j)
	}
	t.mu.Unlock()
	var errs []error
	for _, j := range journals {
		errs = append(errs, j.Close())
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return errors.Join(append(errs, t.ledger.close())...)
}

// checkText reports a text that is missing or not the one committed to.
func (t *Tenant) checkText(commitment abi.Digest) error {
	lines, err := t.readText(commitment)
	if err == nil && lines == nil {
		return &Problem{Code: CodeTextMismatch, Path: t.disk.rel(t.path("texts")), Detail: fmt.Sprintf("the text with commitment %s is missing", commitment)}
	}
	return err
}

// readText reads the text a record commits to; one that is gone is nil.
func (t *Tenant) readText(commitment abi.Digest) ([]string, error) {
	path := filepath.Join(t.path("texts"), commitment.Hex())
	b, err := readSmall(path, TextBytesMax)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, t.disk.problem("read text", path, err)
	}
	lines, got, err := decodeText(b)
	if err != nil || got != commitment {
		return nil, &Problem{Code: CodeTextMismatch, Path: t.disk.rel(path), Detail: "the text is not the one the record commits to", cause: err}
	}
	return lines, nil
}

// AdmissionRefused is a request that was refused.
type AdmissionRefused struct {
	RequestID string
	Action    string
	Code      string
	Reasons   []string // free text, kept beside the record
	Identity  trace.Identity
	Plan      abi.Digest
	FlowID    abi.ID
	Decision  *Decision // of the policy that refused it; nil where none did
}

// Refuse records a refused admission and signs a head over it.
func (t *Tenant) Refuse(a AdmissionRefused) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.ready(); err != nil {
		return err
	}
	commitment, err := t.keepText(a.Reasons)
	if err != nil {
		return fmt.Errorf("record refusal: %w", err)
	}
	records := []*Record{{Type: TypeAdmissionRefused, AdmissionRefused: &AdmissionRefusedRecord{RequestID: a.RequestID,
		Action: a.Action, Code: a.Code, FlowID: a.FlowID, Plan: a.Plan, Identity: a.Identity, Reasons: commitment}}}
	if d := a.Decision; d != nil && len(d.Input) <= decisionInputBytesMax {
		decided, err := t.decisionRecord(d)
		if err != nil {
			return fmt.Errorf("record refusal: %w", err)
		}
		records = append(records, decided)
	}
	if err := t.record(records...); err != nil {
		return err
	}
	return t.signHead()
}

// keepText writes the text that a record is to commit to.
func (t *Tenant) keepText(lines []string) (abi.Digest, error) {
	var salt [trace.SaltBytes]byte
	if err := t.disk.random(salt[:]); err != nil {
		return "", err
	}
	b, commitment, err := encodeText(salt, lines)
	if err != nil {
		return "", err
	}
	return commitment, t.disk.writeFile(filepath.Join(t.path("texts"), commitment.Hex()), b)
}
