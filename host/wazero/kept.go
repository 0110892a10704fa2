package wazero

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tetratelabs/wazero"
	"github.com/writrun/writ/host/codecache"
	"github.com/writrun/writ/host/prepare"
)

// settingsText stands for the settings in the names of cached code. It changes
// with them.
const settingsText = "settings 1"

// fileNameBytes is the length of the names wazero gives its files of code:
// digests in hex.
const fileNameBytes = 64

// keptCode keeps native code between processes. wazero reads and writes its cache
// as files that it does not protect, and believes what it reads; so it gets a
// folder of this process alone, where there is a file only while a module is
// compiled, put there after its check. A nil keptCode keeps nothing.
type keptCode struct {
	cache   *codecache.Dir
	stage   *codecache.Stage
	folder  string // of the stage, where wazero's files are
	machine string
}

// openKeptCode opens the cache in dir, and makes wazero's cache on top of it.
// Both are nil where nothing can be written.
func openKeptCode(dir string) (*keptCode, wazero.CompilationCache, error) {
	cache, err := codecache.Open(dir)
	if err != nil || cache.Problem() != nil {
		return nil, nil, err
	}
	stage, err := cache.Stage()
	if err != nil {
		return nil, nil, nil // a full disk, say: it works without
	}
	k := &keptCode{cache: cache, stage: stage, machine: codecache.Machine()}
	inner, err := wazero.NewCompilationCacheWithDir(stage.Path)
	if err == nil {
		k.folder, err = onlyFolder(stage.Path)
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("open compilation cache: %s: %w", dir, err), stage.Close())
	}
	return k, inner, nil
}

// onlyFolder returns the folder wazero made for its version.
func onlyFolder(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	if len(entries) != 1 || !entries[0].IsDir() {
		return "", fmt.Errorf("wazero made %d folders for its files, not 1", len(entries))
	}
	return filepath.Join(dir, entries[0].Name()), nil
}

func (k *keptCode) close() error {
	if k == nil {
		return nil
	}
	return k.stage.Close()
}

// key names the kept code of p.
func (k *keptCode) key(p *prepare.Prepared) string {
	return codecache.Key("wazero", Version, filepath.Base(k.folder), k.machine, settingsText, string(p.Digest))
}

// has reports whether code of p is kept.
func (k *keptCode) has(p *prepare.Prepared) bool { return k != nil && k.cache.Has(k.key(p)) }

// compiling calls compile with the kept code of p where wazero finds it, and
// keeps what is new. Nothing that goes wrong here fails the compilation.
func (k *keptCode) compiling(p *prepare.Prepared, compile func() (wazero.CompiledModule, error)) (wazero.CompiledModule, error) {
	if k == nil {
		return compile()
	}
	_ = os.MkdirAll(k.folder, 0o700) // whoever cleaned the cache up may have taken it
	defer k.clear()
	key := k.key(p)
	found := k.unpack(key)
	compiled, err := compile()
	if err != nil {
		// The module may be good and only the file not written; it is in memory then.
		return compile()
	}
	k.pack(key, found)
	return compiled, nil
}

// unpack writes the kept code to a file of wazero's, and returns what the file
// is, or nil.
func (k *keptCode) unpack(key string) os.FileInfo {
	kept, ok := k.cache.Load(key)
	if !ok {
		return nil
	}
	name, native, ok := splitKept(kept)
	path := filepath.Join(k.folder, name)
	if !ok || os.WriteFile(path, native, 0o600) != nil {
		return nil
	}
	info, err := os.Lstat(path)
	if err != nil {
		return nil
	}
	return info
}

// pack keeps the file wazero wrote, unless it is the one that was found.
func (k *keptCode) pack(key string, found os.FileInfo) {
	entries, err := os.ReadDir(k.folder)
	if err != nil || len(entries) != 1 {
		return
	}
	info, err := entries[0].Info()
	if err != nil || found != nil && os.SameFile(info, found) {
		return
	}
	native, err := os.ReadFile(filepath.Join(k.folder, entries[0].Name()))
	if err != nil {
		return
	}
	kept := append([]byte(entries[0].Name()), native...)
	if _, _, ok := splitKept(kept); ok {
		_ = k.cache.Store(key, kept)
	}
}

// splitKept takes kept code apart: the name of wazero's file and its content.
func splitKept(kept []byte) (name string, native []byte, ok bool) {
	if len(kept) <= fileNameBytes {
		return "", nil, false
	}
	name = string(kept[:fileNameBytes])
	if _, err := hex.DecodeString(name); err != nil {
		return "", nil, false
	}
	return name, kept[fileNameBytes:], true
}

// clear removes the files, so that they take no room and none is read twice.
func (k *keptCode) clear() {
	entries, err := os.ReadDir(k.folder)
	if err != nil {
		return
	}
	for _, e := range entries {
		_ = os.Remove(filepath.Join(k.folder, e.Name()))
	}
}
