// Package codecache keeps what engines compiled between processes, in a
// directory that only this user can reach.
//
// What it hands out is run as native code. So it hands out only what a process
// of this user put in: each file carries a code made with a secret key of the
// directory, over the file's name and content, and a file that fails its check,
// belongs to someone else or lets others in is removed and never used. That holds
// against damage, files copied from elsewhere and other users; it does not hold
// against programs of the same user, who can read the key.
//
// It is a cache: whatever goes wrong with a directory that is safe, the result is
// that nothing is kept.
package codecache

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Bounds of a cache.
const (
	cacheBytesMax = 1 << 30   // of all files together; the longest unused are removed
	fileBytesMax  = 512 << 20 // of one file
)

const (
	codeSuffix = ".code"
	macBytes   = sha256.Size
	macContext = "writ compiled code 1\x00"
)

// Dir is an open cache. A nil Dir keeps nothing. Its methods are safe for
// concurrent use, also by several processes.
type Dir struct {
	path     string
	key      [keyBytes]byte
	problem  error // why nothing is kept
	bytesMax int64
}

// Open opens the cache in dir, which it makes if it is absent. It refuses a
// directory that others can reach, or that is none. A directory it cannot write
// to gives a cache that keeps nothing; see [Dir.Problem].
func Open(dir string) (*Dir, error) {
	d := &Dir{path: dir, bytesMax: cacheBytesMax}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		if _, statErr := os.Lstat(dir); statErr != nil {
			d.problem = fmt.Errorf("make compilation cache: %w", err)
			return d, nil
		}
	}
	if err := checkDir(dir); err != nil {
		return nil, err
	}
	d.key, d.problem = openKey(dir)
	return d, nil
}

// Problem returns why nothing is kept, or nil.
func (d *Dir) Problem() error {
	if d == nil {
		return nil
	}
	return d.problem
}

// Key names what depends on all of parts and on nothing else: what was compiled,
// by what, for which machine.
func Key(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(p)))
		h.Write(size[:])
		h.Write([]byte(p))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Load returns what was stored under key, a result of [Key]. The bytes are those
// that were checked.
func (d *Dir) Load(key string) ([]byte, bool) {
	if d == nil || d.problem != nil {
		return nil, false
	}
	path := d.file(key)
	content, err := readOwn(path, fileBytesMax)
	if err != nil {
		if errors.Is(err, errForeign) {
			d.Remove(key)
		}
		return nil, false
	}
	if len(content) <= macBytes || !hmac.Equal(content[:macBytes], d.mac(key, content[macBytes:])) {
		d.Remove(key)
		return nil, false
	}
	now := time.Now()
	_ = os.Chtimes(path, now, now) // only which files are removed first depends on it
	return content[macBytes:], true
}

// Store keeps code under key, a result of [Key], in place of what was there.
// Files longest unused make room for it.
func (d *Dir) Store(key string, code []byte) error {
	switch {
	case d == nil:
		return nil
	case d.problem != nil:
		return d.problem
	case len(code) == 0 || len(code) > fileBytesMax-macBytes:
		return fmt.Errorf("keep compiled code: %d bytes are none or more than %d", len(code), fileBytesMax-macBytes)
	}
	if err := writeWhole(d.file(key), d.mac(key, code), code); err != nil {
		return fmt.Errorf("keep compiled code: %w", err)
	}
	return d.trim()
}

// Has reports whether there is a file under key, checked or not.
func (d *Dir) Has(key string) bool {
	if d == nil || d.problem != nil {
		return false
	}
	_, err := os.Lstat(d.file(key))
	return err == nil
}

// Remove forgets what is stored under key.
func (d *Dir) Remove(key string) {
	if d != nil {
		_ = os.Remove(d.file(key))
	}
}

func (d *Dir) file(key string) string { return filepath.Join(d.path, key+codeSuffix) }

// mac covers the name beside the content, so that one file cannot stand in for
// another.
func (d *Dir) mac(key string, code []byte) []byte {
	h := hmac.New(sha256.New, d.key[:])
	h.Write([]byte(macContext))
	h.Write([]byte(key))
	h.Write([]byte{0})
	h.Write(code)
	return h.Sum(nil)
}
