package evidence

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/writrun/writ/guest-abi/abi"
)

// recover finishes what an earlier writer left half done: it removes
// unfinished files and journals of runs that were never admitted, finishes
// seals that were begun, cuts unfinished writes off journals, and quarantines
// damaged ones. A damaged tenant is left as it is. Nobody else has the tenant yet.
func (t *Tenant) recover() error {
	if t.damage != nil {
		return nil
	}
	for _, dir := range []string{"journal", "trace", "heads", "texts"} {
		if err := t.disk.removeTemps(t.path(dir)); err != nil {
			return err
		}
	}
	if err := t.disk.removeTemps(t.contentDir()); err != nil {
		return err
	}
	runs, err := t.journals()
	if err != nil {
		return err
	}
	for _, run := range runs {
		if err := t.recoverRun(run); err != nil {
			return err
		}
	}
	return t.dropKeys()
}

// journals lists the runs that have a journal file.
func (t *Tenant) journals() ([]abi.RunID, error) {
	dir := t.path("journal")
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, t.disk.problem("read directory", dir, err)
	}
	var runs []abi.RunID
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), journalSuffix)
		if run, err := abi.ParseRunID(name); ok && err == nil {
			runs = append(runs, run)
		}
	}
	return runs, nil
}

func (t *Tenant) recoverRun(run abi.RunID) error {
	summary := t.runs[run]
	switch {
	case summary == nil:
		return t.removeJournal(run)
	case summary.State == StateQuarantined:
		return t.moveToQuarantine(run)
	case summary.Sealed():
		_, err := t.finishSeal(run)
		return err
	}
	f, s, err := t.openJournal(run)
	if code := CodeOf(err); code == CodeKeyMissing || code == CodeKeyDamaged || code == CodeKeyExposed {
		return nil // the journal cannot be judged, so it is left as it is; verify says so
	}
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if p := t.journalDamage(run, s); p != nil {
		return t.quarantine(run, p.Address)
	}
	if s.seal {
		_, err := t.finishSeal(run)
		return err
	}
	return t.cutJournal(run, s)
}

// cutJournal removes an unfinished last group: nothing durable was in it.
func (t *Tenant) cutJournal(run abi.RunID, s *scan) error {
	if s.tail == nil {
		return nil
	}
	f, err := t.disk.create(t.journalPath(run), os.O_RDWR)
	if err != nil {
		return err
	}
	err = t.disk.step("truncate", f.Name())
	if err == nil {
		err = f.Truncate(s.goodSize)
	}
	if err == nil {
		err = t.disk.sync(f)
	}
	return errors.Join(t.disk.problem("cut journal", f.Name(), err), f.Close())
}

func (t *Tenant) quarantine(run abi.RunID, lastGood string) error {
	if err := t.record(&Record{Type: TypeQuarantined, Quarantined: &QuarantinedRecord{RunID: run, LastGood: lastGood}}); err != nil {
		return err
	}
	if err := t.signHead(); err != nil {
		return err
	}
	return t.moveToQuarantine(run)
}

// moveToQuarantine takes a damaged journal out of the way. Its key stays, so
// that its good part can still be authenticated.
func (t *Tenant) moveToQuarantine(run abi.RunID) error {
	if err := t.disk.rename(t.journalPath(run), filepath.Join(t.path("quarantine"), string(run)+journalSuffix)); err != nil {
		return err
	}
	if err := t.disk.syncDir(t.path("quarantine")); err != nil {
		return err
	}
	return t.disk.syncDir(t.path("journal"))
}

// dropKeys removes the keys of runs that were sealed or never admitted.
func (t *Tenant) dropKeys() error {
	dir := filepath.Dir(t.runKeyPath("x"))
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return t.disk.problem("read directory", dir, err)
	}
	for _, e := range entries {
		run := abi.RunID(strings.TrimSuffix(e.Name(), ".key"))
		summary := t.runs[run]
		if summary == nil || summary.Sealed() {
			if err := t.disk.remove(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}
