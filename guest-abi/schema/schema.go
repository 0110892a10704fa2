// Package schema holds the JSON Schemas (2020-12) of the guest ABI's messages and
// of module metadata. Each file stands alone. A schema is a description for
// authors and tools; what a host accepts is decided by package abi, which also
// sees what no schema can: duplicate keys, integers beyond 2^53, repeated ids and
// the offset of a fault. A test keeps the two in step.
package schema

import (
	"embed"
	"fmt"
	"strings"
)

//go:embed *.schema.json
var files embed.FS

const suffix = ".schema.json"

// Names returns the names of the schemas, sorted: execute-request,
// execute-response, metadata, verify-request, verify-response.
func Names() []string {
	entries, err := files.ReadDir(".")
	if err != nil {
		panic(err) // the files are part of the program
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), suffix))
	}
	return names
}

// Read returns the schema of the given name.
func Read(name string) ([]byte, error) {
	data, err := files.ReadFile(name + suffix)
	if err != nil {
		return nil, fmt.Errorf("no schema %q; there are %s", name, strings.Join(Names(), ", "))
	}
	return data, nil
}
