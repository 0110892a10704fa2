package evidence

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/writrun/writ/host/trace"
)

const ledgerMagic = "writ ledger 1\n"

// ledger is a tenant's append-only file of records.
type ledger struct {
	path string
	disk *disk
	f    *os.File // nil for a reader, and until the first record
	end  int64    // where the next record goes
	tree trace.RootBuilder
}

// scan reads every whole record. It returns a *Problem (ledger_torn or
// ledger_damaged) if the file goes on after them.
func (l *ledger) scan(each func(r *Record, leaf []byte) error) error {
	f, err := openRegular(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return l.disk.problem("open ledger", l.path, err)
	}
	defer f.Close()
	magic := make([]byte, len(ledgerMagic))
	if n, err := io.ReadFull(f, magic); err != nil || string(magic) != ledgerMagic {
		torn := string(magic[:n]) == ledgerMagic[:n] && n < len(magic)
		return l.damage(&trace.FrameError{Torn: torn, Cause: "the file does not begin as a ledger"})
	}
	fr := trace.NewFrameReader(f, int64(len(magic)), LedgerRecordBytesMax)
	for {
		l.end = fr.Offset()
		leaf, err := fr.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return l.damage(err)
		}
		r, err := decodeRecord(leaf)
		if err != nil {
			return l.damage(&trace.FrameError{Offset: l.end, Cause: err.Error()})
		}
		r.Index = l.tree.Size()
		l.tree.Append(leaf)
		if err := each(r, leaf); err != nil {
			return err
		}
	}
}

// damage says what is wrong with the ledger after its last good record.
func (l *ledger) damage(err error) error {
	var fe *trace.FrameError
	if !errors.As(err, &fe) {
		return l.disk.problem("read ledger", l.path, err)
	}
	code := CodeLedgerDamaged
	if fe.Torn {
		code = CodeLedgerTorn
	}
	return &Problem{Code: code, Path: l.disk.rel(l.path), Detail: fmt.Sprintf("after %d records, %s", l.tree.Size(), fe), cause: err}
}

// open readies the ledger for appending and cuts off an unfinished record.
func (l *ledger) open() error {
	f, err := l.disk.create(l.path, os.O_RDWR)
	if err != nil {
		return err
	}
	l.f = f
	info, err := f.Stat()
	if err != nil {
		return l.disk.problem("open ledger", l.path, err)
	}
	if l.end == 0 {
		// New, or its first line was never finished.
		if err := l.disk.writeAt(f, []byte(ledgerMagic), 0); err != nil {
			return err
		}
		l.end = int64(len(ledgerMagic))
		if err := l.disk.sync(f); err != nil {
			return err
		}
		return l.disk.syncDir(dirOf(l.path))
	}
	if info.Size() == l.end {
		return nil
	}
	if err := f.Truncate(l.end); err != nil {
		return l.disk.problem("cut ledger", l.path, err)
	}
	return l.disk.sync(f)
}

// append writes records, all at once, and makes them durable.
func (l *ledger) append(records []*Record) error {
	var buf []byte
	leaves := make([][]byte, len(records))
	for i, r := range records {
		leaf, err := encodeRecord(r)
		if err != nil {
			return err
		}
		leaves[i] = leaf
		buf = trace.AppendFrame(buf, leaf)
	}
	if err := l.disk.writeAt(l.f, buf, l.end); err != nil {
		return err
	}
	if err := l.disk.sync(l.f); err != nil {
		return err
	}
	l.end += int64(len(buf))
	for i, r := range records {
		r.Index = l.tree.Size()
		l.tree.Append(leaves[i])
	}
	return nil
}

func (l *ledger) close() error {
	if l.f == nil {
		return nil
	}
	f := l.f
	l.f = nil
	return f.Close()
}
