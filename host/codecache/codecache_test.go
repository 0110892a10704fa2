package codecache_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/writrun/writ/host/codecache"
)

func open(t testing.TB, dir string) *codecache.Dir {
	t.Helper()
	d, err := codecache.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Problem(); err != nil {
		t.Fatal(err)
	}
	return d
}

func store(t testing.TB, d *codecache.Dir, key, code string) {
	t.Helper()
	if err := d.Store(key, []byte(code)); err != nil {
		t.Fatal(err)
	}
}

func fileOf(dir, key string) string { return filepath.Join(dir, key+".code") }

func mustDo(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestWhatIsStoredIsFoundAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "for", "us")
	one, other := codecache.Key("engine", "module"), codecache.Key("enginemodule")
	if one == other {
		t.Fatal("keys of different parts are equal")
	}
	store(t, open(t, dir), one, "code")
	d := open(t, dir) // as the next process does
	if code, ok := d.Load(one); !ok || string(code) != "code" {
		t.Errorf("found %q %v", code, ok)
	}
	if _, ok := d.Load(other); ok {
		t.Error("found what was never stored")
	}
	store(t, d, one, "newer code")
	if code, ok := d.Load(one); !ok || string(code) != "newer code" {
		t.Errorf("found %q %v", code, ok)
	}
	d.Remove(one)
	if _, ok := d.Load(one); ok {
		t.Error("found what was removed")
	}
	if err := d.Store(one, nil); err == nil {
		t.Error("no code was stored")
	}
	if _, ok := d.Load(one); ok {
		t.Error("found no code")
	}
	for path, mode := range map[string]os.FileMode{dir: 0o700, filepath.Join(dir, "cache.key"): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v %v, want mode %#o", filepath.Base(path), info.Mode(), err, mode)
		}
	}
}

func TestFilesThatFailTheirCheckAreRemovedAndNotUsed(t *testing.T) {
	key, other := codecache.Key("a"), codecache.Key("b")
	change := func(at int, b byte) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			content, err := os.ReadFile(fileOf(dir, key))
			mustDo(t, err)
			if at < 0 {
				at += len(content)
			}
			content[at] ^= b
			mustDo(t, os.WriteFile(fileOf(dir, key), content, 0o600))
		}
	}
	for _, tt := range []struct {
		name   string
		damage func(t *testing.T, dir string)
	}{
		{"edited code", change(-1, 1)},
		{"edited check", change(0, 0x80)},
		{"a byte more", func(t *testing.T, dir string) {
			f, err := os.OpenFile(fileOf(dir, key), os.O_APPEND|os.O_WRONLY, 0)
			mustDo(t, err)
			_, err = f.Write([]byte{0})
			mustDo(t, err, f.Close())
		}},
		{"a byte less", func(t *testing.T, dir string) { mustDo(t, os.Truncate(fileOf(dir, key), 35)) }},
		{"the check alone", func(t *testing.T, dir string) { mustDo(t, os.Truncate(fileOf(dir, key), 32)) }},
		{"half the check", func(t *testing.T, dir string) { mustDo(t, os.Truncate(fileOf(dir, key), 16)) }},
		{"nothing", func(t *testing.T, dir string) { mustDo(t, os.Truncate(fileOf(dir, key), 0)) }},
		{"the file of another key", func(t *testing.T, dir string) {
			store(t, open(t, dir), other, "code")
			mustDo(t, os.Rename(fileOf(dir, other), fileOf(dir, key)))
		}},
		{"a file put there by hand", func(t *testing.T, dir string) { mustDo(t, os.WriteFile(fileOf(dir, key), []byte("code"), 0o600)) }},
		{"the file of another cache", func(t *testing.T, dir string) {
			foreign := t.TempDir()
			mustDo(t, os.Chmod(foreign, 0o700))
			store(t, open(t, foreign), key, "code")
			mustDo(t, os.Rename(fileOf(foreign, key), fileOf(dir, key)))
		}},
		{"another secret", func(t *testing.T, dir string) {
			mustDo(t, os.WriteFile(filepath.Join(dir, "cache.key"), bytes.Repeat([]byte{1}, 32), 0o600))
		}},
		{"a lost secret", func(t *testing.T, dir string) { mustDo(t, os.Remove(filepath.Join(dir, "cache.key"))) }},
		{"a short secret", func(t *testing.T, dir string) { mustDo(t, os.Truncate(filepath.Join(dir, "cache.key"), 31)) }},
		{"a long secret", func(t *testing.T, dir string) { mustDo(t, os.Truncate(filepath.Join(dir, "cache.key"), 33)) }},
		{"a secret others can read", func(t *testing.T, dir string) { mustDo(t, os.Chmod(filepath.Join(dir, "cache.key"), 0o644)) }},
		{"a file others can read", func(t *testing.T, dir string) { mustDo(t, os.Chmod(fileOf(dir, key), 0o640)) }},
		{"a file others can write", func(t *testing.T, dir string) { mustDo(t, os.Chmod(fileOf(dir, key), 0o602)) }},
		{"a link", func(t *testing.T, dir string) {
			away := filepath.Join(t.TempDir(), "away")
			mustDo(t, os.Rename(fileOf(dir, key), away), os.Symlink(away, fileOf(dir, key)))
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "cache")
			store(t, open(t, dir), key, "code")
			tt.damage(t, dir)
			d := open(t, dir)
			if code, ok := d.Load(key); ok {
				t.Errorf("%q was used", code)
			}
			if _, err := os.Lstat(fileOf(dir, key)); !os.IsNotExist(err) {
				t.Errorf("the file is still there: %v", err)
			}
			store(t, d, key, "fresh")
			if code, ok := open(t, dir).Load(key); !ok || string(code) != "fresh" {
				t.Errorf("stored afresh: %q %v", code, ok)
			}
		})
	}
}

func TestForeignFilesAreNotUsed(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file away")
	}
	key := codecache.Key("a")
	dir := filepath.Join(t.TempDir(), "cache")
	d := open(t, dir)
	store(t, d, key, "code")
	mustDo(t, os.Chown(fileOf(dir, key), 65534, -1))
	if _, ok := d.Load(key); ok {
		t.Error("a file of another user was used")
	}
	mustDo(t, os.Chown(dir, 65534, -1))
	if _, err := codecache.Open(dir); err == nil || !strings.Contains(err.Error(), "belongs to user 65534") {
		t.Errorf("a directory of another user: %v", err)
	}
}

func TestUnsafeDirectoriesAreRefused(t *testing.T) {
	base := t.TempDir()
	shared, file, link := filepath.Join(base, "shared"), filepath.Join(base, "file"), filepath.Join(base, "link")
	mustDo(t, os.Mkdir(shared, 0o700), os.Chmod(shared, 0o750), os.WriteFile(file, nil, 0o600), os.Symlink(base, link))
	for dir, want := range map[string]string{shared: "chmod 700", file: "not a directory", link: "not a directory"} {
		if _, err := codecache.Open(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", filepath.Base(dir), err, want)
		}
	}
}

func TestACacheThatCannotBeMadeKeepsNothing(t *testing.T) {
	base := t.TempDir()
	below := filepath.Join(base, "file", "cache")
	mustDo(t, os.WriteFile(filepath.Join(base, "file"), nil, 0o600))
	sealed := filepath.Join(base, "sealed")
	mustDo(t, os.Mkdir(sealed, 0o700), os.MkdirAll(filepath.Join(sealed, "cache.key", "x"), 0o700))
	dirs := []string{below, sealed}
	if os.Geteuid() != 0 { // root writes everywhere
		readOnly := filepath.Join(base, "readonly")
		mustDo(t, os.Mkdir(readOnly, 0o500))
		dirs = append(dirs, readOnly)
	}
	for _, dir := range dirs {
		d, err := codecache.Open(dir)
		if err != nil || d.Problem() == nil {
			t.Fatalf("%s: %v, problem %v", dir, err, d.Problem())
		}
		if err := d.Store(codecache.Key("a"), []byte("code")); err == nil {
			t.Errorf("%s: code was stored", dir)
		}
		if _, ok := d.Load(codecache.Key("a")); ok {
			t.Errorf("%s: code was found", dir)
		}
		if _, err := d.Stage(); err == nil {
			t.Errorf("%s: a folder was made", dir)
		}
	}
	var none *codecache.Dir
	if _, ok := none.Load("a"); ok || none.Store("a", []byte("code")) != nil || none.Problem() != nil {
		t.Error("no cache is not one that keeps nothing")
	}
	none.Remove("a")
}

func TestTheLongestUnusedMakeRoom(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	d := open(t, dir)
	code := strings.Repeat("x", 1000-32)
	key := func(i int) string { return codecache.Key(fmt.Sprint(i)) }
	d.SetBytesMax(3500)
	old := time.Now().Add(-2 * time.Hour)
	for i := range 3 {
		store(t, d, key(i), code)
		mustDo(t, os.Chtimes(fileOf(dir, key(i)), old, old.Add(time.Duration(i)*time.Minute)))
	}
	if _, ok := d.Load(key(0)); !ok { // and so it is the one used last
		t.Fatal("0 is not there")
	}
	half, other := filepath.Join(dir, "half.code.1.tmp"), filepath.Join(dir, "notes")
	mustDo(t, os.WriteFile(half, nil, 0o600), os.Chtimes(half, old, old), os.WriteFile(other, make([]byte, 5000), 0o600))
	store(t, d, key(3), code)
	for i, want := range []bool{true, false, true, true} {
		if _, ok := d.Load(key(i)); ok != want {
			t.Errorf("%d is there: %v, want %v", i, ok, want)
		}
	}
	if _, err := os.Stat(half); !os.IsNotExist(err) {
		t.Errorf("a file half written is still there: %v", err)
	}
	if _, err := os.Stat(other); err != nil {
		t.Errorf("a file of somebody's: %v", err)
	}
}

func TestAStageIsRemovedWhenItsProcessIsGone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	d := open(t, dir)
	abandoned := filepath.Join(dir, "stage-1")
	mustDo(t, os.MkdirAll(filepath.Join(abandoned, "x"), 0o700))
	one, err := d.Stage()
	mustDo(t, err)
	two, err := open(t, dir).Stage()
	mustDo(t, err)
	for path, want := range map[string]bool{abandoned: false, one.Path: true, two.Path: true} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s is there: %v, want %v", path, err == nil, want)
		}
	}
	mustDo(t, one.Close(), two.Close())
	if left, err := filepath.Glob(filepath.Join(dir, "stage-*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v %v", left, err)
	}
}

func TestMachineIsTheSameEachTime(t *testing.T) {
	if m := codecache.Machine(); m != codecache.Machine() || !strings.Contains(m, "/") || strings.Contains(m, "\n") {
		t.Errorf("machine %q", m)
	}
}

const (
	childVariable = "WRIT_TEST_CODECACHE_DIR"
	childRounds   = 50
)

// TestChild is a process of TestProcessesShareACache.
func TestChild(t *testing.T) {
	dir := os.Getenv(childVariable)
	if dir == "" {
		t.Skip("for another test")
	}
	d := open(t, dir)
	d.SetBytesMax(20_000)
	for i := range childRounds {
		key := codecache.Key(fmt.Sprint(i % 10))
		want := strings.Repeat(key, 50)
		if code, ok := d.Load(key); ok && string(code) != want {
			t.Fatalf("found %q", code)
		}
		store(t, d, key, want)
	}
	s, err := d.Stage()
	mustDo(t, err)
	mustDo(t, s.Close())
}

func TestProcessesShareACache(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	var running []*exec.Cmd
	for range 4 {
		c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestChild$")
		c.Env = append(os.Environ(), childVariable+"="+dir)
		c.Stdout = &bytes.Buffer{}
		mustDo(t, c.Start())
		running = append(running, c)
	}
	for _, c := range running {
		if err := c.Wait(); err != nil {
			t.Errorf("%v\n%s", err, c.Stdout)
		}
	}
	found, d := 0, open(t, dir)
	for i := range 10 {
		if _, ok := d.Load(codecache.Key(fmt.Sprint(i))); ok {
			found++
		}
	}
	if found == 0 {
		t.Error("nothing is left of what all processes stored under one secret")
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*.tmp")); err != nil || len(left) > 0 {
		t.Errorf("left: %v %v", left, err)
	}
}

func FuzzLoad(f *testing.F) {
	dir := filepath.Join(f.TempDir(), "cache")
	d := open(f, dir)
	key := codecache.Key("fuzz")
	store(f, d, key, "code")
	good, err := os.ReadFile(fileOf(dir, key))
	mustDo(f, err)
	for _, seed := range [][]byte{good, good[:32], good[:31], {}, append([]byte("x"), good...)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		mustDo(t, os.WriteFile(fileOf(dir, key), content, 0o600))
		if code, ok := d.Load(key); ok != bytes.Equal(content, good) || ok && string(code) != "code" {
			t.Errorf("%x: %q %v", content, code, ok)
		}
	})
}
