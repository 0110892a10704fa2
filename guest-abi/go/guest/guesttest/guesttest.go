// Package guesttest has an in-memory host for testing a module's functions
// natively. It answers like the real one within what a test sets; it keeps no
// budgets and no record.
package guesttest

import (
	"io"

	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/guest-abi/go/guest"
)

// Host is an in-memory [guest.Host]. Its zero value grants nothing.
type Host struct {
	Clock     int64                                               // what Now returns; advances by one each time
	Random    io.Reader                                           // of Fill; nil refuses
	Datasets  map[string][]byte                                   // by path: "id" or "id/file"
	Artifacts map[abi.Digest][]byte                               // in scope; ArtifactPut adds to it
	Effects   func(driver string, request []byte) ([]byte, error) // nil refuses all
	Lines     []string                                            // what was logged
}

var _ guest.Host = (*Host)(nil)

// Now returns the clock and advances it.
func (h *Host) Now() (int64, error) {
	h.Clock++
	return h.Clock - 1, nil
}

// Fill reads from Random.
func (h *Host) Fill(p []byte) error {
	if h.Random == nil {
		return abi.Unavailable
	}
	_, err := io.ReadFull(h.Random, p)
	return err
}

// Effect calls Effects.
func (h *Host) Effect(driver string, request []byte) ([]byte, error) {
	if h.Effects == nil {
		return nil, abi.NotGranted
	}
	return h.Effects(driver, request)
}

// DatasetSize looks path up in Datasets.
func (h *Host) DatasetSize(path string) (int64, error) {
	data, ok := h.Datasets[path]
	if !ok {
		return 0, abi.NotFound
	}
	return int64(len(data)), nil
}

// DatasetRead reads from Datasets.
func (h *Host) DatasetRead(path string, offset int64, p []byte) (int, error) {
	data, ok := h.Datasets[path]
	return readAt(data, ok, offset, p)
}

// ArtifactPut adds content to Artifacts.
func (h *Host) ArtifactPut(_, content []byte) (abi.Digest, error) {
	if len(content) > abi.ArtifactBytesMax {
		return "", abi.TooLarge
	}
	if h.Artifacts == nil {
		h.Artifacts = map[abi.Digest][]byte{}
	}
	id := abi.DigestOf(content)
	h.Artifacts[id] = append([]byte{}, content...)
	return id, nil
}

// ArtifactSize looks id up in Artifacts.
func (h *Host) ArtifactSize(id abi.Digest) (int64, error) {
	data, ok := h.Artifacts[id]
	if !ok {
		return 0, abi.NotFound
	}
	return int64(len(data)), nil
}

// ArtifactRead reads from Artifacts.
func (h *Host) ArtifactRead(id abi.Digest, offset int64, p []byte) (int, error) {
	data, ok := h.Artifacts[id]
	return readAt(data, ok, offset, p)
}

// Log appends to Lines.
func (h *Host) Log(_ guest.Level, text string) error {
	h.Lines = append(h.Lines, text)
	return nil
}

func readAt(data []byte, ok bool, offset int64, p []byte) (int, error) {
	if !ok {
		return 0, abi.NotFound
	}
	if offset < 0 {
		return 0, abi.Invalid
	}
	return copy(p, data[min(offset, int64(len(data))):]), nil
}
