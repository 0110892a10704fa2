package flow

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/writrun/writ/guest-abi/abi"
)

// module reads and prepares the module of a step or rule. It returns the limits
// of the budget, and nil if something was reported.
func (s *resolution) module(ctx context.Context, path, file string, want abi.Digest, budget abi.Limits) (abi.Limits, *PreparedModule) {
	limits, err := budget.Resolve()
	if err != nil {
		s.failAt(path+".budget", CodeBudgetCeiling, "", "%v", err)
		return limits, nil
	}
	key := preparedKey{file, limits.MemoryBytes}
	m, done := s.prepared[key]
	if !done && ctx.Err() == nil {
		m = s.prepareModule(path+".module", key)
		s.prepared[key] = m
	}
	if m == nil {
		return limits, nil
	}
	if want != "" && want != m.Original {
		s.failAt(path+".module_digest", CodeModuleDigest, "restore the file, or state the new digest after looking at what changed",
			"module %q is %s, not %s", file, m.Original, want)
		return limits, nil
	}
	s.materials.Modules[m.Prepared] = *m
	return limits, m
}

func (s *resolution) prepareModule(path string, key preparedKey) *PreparedModule {
	refuse := func(code, hint string, err error) *PreparedModule {
		s.failAt(path, code, hint, "module %q: %v", key.path, plain(err))
		s.faults[len(s.faults)-1].Cause = err
		return nil
	}
	f, info, err := openRegular(s.root, key.path)
	if err != nil {
		return refuse(CodeModuleMissing, "build it, or mend the path; it starts at the manifest's folder", err)
	}
	defer f.Close()
	if info.Size() > abi.ModuleBytesMax {
		return refuse(CodeModuleTooLarge, "strip it", fmt.Errorf("%d bytes are more than %d", info.Size(), abi.ModuleBytesMax))
	}
	wasm, err := io.ReadAll(io.LimitReader(f, abi.ModuleBytesMax+1))
	switch {
	case err != nil:
		return refuse(CodeModuleMissing, "", err)
	case len(wasm) > abi.ModuleBytesMax:
		return refuse(CodeModuleTooLarge, "strip it", fmt.Errorf("more than %d bytes", abi.ModuleBytesMax))
	}
	m, err := s.resolver.Prepare(wasm, key.memory, s.plan.StackProfile)
	if err != nil {
		return refuse(CodeModuleRefused, "every reason is listed", err)
	}
	return &m
}

var errNotRegular = errors.New("not a regular file")

// openRegular opens a regular file below root. It does not wait for a FIFO's
// other end and does not open devices.
func openRegular(root *os.Root, name string) (*os.File, os.FileInfo, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errNotRegular
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, info, nil
}
