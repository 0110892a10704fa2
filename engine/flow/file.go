package flow

import (
	"fmt"
	"io"
	"os"
)

// ReadFile reads a manifest or a plan file. One that is larger than a plan file
// may be is refused by its size, without reading it.
func ReadFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	defer f.Close()
	tooLarge := func(bytes string) error {
		return Errors{&Error{Code: CodeTooLarge, File: name, Message: bytes + " bytes are too many",
			Hint: fmt.Sprintf("a manifest has at most %d and a plan file at most %d", ManifestBytesMax, PlanBytesMax)}}
	}
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, fmt.Errorf("read manifest: %w", err)
	case info.Size() > PlanBytesMax:
		return nil, tooLarge(fmt.Sprint(info.Size()))
	}
	// What has no size, such as a pipe, is bounded here.
	data, err := io.ReadAll(io.LimitReader(f, PlanBytesMax+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read manifest: %w", err)
	case len(data) > PlanBytesMax:
		return nil, tooLarge(fmt.Sprintf("more than %d", PlanBytesMax))
	}
	return data, nil
}
