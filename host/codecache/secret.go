package codecache

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

const (
	keyFile     = "cache.key"
	keyBytes    = 32
	keyTriesMax = 8 // processes that open a new cache at once take each other's key
)

// openKey returns the secret of the cache in dir. It makes one if there is none,
// or none that can be trusted; what was kept under another is then foreign.
func openKey(dir string) (key [keyBytes]byte, err error) {
	path := filepath.Join(dir, keyFile)
	for range keyTriesMax {
		var content []byte
		content, err = readOwn(path, keyBytes)
		if err == nil && len(content) == keyBytes {
			return [keyBytes]byte(content), nil
		}
		switch {
		case err == nil, errors.Is(err, errForeign):
			err = os.Remove(path)
		case errors.Is(err, fs.ErrNotExist):
			err = makeKey(path)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	if err == nil {
		err = errors.New("it changed again and again")
	}
	return key, fmt.Errorf("open compilation cache: key %s: %w", path, err)
}

// makeKey makes a key file, complete from the moment it can be seen. It fails if
// there is one.
func makeKey(path string) error {
	var key [keyBytes]byte
	if _, err := rand.Read(key[:]); err != nil {
		return err
	}
	temp, err := writeTemp(path, key[:])
	if err != nil {
		return err
	}
	defer os.Remove(temp)
	return os.Link(temp, path)
}
