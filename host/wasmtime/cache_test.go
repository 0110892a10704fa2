//go:build cgo && !writ_nowasmtime

package wasmtime_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/writrun/writ/host/hosttest"
	"github.com/writrun/writ/host/wasmtime"
)

// cached returns the one file of code in a cache.
func cached(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.code"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files of code: %q %v, want one", files, err)
	}
	return files[0]
}

func TestCompiledCodeIsKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "for", "us")
	p := hosttest.Prepared(t, hosttest.Echo())
	use := func() {
		t.Helper()
		if out := invoke(t, hosttest.Compile(t, newEngine(t, wasmtime.Config{CacheDir: dir}), p)); string(out.Output) != "{}" {
			t.Errorf("output %q", out.Output)
		}
	}
	use()
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(cached(t, dir), old, old); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(cached(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	use()
	after, err := os.Stat(cached(t, dir))
	if err != nil || !os.SameFile(before, after) || !after.ModTime().After(old.Add(time.Minute)) {
		t.Errorf("the second engine did not use what the first one left: %v", err)
	}
}

func TestCodeThatWasEditedIsCompiledAfresh(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	p := hosttest.Prepared(t, hosttest.Echo())
	use := func() {
		t.Helper()
		if out := invoke(t, hosttest.Compile(t, newEngine(t, wasmtime.Config{CacheDir: dir}), p)); string(out.Output) != "{}" {
			t.Errorf("output %q", out.Output)
		}
	}
	use()
	good, err := os.ReadFile(cached(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []int{0, 32, len(good) / 2, len(good) - 1} {
		edited := append([]byte(nil), good...)
		edited[at] ^= 1
		if err := os.WriteFile(cached(t, dir), edited, 0o600); err != nil {
			t.Fatal(err)
		}
		use()
		if now, err := os.ReadFile(cached(t, dir)); err != nil || now[at] != good[at] {
			t.Errorf("the file edited at %d is still there: %v", at, err)
		}
	}
}

func TestUnsafeCacheDirectoriesAreRefused(t *testing.T) {
	shared := filepath.Join(t.TempDir(), "shared")
	if err := os.Mkdir(shared, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(shared, 0o770); err != nil {
		t.Fatal(err)
	}
	if _, err := wasmtime.New(t.Context(), wasmtime.Config{CacheDir: shared}); err == nil || !strings.Contains(err.Error(), "chmod 700") {
		t.Errorf("a directory of a group: %v", err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	e := newEngine(t, wasmtime.Config{CacheDir: filepath.Join(file, "cache")})
	if out := invoke(t, hosttest.Compile(t, e, hosttest.Prepared(t, hosttest.Echo()))); string(out.Output) != "{}" {
		t.Errorf("where nothing can be written: output %q", out.Output)
	}
}
