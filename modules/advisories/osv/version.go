package osv

import (
	"strings"

	"golang.org/x/mod/semver"
)

// Canonical returns the module path and version under which records speak of a
// Go package. Bills of materials call the standard library std and give it a
// toolchain's version, such as go1.22rc1; records call it stdlib and use semantic
// versions. ok is false if the version has no place in the order of versions.
func Canonical(module, version string) (path, v string, ok bool) {
	if module == "std" {
		module = Stdlib
	}
	if tail, isGo := strings.CutPrefix(version, "go"); isGo && (module == Stdlib || module == "toolchain") {
		version = toolchainVersion(tail)
	}
	if version != "" && !strings.HasPrefix(version, "v") {
		version = "v" + version
	}
	if !semver.IsValid(version) {
		return module, version, false
	}
	return module, version, true
}

// toolchainVersion makes 1.22.0-rc.1 of 1.22rc1.
func toolchainVersion(v string) string {
	for _, kind := range []string{"rc", "beta"} {
		if release, number, ok := strings.Cut(v, kind); ok {
			if strings.Count(release, ".") == 1 {
				release += ".0"
			}
			return release + "-" + kind + "." + number
		}
	}
	return v
}
