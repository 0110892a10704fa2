package wazero

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// checkCacheDir makes dir if it is absent, and refuses one that is not a
// directory of this user's alone: whoever can write to it can have this process
// run their code.
func checkCacheDir(dir string) error {
	info, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("make compilation cache: %w", err)
		}
		info, err = os.Lstat(dir)
	}
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
