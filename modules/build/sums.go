package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/writrun/writ/guest-abi/abi"
)

// sumTable is modules/SHA256SUMS: hex digests by module name, in the form
// sha256sum -c reads.
type sumTable map[string]string

func sumOf(wasm []byte) string { return abi.DigestOf(wasm).Hex() }

// readSums reads a file that need not exist.
func readSums(file string) (sumTable, error) {
	data, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	sums := sumTable{}
	for i, line := range strings.Split(strings.TrimSuffix(string(data), "\n"), "\n") {
		if line == "" {
			continue
		}
		sum, name, ok := strings.Cut(line, "  ")
		name, isWasm := strings.CutSuffix(name, ".wasm")
		if _, err := abi.ParseDigest("sha256:" + sum); err != nil || !ok || !isWasm {
			return nil, fmt.Errorf("%s:%d: not a digest, two spaces and NAME.wasm", file, i+1)
		}
		if sums[name] != "" {
			return nil, fmt.Errorf("%s:%d: %s.wasm appears twice", file, i+1, name)
		}
		sums[name] = sum
	}
	return sums, nil
}

// keep removes every name that is not in names.
func (s sumTable) keep(names []string) {
	maps.DeleteFunc(s, func(name, _ string) bool { return !slices.Contains(names, name) })
}

func (s sumTable) write(file string) error {
	var b bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(s)) {
		fmt.Fprintf(&b, "%s  %s.wasm\n", s[name], name)
	}
	return writeIfChanged(file, b.Bytes())
}
