package decisionlog

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// Limits of what is erased.
const (
	ErasePathsMax     = 100
	ErasePathBytesMax = 1 << 10 // one path
)

// erasure is one path that does not leave, as OPA's masks write it: slashes
// between steps, each step URL-escaped. A step * is every element of an array.
type erasure struct {
	path  string
	steps []string
}

// parseErasures checks paths.
func parseErasures(paths []string) ([]erasure, error) {
	if len(paths) > ErasePathsMax {
		return nil, fmt.Errorf("decision log: %d paths are to be erased; at most %d can be", len(paths), ErasePathsMax)
	}
	var all []erasure
	for _, path := range paths {
		rest, ok := strings.CutPrefix(path, "/")
		steps := strings.Split(rest, "/")
		if !ok || len(path) > ErasePathBytesMax || !slices.Contains([]string{"input", "result"}, steps[0]) {
			return nil, fmt.Errorf("decision log: %.80q is no path to erase: it begins with /input or /result", path)
		}
		for i, step := range steps {
			name, err := url.PathUnescape(step)
			if err != nil || step == "" {
				return nil, fmt.Errorf("decision log: %.80q is no path to erase: step %.40q is empty or wrongly escaped", path, step)
			}
			steps[i] = name
		}
		all = append(all, erasure{path, steps})
	}
	return all, nil
}

// remove takes what is at the path out of a document, and reports whether there
// was something.
func (r erasure) remove(doc map[string]any) bool { return remove(doc, r.steps) }

func remove(at any, steps []string) bool {
	switch v := at.(type) {
	case map[string]any:
		next, ok := v[steps[0]]
		if ok && len(steps) == 1 {
			delete(v, steps[0])
			return true
		}
		return ok && remove(next, steps[1:])
	case []any:
		if steps[0] != "*" || len(steps) == 1 {
			return false
		}
		removed := false
		for _, element := range v {
			removed = remove(element, steps[1:]) || removed
		}
		return removed
	}
	return false
}
