package policies_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/writrun/writ/policies"
)

// TestArchivesThatTryMore has an archive for each way out of the limits.
func TestArchivesThatTryMore(t *testing.T) {
	file := func(name string, size int) tar.Header {
		return tar.Header{Name: name, Typeflag: tar.TypeReg, Size: int64(size)}
	}
	link := func(kind byte) tar.Header { return tar.Header{Name: "b.rego", Typeflag: kind, Linkname: "/etc/passwd"} }
	many := func(n int, kind byte) (all []tar.Header) {
		for i := range n {
			all = append(all, tar.Header{Name: fmt.Sprintf("d/%d.rego", i), Typeflag: kind})
		}
		return all
	}
	cases := []struct {
		name       string
		entries    []tar.Header
		code, says string
	}{
		{"a path upwards", []tar.Header{file("../b.rego", 0)}, policies.CodeBundleFile, "clean path"},
		{"a path upwards inside", []tar.Header{file("d/../../b.rego", 0)}, policies.CodeBundleFile, "clean path"},
		{"a path with an empty part", []tar.Header{file("d//b.rego", 0)}, policies.CodeBundleFile, "clean path"},
		{"a path with two slashes before it", []tar.Header{file("//b.rego", 0)}, policies.CodeBundleFile, "clean path"},
		{"a path with a backslash", []tar.Header{file(`d\b.rego`, 0)}, policies.CodeBundleFile, "clean path"},
		{"a path that is no UTF-8", []tar.Header{file("b\xff.rego", 0)}, policies.CodeBundleFile, "clean path"},
		{"a long path", []tar.Header{file(strings.Repeat("d/", policies.BundlePathBytesMax)+"b.rego", 0)}, policies.CodeBundleFile, "path has more than"},
		{"a symbolic link", []tar.Header{link(tar.TypeSymlink)}, policies.CodeBundleFile, "links are not followed"},
		{"a hard link", []tar.Header{link(tar.TypeLink)}, policies.CodeBundleFile, "links are not followed"},
		{"a device", []tar.Header{{Name: "b.rego", Typeflag: tar.TypeChar}}, policies.CodeBundleFile, "links are not followed"},
		{"the same path twice", []tar.Header{file("b.rego", 0), file("b.rego", 0)}, policies.CodeBundleFile, "twice"},
		{"the same path in two forms", []tar.Header{file("/b.rego", 0), file("./b.rego", 0)}, policies.CodeBundleFile, "twice"},
		{"a long rule", []tar.Header{file("b.rego", policies.SourceBytesMax+1)}, policies.CodeBundleTooLarge, "1048576 bytes"},
		{"many files", many(policies.BundleFilesMax+1, tar.TypeReg), policies.CodeBundleTooLarge, "1000 files"},
		{"many folders", many(policies.BundleEntriesMax+1, tar.TypeDir), policies.CodeBundleTooLarge, "10000 files and folders"},
		{"much data", []tar.Header{file("data.json", policies.BundleBytesMax+1)}, policies.CodeBundleTooLarge, "16777216 bytes"},
		{"much of what is not read", []tar.Header{file("a.txt", policies.BundleBytesMax/2), file("b.txt", policies.BundleBytesMax/2+1)}, policies.CodeBundleTooLarge, "16777216 bytes"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			archive := tarOfEntries(t, c.entries, func(name string) string {
				for _, e := range c.entries {
					if e.Name == name {
						return strings.Repeat(" ", int(e.Size))
					}
				}
				return ""
			})
			_, err := policies.ReadBundle(archive, forF)
			wantRefusal(t, err, c.code, c.says)
		})
	}
}

func TestArchivesThatAreDamaged(t *testing.T) {
	good := tarOf(t, content{"a.rego": alwaysFail})
	tampered := bytes.Clone(good)
	tampered[len(tampered)-6] ^= 1 // in the checksum
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	for range 40 {
		if _, err := z.Write(make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name       string
		archive    []byte
		code, says string
	}{
		{"cut short", good[:len(good)/2], policies.CodeUnreadable, "unexpected EOF"},
		{"another checksum", tampered, policies.CodeUnreadable, "checksum"},
		{"no tar", []byte(strings.Repeat("no tar ", 200)), policies.CodeUnreadable, "tar"},
		{"a bomb after the end", bomb.Bytes(), policies.CodeBundleTooLarge, "unpacks"},
		{"a large archive", append([]byte{0x1f, 0x8b}, make([]byte, policies.BundleArchiveBytesMax)...), policies.CodeBundleTooLarge, "8388608"},
		{"a large tar", make([]byte, policies.BundleBytesMax+1), policies.CodeBundleTooLarge, "16777216"},
		{"nothing", nil, policies.CodeBundleRoot, "no package"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := policies.ReadBundle(c.archive, forF)
			wantRefusal(t, err, c.code, c.says)
		})
	}
}

func TestFoldersThatTryMore(t *testing.T) {
	cases := []struct {
		name       string
		make       func(dir string) error
		code, says string
	}{
		{"a link to a file", func(dir string) error { return os.Symlink("/etc/passwd", filepath.Join(dir, "b.rego")) }, policies.CodeBundleFile, "links are not followed"},
		{"a link to a folder", func(dir string) error { return os.Symlink("/etc", filepath.Join(dir, "etc")) }, policies.CodeBundleFile, "links are not followed"},
		{"a long rule", func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "b.rego"), make([]byte, policies.SourceBytesMax+1), 0o600)
		}, policies.CodeBundleTooLarge, "1048576"},
		{"much data", func(dir string) error { return os.Truncate(filepath.Join(dir, "data.json"), policies.BundleBytesMax+1) }, policies.CodeBundleTooLarge, "16777216"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			dir := folderOf(t, content{"a.rego": alwaysFail, "data.json": "{}"})
			if err := c.make(dir); err != nil {
				t.Fatal(err)
			}
			_, err := policies.LoadBundle(t.Context(), dir, forF)
			wantRefusal(t, err, c.code, c.says)
		})
	}
}

// FuzzReadBundle finds that whatever an archive holds, it is a bundle that
// reads as the same one again, or a refusal.
func FuzzReadBundle(f *testing.F) {
	alice := ecSigner(f, "alice")
	files := content{"a.rego": alwaysFail, "data.yaml": "flow: {f: {a: [1, 2]}}", ".manifest": `{"roots": ["flow/f"]}`}
	for _, c := range []content{files, {}, {"../a.rego": ""}, alice.signAll(f, content{"a.rego": alwaysFail}, "writ"), {"data.yaml": "&a [*a, *a]"}, {".signatures.json": "{}"}} {
		archive := tarOf(f, c)
		f.Add(archive)
		z, err := gzip.NewReader(bytes.NewReader(archive))
		if err != nil {
			f.Fatal(err)
		}
		var plain bytes.Buffer
		if _, err := plain.ReadFrom(z); err != nil {
			f.Fatal(err)
		}
		f.Add(plain.Bytes())
	}
	f.Fuzz(func(t *testing.T, archive []byte) {
		for _, config := range []policies.BundleConfig{forF, {FlowID: "f", Keys: []policies.Key{alice.key("writ")}}} {
			b, err := policies.ReadBundle(archive, config)
			if err != nil {
				continue
			}
			again, err := policies.ReadBundle(b.Archive(), config)
			if err != nil || again.Digest() != b.Digest() || !bytes.Equal(again.Archive(), b.Archive()) {
				t.Fatalf("read again: %v", err)
			}
		}
	})
}
