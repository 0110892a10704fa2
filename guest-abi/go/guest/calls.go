package guest

import (
	"encoding/json"
	"fmt"

	"github.com/writrun/writ/guest-abi/abi"
)

// Host is what the host offers a guest, call by call. Failures are [abi.Code]s,
// possibly wrapped.
type Host interface {
	// Now returns nanoseconds since the epoch. Each call may advance a virtual clock.
	Now() (int64, error)
	// Fill fills p from the lane's random stream.
	Fill(p []byte) error
	// Effect has a driver act on the outside world and returns its response.
	Effect(driver string, request []byte) ([]byte, error)
	// DatasetSize returns the size in bytes of what path ("id" or "id/file") names.
	DatasetSize(path string) (int64, error)
	// DatasetRead copies bytes from offset into p and returns how many there were.
	DatasetRead(path string, offset int64, p []byte) (int, error)
	// ArtifactPut keeps content and returns its digest.
	ArtifactPut(meta, content []byte) (abi.Digest, error)
	// ArtifactSize returns the size in bytes of an artifact in scope.
	ArtifactSize(id abi.Digest) (int64, error)
	// ArtifactRead copies bytes from offset into p and returns how many there were.
	ArtifactRead(id abi.Digest, offset int64, p []byte) (int, error)
	// Log keeps a line with the run.
	Log(level Level, text string) error
}

// Level of a log line.
type Level int32

// The levels of log lines.
const (
	Debug Level = 0
	Info  Level = 1
	Warn  Level = 2
	Error Level = 3
)

// Calls is a Host with the longer operations made of its calls.
type Calls struct{ Host }

// readBytesMax is how much one call reads; fewer calls make a shorter record.
const readBytesMax = 4 << 20

// Dataset returns all bytes of what path names: "id" of a single file, or "id/file".
func (c Calls) Dataset(path string) ([]byte, error) {
	size, err := c.DatasetSize(path)
	if err != nil {
		return nil, fmt.Errorf("read dataset %q: %w", path, err)
	}
	data, err := readAll(size, func(offset int64, p []byte) (int, error) { return c.DatasetRead(path, offset, p) })
	if err != nil {
		return nil, fmt.Errorf("read dataset %q: %w", path, err)
	}
	return data, nil
}

// Listing returns what a folder dataset consists of.
func (c Calls) Listing(id abi.ID) (abi.DatasetListing, error) {
	data, err := c.Dataset(string(id))
	if err != nil {
		return abi.DatasetListing{}, err
	}
	var l abi.DatasetListing
	if err := json.Unmarshal(data, &l); err != nil {
		return abi.DatasetListing{}, fmt.Errorf("read listing of dataset %q: %w", id, err)
	}
	return l, nil
}

// Artifact returns all bytes of an artifact in scope.
func (c Calls) Artifact(id abi.Digest) ([]byte, error) {
	size, err := c.ArtifactSize(id)
	if err != nil {
		return nil, fmt.Errorf("read artifact %s: %w", id, err)
	}
	data, err := readAll(size, func(offset int64, p []byte) (int, error) { return c.ArtifactRead(id, offset, p) })
	if err != nil {
		return nil, fmt.Errorf("read artifact %s: %w", id, err)
	}
	return data, nil
}

// PutArtifact keeps content with the run and returns its entry for
// [abi.StepOutput.Artifacts].
func (c Calls) PutArtifact(name, mediaType string, content []byte) (abi.Artifact, error) {
	meta, err := abi.EncodeMessage(struct {
		Name      string `json:"name"`
		MediaType string `json:"media_type"`
	}{name, mediaType})
	if err != nil {
		return abi.Artifact{}, err
	}
	id, err := c.ArtifactPut(meta, content)
	if err != nil {
		return abi.Artifact{}, fmt.Errorf("put artifact %q: %w", name, err)
	}
	return abi.Artifact{ArtifactID: id, Name: name, MediaType: mediaType, Size: int64(len(content))}, nil
}

// Logf keeps a formatted line with the run. A spent log budget is no reason to
// fail, so there is no error.
func (c Calls) Logf(level Level, format string, args ...any) {
	_ = c.Log(level, fmt.Sprintf(format, args...))
}

func readAll(size int64, read func(offset int64, p []byte) (int, error)) ([]byte, error) {
	data := make([]byte, size)
	for at := int64(0); at < size; {
		n, err := read(at, data[at:min(size, at+readBytesMax)])
		if err != nil {
			return nil, err
		}
		if n == 0 {
			return nil, fmt.Errorf("ends at byte %d of %d", at, size)
		}
		at += int64(n)
	}
	return data, nil
}
