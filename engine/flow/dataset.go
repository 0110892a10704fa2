package flow

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"github.com/writrun/writ/guest-abi/abi"
)

// PinnedDataset is a dataset as it was when its digest was taken.
type PinnedDataset struct {
	Digest       abi.Digest // of the file's bytes, or of ListingBytes
	Folder       bool
	Size         int64              // bytes of all files
	Listing      abi.DatasetListing // of a single file: one entry with the path ""
	ListingBytes []byte             // canonical JSON of Listing

	base string // folder on this machine that is not left
	name string // the dataset below it
}

// Open opens one file of the dataset, by its path in the listing. What is read
// may have changed since the dataset was pinned: who copies it takes the digest
// again.
func (d PinnedDataset) Open(file string) (io.ReadCloser, error) {
	root, err := os.OpenRoot(d.base)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, _, err := openRegular(root, path.Join(d.name, file))
	return f, err
}

// datasetError is what a dataset may not be, as opposed to what an operating
// system could not do.
type datasetError struct {
	code   string
	reason string
}

func (e *datasetError) Error() string { return e.reason }

func refuseEntry(name, reason string) error {
	if name == "" {
		return &datasetError{CodeDatasetEntry, reason}
	}
	return &datasetError{CodeDatasetEntry, fmt.Sprintf("%q %s", name, reason)}
}

// pinDataset digests the dataset at a storage URI; relative ones start at folder.
func pinDataset(ctx context.Context, folder, uri string) (PinnedDataset, error) {
	at, err := parseStorage(uri)
	if err != nil {
		return PinnedDataset{}, err
	}
	d := PinnedDataset{base: folder, name: at.path}
	if at.absolute {
		d.base, d.name = filepath.Dir(at.path), filepath.Base(at.path)
	}
	root, err := os.OpenRoot(d.base)
	if err != nil {
		return d, err
	}
	defer root.Close()
	info, err := root.Lstat(d.name)
	if err != nil {
		return d, err
	}
	w := &walk{ctx: ctx, root: root, base: d.name}
	switch {
	case info.IsDir():
		d.Folder = true
		err = w.folder("", 0)
	case info.Mode().IsRegular():
		err = w.file("")
	default:
		err = refuseEntry("", "is "+describe(info.Mode()))
	}
	if err != nil {
		return d, err
	}
	slices.SortFunc(w.files, func(a, b abi.DatasetFile) int { return strings.Compare(a.Path, b.Path) })
	d.Size, d.Listing = w.bytes, abi.DatasetListing{Files: orEmpty(w.files)}
	if d.ListingBytes, err = abi.EncodeMessage(d.Listing); err != nil {
		return d, err
	}
	d.Digest = abi.DigestOf(d.ListingBytes)
	if !d.Folder {
		d.Digest = d.Listing.Files[0].Digest
	}
	return d, nil
}

// walk collects the files of a dataset.
type walk struct {
	ctx   context.Context
	root  *os.Root
	base  string
	files []abi.DatasetFile
	bytes int64
}

// folder adds everything below one folder of the dataset, named relative to it.
func (w *walk) folder(name string, depth int) error {
	if depth > DatasetFolderDepthMax {
		return &datasetError{CodeDatasetLimit, fmt.Sprintf("folder %q is nested deeper than %d", name, DatasetFolderDepthMax)}
	}
	entries, err := w.entries(name)
	if err != nil {
		return err
	}
	if len(entries) == 0 && name != "" {
		return refuseEntry(name, "is an empty folder, which a listing of files cannot hold")
	}
	if err := checkTwins(name, entries); err != nil {
		return err
	}
	for _, e := range entries {
		child := path.Join(name, e.Name())
		if err := checkEntryName(child, e.Name()); err != nil {
			return err
		}
		switch {
		case e.IsDir():
			err = w.folder(child, depth+1)
		case e.Type().IsRegular():
			err = w.file(child)
		default:
			err = refuseEntry(child, "is "+describe(e.Type()))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// entries lists one folder, at most as many as a dataset may have files.
func (w *walk) entries(name string) ([]fs.DirEntry, error) {
	f, err := w.root.Open(path.Join(w.base, name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	entries, err := f.ReadDir(DatasetFilesMax + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(entries) > DatasetFilesMax {
		return nil, tooManyFiles()
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, nil
}

func tooManyFiles() error {
	return &datasetError{CodeDatasetLimit, fmt.Sprintf("more than %d files", DatasetFilesMax)}
}

func checkEntryName(child, name string) error {
	switch {
	case !utf8.ValidString(name):
		return refuseEntry(child, "is a name that is not UTF-8")
	case strings.ContainsFunc(name, isControl):
		return refuseEntry(child, "is a name with control characters")
	case strings.ContainsRune(name, '\\'):
		return refuseEntry(child, "is a name with a backslash, which separates folders on some systems")
	case len(child) > abi.PathBytesMax:
		return &datasetError{CodeDatasetLimit, fmt.Sprintf("path %.80q… is longer than %d bytes", child, abi.PathBytesMax)}
	}
	return nil
}

// checkTwins refuses names that a file system without case or with Unicode
// normalisation takes for the same: there, the dataset could not be restored.
func checkTwins(folder string, entries []fs.DirEntry) error {
	fold := cases.Fold()
	seen := make(map[string]string, len(entries))
	for _, e := range entries {
		key := norm.NFC.String(fold.String(norm.NFC.String(e.Name())))
		if first, taken := seen[key]; taken {
			return refuseEntry(path.Join(folder, e.Name()), fmt.Sprintf("is the twin of %q: some systems take them for the same", path.Join(folder, first)))
		}
		seen[key] = e.Name()
	}
	return nil
}

// file digests one file; "" is the dataset itself.
func (w *walk) file(name string) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	if len(w.files) == DatasetFilesMax {
		return tooManyFiles()
	}
	// The entry was no link when it was listed; should it be one by now, it leads
	// to a file below the same root, whose bytes are digested and pinned.
	f, info, err := openRegular(w.root, path.Join(w.base, name))
	if errors.Is(err, errNotRegular) {
		return refuseEntry(name, "is not a regular file")
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if info.Size() > DatasetBytesMax-w.bytes {
		return &datasetError{CodeDatasetLimit, fmt.Sprintf("more than %d bytes", int64(DatasetBytesMax))}
	}
	h := sha256.New()
	size, err := io.Copy(h, &cancellable{w.ctx, io.LimitReader(f, info.Size()+1)})
	if err != nil {
		return err
	}
	if size != info.Size() {
		return refuseEntry(name, "changes while it is read")
	}
	w.bytes += size
	w.files = append(w.files, abi.DatasetFile{Path: name, Executable: info.Mode()&0o100 != 0, Size: size,
		Digest: abi.DigestFromSum([32]byte(h.Sum(nil)))})
	return nil
}

// cancellable is a reader that ends with its context.
type cancellable struct {
	ctx context.Context
	r   io.Reader
}

// Read reads unless the context has ended.
func (c *cancellable) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

// describe names what is not a regular file or folder.
func describe(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeSymlink != 0:
		return "a symbolic link"
	case mode&fs.ModeNamedPipe != 0:
		return "a FIFO"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	}
	return "not a regular file"
}
