package policies

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/bundle"
	"github.com/open-policy-agent/opa/v1/loader/filter"
)

// Limits of a bundle.
const (
	BundleArchiveBytesMax = 8 << 20  // an archive as it is stored or sent
	BundleBytesMax        = 16 << 20 // an archive unpacked, or the files of a folder together
	BundleFilesMax        = 1000     // files
	BundleEntriesMax      = 10_000   // files and folders, those without a part in a decision included
	BundlePathBytesMax    = 500      // of one file
)

const (
	signatureFile = ".signatures.json"
	manifestFile  = ".manifest"
)

// bundleFiles is what a bundle consists of, by clean path without a slash at
// the front.
type bundleFiles map[string][]byte

func (f bundleFiles) paths() []string { return slices.Sorted(maps.Keys(f)) }

// isPolicy reports whether OPA would read a file.
func isPolicy(name string) bool {
	switch base := path.Base(name); {
	case strings.HasSuffix(name, bundle.RegoExt), base == "data.json", base == "data.yaml", base == "data.yml":
		return true
	}
	return name == manifestFile || name == signatureFile
}

// decisive returns the files that decisions depend on.
func (f bundleFiles) decisive() map[string]string {
	files := map[string]string{}
	for name, b := range f {
		if isPolicy(name) && !isTest(name) && name != signatureFile {
			files[name] = string(b)
		}
	}
	return files
}

// archive writes the files in one form: sorted, without times, owners or
// compression.
func (f bundleFiles) archive() []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range f.paths() {
		err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(f[name])), Format: tar.FormatPAX})
		if err == nil {
			_, err = w.Write(f[name])
		}
		if err != nil {
			panic("policies: archive bundle: " + err.Error()) // a buffer takes all, and names were checked
		}
	}
	if err := w.Close(); err != nil {
		panic("policies: archive bundle: " + err.Error())
	}
	return b.Bytes()
}

// collector takes files within the limits.
type collector struct {
	files   bundleFiles
	entries int
	bytes   int
}

// entry counts an entry and refuses names that mean something else here than
// they may elsewhere.
func (c *collector) entry(name string) error {
	if c.entries++; c.entries > BundleEntriesMax {
		return tooLarge("more than %d files and folders", BundleEntriesMax)
	}
	base := path.Base(name)
	refused := func(why string) error {
		return &Refusal{Code: CodeBundleFile, Detail: fmt.Sprintf("file %.200q: %s", name, why)}
	}
	switch {
	case len(name) > BundlePathBytesMax:
		return refused(fmt.Sprintf("its path has more than %d bytes", BundlePathBytesMax))
	case !fs.ValidPath(name) || strings.ContainsAny(name, "\\\x00"):
		return refused("its path is not a clean path inside the bundle")
	case strings.HasSuffix(base, "signatures.json") && name != signatureFile:
		return &Refusal{Code: CodeBundleStraySignature, Detail: fmt.Sprintf("file %.200q: only %s at the top of a bundle is its signature", name, signatureFile)}
	case base == bundle.WasmFile || base == bundle.PlanFile || base == bundle.PlanProtoFile:
		return refused("compiled policies are not run; give their Rego")
	case base == "patch.json":
		return refused("a delta bundle is no bundle of its own; give the whole one")
	case (strings.HasSuffix(base, bundle.ManifestExt) || strings.HasSuffix(base, bundle.ManifestProtoExt)) && name != manifestFile:
		return refused("only " + manifestFile + " at the top of a bundle is its manifest")
	}
	return nil
}

// add takes a file from r, whose stated size is checked before it is read.
func (c *collector) add(name string, size int64, r io.Reader) error {
	if _, twice := c.files[name]; twice {
		return &Refusal{Code: CodeBundleFile, Detail: fmt.Sprintf("file %.200q is there twice", name)}
	}
	if len(c.files) == BundleFilesMax {
		return tooLarge("more than %d files", BundleFilesMax)
	}
	if strings.HasSuffix(name, bundle.RegoExt) && size > SourceBytesMax {
		return tooLarge("%.200q has more than %d bytes", name, SourceBytesMax)
	}
	left := BundleBytesMax - c.bytes
	if size > int64(left) {
		return tooLarge("more than %d bytes", BundleBytesMax)
	}
	b, err := io.ReadAll(io.LimitReader(r, int64(left)+1))
	if err != nil {
		return err
	}
	if len(b) > left || int64(len(b)) != size {
		return tooLarge("%.200q is not of the %d bytes it was to have", name, size)
	}
	c.files[name], c.bytes = b, c.bytes+len(b)
	return nil
}

func tooLarge(format string, args ...any) *Refusal {
	return &Refusal{Code: CodeBundleTooLarge, Detail: fmt.Sprintf("the bundle has too much: "+format, args...)}
}

// readFolder takes a bundle from a folder. Links and devices are refused: a
// folder is to hold what is digested.
func readFolder(folder fs.FS) (bundleFiles, error) {
	c := &collector{files: bundleFiles{}}
	_, err := fs.Stat(folder, signatureFile)
	signed := err == nil
	err = fs.WalkDir(folder, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		if err := c.entry(name); err != nil || d.IsDir() {
			return err
		}
		if !d.Type().IsRegular() {
			return &Refusal{Code: CodeBundleFile, Detail: fmt.Sprintf("%.200q is neither a file nor a folder; links are not followed", name)}
		}
		if !signed && !isPolicy(name) {
			return nil
		}
		return c.addFile(folder, name)
	})
	return c.files, unreadable(err)
}

func (c *collector) addFile(folder fs.FS, name string) (err error) {
	f, err := folder.Open(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return c.add(name, info.Size(), f)
}

// readArchive takes a bundle from a tar, compressed with gzip or not.
func readArchive(archive []byte) (bundleFiles, error) {
	if len(archive) > BundleBytesMax {
		return nil, tooLarge("an archive of more than %d bytes", BundleBytesMax)
	}
	var r io.Reader = bytes.NewReader(archive)
	if bytes.HasPrefix(archive, []byte{0x1f, 0x8b}) {
		if len(archive) > BundleArchiveBytesMax {
			return nil, tooLarge("an archive of more than %d bytes", BundleArchiveBytesMax)
		}
		z, err := gzip.NewReader(r)
		if err != nil {
			return nil, unreadable(err)
		}
		r = z
	}
	c := &collector{files: bundleFiles{}}
	unpacked := &io.LimitedReader{R: r, N: 2 * BundleBytesMax} // what stands around the files is bounded as well
	err := c.addArchive(tar.NewReader(unpacked))
	if err == nil {
		// The rest is read for the checksum at its end.
		_, err = io.Copy(io.Discard, unpacked)
	}
	if unpacked.N == 0 {
		return nil, tooLarge("it unpacks to more than %d bytes", 2*BundleBytesMax)
	}
	return c.files, unreadable(err)
}

func (c *collector) addArchive(t *tar.Reader) error {
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(strings.TrimPrefix(h.Name, "."), "/")
		if !strings.HasPrefix(h.Name, "./") && !strings.HasPrefix(h.Name, "/") {
			name = h.Name
		}
		name = strings.TrimSuffix(name, "/")
		if h.Typeflag == tar.TypeDir && (name == "" || name == ".") {
			continue
		}
		if err := c.entry(name); err != nil {
			return err
		}
		switch h.Typeflag {
		case tar.TypeDir:
		case tar.TypeReg:
			if err := c.add(name, h.Size, t); err != nil {
				return err
			}
		default:
			return &Refusal{Code: CodeBundleFile, Detail: fmt.Sprintf("%.200q is neither a file nor a folder; links are not followed", name)}
		}
	}
}

// unreadable makes a refusal of what reading fell over.
func unreadable(err error) error {
	var r *Refusal
	if err == nil || errors.As(err, &r) {
		return err
	}
	return &Refusal{Code: CodeUnreadable, Detail: fmt.Sprintf("read bundle: %v", err)}
}

// memoryLoader gives OPA's reader the files that were taken.
type memoryLoader struct {
	files bundleFiles
	paths []string
}

// NextFile returns the next file, or io.EOF.
func (l *memoryLoader) NextFile() (*bundle.Descriptor, error) {
	if len(l.paths) == 0 {
		return nil, io.EOF
	}
	name := l.paths[0]
	l.paths = l.paths[1:]
	return bundle.NewDescriptor("/"+name, "/"+name, bytes.NewReader(l.files[name])), nil
}

// WithFilter returns the loader: what is read was chosen before.
func (l *memoryLoader) WithFilter(filter.LoaderFilter) bundle.DirectoryLoader { return l }

// WithPathFormat returns the loader: paths have one form.
func (l *memoryLoader) WithPathFormat(bundle.PathFormat) bundle.DirectoryLoader { return l }

// WithSizeLimitBytes returns the loader: sizes were limited before.
func (l *memoryLoader) WithSizeLimitBytes(int64) bundle.DirectoryLoader { return l }

// WithFollowSymlinks returns the loader: there are no links in it.
func (l *memoryLoader) WithFollowSymlinks(bool) bundle.DirectoryLoader { return l }
