package codecache

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
)

const (
	stagePrefix   = "stage-"
	stageTriesMax = 8
)

// Stage is an empty directory of this process alone, inside the cache, for an
// engine that wants its code in files of its own naming. It is locked for as long
// as the process lives; one that was left behind is removed by the next process
// that makes one.
type Stage struct {
	Path string
	lock *os.File
	once sync.Once
}

// Stage makes a directory. It must be closed.
func (d *Dir) Stage() (*Stage, error) {
	if d == nil {
		return nil, fmt.Errorf("make a folder for compiled code: there is no cache")
	}
	if d.problem != nil {
		return nil, d.problem
	}
	d.removeAbandoned()
	for range stageTriesMax {
		path, err := os.MkdirTemp(d.path, stagePrefix)
		if err != nil {
			return nil, fmt.Errorf("make a folder for compiled code: %w", err)
		}
		// Until it is locked another process may take it for abandoned.
		if lock := lockDir(path); lock != nil {
			return &Stage{Path: path, lock: lock}, nil
		}
		_ = os.RemoveAll(path)
	}
	return nil, fmt.Errorf("make a folder for compiled code: %s: it cannot be locked", d.path)
}

// Close removes the directory and what is in it. A second Close does nothing.
func (s *Stage) Close() (err error) {
	s.once.Do(func() {
		err = os.RemoveAll(s.Path)
		if closeErr := s.lock.Close(); err == nil {
			err = closeErr
		}
	})
	if err != nil {
		return fmt.Errorf("remove folder for compiled code: %w", err)
	}
	return nil
}

// lockDir locks a directory, or returns nil if it is locked or gone.
func lockDir(path string) *os.File {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil
	}
	locked, err := f.Stat()
	if err == nil && syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
		if now, err := os.Lstat(path); err == nil && os.SameFile(locked, now) {
			return f
		}
	}
	_ = f.Close()
	return nil
}

func (d *Dir) removeAbandoned() {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return
	}
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), stagePrefix) {
			continue
		}
		path := filepath.Join(d.path, e.Name())
		if lock := lockDir(path); lock != nil {
			_ = os.RemoveAll(path)
			_ = lock.Close()
		}
	}
}
