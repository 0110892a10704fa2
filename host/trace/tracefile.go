package trace

import (
	"errors"
	"fmt"
	"io"

	"github.com/writrun/writ/guest-abi/abi"
)

const traceMagic = "writ trace 1\n"

// Writer writes the trace file of a sealed run: its headers in layout order.
type Writer struct {
	w     io.Writer
	root  RootBuilder
	order Order
	buf   []byte
}

// NewWriter begins the trace file of run.
func NewWriter(w io.Writer, run abi.RunID) (*Writer, error) {
	return &Writer{w: w}, writePreamble(w, traceMagic, run)
}

// Add adds an event's header, given as the bytes that are kept.
func (t *Writer) Add(header []byte) error {
	h, err := DecodeHeader(header)
	if err != nil {
		return err
	}
	if err := t.order.Next(h); err != nil {
		return err
	}
	t.root.Append(header)
	t.buf = AppendFrame(t.buf[:0], header)
	_, err = t.w.Write(t.buf)
	return err
}

// End checks that the trace is whole, and returns its root and size.
func (t *Writer) End() (root abi.Digest, events uint64, err error) {
	if err := t.order.End(); err != nil {
		return "", 0, err
	}
	return t.root.Root(), t.root.Size(), nil
}

// Read reads the trace file of run, calls each with every header, and returns
// the trace root. What it returns must be compared with the ledger.
func Read(r io.Reader, run abi.RunID, each func(Header) error) (root abi.Digest, events uint64, err error) {
	fr, err := readPreamble(r, traceMagic, run, HeaderBytesMax)
	if err != nil {
		return "", 0, err
	}
	var tree RootBuilder
	var order Order
	for {
		body, err := fr.Next()
		if errors.Is(err, io.EOF) {
			return tree.Root(), tree.Size(), order.End()
		}
		if err != nil {
			return "", 0, err
		}
		h, err := DecodeHeader(body)
		if err != nil {
			return "", 0, err
		}
		if err := order.Next(h); err != nil {
			return "", 0, err
		}
		tree.Append(body)
		if err := each(h); err != nil {
			return "", 0, err
		}
	}
}

// Order checks that headers come in the order of a sealed trace: lane after
// lane, run first and control last, numbers without a gap, RUN_END at the end.
type Order struct {
	seen map[Lane]bool
	last Header
	any  bool
}

// Next takes the next header.
func (o *Order) Next(h Header) error {
	if o.any && h.Lane == o.last.Lane {
		err := followsInLane(o.last, h)
		o.last = h
		return err
	}
	switch {
	case !o.any && h.Lane != LaneRun:
		return fmt.Errorf("trace begins with lane %s, not run", h.Lane)
	case o.any && o.last.Lane == LaneControl:
		return fmt.Errorf("lane %s comes after control", h.Lane)
	case o.seen[h.Lane]:
		return fmt.Errorf("lane %s comes twice", h.Lane)
	case h.Seq != 0:
		return fmt.Errorf("lane %s begins with number %d, not 0", h.Lane, h.Seq)
	case len(o.seen) >= LayoutLanesMax:
		return fmt.Errorf("trace has more than %d lanes", LayoutLanesMax)
	}
	if o.seen == nil {
		o.seen = map[Lane]bool{}
	}
	o.seen[h.Lane], o.last, o.any = true, h, true
	return nil
}

// End reports whether the trace may end here.
func (o *Order) End() error {
	if !o.any || o.last.Kind != KindRunEnd {
		return errors.New("trace does not end with RUN_END")
	}
	return nil
}

// followsInLane checks numbers only as far as headers tell: a HOST_CALLS event
// takes as many as it has calls.
func followsInLane(last, h Header) error {
	span := uint64(1)
	if last.Kind == KindHostCalls {
		span = BatchCallsMax
	}
	if h.Seq <= last.Seq || h.Seq > last.Seq+span {
		return fmt.Errorf("event %s cannot follow %s", h.Address(), last.Address())
	}
	if last.Kind == KindRunEnd {
		return fmt.Errorf("event %s comes after RUN_END", h.Address())
	}
	return nil
}
