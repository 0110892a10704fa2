package evidence

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	flog "github.com/transparency-dev/formats/log"
	"golang.org/x/mod/sumdb/note"
)

// head is a signed checkpoint: what the ledger was when it was signed.
type head struct {
	size uint64
	root [32]byte
	text []byte
}

// headName keeps heads in order of size when sorted by name.
func headName(size uint64) string { return fmt.Sprintf("%020d", size) }

// signHead signs the ledger as it is and keeps the head, once per size.
func (t *Tenant) signHead() error {
	size, root := t.ledger.tree.Size(), t.ledger.tree.Sum()
	if t.newest != nil && t.newest.size == size {
		return nil
	}
	text := headText(t.store.origin(t.id), &head{size: size, root: root})
	signed, err := note.Sign(&note.Note{Text: text}, t.key.signer)
	if err != nil {
		return fmt.Errorf("sign head of tenant %s: %w", t.id, err)
	}
	if err := t.disk.writeFile(filepath.Join(t.path("heads"), headName(size)), signed); err != nil {
		return err
	}
	t.newest = &head{size: size, root: root, text: signed}
	return nil
}

// headText is what is signed.
func headText(origin string, h *head) string {
	return string(flog.Checkpoint{Origin: origin, Size: h.size, Hash: h.root[:]}.Marshal())
}

// parseHead reads a checkpoint and checks its signature and origin.
func parseHead(signed []byte, origin string, verifier note.Verifier) (*head, error) {
	n, err := note.Open(signed, note.VerifierList(verifier))
	if err != nil {
		return nil, err
	}
	var point flog.Checkpoint
	rest, err := point.Unmarshal([]byte(n.Text))
	switch {
	case err != nil:
		return nil, err
	case !strictNote(n, signed):
		return nil, errors.New("not one signature in the form it is written in")
	case len(rest) > 0 || string(point.Marshal()) != n.Text:
		return nil, errors.New("not in the form checkpoints are written in")
	case point.Origin != origin:
		return nil, fmt.Errorf("its origin is %.200q, not %q", point.Origin, origin)
	case len(point.Hash) != 32:
		return nil, fmt.Errorf("its root has %d bytes, not 32", len(point.Hash))
	}
	return &head{size: point.Size, root: [32]byte(point.Hash), text: signed}, nil
}

// strictNote reports whether signed is n with exactly one signature in its one
// encoding: base64 as note.Open reads it has several for the same bytes.
func strictNote(n *note.Note, signed []byte) bool {
	if len(n.Sigs) != 1 || len(n.UnverifiedSigs) != 0 {
		return false
	}
	_, err := base64.StdEncoding.Strict().DecodeString(n.Sigs[0].Base64)
	return err == nil && string(signed) == n.Text+"\n— "+n.Sigs[0].Name+" "+n.Sigs[0].Base64+"\n"
}

// headSizes lists the sizes heads were signed at, in order.
func (t *Tenant) headSizes() ([]uint64, []*Problem, error) {
	entries, err := os.ReadDir(t.path("heads"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, t.disk.problem("read directory", t.path("heads"), err)
	}
	var sizes []uint64
	var problems []*Problem
	for _, e := range entries {
		size, err := strconv.ParseUint(e.Name(), 10, 64)
		switch {
		case err == nil && headName(size) == e.Name():
			sizes = append(sizes, size)
		case !strings.HasPrefix(e.Name(), tempPrefix):
			problems = append(problems, &Problem{Code: CodeUnexpectedFile, Path: t.disk.rel(filepath.Join(t.path("heads"), e.Name())), Detail: "not the name of a head"})
		}
	}
	return sizes, problems, nil
}

// readHead reads the head signed at size.
func (t *Tenant) readHead(size uint64) (*head, error) {
	path := filepath.Join(t.path("heads"), headName(size))
	b, err := readSmall(path, StoreFileBytesMax)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &Problem{Code: CodeHeadDamaged, Path: t.disk.rel(path), Detail: reason(err), cause: err}
	}
	if err != nil {
		return nil, t.disk.problem("read head", path, err)
	}
	h, err := parseHead(b, t.store.origin(t.id), t.key.verifier)
	if err == nil && h.size != size {
		err = fmt.Errorf("it is for size %d", h.size)
	}
	if err != nil {
		return nil, &Problem{Code: CodeHeadDamaged, Path: t.disk.rel(path), Detail: err.Error(), cause: err}
	}
	return h, nil
}
