package evidence

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// snapshot is the store and its keys as a killed process would leave them.
type snapshot struct {
	dir      string
	step     string
	admitted bool // Admit had returned
	sealed   bool // Seal had returned
}

// TestKillAtEveryStep takes a run from admission to its seal, copies store and
// keys before every change to a file, and opens each copy: nothing that was
// acknowledged is missing, and what is half done is finished or undone.
func TestKillAtEveryStep(t *testing.T) {
	o := options(t)
	s := initStore(t, o)
	tenant := tenantOf(t, s)
	sealedRun(t, tenant, 1)

	var snapshots []snapshot
	var admitted, sealed bool
	s.disk.fault = func(op, path string) error {
		snapshots = append(snapshots, snapshot{copyTree(t, filepath.Dir(o.Dir)), op + " " + filepath.Base(path), admitted, sealed})
		return nil
	}
	a := admission(2)
	a.Datasets = []DatasetSeen{{DatasetID: "sbom", Version: "1", State: "frozen", Hash: digestA}}
	j := must[*Journal](t)(tenant.Admit(a))
	admitted = true
	smallRun(t, j)
	result := must[Sealed](t)(j.Seal(smallLayout, runEnd))
	sealed = true
	ok(t, s.disk.fault("after", "the seal"))
	s.disk.fault = nil
	ok(t, s.Close())

	if len(snapshots) < 30 {
		t.Fatalf("only %d steps seen", len(snapshots))
	}
	for i, snap := range snapshots {
		t.Run(fmt.Sprintf("%03d %s", i, snap.step), func(t *testing.T) {
			reopenKilled(t, o, snap, result)
		})
	}
}

func reopenKilled(t *testing.T, o Options, snap snapshot, result Sealed) {
	o.Dir, o.KeyDir = filepath.Join(snap.dir, "store"), filepath.Join(snap.dir, "keys")
	adoptCopy(t, o.Dir)
	for range 2 { // opening twice finds nothing more to do
		s := must[*Store](t)(Open(o))
		tenant := tenantOf(t, s)
		run, err := tenant.Run(runID(2))
		switch {
		case err != nil && snap.admitted:
			t.Fatalf("an admitted run is gone: %v", err)
		case err == nil && snap.sealed && run.TraceRoot != result.TraceRoot:
			t.Fatalf("a sealed run is %+v", run)
		case err == nil && run.Sealed() && run.TraceRoot != result.TraceRoot:
			t.Fatalf("trace root %s after recovery, want %s", run.TraceRoot, result.TraceRoot)
		case err == nil && !run.Sealed():
			must[*Trace](t)(tenant.OpenJournal(runID(2))).Close()
		}
		report := must[Report](t)(s.Verify(context.Background(), nil))
		for _, p := range report.Problems {
			t.Errorf("verify: %v", p)
		}
		if run.Sealed() && report.Tenants[0].Unanchored != 0 {
			t.Errorf("%d records without a head", report.Tenants[0].Unanchored)
		}
		if err != nil {
			wantCode(t, err, CodeRunUnknown)
			result = sealedRun(t, tenant, 2) // the id and the request are free
		}
		ok(t, s.Close())
	}
}

// TestFailureAtEveryStep makes every change to a file fail once, as on a full
// disk: what is reported as done is done, and the next open goes on.
func TestFailureAtEveryStep(t *testing.T) {
	for n := 0; ; n++ {
		o := options(t)
		s := initStore(t, o)
		tenant := tenantOf(t, s)
		sealedRun(t, tenant, 1)
		count := 0
		var failed string
		s.disk.fault = func(op, path string) error {
			if count++; count == n+1 {
				failed = op + " " + filepath.Base(path)
				return unix.ENOSPC
			}
			return nil
		}
		sealed, err := tryRun(tenant)
		s.disk.fault = nil
		if failed == "" {
			ok(t, err)
			if n < 30 {
				t.Fatalf("only %d steps seen", n)
			}
			return
		}
		if err != nil && CodeOf(err) != CodeFull && CodeOf(err) != CodeBroken {
			t.Errorf("step %d %s: error %v has no code for a full disk", n, failed, err)
		}
		checkAfterFailure(t, s, o, fmt.Sprintf("step %d %s", n, failed), sealed, err)
	}
}

// tryRun is sealedRun for run 2, giving up at the first error.
func tryRun(tenant *Tenant) (s Sealed, err error) {
	j, err := tenant.Admit(admission(2))
	if err != nil {
		return s, err
	}
	r := &recorder{j: j}
	r.small()
	if r.err != nil {
		return s, errors.Join(r.err, j.Close())
	}
	return j.Seal(smallLayout, runEnd)
}

func checkAfterFailure(t *testing.T, s *Store, o Options, what string, sealed Sealed, err error) {
	t.Helper()
	broken := s.Ready() != nil
	tenant := tenantOf(t, s)
	if broken {
		_, again := tenant.Admit(admission(3))
		wantCode(t, again, CodeBroken)
	} else {
		sealedRun(t, tenant, 3) // there is room again
	}
	_ = s.Close()
	s = openStore(t, o)
	run, found := tenantOf(t, s).Run(runID(2))
	if err == nil && (found != nil || run.TraceRoot != sealed.TraceRoot) {
		t.Errorf("%s: sealed without an error and then %+v, %v", what, run, found)
	}
	report := must[Report](t)(s.Verify(context.Background(), nil))
	for _, p := range report.Problems {
		t.Errorf("%s: verify: %v", what, p)
	}
	ok(t, s.Close())
}

// TestJournalCutAtEveryByte cuts an unfinished run's journal: it opens with
// everything up to the last whole group, and never with more or with damage.
func TestJournalCutAtEveryByte(t *testing.T) {
	o := options(t)
	s := initStore(t, o)
	tenant := tenantOf(t, s)
	j := must[*Journal](t)(tenant.Admit(admission(1)))
	var ends []int64
	size := func() int64 { return must[os.FileInfo](t)(os.Stat(tenant.journalPath(runID(1)))).Size() }
	ends = append(ends, size())
	for range 3 {
		appendEvent(t, j, step, 3, stepStart)
		ok(t, j.Sync())
		ends = append(ends, size())
	}
	ok(t, s.Close())
	whole := must[[]byte](t)(os.ReadFile(tenant.journalPath(runID(1))))
	secret := must[runSecret](t)(tenant.readRunSecret(runID(1)))
	key := must[[]byte](t)(secret.journalKey())
	for n := range len(whole) + 1 {
		for _, zeros := range []int{0, 1, 50} {
			b := append(append([]byte(nil), whole[:n]...), make([]byte, zeros)...)
			sc := scanBytes(t, b, key)
			want := 0
			for _, end := range ends {
				if int64(n) >= end {
					want++
				}
			}
			torn := sc.tail == nil || sc.tail.Torn
			// Zeros may complete the length of a group; then it cannot be told from damage.
			if zeros == 0 && !torn || int(sc.events) < want || zeros == 0 && int(sc.events) > want {
				t.Fatalf("cut at %d of %d with %d zeros: %d events, want %d; tail %v", n, len(whole), zeros, sc.events, want, sc.tail)
			}
		}
	}
	// On disk, the next open cuts the unfinished group off.
	ok(t, os.WriteFile(tenant.journalPath(runID(1)), whole[:ends[2]+7], fileMode))
	s = openStore(t, o)
	tenant = tenantOf(t, s)
	if got := must[os.FileInfo](t)(os.Stat(tenant.journalPath(runID(1)))).Size(); got != ends[2] {
		t.Errorf("journal of %d bytes after recovery, want %d", got, ends[2])
	}
}

// TestJournalDamageQuarantines changes every byte of a journal in turn.
func TestJournalDamageQuarantines(t *testing.T) {
	o := options(t)
	s := initStore(t, o)
	tenant := tenantOf(t, s)
	j := must[*Journal](t)(tenant.Admit(admission(1)))
	appendEvent(t, j, step, 3, stepStart)
	ok(t, j.Sync())
	ok(t, s.Close())
	path := tenant.journalPath(runID(1))
	whole := must[[]byte](t)(os.ReadFile(path))
	key := must[[]byte](t)(must[runSecret](t)(tenant.readRunSecret(runID(1))).journalKey())
	for i := range whole {
		b := append([]byte(nil), whole...)
		b[i] ^= 0x41
		if sc := scanBytes(t, b, key); sc.tail == nil || sc.tail.Torn {
			t.Fatalf("byte %d changed: tail %v", i, sc.tail)
		}
	}

	whole[len(whole)-40] ^= 1
	ok(t, os.WriteFile(path, whole, fileMode))
	o.ReadOnly = true
	report := must[Report](t)(openStore(t, o).Verify(context.Background(), nil))
	if len(report.Problems) != 1 || report.Problems[0].Code != CodeJournalDamaged || report.Problems[0].Address != "control/0" {
		t.Errorf("verify of a damaged journal: %v", report.Problems)
	}
	o.ReadOnly = false
	s = openStore(t, o)
	tenant = tenantOf(t, s)
	run := must[RunSummary](t)(tenant.Run(runID(1)))
	if run.State != StateQuarantined || run.LastGood != "control/0" {
		t.Errorf("run %+v, want quarantined after control/0", run)
	}
	tr := must[*Trace](t)(tenant.OpenJournal(runID(1)))
	defer tr.Close()
	if len(tr.Lanes()) != 1 || tr.Damage() == nil {
		t.Errorf("lanes %v, damage %v", tr.Lanes(), tr.Damage())
	}
	if report := must[Report](t)(s.Verify(context.Background(), nil)); len(report.Problems) > 0 {
		t.Errorf("verify after quarantine: %v", report.Problems)
	}
}
