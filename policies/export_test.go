package policies

import (
	"maps"
	"slices"
)

// GuardedBuiltins names the builtins that are guarded or replaced.
func GuardedBuiltins() []string { return slices.Sorted(maps.Keys(pureCalls())) }
