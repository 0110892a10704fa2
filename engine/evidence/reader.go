package evidence

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"slices"
	"sort"

	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host/trace"
)

// Trace is the record of one run, opened for reading: a sealed trace whose
// root was compared with the ledger, or the journal of an unfinished run as far
// as it is whole. Payloads are read when asked for and checked against the
// headers' commitments.
type Trace struct {
	tenant  *Tenant
	summary RunSummary
	sealed  bool
	lanes   []trace.Lane
	headers map[trace.Lane][]trace.Header
	bodies  map[trace.Lane][]body
	f       *os.File // payloads, or the journal; nil if there is none
	lost    *Problem // why payloads cannot be read
	tail    *Problem // what follows the whole part of a journal
}

// body is where an event's payload is kept in the file.
type body struct {
	offset int64
	size   int
	seq    uint64
}

// Entry is an event with its payload.
type Entry struct {
	trace.Header
	Payload []byte
}

// OpenTrace opens a sealed run and checks its headers against the ledger.
func (t *Tenant) OpenTrace(run abi.RunID) (*Trace, error) {
	summary, err := t.Run(run)
	if err != nil {
		return nil, err
	}
	if !summary.Sealed() {
		return nil, &Problem{Code: CodeRunNotSealed, Detail: fmt.Sprintf("run %s is %s and has no trace", run, summary.State)}
	}
	tr := &Trace{tenant: t, summary: summary, sealed: true, headers: map[trace.Lane][]trace.Header{}, bodies: map[trace.Lane][]body{}}
	if err := tr.readHeaders(t.tracePath(run, traceSuffix)); err != nil {
		return nil, err
	}
	tr.readIndex(t.tracePath(run, payloadsSuffix))
	return tr, nil
}

// readHeaders reads the trace file and compares its root with the ledger.
func (tr *Trace) readHeaders(path string) error {
	disk := tr.tenant.disk
	damaged := func(err error) error {
		return &Problem{Code: CodeTraceDamaged, Path: disk.rel(path), Detail: reason(err), cause: err}
	}
	f, err := openRegular(path)
	if errors.Is(err, fs.ErrNotExist) {
		return damaged(err)
	}
	if err != nil {
		return disk.problem("open trace", path, err)
	}
	defer f.Close()
	root, events, err := trace.Read(bufio.NewReaderSize(f, 128<<10), tr.summary.RunID, func(h trace.Header) error {
		tr.add(h)
		return nil
	})
	if err != nil {
		return damaged(err)
	}
	if root != tr.summary.TraceRoot || events != tr.summary.Events {
		return &Problem{Code: CodeTraceMismatch, Path: disk.rel(path),
			Detail: fmt.Sprintf("root %s over %d events; the ledger has %s over %d", root, events, tr.summary.TraceRoot, tr.summary.Events)}
	}
	return nil
}

func (tr *Trace) add(h trace.Header) {
	if _, ok := tr.headers[h.Lane]; !ok {
		tr.lanes = append(tr.lanes, h.Lane)
	}
	tr.headers[h.Lane] = append(tr.headers[h.Lane], h)
}

// readIndex finds the payloads. What it cannot read is told when a payload is
// asked for: the headers are good without.
func (tr *Trace) readIndex(path string) {
	disk := tr.tenant.disk
	f, err := openRegular(path)
	if err == nil {
		tr.f = f
		err = trace.ReadPayloads(f, tr.summary.RunID, func(a trace.Address, offset int64, size int) error {
			bodies := tr.bodies[a.Lane]
			if n := len(bodies); n > 0 && bodies[n-1].seq >= a.Seq {
				return fmt.Errorf("payload of %s is out of order", a)
			}
			tr.bodies[a.Lane] = append(bodies, body{offset: offset, size: size, seq: a.Seq})
			return nil
		})
	}
	if err != nil {
		tr.lost = &Problem{Code: CodePayloadsDamaged, Path: disk.rel(path), Detail: reason(err), cause: err}
	}
}

// OpenJournal opens an unfinished or quarantined run as far as its journal is
// whole. Another process may be writing it: a run that was sealed meanwhile is
// opened as a trace.
func (t *Tenant) OpenJournal(run abi.RunID) (*Trace, error) {
	summary, err := t.Run(run)
	if err != nil {
		return nil, err
	}
	f, s, err := t.openJournal(run)
	if CodeOf(err) == CodeRunMissing && t.store.readOnly {
		// The writer may have sealed it since the ledger was read.
		if now, loadErr := t.reload(run); loadErr == nil && now.Sealed() {
			return t.OpenTrace(run)
		}
	}
	if CodeOf(err) == CodeRunMissing && summary.State == StateQuarantined {
		f, s, err = t.openQuarantined(run)
	}
	if err != nil {
		return nil, err
	}
	tr := &Trace{tenant: t, summary: summary, f: f, headers: map[trace.Lane][]trace.Header{}, bodies: map[trace.Lane][]body{}}
	for _, lane := range journalLanes(s) {
		for _, at := range s.lanes[lane] {
			frame, err := s.read(f, lane, at)
			if err != nil {
				return nil, errors.Join(t.disk.problem("read journal", f.Name(), err), f.Close())
			}
			tr.add(frame.Header)
			tr.bodies[lane] = append(tr.bodies[lane], body{offset: at.offset, size: int(at.size), seq: at.seq})
		}
	}
	tr.tail = t.journalDamage(run, s)
	return tr, nil
}

// journalLanes is the layout if the run has ended, else run, the others as
// they began, control.
func journalLanes(s *scan) []trace.Lane {
	if s.seal {
		return s.layout
	}
	lanes := []trace.Lane{trace.LaneRun}
	for _, lane := range s.order {
		if lane != trace.LaneRun && lane != trace.LaneControl {
			lanes = append(lanes, lane)
		}
	}
	return append(lanes, trace.LaneControl)
}

// Summary returns what the ledger says of the run.
func (tr *Trace) Summary() RunSummary { return tr.summary }

// Sealed reports whether this is a sealed trace; otherwise it is a journal.
func (tr *Trace) Sealed() bool { return tr.sealed }

// Damage returns what is wrong with a journal after its last good event, nil
// if nothing is.
func (tr *Trace) Damage() *Problem { return tr.tail }

// Lanes returns the lanes that have events, in layout order.
func (tr *Trace) Lanes() []trace.Lane { return slices.Clone(tr.lanes) }

// Headers returns the headers of a lane, in order.
func (tr *Trace) Headers(lane trace.Lane) []trace.Header { return slices.Clone(tr.headers[lane]) }

// Events yields the events of a lane with their payloads, in order. It ends
// after an error.
func (tr *Trace) Events(lane trace.Lane) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for _, h := range tr.headers[lane] {
			payload, err := tr.payloadOf(h)
			if !yield(Entry{Header: h, Payload: payload}, err) || err != nil {
				return
			}
		}
	}
}

// Find returns the header of the event at an address. An address inside a
// HOST_CALLS batch finds the batch.
func (tr *Trace) Find(a trace.Address) (trace.Header, error) {
	headers := tr.headers[a.Lane]
	i := sort.Search(len(headers), func(i int) bool { return headers[i].Seq > a.Seq }) - 1
	if i >= 0 {
		h := headers[i]
		last := h.Seq
		if h.Kind == trace.KindHostCalls {
			last = tr.lastCall(headers, i)
		}
		if a.Seq <= last {
			return h, nil
		}
	}
	return trace.Header{}, &Problem{Code: CodeEventUnknown, Address: a.String(), Detail: fmt.Sprintf("run %s has no such event", tr.summary.RunID)}
}

// lastCall returns the number of the last call of the batch headers[i]: the
// next event begins after it, or its payload tells.
func (tr *Trace) lastCall(headers []trace.Header, i int) uint64 {
	if i+1 < len(headers) {
		return headers[i+1].Seq - 1
	}
	payload, err := tr.payloadOf(headers[i])
	if err != nil {
		return headers[i].Seq
	}
	count, err := trace.CallCount(payload)
	if err != nil {
		return headers[i].Seq
	}
	return headers[i].Seq + count - 1
}

// Payload returns the event at an address and its payload, checked against the
// header's commitment.
func (tr *Trace) Payload(a trace.Address) (trace.Header, []byte, error) {
	h, err := tr.Find(a)
	if err != nil {
		return trace.Header{}, nil, err
	}
	payload, err := tr.payloadOf(h)
	return h, payload, err
}

// Call returns the host call at an address inside a HOST_CALLS batch.
func (tr *Trace) Call(a trace.Address) (trace.Call, error) {
	h, payload, err := tr.Payload(a)
	if err != nil {
		return trace.Call{}, err
	}
	var calls trace.HostCalls
	if h.Kind != trace.KindHostCalls {
		return trace.Call{}, &Problem{Code: CodeEventUnknown, Address: a.String(), Detail: fmt.Sprintf("the event is %s, not a host call", h.Kind)}
	}
	if err := trace.DecodePayload(payload, &calls); err != nil {
		return trace.Call{}, &Problem{Code: CodePayloadMismatch, Address: h.Address().String(), Detail: err.Error(), cause: err}
	}
	return calls.Calls[a.Seq-h.Seq], nil
}

func (tr *Trace) payloadOf(h trace.Header) ([]byte, error) {
	if tr.lost != nil {
		return nil, tr.lost
	}
	stored, err := tr.storedOf(h)
	if err != nil {
		return nil, err
	}
	payload := stored.Inline
	if stored.Content != "" {
		payload, err = tr.tenant.content.Get(stored.Content, trace.PayloadBytesMax)
		var p *Problem
		if errors.As(err, &p) {
			p.Address = h.Address().String()
		}
		if err != nil {
			return nil, err
		}
	}
	if err := trace.CheckCommitment(h, stored.Salt, payload); err != nil {
		return nil, tr.mismatch(h, err)
	}
	return payload, nil
}

func (tr *Trace) mismatch(h trace.Header, err error) *Problem {
	return &Problem{Code: CodePayloadMismatch, Path: tr.tenant.disk.rel(tr.f.Name()), Address: h.Address().String(), Detail: err.Error(), cause: err}
}

// storedOf reads how the payload of h is kept.
func (tr *Trace) storedOf(h trace.Header) (trace.Stored, error) {
	bodies := tr.bodies[h.Lane]
	i, ok := slices.BinarySearchFunc(bodies, h.Seq, func(b body, seq uint64) int {
		switch {
		case b.seq < seq:
			return -1
		case b.seq > seq:
			return 1
		}
		return 0
	})
	if !ok {
		return trace.Stored{}, &Problem{Code: CodePayloadMissing, Path: tr.tenant.disk.rel(tr.f.Name()), Address: h.Address().String(), Detail: "the payload is not there"}
	}
	b := make([]byte, bodies[i].size)
	if _, err := tr.f.ReadAt(b, bodies[i].offset); err != nil && !errors.Is(err, io.EOF) {
		return trace.Stored{}, tr.tenant.disk.problem("read payload", tr.f.Name(), err)
	}
	if !tr.sealed {
		frame, _, err := trace.DecodeFrame(b)
		if err != nil {
			return trace.Stored{}, tr.mismatch(h, err)
		}
		return frame.Stored, nil
	}
	_, stored, err := trace.DecodePayloadEntry(b)
	if err == nil {
		err = stored.Check(h)
	}
	if err != nil {
		return trace.Stored{}, tr.mismatch(h, err)
	}
	return stored, nil
}

// ExecutionDigest recomputes the digest over the core events' payloads.
func (tr *Trace) ExecutionDigest() (abi.Digest, error) {
	var h trace.ExecutionHasher
	for _, lane := range tr.lanes {
		for e, err := range tr.Events(lane) {
			if err != nil {
				return "", err
			}
			if e.Kind.Core() {
				sum, _ := abi.DigestOf(e.Payload).Sum()
				h.Add(lane, e.Seq, e.Kind, sum)
			}
		}
	}
	return h.Digest(), nil
}

// Close closes the files.
func (tr *Trace) Close() error {
	if tr.f == nil {
		return nil
	}
	return tr.f.Close()
}
