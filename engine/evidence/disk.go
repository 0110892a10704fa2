package evidence

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// disk is every change this package makes to files. Tests see each step through
// fault, and can make it fail.
type disk struct {
	root   string
	fault  func(op, path string) error // before each step; nil in use
	broken atomic.Pointer[Problem]     // the first failed fsync
	mu     sync.Mutex
	rand   io.Reader
}

func (d *disk) step(op, path string) error {
	if p := d.broken.Load(); p != nil {
		return p
	}
	if d.fault == nil {
		return nil
	}
	return d.fault(op, path)
}

// problem turns a system error into a Problem where it is one people can act on.
func (d *disk) problem(doing, path string, err error) error {
	var p *Problem
	if err == nil || errors.As(err, &p) {
		return err
	}
	code := ""
	switch {
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT), errors.Is(err, unix.EFBIG):
		code = CodeFull
	case errors.Is(err, unix.EROFS), errors.Is(err, fs.ErrPermission):
		code = CodeReadOnly
	default:
		return fmt.Errorf("%s %s: %w", doing, path, err)
	}
	return &Problem{Code: code, Path: d.rel(path), Detail: doing + ": " + reason(err), cause: err}
}

func (d *disk) rel(path string) string {
	if r, err := filepath.Rel(d.root, path); err == nil && !strings.HasPrefix(r, "..") {
		return r
	}
	return path
}

// reason is the system's reason without the path, which a Problem has already.
func reason(err error) string {
	var e *fs.PathError
	if errors.As(err, &e) {
		return e.Err.Error()
	}
	return err.Error()
}

// writeAt writes b at off, or nothing: after a short write the file is cut
// back, so that room made later finds it as it was.
func (d *disk) writeAt(f *os.File, b []byte, off int64) error {
	err := d.step("write", f.Name())
	if err == nil {
		_, err = f.WriteAt(b, off)
	}
	if err == nil {
		return nil
	}
	if cut := f.Truncate(off); cut != nil {
		return errors.Join(d.problem("write", f.Name(), err), fmt.Errorf("cut %s back to %d bytes: %w", f.Name(), off, cut))
	}
	return d.problem("write", f.Name(), err)
}

// sync makes a file's content durable. A failure is for ever.
func (d *disk) sync(f *os.File) error {
	err := d.step("sync", f.Name())
	if err == nil {
		err = unix.Fdatasync(int(f.Fd()))
	}
	return d.synced(f.Name(), err)
}

func (d *disk) syncDir(path string) error {
	if err := d.step("syncdir", path); err != nil {
		return d.synced(path, err)
	}
	f, err := os.Open(path)
	if err != nil {
		return d.problem("open directory", path, err)
	}
	err = unix.Fsync(int(f.Fd()))
	return d.synced(path, errors.Join(err, f.Close()))
}

func (d *disk) synced(path string, err error) error {
	var already *Problem
	if err == nil || errors.As(err, &already) {
		return err
	}
	p := &Problem{Code: CodeBroken, Path: d.rel(path), Detail: "make durable: " + reason(err), cause: err}
	d.broken.CompareAndSwap(nil, p)
	return p
}

func (d *disk) rename(from, to string) error {
	err := d.step("rename", to)
	if err == nil {
		err = os.Rename(from, to)
	}
	if err != nil {
		return d.problem("rename to", to, err)
	}
	return nil
}

// remove removes a file; one that is not there is as good as removed.
func (d *disk) remove(path string) error {
	err := d.step("remove", path)
	if err == nil {
		err = os.Remove(path)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return d.problem("remove", path, err)
	}
	return nil
}

// mkdir makes a directory durable in its parent; it may exist.
func (d *disk) mkdir(path string) error {
	err := d.step("mkdir", path)
	if err == nil {
		err = os.Mkdir(path, dirMode)
	}
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return d.problem("make directory", path, err)
	}
	return d.syncDir(filepath.Dir(path))
}

// mkdirAll makes a directory and those above it, from an existing one down.
func (d *disk) mkdirAll(path string) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	if parent := filepath.Dir(path); parent != path {
		if err := d.mkdirAll(parent); err != nil {
			return err
		}
	}
	return d.mkdir(path)
}

func (d *disk) create(path string, flags int) (*os.File, error) {
	err := d.step("create", path)
	var f *os.File
	if err == nil {
		f, err = os.OpenFile(path, flags|os.O_CREATE|unix.O_NOFOLLOW, fileMode)
	}
	if err != nil {
		return nil, d.problem("create", path, err)
	}
	return f, nil
}

// tempPrefix begins the names of files that are not finished. They mean nothing
// and are removed at the next open.
const tempPrefix = ".tmp-"

// tempFile makes a file with an unfinished name in dir.
func (d *disk) tempFile(dir string) (*os.File, error) {
	var name [12]byte
	if err := d.random(name[:]); err != nil {
		return nil, err
	}
	return d.create(filepath.Join(dir, tempPrefix+hex.EncodeToString(name[:])), os.O_RDWR|os.O_EXCL)
}

// writeFile makes path hold b, durably and all at once.
func (d *disk) writeFile(path string, b []byte) error {
	f, err := d.tempFile(filepath.Dir(path))
	if err != nil {
		return err
	}
	err = d.writeAt(f, b, 0)
	if err == nil {
		err = d.sync(f)
	}
	return d.settle(f, err, path)
}

// settle closes a temporary file and gives it its name, or removes it after a failure.
func (d *disk) settle(f *os.File, err error, path string) error {
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = d.rename(f.Name(), path)
	}
	if err != nil {
		// What cannot be removed now is removed at the next open.
		_ = os.Remove(f.Name())
		return err
	}
	return d.syncDir(filepath.Dir(path))
}

// removeTemps removes what an earlier process left unfinished in dir.
func (d *disk) removeTemps(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return d.problem("read directory", dir, err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), tempPrefix) {
			if err := d.remove(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// random fills b; the reader it draws from need not be safe for concurrent use.
func (d *disk) random(b []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := io.ReadFull(d.rand, b); err != nil {
		return fmt.Errorf("draw randomness: %w", err)
	}
	return nil
}

// errNotRegular stands for a link, pipe or device where a file should be; for
// this package the file is then not there.
var errNotRegular = fmt.Errorf("not a regular file: %w", fs.ErrNotExist)

// openRegular opens a regular file for reading and nothing else.
func openRegular(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, unix.ELOOP) {
		return nil, &fs.PathError{Op: "open", Path: path, Err: errNotRegular}
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: errNotRegular}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// readSmall reads a whole file of at most max bytes.
func readSmall(path string, max int64) ([]byte, error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, max+1))
	if err == nil && int64(len(b)) > max {
		err = fmt.Errorf("file is larger than %d bytes", max)
	}
	return b, err
}
