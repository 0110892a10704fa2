package codecache

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	tempSuffix = ".tmp"
	tempAgeMax = time.Hour // of a file that is being written
)

// errForeign is why a file is not used that is not as this package writes it.
var errForeign = errors.New("not a regular file of this user's alone, or too large")

// checkDir refuses a directory that is not of this user alone: whoever can write
// to it can have this process run their code.
func checkDir(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("open compilation cache: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("open compilation cache: %s: not a directory", dir)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return fmt.Errorf("open compilation cache: %s: mode %#o lets others in; chmod 700 it, or remove it", dir, mode)
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("open compilation cache: %s: it belongs to user %d, not to %d", dir, stat.Uid, os.Geteuid())
	}
	return nil
}

// readOwn reads a regular file of at most bytesMax that only this user could
// have written. It returns errForeign for any other.
func readOwn(path string, bytesMax int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ELOOP) {
		return nil, errForeign
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0 || info.Size() > bytesMax || ok && int(stat.Uid) != os.Geteuid() {
		return nil, errForeign
	}
	content := make([]byte, info.Size())
	if _, err := io.ReadFull(f, content); err != nil {
		return nil, err
	}
	return content, nil
}

// writeTemp writes parts to a new file beside path, for this user alone.
func writeTemp(path string, parts ...[]byte) (name string, err error) {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*"+tempSuffix)
	if err != nil {
		return "", err
	}
	for _, p := range parts {
		if err == nil {
			_, err = f.Write(p)
		}
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return "", err
	}
	return f.Name(), nil
}

// writeWhole puts parts at path: all of them, or what was there before.
func writeWhole(path string, parts ...[]byte) error {
	temp, err := writeTemp(path, parts...)
	if err != nil {
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		_ = os.Remove(temp)
		return err
	}
	return nil
}

// kept is one file of code.
type kept struct {
	path  string
	bytes int64
	used  time.Time
}

// trim removes the files longest unused until the rest is within the bound, and
// what was left half written. Files that are gone by now were removed by another
// process.
func (d *Dir) trim() error {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return fmt.Errorf("keep compiled code: %w", err)
	}
	var files []kept
	var total int64
	now := time.Now()
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		path := filepath.Join(d.path, e.Name())
		switch {
		case strings.HasSuffix(e.Name(), tempSuffix) && now.Sub(info.ModTime()) > tempAgeMax:
			_ = os.Remove(path)
		case strings.HasSuffix(e.Name(), codeSuffix):
			files = append(files, kept{path, info.Size(), info.ModTime()})
			total += info.Size()
		}
	}
	slices.SortFunc(files, func(a, b kept) int { return a.used.Compare(b.used) })
	for _, f := range files {
		if total <= d.bytesMax {
			break
		}
		if err := os.Remove(f.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("make room in the compilation cache: %w", err)
		}
		total -= f.bytes
	}
	return nil
}
