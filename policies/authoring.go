package policies

import "strings"

// RefusedBuiltin says why policies may not use a builtin of OPA's, if the reason
// is on record.
func RefusedBuiltin(name string) (why string, ok bool) {
	if why, ok = refused[name]; ok {
		return why, true
	}
	for _, prefix := range refusedFamilies {
		if strings.HasPrefix(name, prefix) {
			return "none of " + prefix + "* has been reviewed", true
		}
	}
	return "", false
}
