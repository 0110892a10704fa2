// Package vectors holds the byte vectors every SDK and host must agree on, as
// JSON files that any language can read:
//
//   - json.json: texts that are, or are not, JSON this ABI accepts, with the offset
//     of the first fault
//   - messages.json: requests and responses that are, or are not, well formed, with
//     the canonical encoding of those that are
//   - ids.json, digests.json: accepted and refused spellings
//   - codes.json: the numbers and names of host-call results and host calls
//   - random.json: the first bytes of random streams, by seed and lane
//
// Bytes that need not be text are in base64. The tests of this package compare each
// file with what package abi does, and write it again when UPDATE=1 is set.
package vectors

import "embed"

// Files holds the vector files.
//
//go:embed *.json
var Files embed.FS
