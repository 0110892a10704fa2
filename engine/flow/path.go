package flow

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"
	"unicode/utf8"
)

// checkRelative accepts a slash-separated path in its plain form that stays
// where it starts. Whether links lead out is for os.Root to refuse.
func checkRelative(p string) error {
	switch {
	case path.IsAbs(p):
		return fmt.Errorf("path %.200q is absolute", p)
	case strings.ContainsRune(p, '\\'):
		return fmt.Errorf("path %.200q has a backslash; separate with /", p)
	case p == ".." || strings.HasPrefix(p, "../"):
		return fmt.Errorf("path %.200q leads out of the manifest's folder", p)
	case path.Clean(p) != p:
		return fmt.Errorf("path %.200q is not in its plain form %.200q", p, path.Clean(p))
	case !utf8.ValidString(p) || strings.ContainsFunc(p, isControl):
		return fmt.Errorf("path %.200q holds control characters", p)
	}
	return nil
}

// storage is where a dataset is: below the manifest's folder, or at an absolute
// path the manifest states.
type storage struct {
	path     string
	absolute bool
}

// parseStorage reads a relative path, file:RELATIVE or file:///ABSOLUTE.
func parseStorage(uri string) (storage, error) {
	rest, isFile := strings.CutPrefix(uri, "file:")
	if !isFile {
		if scheme, _, found := strings.Cut(uri, "://"); found {
			return storage{}, fmt.Errorf("storage_uri scheme %.40q is not known; file is", scheme)
		}
		return storage{path: uri}, checkRelative(uri)
	}
	p, err := url.PathUnescape(rest)
	if err != nil || strings.ContainsAny(rest, "?#") {
		return storage{}, errors.New("storage_uri is not a plain file URI")
	}
	if !strings.HasPrefix(p, "/") {
		return storage{path: p}, checkRelative(p)
	}
	abs, ok := strings.CutPrefix(p, "//")
	if !ok || !strings.HasPrefix(abs, "/") || abs == "/" {
		return storage{}, errors.New("storage_uri of an absolute path is file:///PATH, without a host")
	}
	return storage{path: abs, absolute: true}, checkRelative(abs[1:])
}
