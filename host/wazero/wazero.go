// Package wazero runs prepared modules on the wazero engine, compiled to native
// code or interpreted.
//
// It offers guests the functions of host.Functions and no others: wazero's own
// WASI is not used, and host functions have the raw form only, as the reflective
// one changes signalling NaNs. It does not decide anything about a guest; traps
// are put into the host's words here and nowhere else.
package wazero

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host"
	"github.com/writrun/writ/host/prepare"
)

// Version is the version of wazero this package is built with; a test compares
// it with go.mod.
const Version = "v1.12.0"

// Bounds of an engine.
const (
	memoryPagesMax  = 65_535          // at 65,536 wazero reports a memory of no bytes
	compileTimeMax  = 2 * time.Minute // one compilation
	idleModulesMax  = 16              // compiled modules kept though nobody uses them
	stackValuesMax  = 16              // parameters of a call by the host
	guestModuleName = ""              // anonymous, so that instances do not meet
	interpreterName = "wazero-interpreter"
)

// Config says how an engine works.
type Config struct {
	CacheDir    string // where native code is kept between processes; "" means nowhere, as for an interpreter
	Interpreter bool   // interpret instead of compiling; slower by far
}

// Engine is a wazero runtime with the host functions in it.
type Engine struct {
	name    string
	runtime wazero.Runtime
	cache   wazero.CompilationCache
	kept    *keptCode // nil for none

	compiling chan struct{} // holds a token while a module is compiled
	mu        sync.Mutex
	modules   map[abi.Digest]*module
	idle      []*module // unused ones, the longest unused first
	closed    bool
}

// New makes an engine. CacheDir is made if it is absent; one that others may
// write to or read is refused, as what it holds is run as native code. Where
// nothing can be written, nothing is kept.
func New(ctx context.Context, cfg Config) (*Engine, error) {
	e := &Engine{name: "wazero", compiling: make(chan struct{}, 1), modules: map[abi.Digest]*module{}}
	rc := wazero.NewRuntimeConfigCompiler()
	if cfg.Interpreter {
		e.name = interpreterName
		rc = wazero.NewRuntimeConfigInterpreter()
	}
	rc = rc.WithCoreFeatures(api.CoreFeaturesV2).WithMemoryLimitPages(memoryPagesMax).
		WithCloseOnContextDone(false).WithDebugInfoEnabled(false).WithMemoryCapacityFromMax(false)
	if cfg.CacheDir != "" && !cfg.Interpreter {
		var err error
		if e.kept, e.cache, err = openKeptCode(cfg.CacheDir); err != nil {
			return nil, err
		}
	}
	if e.cache != nil {
		rc = rc.WithCompilationCache(e.cache)
	}
	e.runtime = wazero.NewRuntimeWithConfig(ctx, rc)
	if err := e.offer(ctx); err != nil {
		return nil, fmt.Errorf("make wazero engine: %w", errors.Join(err, e.Close(ctx)))
	}
	return e, nil
}

// Name is "wazero", or "wazero-interpreter" for an engine that interprets.
func (e *Engine) Name() string { return e.name }

// Version returns [Version].
func (e *Engine) Version() string { return Version }

// Kept reports whether Compile will find p compiled.
func (e *Engine) Kept(p *prepare.Prepared) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.modules[p.Digest] != nil || e.kept.has(p)
}

// Close releases everything. Instances must have been closed.
func (e *Engine) Close(ctx context.Context) error {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	err := e.runtime.Close(ctx)
	if e.cache != nil {
		if cacheErr := e.cache.Close(ctx); err == nil {
			err = cacheErr
		}
	}
	if keptErr := e.kept.close(); err == nil {
		err = keptErr
	}
	if err != nil {
		return fmt.Errorf("close wazero engine: %w", err)
	}
	return nil
}

// module is a compiled module and how many hold it.
type module struct {
	engine   *Engine
	digest   abi.Digest
	compiled wazero.CompiledModule
	users    int
}

// Compile compiles p, or returns what was compiled before. Compilations run one
// at a time: each may need a lot of memory. Each Compiled must be closed.
func (e *Engine) Compile(ctx context.Context, p *prepare.Prepared) (host.Compiled, error) {
	if e.name == interpreterName && p.Profile == prepare.ProfileDeep {
		return nil, fmt.Errorf("compile module %s: the interpreter cannot nest calls as deep as profile %s: use the engine wazero", p.Original, prepare.ProfileDeep)
	}
	if m, err := e.take(p.Digest); m != nil || err != nil {
		return m.use(), err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, compileTimeMax, fmt.Errorf("it took longer than %s", compileTimeMax))
	defer cancel()
	select {
	case e.compiling <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("compile module %s: %w", p.Original, context.Cause(ctx))
	}
	if m, err := e.take(p.Digest); m != nil || err != nil {
		<-e.compiling
		return m.use(), err
	}
	type result struct {
		m   *module
		err error
	}
	// wazero cannot be interrupted, so the compilation may outlive the call; it
	// then holds the token until it is done, and its result is kept.
	done := make(chan result, 1)
	go func() {
		defer func() { <-e.compiling }()
		compiled, err := e.kept.compiling(p, func() (wazero.CompiledModule, error) {
			return e.runtime.CompileModule(context.WithoutCancel(ctx), p.Wasm)
		})
		if err != nil {
			done <- result{err: err}
			return
		}
		done <- result{m: e.keep(p.Digest, compiled)}
	}()
	select {
	case r := <-done:
		if r.err != nil {
			return nil, fmt.Errorf("compile module %s: %w", p.Original, r.err)
		}
		return r.m.use(), nil
	case <-ctx.Done():
		go func() {
			if r := <-done; r.m != nil {
				_ = r.m.use().Close(context.Background())
			}
		}()
		return nil, fmt.Errorf("compile module %s: %w", p.Original, context.Cause(ctx))
	}
}

// take returns a compiled module with one more user, or nil.
func (e *Engine) take(d abi.Digest) (*module, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, fmt.Errorf("compile module: the engine is closed")
	}
	m := e.modules[d]
	if m == nil {
		return nil, nil
	}
	if m.users == 0 {
		for i, other := range e.idle {
			if other == m {
				e.idle = append(e.idle[:i], e.idle[i+1:]...)
				break
			}
		}
	}
	m.users++
	return m, nil
}

func (e *Engine) keep(d abi.Digest, compiled wazero.CompiledModule) *module {
	e.mu.Lock()
	defer e.mu.Unlock()
	m := &module{engine: e, digest: d, compiled: compiled, users: 1}
	e.modules[d] = m
	return m
}

// release takes a user away and closes the module longest unused if there are
// too many such.
func (e *Engine) release(ctx context.Context, m *module) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	m.users--
	if m.users > 0 || e.closed {
		return nil
	}
	e.idle = append(e.idle, m)
	if len(e.idle) <= idleModulesMax {
		return nil
	}
	oldest := e.idle[0]
	e.idle = e.idle[1:]
	delete(e.modules, oldest.digest)
	if err := oldest.compiled.Close(ctx); err != nil {
		return fmt.Errorf("close compiled module: %w", err)
	}
	return nil
}

// use returns one user's hold on m.
func (m *module) use() host.Compiled {
	if m == nil {
		return nil
	}
	return &compiled{module: m}
}

// compiled is one user's hold on a module.
type compiled struct {
	module *module
	once   sync.Once
}

// Close gives the hold up.
func (c *compiled) Close(ctx context.Context) (err error) {
	c.once.Do(func() { err = c.module.engine.release(ctx, c.module) })
	return err
}
