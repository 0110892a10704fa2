package sbom

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// PURL is a package URL taken apart: pkg:type/namespace/name@version?qualifiers#subpath.
type PURL struct {
	Type    string // lower case, for instance "golang"
	Name    string // namespace and name, decoded: for golang the module path, in the case it was written in
	Version string // decoded; empty if the package URL has none
}

// ParsePURL takes a package URL apart as the package-url specification says,
// from the right. Qualifiers and subpath are dropped: the same module for
// another platform is the same module.
func ParsePURL(s string) (PURL, error) {
	rest, ok := strings.CutPrefix(s, "pkg:")
	if !ok {
		return PURL{}, fmt.Errorf("package url %.80q does not start with \"pkg:\"", s)
	}
	rest, _, _ = strings.Cut(rest, "#")
	rest, _, _ = strings.Cut(rest, "?")
	kind, rest, ok := strings.Cut(strings.TrimLeft(rest, "/"), "/")
	if !ok || kind == "" {
		return PURL{}, fmt.Errorf("package url %.80q names no type and package", s)
	}
	path, version := rest, ""
	// An @ before the last slash belongs to a namespace such as npm's @angular.
	if at := strings.LastIndexByte(rest, '@'); at > strings.LastIndexByte(rest, '/') {
		path, version = rest[:at], rest[at+1:]
	}
	name, err := decodeSegments(path)
	if err != nil {
		return PURL{}, fmt.Errorf("package url %.80q: %w", s, err)
	}
	if version, err = url.PathUnescape(version); err != nil {
		return PURL{}, fmt.Errorf("package url %.80q: %w", s, err)
	}
	return PURL{Type: strings.ToLower(kind), Name: name, Version: version}, nil
}

func decodeSegments(path string) (string, error) {
	var segments []string
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "" {
			continue
		}
		decoded, err := url.PathUnescape(segment)
		if err != nil {
			return "", err
		}
		segments = append(segments, decoded)
	}
	if len(segments) == 0 {
		return "", errors.New("the name is empty")
	}
	return strings.Join(segments, "/"), nil
}
