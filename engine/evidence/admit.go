package evidence

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host/trace"
)

// Admission is a run to be admitted. Tenant and StoreID of the payload are
// filled in if they are empty.
type Admission struct {
	trace.Admission
	FlowID   abi.ID
	Datasets []DatasetSeen
}

// datasetStates in the order a dataset goes through them.
func datasetRank(state string) int {
	switch state {
	case "experimental":
		return 1
	case "frozen":
		return 2
	case "deprecated":
		return 3
	}
	return 0
}

func datasetKey(d DatasetSeen) string { return string(d.DatasetID) + "@" + d.Version }

// CheckDataset refuses a dataset whose id and version were used before with
// another hash or in a later state.
func (t *Tenant) CheckDataset(d DatasetSeen) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.checkDataset(d)
}

func (t *Tenant) checkDataset(d DatasetSeen) error {
	if _, err := abi.ParseDigest(string(d.Hash)); err != nil || datasetRank(d.State) == 0 {
		return fmt.Errorf("dataset %s version %.60q: state %.20q or hash %.80q is not valid", d.DatasetID, d.Version, d.State, d.Hash)
	}
	seen, ok := t.datasets[datasetKey(d)]
	switch {
	case !ok:
		return nil
	case seen.Hash != d.Hash:
		return &Problem{Code: CodeDatasetChanged, Detail: fmt.Sprintf("dataset %s version %q has hash %s and was used before with %s", d.DatasetID, d.Version, d.Hash, seen.Hash)}
	case datasetRank(d.State) < datasetRank(seen.State):
		return &Problem{Code: CodeDatasetState, Detail: fmt.Sprintf("dataset %s version %q is %s and was used before as %s", d.DatasetID, d.Version, d.State, seen.State)}
	}
	return nil
}

// checkAdmission refuses what cannot be admitted as it stands; t.mu is held.
func (t *Tenant) checkAdmission(a *Admission) error {
	if a.Tenant == "" {
		a.Tenant = t.id.String()
	}
	if a.StoreID == "" {
		a.StoreID = t.store.id
	}
	if a.Tenant != t.id.String() || a.StoreID != t.store.id {
		return fmt.Errorf("admit run: tenant %q or store %q is not this one", a.Tenant, a.StoreID)
	}
	if _, err := abi.ParseRunID(string(a.RunID)); err != nil {
		return fmt.Errorf("admit run: %w", err)
	}
	if t.runs[a.RunID] != nil || t.open[a.RunID] != nil {
		return &Problem{Code: CodeRunExists, Detail: fmt.Sprintf("run %s was admitted before", a.RunID)}
	}
	if a.RequestID != "" {
		if err := checkRequestID(a.RequestID); err != nil {
			return err
		}
		if run, ok := t.requests[a.RequestID]; ok {
			return &Problem{Code: CodeRequestExists, Detail: fmt.Sprintf("request %q was admitted before as run %s", a.RequestID, run)}
		}
	}
	for _, d := range a.Datasets {
		if err := t.checkDataset(d); err != nil {
			return err
		}
	}
	return nil
}

// Admit makes a run exist. Its ADMISSION event is durable in a new journal
// before the ledger's run_admitted record is, and both are when it returns.
func (t *Tenant) Admit(a Admission) (*Journal, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.ready(); err != nil {
		return nil, err
	}
	if err := t.checkAdmission(&a); err != nil {
		return nil, err
	}
	payload, err := trace.EncodePayload(a.Admission)
	if err != nil {
		return nil, fmt.Errorf("admit run %s: %w", a.RunID, err)
	}
	j, err := t.newJournal(a.RunID)
	if err != nil {
		return nil, err
	}
	_, err = j.Append(trace.LaneControl, trace.Event{Kind: trace.KindAdmission, Cause: trace.CauseRuntime, Attempt: 1, Payload: payload})
	if err == nil {
		err = j.Sync()
	}
	if err == nil {
		err = t.disk.syncDir(t.path("journal"))
	}
	if err == nil {
		err = t.record(t.admissionRecords(a)...)
	}
	if err != nil {
		return nil, errors.Join(err, t.dropJournal(j))
	}
	t.open[a.RunID] = j
	return j, nil
}

func (t *Tenant) admissionRecords(a Admission) []*Record {
	var records []*Record
	for _, d := range a.Datasets {
		if t.datasets[datasetKey(d)] != d {
			records = append(records, &Record{Type: TypeDatasetSeen, DatasetSeen: &d})
		}
	}
	return append(records, &Record{Type: TypeRunAdmitted, RunAdmitted: &RunAdmittedRecord{
		RunID: a.RunID, FlowID: a.FlowID, RequestID: a.RequestID, Plan: a.Identity.Plan}})
}

// dropJournal removes the journal of a run that was not admitted. If the
// ledger's record may have reached the disk the journal must stay: the next
// open decides.
func (t *Tenant) dropJournal(j *Journal) error {
	err := j.f.Close()
	if t.disk.broken.Load() != nil {
		return err
	}
	return errors.Join(err, t.removeJournal(j.run))
}

// removeJournal removes a run's journal and then its key.
func (t *Tenant) removeJournal(run abi.RunID) error {
	if err := t.disk.remove(t.journalPath(run)); err != nil {
		return err
	}
	if err := t.disk.syncDir(t.path("journal")); err != nil {
		return err
	}
	return t.disk.remove(t.runKeyPath(run))
}

const journalSuffix = ".journal"

func (t *Tenant) journalPath(run abi.RunID) string {
	return filepath.Join(t.path("journal"), string(run)+journalSuffix)
}

// newJournal makes the key and the file of a new journal; nothing is durable yet.
func (t *Tenant) newJournal(run abi.RunID) (*Journal, error) {
	secret, err := t.makeRunSecret(run)
	if err != nil {
		return nil, err
	}
	macKey, err := secret.journalKey()
	if err != nil {
		return nil, err
	}
	effects, err := secret.key("writ/effect-key/1")
	if err != nil {
		return nil, err
	}
	f, err := t.disk.create(t.journalPath(run), os.O_RDWR|os.O_EXCL)
	if err != nil {
		return nil, err
	}
	preamble, mac := trace.JournalPreamble(macKey, run)
	if err := t.disk.writeAt(f, preamble, 0); err != nil {
		return nil, errors.Join(err, f.Close(), t.disk.remove(f.Name()))
	}
	return makeJournal(t, run, f, macKey, effects, int64(len(preamble)), mac), nil
}
