package wazero_test

import (
	"bytes"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/writrun/writ/host/hosttest"
	"github.com/writrun/writ/host/wazero"
)

// use runs a guest on a new engine with a cache, as a process would.
func use(t *testing.T, dir string) {
	t.Helper()
	e, err := wazero.New(t.Context(), wazero.Config{CacheDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	m, err := e.Compile(t.Context(), hosttest.Prepared(t, hosttest.Echo()))
	if err != nil {
		t.Fatal(err)
	}
	if out := invoke(t, m); string(out.Output) != "{}" {
		t.Errorf("output %q", out.Output)
	}
	if err := m.Close(t.Context()); err != nil {
		t.Error(err)
	}
	for range 2 { // a second Close changes nothing
		if err := e.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// cached returns the one file of code in a cache, in which there is no other file
// but the secret.
func cached(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.code"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files of code: %q %v, want one", files, err)
	}
	if all, err := os.ReadDir(dir); err != nil || len(all) != 2 {
		t.Errorf("in the cache: %v %v", all, err)
	}
	return files[0]
}

func TestCompiledCodeIsKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	use(t, dir)
	before, err := os.Stat(cached(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(cached(t, dir), old, old); err != nil {
		t.Fatal(err)
	}
	use(t, dir)
	after, err := os.Stat(cached(t, dir))
	if err != nil || !os.SameFile(before, after) || !after.ModTime().After(old.Add(time.Minute)) {
		t.Errorf("the second engine did not use what the first one left: %v", err)
	}
}

func TestCodeThatWasEditedIsNotUsed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	use(t, dir)
	good, err := os.ReadFile(cached(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []int{0, 32, 40, 32 + 64, len(good) / 2, len(good) - 1} {
		edited := bytes.Clone(good)
		edited[at] ^= 1
		if err := os.WriteFile(cached(t, dir), edited, 0o600); err != nil {
			t.Fatal(err)
		}
		use(t, dir)
		if now, err := os.ReadFile(cached(t, dir)); err != nil || now[at] != good[at] {
			t.Errorf("the file edited at %d is still there: %v", at, err)
		}
	}
}

func TestFilesPutWhereWazeroLooksAreRemoved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	use(t, dir)
	kept, err := os.ReadFile(cached(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	// The name of wazero's own file, with code that would run if it were believed.
	name := string(kept[32 : 32+64])
	if _, err := hex.DecodeString(name); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(cached(t, dir)); err != nil {
		t.Fatal(err)
	}
	e := newEngine(t, wazero.Config{CacheDir: dir})
	folders, err := filepath.Glob(filepath.Join(dir, "stage-*", "wazero-*"))
	if err != nil || len(folders) != 1 {
		t.Fatalf("folders of wazero's: %q %v, want one", folders, err)
	}
	abandoned := filepath.Join(dir, "stage-0", filepath.Base(folders[0]))
	if err := os.MkdirAll(abandoned, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(abandoned, name), kept[32+64:], 0o600); err != nil {
		t.Fatal(err)
	}
	if out := invoke(t, hosttest.Compile(t, e, hosttest.Prepared(t, hosttest.Echo()))); string(out.Output) != "{}" {
		t.Errorf("output %q", out.Output)
	}
	if left, err := filepath.Glob(filepath.Join(folders[0], "*")); err != nil || len(left) > 0 {
		t.Errorf("left where wazero looks: %q %v", left, err)
	}
	// A folder that somebody took away does no harm, and one that nobody owns goes.
	if err := os.RemoveAll(filepath.Dir(folders[0])); err != nil {
		t.Fatal(err)
	}
	m := hosttest.Compile(t, e, hosttest.Prepared(t, hosttest.Returning("", "", "{}")))
	if out := invoke(t, m); string(out.Output) != "{}" {
		t.Errorf("output %q", out.Output)
	}
	newEngine(t, wazero.Config{CacheDir: dir})
	if _, err := os.Stat(abandoned); !os.IsNotExist(err) {
		t.Errorf("an abandoned folder is still there: %v", err)
	}
}

func TestWhereNothingCanBeWrittenNothingIsKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	use(t, filepath.Join(file, "cache"))
}

func FuzzKeptCode(f *testing.F) {
	name := bytes.Repeat([]byte("a0"), 32)
	for _, seed := range [][]byte{nil, name, append(name, 1), bytes.Repeat([]byte("../"), 30), bytes.Repeat([]byte("A"), 65)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, kept []byte) {
		name, native, ok := wazero.SplitKept(kept)
		if ok && (filepath.Base(name) != name || len(native) == 0 || name+string(native) != string(kept)) {
			t.Errorf("%q is taken apart into %q and %q", kept, name, native)
		}
	})
}
