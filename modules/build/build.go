package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/writrun/writ/guest-abi/abi"
)

// environment is set for every compile, so that what a person has set for their
// own builds does not change a module's bytes.
var environment = []string{
	"GOOS=wasip1", "GOARCH=wasm", "GOWASM=", "CGO_ENABLED=0",
	"GOFLAGS=-buildvcs=false", "GOEXPERIMENT=", "GOWORK=off", "GODEBUG=", "GO111MODULE=on", "GOENV=off",
}

// findRoot returns the folder at or above dir that holds this module's go.mod.
func findRoot(dir string) (string, error) {
	for {
		data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && bytes.HasPrefix(data, []byte("module github.com/writrun/writ\n")) {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("not inside the repository of github.com/writrun/writ")
		}
		dir = parent
	}
}

// moduleNames returns every folder that has a module.json, sorted.
func moduleNames(modules string) ([]string, error) {
	entries, err := os.ReadDir(modules)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if _, err := os.Stat(filepath.Join(modules, e.Name(), "module.json")); err == nil {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// build compiles modules/name and returns the module with its metadata.
func build(ctx context.Context, root, name string) ([]byte, error) {
	if _, err := abi.ParseID(name); err != nil {
		return nil, err
	}
	metadata, err := readMetadata(filepath.Join(root, "modules", name, "module.json"), name)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "writ-module-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, name+".wasm")
	cmd := exec.CommandContext(ctx, "go", "build", "-buildmode=c-shared", "-trimpath",
		"-ldflags=-s -w -buildid=", "-o", file, "./modules/"+name)
	cmd.Dir = root
	cmd.Env = append(cmd.Environ(), environment...)
	if output, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("compile: %w\n%s", err, bytes.TrimSpace(output))
	}
	wasm, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return abi.AppendMetadata(wasm, metadata)
}

// readMetadata returns the canonical form of a module.json, whose name must be
// the folder's.
func readMetadata(file, name string) ([]byte, error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("no module of this name: %w", err)
	}
	if err != nil {
		return nil, err
	}
	m, err := abi.ParseMetadata(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if m.Name != name {
		return nil, fmt.Errorf("%s: name is %q and the folder is %q", file, m.Name, name)
	}
	return abi.EncodeMessage(m)
}

// writeIfChanged replaces file by data in one step, unless it already holds it.
func writeIfChanged(file string, data []byte) error {
	if old, err := os.ReadFile(file); err == nil && bytes.Equal(old, data) {
		return nil
	}
	tmp, err := os.CreateTemp(filepath.Dir(file), ".build-")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(data)
	if err = errors.Join(err, tmp.Chmod(0o644), tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), file)
}
