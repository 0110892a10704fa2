//go:build cgo && !writ_nowasmtime

package wasmtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host"
	"github.com/writrun/writ/host/prepare"
)

// errClosed is returned for everything asked of a closed engine.
var errClosed = errors.New("the engine is closed")

// moduleTable holds what was compiled, each prepared module once, and lets one
// compilation run at a time.
type moduleTable struct {
	translate func(*prepare.Prepared) (*code, error)
	shut      func() // called once, when the table is closed and nothing compiles

	compiling chan struct{} // holds a token while a module is compiled
	mu        sync.Mutex
	modules   map[abi.Digest]*module
	idle      []*module // unused ones, the longest unused first
	holds     int       // of the engine: the table's own, and one for each use in progress
	closed    bool
}

func newModuleTable(translate func(*prepare.Prepared) (*code, error), shut func()) *moduleTable {
	return &moduleTable{translate: translate, shut: shut, compiling: make(chan struct{}, 1),
		modules: map[abi.Digest]*module{}, holds: 1}
}

// module is a compiled module and how many hold it.
type module struct {
	table  *moduleTable
	digest abi.Digest
	code   *code
	users  int
}

// Compile compiles p, or returns what was compiled before. Compilations run one
// at a time: each may need a lot of memory. Each Compiled must be closed.
func (e *Engine) Compile(ctx context.Context, p *prepare.Prepared) (host.Compiled, error) {
	m, err := e.modules.compile(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("compile module %s: %w", p.Original, err)
	}
	return &compiled{engine: e, module: m}, nil
}

func (t *moduleTable) compile(ctx context.Context, p *prepare.Prepared) (*module, error) {
	if m, err := t.take(p.Digest); m != nil || err != nil {
		return m, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, compileTimeMax, fmt.Errorf("it took longer than %s", compileTimeMax))
	defer cancel()
	select {
	case t.compiling <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	m, err := t.take(p.Digest)
	if m == nil && err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if m == nil && err == nil && !t.hold() {
		err = errClosed
	}
	if m != nil || err != nil {
		<-t.compiling
		return m, err
	}
	return t.await(ctx, t.start(p))
}

// result is what a compilation ends in.
type result struct {
	m   *module
	err error
}

// start compiles p. A compilation cannot be interrupted, so it may outlive the
// caller; it then holds the token until it is done, and its result is kept.
func (t *moduleTable) start(p *prepare.Prepared) <-chan result {
	done := make(chan result, 1)
	go func() {
		defer t.drop()
		defer func() { <-t.compiling }()
		c, err := t.translate(p)
		if err != nil {
			done <- result{err: err}
			return
		}
		done <- result{m: t.keep(p.Digest, c)}
	}()
	return done
}

// await returns what a compilation ends in, unless ctx ends before.
func (t *moduleTable) await(ctx context.Context, done <-chan result) (*module, error) {
	select {
	case r := <-done:
		return r.m, r.err
	case <-ctx.Done():
		go func() {
			if r := <-done; r.m != nil {
				t.release(r.m)
			}
		}()
		return nil, context.Cause(ctx)
	}
}

// take returns a compiled module with one more user, or nil.
func (t *moduleTable) take(d abi.Digest) (*module, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, errClosed
	}
	m := t.modules[d]
	if m == nil {
		return nil, nil
	}
	if i := slices.Index(t.idle, m); i >= 0 {
		t.idle = slices.Delete(t.idle, i, i+1)
	}
	m.users++
	return m, nil
}

func (t *moduleTable) keep(d abi.Digest, c *code) *module {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := &module{table: t, digest: d, code: c, users: 1}
	t.modules[d] = m
	return m
}

// release takes a user away and frees the module longest unused if there are too
// many such, or the module itself if the engine is closed.
func (t *moduleTable) release(m *module) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m.users--
	if m.users > 0 {
		return
	}
	t.idle = append(t.idle, m)
	for len(t.idle) > idleModulesMax || t.closed && len(t.idle) > 0 {
		delete(t.modules, t.idle[0].digest)
		t.idle[0].code.close()
		t.idle = slices.Delete(t.idle, 0, 1)
	}
}

// hold keeps the engine for a use of it. It fails if the table is closed.
func (t *moduleTable) hold() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	t.holds++
	return true
}

// drop ends a use of the engine.
func (t *moduleTable) drop() {
	t.mu.Lock()
	t.holds--
	last := t.holds == 0
	t.mu.Unlock()
	if last {
		t.shut()
	}
}

// close frees every unused module; those in use are freed with their last user.
func (t *moduleTable) close() {
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return
	}
	t.closed = true
	for _, m := range t.idle {
		delete(t.modules, m.digest)
		m.code.close()
	}
	t.idle = nil
	t.mu.Unlock()
	t.drop()
}

// compiled is one user's hold on a module.
type compiled struct {
	engine *Engine
	module *module
	once   sync.Once
}

// Close gives the hold up.
func (c *compiled) Close(context.Context) error {
	c.once.Do(func() { c.module.table.release(c.module) })
	return nil
}
