package flow

import (
	_ "embed" // the schema
	"slices"
)

//go:embed manifest.schema.json
var manifestSchema []byte

// Schema returns the published JSON Schema (2020-12) of manifests. It says what
// each field may be; what fields mean together is for [ParseManifest] to judge.
func Schema() []byte { return slices.Clone(manifestSchema) }
