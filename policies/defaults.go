package policies

import "io/fs"

// DefaultFolder returns the files of the policy this package embeds for a
// decision, tests included.
func DefaultFolder(decision string) (fs.FS, error) { return fs.Sub(defaults, decision) }
