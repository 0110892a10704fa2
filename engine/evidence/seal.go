package evidence

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host/trace"
)

// Sealed is what a run's seal came to.
type Sealed struct {
	TraceRoot       abi.Digest
	ExecutionDigest abi.Digest
	Events          uint64
	Head            []byte // the signed checkpoint that covers the run
}

const (
	traceSuffix    = ".trace"
	payloadsSuffix = ".payloads"
)

func (t *Tenant) tracePath(run abi.RunID, suffix string) string {
	return filepath.Join(t.path("trace"), string(run)+suffix)
}

// Seal ends the run. layout names every lane in the order they are laid out:
// run, each step with its rules and arbitration, the flow's, control. The run
// lane must end with EXECUTION_END, and nothing is appended after. end makes
// the RUN_END event of the execution digest. When Seal returns without an error
// the trace is durable, in the ledger and under a signed head, and the journal
// is gone. If it fails it may be called again, and the next open of the store
// finishes what was begun.
func (j *Journal) Seal(layout []trace.Lane, end func(executionDigest abi.Digest) (trace.Event, error)) (Sealed, error) {
	if !j.concluded {
		if err := j.conclude(layout, end); err != nil {
			return Sealed{}, fmt.Errorf("seal run %s: %w", j.run, err)
		}
	}
	err := j.Close()
	var sealed Sealed
	if err == nil {
		sealed, err = j.tenant.finishSeal(j.run)
	}
	if err != nil {
		return Sealed{}, fmt.Errorf("seal run %s: %w", j.run, err)
	}
	sealed.ExecutionDigest = j.digest
	return sealed, nil
}

// conclude makes the journal say that the run has ended and how it is laid
// out; from then on the seal can be finished without the caller.
func (j *Journal) conclude(layout []trace.Lane, end func(abi.Digest) (trace.Event, error)) error {
	j.mu.Lock()
	err, begun := j.usable(), j.sealFrames != nil
	j.ending = err == nil
	j.mu.Unlock()
	if err != nil {
		return err
	}
	if !begun {
		if err := j.endRun(layout, end); err != nil {
			j.mu.Lock()
			j.ending = false
			j.mu.Unlock()
			return err
		}
	}
	if err := j.addSeal(); err != nil {
		return err
	}
	if err := j.Sync(); err != nil {
		return err
	}
	j.concluded = true
	return nil
}

// endRun checks that the run can be sealed and appends RUN_END.
func (j *Journal) endRun(layout []trace.Lane, end func(abi.Digest) (trace.Event, error)) error {
	if err := j.Sync(); err != nil {
		return err
	}
	s, err := j.tenant.scanFile(j.f, j.run)
	if err != nil {
		return err
	}
	if s.tail != nil {
		return s.tail
	}
	if !s.ended {
		return errors.New("the run lane has no EXECUTION_END")
	}
	if err := s.checkLayout(layout); err != nil {
		return err
	}
	digest := s.executionDigest(layout)
	e, err := end(digest)
	if err != nil {
		return err
	}
	if e.Kind != trace.KindRunEnd {
		return fmt.Errorf("the last event is %s, not RUN_END", e.Kind)
	}
	if _, err := j.Append(trace.LaneControl, e); err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.digest, j.sealFrames = digest, trace.SealFrames(layout)
	return nil
}

// addSeal puts the frames that are still to come into the open group. After a
// failure it goes on where it stopped.
func (j *Journal) addSeal() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	for len(j.sealFrames) > 0 {
		switch {
		case j.writing:
			j.idle.Wait()
		case len(j.buf) >= trace.GroupBytesMax:
			if err := j.flush(false); err != nil {
				return err
			}
		default:
			j.buf = append(j.buf, j.sealFrames[0]...)
			j.sealFrames = j.sealFrames[1:]
			j.appended++
		}
	}
	return nil
}

// finishSeal takes a run whose journal says that it is to be sealed from
// wherever it stopped to its end.
func (t *Tenant) finishSeal(run abi.RunID) (Sealed, error) {
	summary, err := t.Run(run)
	if err != nil {
		return Sealed{}, err
	}
	var record *Record
	if !summary.Sealed() {
		// Other runs go on while this one's files are written.
		if record, err = t.writeSealed(run); err != nil {
			return Sealed{}, err
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.ready(); err != nil {
		return Sealed{}, err
	}
	if record != nil {
		if err := t.record(record); err != nil {
			return Sealed{}, err
		}
	}
	if err := t.signHead(); err != nil {
		return Sealed{}, err
	}
	summary = *t.runs[run]
	return Sealed{TraceRoot: summary.TraceRoot, Events: summary.Events, Head: t.newest.text}, t.removeJournal(run)
}

// writeSealed writes the two files of a run from its journal and returns the
// record of them. Doing it again gives the same bytes.
func (t *Tenant) writeSealed(run abi.RunID) (*Record, error) {
	f, s, err := t.openJournal(run)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if p := t.journalDamage(run, s); p != nil {
		return nil, p
	}
	w, err := t.newSealWriter(run)
	if err != nil {
		return nil, err
	}
	root, events, err := w.layOut(f, s)
	if err := w.settle(err); err != nil {
		return nil, err
	}
	return &Record{Type: TypeRunSealed, RunSealed: &RunSealedRecord{RunID: run, TraceRoot: root, Events: events,
		State: s.end.State, Decision: s.end.Decision, Result: s.end.Result, Permissive: s.end.Permissive}}, nil
}

// sealWriter writes a run's two files under temporary names.
type sealWriter struct {
	tenant            *Tenant
	run               abi.RunID
	headers, payloads *os.File
	headerBuf         *bufio.Writer
	payloadBuf        *bufio.Writer
}

func (t *Tenant) newSealWriter(run abi.RunID) (*sealWriter, error) {
	headers, err := t.disk.tempFile(t.path("trace"))
	if err != nil {
		return nil, err
	}
	payloads, err := t.disk.tempFile(t.path("trace"))
	if err != nil {
		return nil, errors.Join(err, headers.Close(), t.disk.remove(headers.Name()))
	}
	return &sealWriter{tenant: t, run: run, headers: headers, payloads: payloads,
		headerBuf: bufio.NewWriterSize(headers, 128<<10), payloadBuf: bufio.NewWriterSize(payloads, 128<<10)}, nil
}

// layOut copies the events out of the journal in layout order, one at a time.
func (w *sealWriter) layOut(journal *os.File, s *scan) (abi.Digest, uint64, error) {
	if err := w.tenant.disk.step("write", w.headers.Name()); err != nil {
		return "", 0, err
	}
	headers, err := trace.NewWriter(w.headerBuf, w.run)
	if err != nil {
		return "", 0, err
	}
	payloads, err := trace.NewPayloadsWriter(w.payloadBuf, w.run)
	if err != nil {
		return "", 0, err
	}
	for _, lane := range s.layout {
		for _, at := range s.lanes[lane] {
			frame, err := s.read(journal, lane, at)
			if err != nil {
				return "", 0, err
			}
			if err := headers.Add(frame.HeaderRaw); err != nil {
				return "", 0, err
			}
			if err := payloads.Add(frame.Header.Address(), frame.Stored); err != nil {
				return "", 0, err
			}
		}
	}
	return headers.End()
}

// settle makes the two files durable and gives them their names, the trace
// last; after a failure it removes them.
func (w *sealWriter) settle(err error) error {
	t := w.tenant
	err = t.disk.problem("write", w.headers.Name(), errors.Join(err, w.headerBuf.Flush(), w.payloadBuf.Flush()))
	if err == nil {
		err = t.disk.sync(w.payloads)
	}
	if err == nil {
		err = t.disk.sync(w.headers)
	}
	err = t.disk.settle(w.payloads, err, t.tracePath(w.run, payloadsSuffix))
	return t.disk.settle(w.headers, err, t.tracePath(w.run, traceSuffix))
}
