//go:build cgo && !writ_nowasmtime

package wasmtime

import (
	"fmt"
	"strings"

	"github.com/bytecodealliance/wasmtime-go/v39"
	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host/codecache"
	"github.com/writrun/writ/host/prepare"
)

// code is a module compiled to native code, and what its exports are.
type code struct {
	module    *wasmtime.Module
	functions map[string]signature
	counters  map[string]bool // exported mutable i64 globals
	hasMemory bool
}

// signature is what the host needs to know of an export to call it.
type signature struct {
	params   int
	onlyI32s bool // whether every parameter is an i32
	results  int
}

func (c *code) close() { c.module.Close() }

// key names the kept code of p.
func (e *Engine) key(p *prepare.Prepared) string {
	return codecache.Key(engineName, Version, e.machine, settingsText, string(p.Digest))
}

// Kept reports whether Compile will find p compiled.
func (e *Engine) Kept(p *prepare.Prepared) bool {
	e.modules.mu.Lock()
	defer e.modules.mu.Unlock()
	return e.modules.modules[p.Digest] != nil || e.cache.Has(e.key(p))
}

// translate compiles p, or loads what was compiled of it before. Loading runs
// nothing, but believes what it reads, so nothing gets there unchecked.
func (e *Engine) translate(p *prepare.Prepared) (*code, error) {
	var key string
	if e.cache != nil {
		key = e.key(p)
		if kept, ok := e.cache.Load(key); ok {
			if m, err := wasmtime.NewModuleDeserialize(e.engine, kept); err == nil {
				return newCode(m), nil
			}
			e.cache.Remove(key) // for a processor that can do more than this one
		}
	}
	m, err := wasmtime.NewModule(e.engine, p.Wasm)
	if err != nil {
		return nil, engineError(err)
	}
	if e.cache != nil {
		if native, err := m.Serialize(); err == nil {
			_ = e.cache.Store(key, native) // without it the next process compiles again
		}
	}
	return newCode(m), nil
}

func newCode(m *wasmtime.Module) *code {
	c := &code{module: m, functions: map[string]signature{}, counters: map[string]bool{}}
	for _, export := range m.Exports() {
		t := export.Type()
		if f := t.FuncType(); f != nil {
			params := f.Params()
			s := signature{params: len(params), onlyI32s: true, results: len(f.Results())}
			for _, p := range params {
				s.onlyI32s = s.onlyI32s && p.Kind() == wasmtime.KindI32
			}
			c.functions[export.Name()] = s
		}
		if g := t.GlobalType(); g != nil && g.Mutable() && g.Content().Kind() == wasmtime.KindI64 {
			c.counters[export.Name()] = true
		}
		if export.Name() == abi.ExportMemory {
			c.hasMemory = t.MemoryType() != nil
		}
	}
	return c
}

// engineError puts an error of wasmtime's on one line. Such an error is the
// host's, never a guest's, and in no record. The backtrace that RUST_BACKTRACE has
// wasmtime add is left out.
func engineError(err error) error {
	text, _, _ := strings.Cut(err.Error(), "Stack backtrace:")
	text = strings.Join(strings.Fields(text), " ")
	return fmt.Errorf("wasmtime: %s", text)
}
