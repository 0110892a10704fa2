package evidence

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/writrun/writ/guest-abi/abi"
)

// Content is a tenant's content store: objects named by the SHA-256 of their
// bytes. It is safe for concurrent use.
type Content struct {
	dir      string // content/sha256
	disk     *disk
	readOnly bool
	mu       sync.Mutex // names are given one at a time, so that one seen is durable
}

func (c *Content) path(d abi.Digest) (string, error) {
	if _, err := abi.ParseDigest(string(d)); err != nil {
		return "", err
	}
	return filepath.Join(c.dir, d.Hex()[:2], d.Hex()), nil
}

// Put stores what r yields and returns its digest and size. When it returns
// without an error the content is durable.
func (c *Content) Put(r io.Reader) (abi.Digest, int64, error) {
	f, err := c.temp()
	if err != nil {
		return "", 0, err
	}
	digest, size, err := c.fill(f, r)
	if err == nil {
		err = c.disk.sync(f)
	}
	if err != nil {
		_ = f.Close()
		_ = os.Remove(f.Name())
		return "", 0, err
	}
	return digest, size, c.name(f, digest, size)
}

// PutBytes stores b.
func (c *Content) PutBytes(b []byte) (abi.Digest, error) {
	d := abi.DigestOf(b)
	if c.holds(d, int64(len(b))) {
		return d, nil
	}
	_, _, err := c.Put(bytes.NewReader(b))
	return d, err
}

func (c *Content) temp() (*os.File, error) {
	if c.readOnly {
		return nil, &Problem{Code: CodeReadOnly, Path: c.disk.rel(c.dir), Detail: "the store was opened for reading"}
	}
	return c.disk.tempFile(c.dir)
}

// fill copies r into f.
func (c *Content) fill(f *os.File, r io.Reader) (abi.Digest, int64, error) {
	h := sha256.New()
	if err := c.disk.step("write", f.Name()); err != nil {
		return "", 0, c.disk.problem("write", f.Name(), err)
	}
	source := &sourceReader{r: io.LimitReader(io.TeeReader(r, h), ContentBytesMax+1)}
	size, err := io.Copy(onlyWriter{f}, source)
	switch {
	case source.err != nil:
		return "", 0, fmt.Errorf("store content: read source: %w", source.err)
	case err != nil:
		return "", 0, c.disk.problem("write", f.Name(), err)
	case size > ContentBytesMax:
		return "", 0, &Problem{Code: CodeContentTooLarge, Detail: fmt.Sprintf("content is larger than %d bytes", int64(ContentBytesMax))}
	}
	return abi.DigestFromSum([32]byte(h.Sum(nil))), size, nil
}

// name gives a durable temporary file its name.
func (c *Content) name(f *os.File, d abi.Digest, size int64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	path, err := c.path(d)
	if err == nil && c.holdsLocked(d, size) {
		return errors.Join(f.Close(), c.disk.remove(f.Name()))
	}
	if err == nil {
		err = c.disk.mkdir(filepath.Dir(path))
	}
	return c.disk.settle(f, err, path)
}

func (c *Content) holds(d abi.Digest, size int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.holdsLocked(d, size)
}

func (c *Content) holdsLocked(d abi.Digest, size int64) bool {
	path, err := c.path(d)
	if err != nil {
		return false
	}
	info, err := os.Lstat(path)
	return err == nil && info.Mode().IsRegular() && info.Size() == size
}

// Has reports whether an object of this digest is there. It does not read it.
func (c *Content) Has(d abi.Digest) bool {
	path, err := c.path(d)
	if err != nil {
		return false
	}
	info, err := os.Lstat(path)
	return err == nil && info.Mode().IsRegular()
}

// Object is an open content object.
type Object struct {
	*os.File
	Size int64 // bytes
}

// Open opens an object for reading. It does not check its digest: use
// [Content.Get], or hash what you read.
func (c *Content) Open(d abi.Digest) (*Object, error) {
	path, err := c.path(d)
	if err != nil {
		return nil, err
	}
	f, err := openRegular(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &Problem{Code: CodeContentMissing, Path: c.disk.rel(path), Detail: "the content is not there: " + reason(err), cause: err}
	}
	if err != nil {
		return nil, c.disk.problem("open content", path, err)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(c.disk.problem("open content", path, err), f.Close())
	}
	return &Object{File: f, Size: info.Size()}, nil
}

// Get returns an object of at most bytesMax bytes and checks its digest.
func (c *Content) Get(d abi.Digest, bytesMax int64) ([]byte, error) {
	f, err := c.Open(d)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if f.Size > bytesMax {
		return nil, &Problem{Code: CodeContentTooLarge, Path: c.disk.rel(f.Name()), Detail: fmt.Sprintf("content has %d bytes, more than %d", f.Size, bytesMax)}
	}
	b := make([]byte, f.Size)
	if _, err := io.ReadFull(f, b); err != nil {
		return nil, c.disk.problem("read content", f.Name(), err)
	}
	if abi.DigestOf(b) != d {
		return nil, c.mismatch(f.Name())
	}
	return b, nil
}

func (c *Content) mismatch(path string) *Problem {
	return &Problem{Code: CodeContentMismatch, Path: c.disk.rel(path), Detail: "the content does not have the digest it is named by"}
}

// sourceReader remembers the error of the source, to tell it from the target's.
type sourceReader struct {
	r   io.Reader
	err error
}

func (s *sourceReader) Read(b []byte) (int, error) {
	n, err := s.r.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// onlyWriter hides a file's ReadFrom, which would hide the source from the hash.
type onlyWriter struct{ io.Writer }
