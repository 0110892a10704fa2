package host

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/writrun/writ/guest-abi/abi"
)

// Opener opens the content of a digest and tells its size in bytes. A reader
// that is an io.Closer is closed when it is no longer needed.
type Opener func(abi.Digest) (io.ReaderAt, int64, error)

// openReadersMax is how many dataset files are kept open between reads.
const openReadersMax = 8

// file is one readable file of a dataset.
type file struct {
	digest  abi.Digest
	size    int64
	open    Opener
	content []byte // instead of open, for a folder's listing
}

// datasets is what an invocation may read, with the files at hand open.
type datasets struct {
	list []Dataset
	open [openReadersMax]openReader // the most recently used first
}

type openReader struct {
	digest abi.Digest
	io.ReaderAt
}

// find returns the file a path "id" or "id/file" names.
func (d *datasets) find(path string) (file, bool) {
	id, name, inside := strings.Cut(path, "/")
	i := slices.IndexFunc(d.list, func(s Dataset) bool { return string(s.Handle.ID) == id })
	if i < 0 {
		return file{}, false
	}
	set := &d.list[i]
	switch {
	case !set.Handle.Folder:
		if inside || len(set.Listing.Files) != 1 {
			return file{}, false
		}
		return set.file(&set.Listing.Files[0]), true
	case !inside:
		return file{digest: set.Handle.Digest, size: int64(len(set.ListingBytes)), content: set.ListingBytes}, true
	}
	at, ok := slices.BinarySearchFunc(set.Listing.Files, name, func(f abi.DatasetFile, name string) int {
		return strings.Compare(f.Path, name)
	})
	if !ok {
		return file{}, false
	}
	return set.file(&set.Listing.Files[at]), true
}

func (s *Dataset) file(f *abi.DatasetFile) file {
	return file{digest: f.Digest, size: f.Size, open: s.Open}
}

// read fills p from offset of f, which has that many bytes.
func (d *datasets) read(f *file, p []byte, offset int64) error {
	if f.open == nil {
		copy(p, f.content[offset:])
		return nil
	}
	r, err := d.reader(f)
	if err != nil {
		return err
	}
	n, err := r.ReadAt(p, offset)
	if n < len(p) {
		if err == nil || errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return fmt.Errorf("read dataset file %s at byte %d: %w", f.digest, offset, err)
	}
	return nil
}

func (d *datasets) reader(f *file) (io.ReaderAt, error) {
	at := slices.IndexFunc(d.open[:], func(o openReader) bool { return o.ReaderAt != nil && o.digest == f.digest })
	if at < 0 {
		r, size, err := f.open(f.digest)
		if err != nil {
			return nil, fmt.Errorf("open dataset file %s: %w", f.digest, err)
		}
		at = openReadersMax - 1
		err = closeReader(d.open[at].ReaderAt)
		d.open[at] = openReader{f.digest, r}
		if err != nil {
			return nil, err
		}
		if size != f.size {
			return nil, fmt.Errorf("open dataset file %s: it has %d bytes and its listing says %d", f.digest, size, f.size)
		}
	}
	used := d.open[at]
	copy(d.open[1:at+1], d.open[:at])
	d.open[0] = used
	return used.ReaderAt, nil
}

// close closes what is open. Files were only read, so an error loses nothing.
func (d *datasets) close() {
	for i := range d.open {
		_ = closeReader(d.open[i].ReaderAt)
		d.open[i] = openReader{}
	}
}

func closeReader(r io.ReaderAt) error {
	if c, ok := r.(io.Closer); ok {
		if err := c.Close(); err != nil {
			return fmt.Errorf("close dataset file: %w", err)
		}
	}
	return nil
}

func (c *Calls) close() { c.datasets.close() }

// datasetPath reads a path argument. It appends the path to the request and
// returns the file, or the code there is instead.
func (c *Calls) datasetPath(ptr, size uint32) (f file, code abi.Code, ok bool) {
	if size > abi.PathBytesMax {
		c.requestUint(uint64(size))
		return file{}, abi.TooLarge, true
	}
	path, ok := c.bytesAt(ptr, size)
	if !ok || !c.chargeBytes(uint64(size)) {
		return file{}, 0, false
	}
	c.requestText(path)
	if !utf8.Valid(path) {
		return file{}, abi.Invalid, true
	}
	f, found := c.datasets.find(string(path))
	if !found {
		return file{}, abi.NotFound, true
	}
	return f, 0, true
}

// dataset_size(path_ptr, path_len) -> i64
func datasetSize(c *Calls, stack []uint64) bool {
	if !c.enter(5) {
		return false
	}
	f, code, ok := c.datasetPath(uint32(stack[0]), uint32(stack[1]))
	switch {
	case !ok:
		return false
	case code != 0:
		return c.refuse(stack, code)
	}
	return c.answer(stack, f.size)
}

// readCode refuses a read of more than one argument may hold or from before the
// start. That the file or artifact was not found, code, goes before both.
func readCode(code abi.Code, offset int64, size uint32) abi.Code {
	switch {
	case code != 0:
		return code
	case size > abi.ArgumentBytesMax:
		return abi.TooLarge
	case offset < 0:
		return abi.Invalid
	}
	return 0
}

// dataset_read(path_ptr, path_len, offset i64, ptr, len) -> i64
func datasetRead(c *Calls, stack []uint64) bool {
	if !c.enter(6) {
		return false
	}
	offset, ptr, size := int64(stack[2]), uint32(stack[3]), uint32(stack[4])
	c.requestArray(4)
	f, code, ok := c.datasetPath(uint32(stack[0]), uint32(stack[1]))
	if !ok {
		return false
	}
	c.requestInt(offset)
	c.requestUint(uint64(size))
	c.requestDigest(f.digest)
	if code = readCode(code, offset, size); code != 0 {
		return c.refuse(stack, code)
	}
	n, ok := c.readFile(&f, ptr, size, offset)
	return ok && c.answer(stack, int64(n))
}

// readFile copies from f at offset, which is not negative, into guest memory and
// returns how many bytes there were.
func (c *Calls) readFile(f *file, ptr, size uint32, offset int64) (uint32, bool) {
	to, ok := c.bytesAt(ptr, size)
	if !ok || !c.chargeBytes(uint64(size)) {
		return 0, false
	}
	n := uint32(min(int64(size), max(f.size-offset, 0)))
	if n == 0 {
		return 0, true
	}
	if err := c.datasets.read(f, to[:n], offset); err != nil {
		return 0, c.failed(err)
	}
	return n, true
}
