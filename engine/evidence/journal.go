package evidence

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host/trace"
)

// Journal is the growing record of an unfinished run. Any number of lanes may
// append at once; events of one lane keep the order they are appended in.
type Journal struct {
	tenant  *Tenant
	run     abi.RunID
	f       *os.File
	closer  *trace.Closer
	effects []byte

	saltMu sync.Mutex
	salts  []byte // drawn and not yet used

	mu       sync.Mutex
	idle     sync.Cond // signalled when writing ends
	lanes    map[trace.Lane]uint64
	buf      []byte // the open group: room for its head, then frames
	spare    []byte
	appended uint64 // events
	durable  uint64 // of them
	size     int64  // of the file, in bytes
	mac      trace.MAC
	writing  bool
	inFlight int // bytes of the group that is being written
	closed   bool

	ending     bool     // only RUN_END and the seal may still come
	sealFrames [][]byte // that are still to come
	concluded  bool     // they are durable
	digest     abi.Digest
}

func makeJournal(t *Tenant, run abi.RunID, f *os.File, macKey, effects []byte, size int64, mac trace.MAC) *Journal {
	j := &Journal{tenant: t, run: run, f: f, closer: trace.NewCloser(macKey), effects: effects,
		lanes: map[trace.Lane]uint64{}, size: size, mac: mac, buf: emptyGroup(nil), spare: emptyGroup(nil)}
	j.idle.L = &j.mu
	return j
}

// emptyGroup returns buf with nothing but the room for a group's head.
func emptyGroup(buf []byte) []byte {
	return append(buf[:0], make([]byte, trace.GroupHeadBytes)...)
}

// RunID returns the run's id.
func (j *Journal) RunID() abi.RunID { return j.run }

// EffectKey returns the idempotency key of an effect: the same for every
// attempt, and not to be guessed before the first one, from the run id or else.
func (j *Journal) EffectKey(lane trace.Lane, ordinal uint32) string {
	return effectKey(j.effects, lane, ordinal)
}

// Append adds an event to the end of a lane and returns its address. It is
// durable after the next [Journal.Sync]. A payload above its inline limit is
// durable in the content store before Append returns.
func (j *Journal) Append(lane trace.Lane, e trace.Event) (trace.Address, error) {
	if err := checkEvent(e); err != nil {
		return trace.Address{}, fmt.Errorf("append %s to lane %s: %w", e.Kind, lane, err)
	}
	var stored trace.Stored
	if err := j.salt(&stored.Salt); err != nil {
		return trace.Address{}, err
	}
	h := trace.Header{Lane: lane, Kind: e.Kind, Cause: e.Cause, Attempt: e.Attempt, AtNanos: j.tenant.store.now().UnixNano(),
		PayloadSize: uint64(len(e.Payload)), Commitment: trace.Commit(stored.Salt, e.Payload)}
	if err := h.Check(); err != nil {
		return trace.Address{}, fmt.Errorf("append %s to lane %s: %w", e.Kind, lane, err)
	}
	if len(e.Payload) <= trace.InlineMax(e.Kind) {
		stored.Inline = e.Payload
	} else {
		d, err := j.tenant.content.PutBytes(e.Payload)
		if err != nil {
			return trace.Address{}, fmt.Errorf("append %s to lane %s: %w", e.Kind, lane, err)
		}
		stored.Content = d
	}
	return j.add(h, stored, max(e.Span, 1))
}

// saltsDrawn is how many salts are drawn at once: drawing one at a time is a
// system call for each event, one after the other for all runs of a store.
const saltsDrawn = 32

// salt takes the next salt of those drawn.
func (j *Journal) salt(salt *[trace.SaltBytes]byte) error {
	j.saltMu.Lock()
	defer j.saltMu.Unlock()
	if len(j.salts) == 0 {
		fresh := make([]byte, saltsDrawn*trace.SaltBytes)
		if err := j.tenant.disk.random(fresh); err != nil {
			return err
		}
		j.salts = fresh
	}
	j.salts = j.salts[copy(salt[:], j.salts):]
	return nil
}

// checkEvent refuses a payload that could not be read back, and a span that
// would leave addresses without a call. Of host calls it reads the number only:
// they are built of items their recorder vouches for, and a second look at each
// would cost as much as recording it.
func checkEvent(e trace.Event) error {
	span := uint64(1)
	if e.Kind == trace.KindHostCalls {
		calls, err := trace.CallCount(e.Payload)
		if err != nil {
			return err
		}
		if calls > 1 && len(e.Payload) > trace.BatchInlineBytesMax {
			return fmt.Errorf("%d host calls take %d bytes; a batch above %d holds one call", calls, len(e.Payload), trace.BatchInlineBytesMax)
		}
		span = calls
	} else if err := trace.CheckPayload(e.Payload); err != nil {
		return err
	}
	if max(e.Span, 1) != span {
		return fmt.Errorf("event takes %d numbers and says %d", span, e.Span)
	}
	return nil
}

// add gives the event its number and puts it into the open group.
func (j *Journal) add(h trace.Header, s trace.Stored, span uint64) (trace.Address, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	// What a write in progress holds counts as well: if that fails, both are one
	// group again, and no reader takes a longer one.
	for len(j.buf)+j.inFlight >= trace.GroupBytesMax {
		if j.writing {
			j.idle.Wait()
			continue
		}
		if err := j.flush(false); err != nil {
			return trace.Address{}, err
		}
	}
	if err := j.usable(); err != nil {
		return trace.Address{}, err
	}
	if j.ending != (h.Kind == trace.KindRunEnd) {
		return trace.Address{}, j.isClosed()
	}
	h.Seq = j.lanes[h.Lane]
	j.buf = trace.AppendEventFrame(j.buf, h.Encode(), s)
	j.lanes[h.Lane] = h.Seq + span
	j.appended++
	return h.Address(), nil
}

func (j *Journal) usable() error {
	if j.closed {
		return j.isClosed()
	}
	if p := j.tenant.disk.broken.Load(); p != nil {
		return p
	}
	return nil
}

func (j *Journal) isClosed() error {
	return &Problem{Code: CodeJournalClosed, Detail: fmt.Sprintf("the journal of run %s takes no such event: the run is ending, or its journal is closed", j.run)}
}

// Sync makes everything appended so far durable, with one write and one fsync.
// Callers at the same time share them.
func (j *Journal) Sync() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	target := j.appended
	for j.durable < target {
		if j.writing {
			j.idle.Wait()
			continue
		}
		if err := j.flush(true); err != nil {
			return err
		}
	}
	return nil
}

// flush writes the open group and, if asked to, makes the file durable. It is
// called with j.mu held and nobody writing, and lets go of j.mu meanwhile.
// After a failed write the group is open again, with what was added since.
func (j *Journal) flush(durable bool) error {
	if err := j.usable(); err != nil {
		return err
	}
	group, upTo, size, before := j.buf, j.appended, j.size, j.mac
	j.buf, j.spare, j.writing, j.inFlight = emptyGroup(j.spare), nil, true, len(group)
	j.mu.Unlock()

	length := len(group)
	var mac trace.MAC
	var writeErr, syncErr error
	if length > trace.GroupHeadBytes {
		group, mac = j.closer.Close(before, group)
		writeErr = j.tenant.disk.writeAt(j.f, group, size)
	}
	if durable && writeErr == nil {
		syncErr = j.tenant.disk.sync(j.f)
	}

	j.mu.Lock()
	j.writing, j.inFlight = false, 0
	j.idle.Broadcast()
	if writeErr != nil {
		added := j.buf
		j.buf, j.spare = append(group[:length], added[trace.GroupHeadBytes:]...), added
		return writeErr
	}
	if length > trace.GroupHeadBytes {
		j.size, j.mac = size+int64(len(group)), mac
	}
	j.spare = group
	if durable && syncErr == nil {
		j.durable = upTo
	}
	return syncErr
}

// Interrupt records why the run stops before its end, and closes its journal.
// The run can be taken up again from it. After a seal that failed it only
// closes: the next open of the store finishes the seal.
func (j *Journal) Interrupt(reason string) error {
	payload, err := trace.EncodePayload(trace.ExecutionInterrupted{Reason: reason})
	j.mu.Lock()
	ending := j.ending
	j.mu.Unlock()
	if err == nil && !ending {
		_, err = j.Append(trace.LaneControl, trace.Event{Kind: trace.KindExecutionInterrupted, Cause: trace.CauseRuntime, Attempt: 1, Payload: payload})
	}
	if err == nil {
		err = j.Sync()
	}
	return errors.Join(err, j.Close())
}

// Close closes the journal of an unfinished run. What was appended after the
// last Sync may be lost. Closing twice is no error.
func (j *Journal) Close() error {
	j.mu.Lock()
	for j.writing {
		j.idle.Wait()
	}
	already := j.closed
	j.closed = true
	j.mu.Unlock()
	if already {
		return nil
	}
	j.tenant.mu.Lock()
	delete(j.tenant.open, j.run)
	j.tenant.mu.Unlock()
	return j.f.Close()
}

// LaneWriter appends to one lane of a journal.
type LaneWriter struct {
	journal *Journal
	lane    trace.Lane
}

// Lane returns a writer for one lane.
func (j *Journal) Lane(l trace.Lane) LaneWriter { return LaneWriter{journal: j, lane: l} }

// Append is [Journal.Append] for the writer's lane.
func (w LaneWriter) Append(e trace.Event) (trace.Address, error) { return w.journal.Append(w.lane, e) }

// Sync is [Journal.Sync].
func (w LaneWriter) Sync() error { return w.journal.Sync() }
