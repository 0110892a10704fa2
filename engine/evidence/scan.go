package evidence

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"

	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host/trace"
)

// spot is where an event's frame is in a journal, with what is needed to trust
// it when it is read again.
type spot struct {
	offset int64
	size   int32
	kind   trace.Kind
	seq    uint64
	sum    [32]byte // SHA-256 of the payload
}

// scan is what a journal holds, found by reading it once: where each lane's
// events are, and whether the run is to be sealed.
type scan struct {
	lanes    map[trace.Lane][]spot
	order    []trace.Lane // by first appearance
	next     map[trace.Lane]uint64
	layout   []trace.Lane
	seal     bool
	end      trace.ExecutionEnd
	ended    bool
	last     trace.Address // of the last event in a whole group
	events   uint64
	goodSize int64             // bytes up to the end of the last whole group
	mac      trace.MAC         // that the next group is chained to
	tail     *trace.FrameError // what follows the last whole group, nil if nothing
}

// scanJournal reads a journal to its last whole group. Damage and an unfinished
// group are told in scan.tail; an error is a failure to read.
func scanJournal(f io.ReaderAt, size int64, key []byte, run abi.RunID) (*scan, error) {
	s := &scan{lanes: map[trace.Lane][]spot{}, next: map[trace.Lane]uint64{}}
	r, err := trace.NewJournalReader(bufio.NewReaderSize(io.NewSectionReader(f, 0, size), 256<<10), key, run)
	if err != nil {
		return s, s.stop(err)
	}
	for {
		s.goodSize, s.mac = r.Offset(), r.MAC()
		frames, at, err := r.Next()
		if errors.Is(err, io.EOF) {
			return s, nil
		}
		if err != nil {
			return s, s.stop(err)
		}
		if err := s.group(frames, at); err != nil {
			return s, s.stop(&trace.FrameError{Offset: s.goodSize, Cause: err.Error()})
		}
	}
}

// stop remembers where the readable part ends.
func (s *scan) stop(err error) error {
	if errors.As(err, &s.tail) {
		return nil
	}
	return err
}

// group takes in the frames of one group.
func (s *scan) group(frames []byte, at int64) error {
	for len(frames) > 0 {
		f, n, err := trace.DecodeFrame(frames)
		if err != nil {
			return err
		}
		if s.seal {
			return errors.New("a frame follows the seal")
		}
		switch {
		case f.Seal:
			s.seal = true
		case f.HeaderRaw == nil:
			s.layout = append(s.layout, f.Layout...)
		default:
			if err := s.event(f, at, n); err != nil {
				return err
			}
		}
		frames, at = frames[n:], at+int64(n)
	}
	return nil
}

func (s *scan) event(f trace.Frame, at int64, size int) error {
	h := f.Header
	if h.Seq != s.next[h.Lane] {
		return fmt.Errorf("event %s where %s/%d should be", h.Address(), h.Lane, s.next[h.Lane])
	}
	span := uint64(1) // also of a batch that is kept as content: it holds one long call
	if h.Kind == trace.KindHostCalls && f.Stored.Content == "" {
		calls, err := trace.CallCount(f.Stored.Inline)
		if err != nil {
			return err
		}
		span = calls
	}
	sum, err := f.Stored.PayloadSum()
	if err != nil {
		return err
	}
	if h.Kind == trace.KindExecutionEnd && f.Stored.Content == "" {
		s.ended = true
		if err := trace.DecodePayload(f.Stored.Inline, &s.end); err != nil {
			return err
		}
	}
	if _, ok := s.lanes[h.Lane]; !ok {
		s.order = append(s.order, h.Lane)
	}
	s.lanes[h.Lane] = append(s.lanes[h.Lane], spot{offset: at, size: int32(size), kind: h.Kind, seq: h.Seq, sum: sum})
	s.next[h.Lane] = h.Seq + span
	s.last, s.events = h.Address(), s.events+1
	return nil
}

// read reads an event again.
func (s *scan) read(f io.ReaderAt, lane trace.Lane, at spot) (trace.Frame, error) {
	b := make([]byte, at.size)
	if _, err := f.ReadAt(b, at.offset); err != nil {
		return trace.Frame{}, err
	}
	frame, n, err := trace.DecodeFrame(b)
	if err != nil {
		return trace.Frame{}, err
	}
	sum, err := frame.Stored.PayloadSum()
	if err != nil || n != len(b) || sum != at.sum || frame.Header.Address() != (trace.Address{Lane: lane, Seq: at.seq}) {
		return trace.Frame{}, fmt.Errorf("event %s/%d changed while it was read", lane, at.seq)
	}
	return frame, nil
}

// executionDigest is the digest over the core events in layout order.
func (s *scan) executionDigest(layout []trace.Lane) abi.Digest {
	var h trace.ExecutionHasher
	for _, lane := range layout {
		for _, e := range s.lanes[lane] {
			if e.kind.Core() {
				h.Add(lane, e.seq, e.kind, e.sum)
			}
		}
	}
	return h.Digest()
}

// checkLayout requires every lane that has events once, run first, control last.
func (s *scan) checkLayout(layout []trace.Lane) error {
	seen := map[trace.Lane]bool{}
	for _, lane := range layout {
		if seen[lane] {
			return fmt.Errorf("lane %s is in the layout twice", lane)
		}
		seen[lane] = true
	}
	for _, lane := range slices.Sorted(maps.Keys(s.lanes)) {
		if !seen[lane] {
			return fmt.Errorf("lane %s has events and is not in the layout", lane)
		}
	}
	if len(layout) < 2 || layout[0] != trace.LaneRun || layout[len(layout)-1] != trace.LaneControl || len(s.lanes[trace.LaneRun]) == 0 {
		return errors.New("the layout does not go from a run lane with events to control")
	}
	return nil
}

// openJournal opens and scans the journal of an unfinished run.
func (t *Tenant) openJournal(run abi.RunID) (*os.File, *scan, error) {
	path := t.journalPath(run)
	f, err := openRegular(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, &Problem{Code: CodeRunMissing, Path: t.disk.rel(path), Detail: fmt.Sprintf("run %s has no journal", run), cause: err}
	}
	if err != nil {
		return nil, nil, t.disk.problem("open journal", path, err)
	}
	s, err := t.scanFile(f, run)
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, s, nil
}

func (t *Tenant) scanFile(f *os.File, run abi.RunID) (*scan, error) {
	secret, err := t.readRunSecret(run)
	if err != nil {
		return nil, err
	}
	key, err := secret.journalKey()
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, t.disk.problem("read journal", f.Name(), err)
	}
	s, err := scanJournal(f, info.Size(), key, run)
	if err != nil {
		return nil, t.disk.problem("read journal", f.Name(), err)
	}
	return s, nil
}

// journalDamage is the problem of a journal that is damaged after its last
// whole group, nil if it is only unfinished there.
func (t *Tenant) journalDamage(run abi.RunID, s *scan) *Problem {
	if s.tail == nil || s.tail.Torn {
		return nil
	}
	last := "this is the last good event; then "
	if s.lastGood() == "" {
		last = "no event of the journal is good: "
	}
	return &Problem{Code: CodeJournalDamaged, Path: t.disk.rel(t.journalPath(run)), Address: s.lastGood(), Detail: last + s.tail.Error(), cause: s.tail}
}

func (s *scan) lastGood() string {
	if s.events == 0 {
		return ""
	}
	return s.last.String()
}

// openQuarantined opens and scans a journal that was found damaged.
func (t *Tenant) openQuarantined(run abi.RunID) (*os.File, *scan, error) {
	path := t.path("quarantine") + "/" + string(run) + journalSuffix
	f, err := openRegular(path)
	if err != nil {
		return nil, nil, t.disk.problem("open journal", path, err)
	}
	s, err := t.scanFile(f, run)
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, s, nil
}
