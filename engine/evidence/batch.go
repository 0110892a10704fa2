package evidence

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/writrun/writ/guest-abi/abi"
)

// Batch stores many content objects that become durable, and visible, together:
// two flushes of the file system instead of several for each object. Use it for
// a folder of files. It is not safe for concurrent use.
type Batch struct {
	content *Content
	pending map[abi.Digest]string // temporary file of each object
}

// Batch begins a batch. Call [Batch.Close] when done with it, committed or not.
func (c *Content) Batch() *Batch {
	return &Batch{content: c, pending: map[abi.Digest]string{}}
}

// Has reports whether an object is in the store or in the batch.
func (b *Batch) Has(d abi.Digest) bool { return b.pending[d] != "" || b.content.Has(d) }

// Put adds what r yields to the batch and returns its digest and size.
func (b *Batch) Put(r io.Reader) (abi.Digest, int64, error) {
	f, err := b.content.temp()
	if err != nil {
		return "", 0, err
	}
	digest, size, err := b.content.fill(f, r)
	if closed := f.Close(); err == nil && closed != nil {
		err = b.content.disk.problem("write", f.Name(), closed)
	}
	if err != nil || b.pending[digest] != "" || b.content.holds(digest, size) {
		return digest, size, errors.Join(err, b.content.disk.remove(f.Name()))
	}
	b.pending[digest] = f.Name()
	return digest, size, nil
}

// Commit makes every object of the batch durable and gives it its name.
func (b *Batch) Commit() error {
	if len(b.pending) == 0 {
		return nil
	}
	c := b.content
	if err := c.flush(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for digest, temp := range b.pending {
		path, err := c.path(digest)
		if err != nil {
			return err
		}
		if err := c.disk.makeDir(filepath.Dir(path)); err != nil {
			return err
		}
		if err := c.disk.rename(temp, path); err != nil {
			return err
		}
		delete(b.pending, digest)
	}
	return c.flush()
}

// Close removes what was not committed.
func (b *Batch) Close() error {
	var errs []error
	for _, temp := range b.pending {
		errs = append(errs, b.content.disk.remove(temp))
	}
	b.pending = map[abi.Digest]string{}
	return errors.Join(errs...)
}

// flush makes the whole file system durable.
func (c *Content) flush() error {
	if err := c.disk.step("syncfs", c.dir); err != nil {
		return c.disk.synced(c.dir, err)
	}
	dir, err := os.Open(c.dir)
	if err != nil {
		return c.disk.problem("open directory", c.dir, err)
	}
	err = unix.Syncfs(int(dir.Fd()))
	return c.disk.synced(c.dir, errors.Join(err, dir.Close()))
}

// makeDir makes a directory that the caller makes durable; it may exist.
func (d *disk) makeDir(path string) error {
	err := d.step("mkdir", path)
	if err == nil {
		err = os.Mkdir(path, dirMode)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return d.problem("make directory", path, err)
	}
	return nil
}
