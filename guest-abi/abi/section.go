package abi

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// wasmHeader begins every core module of version 1.
var wasmHeader = []byte{0, 'a', 's', 'm', 1, 0, 0, 0}

// ErrNoMetadata is what [FindMetadata] returns for a module without the section.
var ErrNoMetadata = errors.New(`module has no "` + MetadataSection + `" section; its build adds that from module.json`)

// AppendMetadata returns the module with a [MetadataSection] that holds the
// metadata, which must pass [ParseMetadata]. It refuses a module that already
// has one. The result shares no memory with wasm.
func AppendMetadata(wasm, metadata []byte) ([]byte, error) {
	switch _, err := FindMetadata(wasm); {
	case err == nil:
		return nil, fmt.Errorf("append metadata: the module already has a %q section", MetadataSection)
	case !errors.Is(err, ErrNoMetadata):
		return nil, fmt.Errorf("append metadata: %w", err)
	}
	if _, err := ParseMetadata(metadata); err != nil {
		return nil, fmt.Errorf("append metadata: %w", err)
	}
	body := binary.AppendUvarint(nil, uint64(len(MetadataSection)))
	body = append(body, MetadataSection...)
	body = append(body, metadata...)
	out := make([]byte, 0, len(wasm)+len(body)+6)
	out = append(out, wasm...)
	out = append(out, 0)
	out = binary.AppendUvarint(out, uint64(len(body)))
	return append(out, body...), nil
}

// FindMetadata returns the content of the module's [MetadataSection] without
// judging it. It reads section headers only, so it works on modules that are
// invalid inside, and fails with [ErrNoMetadata] if there is none, and with
// another error if there are two or the sections do not add up.
func FindMetadata(wasm []byte) ([]byte, error) {
	if !bytes.HasPrefix(wasm, wasmHeader) {
		return nil, errors.New("not a WebAssembly core module of version 1")
	}
	var found []byte
	count := 0
	for at := len(wasmHeader); at < len(wasm); {
		id := wasm[at]
		size, n := sectionSize(wasm[at+1:])
		start := at + 1 + n
		if n == 0 || size > uint64(len(wasm)-start) {
			return nil, fmt.Errorf("section at byte %d runs past the end of the module", at)
		}
		at = start + int(size)
		if id != 0 {
			continue
		}
		body := wasm[start:at]
		nameSize, n := sectionSize(body)
		if n == 0 || nameSize > uint64(len(body)-n) {
			return nil, fmt.Errorf("custom section at byte %d has a name that runs past its end", start)
		}
		if string(body[n:n+int(nameSize)]) == MetadataSection {
			count++
			found = body[n+int(nameSize):]
		}
	}
	switch {
	case count == 0:
		return nil, ErrNoMetadata
	case count > 1:
		return nil, fmt.Errorf("module has %d %q sections; one is allowed", count, MetadataSection)
	case len(found) > MetadataBytesMax:
		return nil, fmt.Errorf("%q section of %d bytes is larger than %d", MetadataSection, len(found), MetadataBytesMax)
	}
	return found, nil
}

// sectionSize reads an unsigned LEB128 number of at most 32 bits and returns it
// with its length, which is 0 if it is malformed.
func sectionSize(b []byte) (value uint64, length int) {
	value, n := binary.Uvarint(b[:min(len(b), 5)])
	if n <= 0 || value > 1<<32-1 {
		return 0, 0
	}
	return value, n
}
