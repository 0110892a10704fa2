//go:build cgo && !writ_nowasmtime

package wasmtime

import (
	"context"
	"fmt"
	"math"
	"syscall"
	"time"

	"github.com/bytecodealliance/wasmtime-go/v39"
	"github.com/writrun/writ/host"
	"github.com/writrun/writ/host/codecache"
)

// Available says whether this build has the engine.
const Available = true

// Bounds of an engine.
const (
	memoryBytesMax    = 65_535 << 16 // what prepared modules are held to
	tableEntriesMax   = 1 << 17      // of one table; without a bound, growth near 2^32 aborts the process
	tablesMax         = 4
	memoriesMax       = 1
	instancesMax      = 1
	wasmStackBytesMax = 4 << 20
	hostStackBytes    = 1 << 20         // left of a thread's stack for the engine and the C library
	compileTimeMax    = 2 * time.Minute // one compilation
	idleModulesMax    = 16              // compiled modules kept though nobody uses them
	stackValuesMax    = 16              // parameters of a call, by the host or of the host
)

// Engine is a wasmtime engine with the host functions in it.
type Engine struct {
	engine  *wasmtime.Engine
	linker  *wasmtime.Linker
	modules *moduleTable
	cache   *codecache.Dir // nil for none
	machine string
}

// New makes an engine. CacheDir is made if it is absent; one that others may
// write to or read is refused, as what it holds is run as native code. Where
// nothing can be written, nothing is kept.
func New(_ context.Context, cfg Config) (*Engine, error) {
	if err := checkThreadStack(); err != nil {
		return nil, fmt.Errorf("make wasmtime engine: %w", err)
	}
	e := &Engine{}
	if cfg.CacheDir != "" {
		var err error
		if e.cache, err = codecache.Open(cfg.CacheDir); err != nil {
			return nil, err
		}
		e.machine = codecache.Machine()
	}
	e.engine = wasmtime.NewEngineWithConfig(settings())
	e.linker = wasmtime.NewLinker(e.engine)
	if err := offer(e.linker, host.Functions()); err != nil {
		e.linker.Close()
		e.engine.Close()
		return nil, fmt.Errorf("make wasmtime engine: %w", err)
	}
	e.modules = newModuleTable(e.translate, e.shut)
	return e, nil
}

// settingsText stands for the settings in the names of cached code. It changes
// with them.
const settingsText = "settings 1"

// settings turns off everything that could let two engines differ, each by name,
// so that a default of a later version changes nothing.
func settings() *wasmtime.Config {
	c := wasmtime.NewConfig()
	c.SetStrategy(wasmtime.StrategyCranelift)
	c.SetCraneliftOptLevel(wasmtime.OptLevelSpeed)
	c.SetCraneliftDebugVerifier(false)
	c.SetCraneliftNanCanonicalization(false)
	c.SetConsumeFuel(false)
	c.SetEpochInterruption(false)
	c.SetDebugInfo(false)
	c.SetNativeUnwindInfo(false)
	c.SetProfiler(wasmtime.ProfilingStrategyNone)
	c.SetParallelCompilation(true)
	c.SetMemoryInitCOWSet(true)
	c.SetMaxWasmStack(wasmStackBytesMax)

	c.SetWasmBulkMemory(true)
	c.SetWasmMultiValue(true)
	c.SetWasmReferenceTypes(true)
	c.SetWasmSIMD(true)
	c.SetWasmThreads(false)
	c.SetWasmMemory64(false)
	c.SetWasmMultiMemory(false)
	c.SetWasmGC(false)
	c.SetWasmFunctionReferences(false)
	c.SetWasmTailCall(false)
	c.SetWasmWideArithmetic(false)
	c.SetWasmRelaxedSIMD(false)
	return c
}

// checkThreadStack refuses a process whose threads have less stack than guests
// may use: past its end the process would be killed. Threads get the soft limit
// of the process, or 2 MiB if there is none.
func checkThreadStack() error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_STACK, &limit); err != nil {
		return fmt.Errorf("read the limit of the stack: %w", err)
	}
	if limit.Cur == math.MaxUint64 {
		return fmt.Errorf("the stack of this process is unlimited, so its threads have 2 MiB, and guests may need 4: set it with ulimit -s 8192")
	}
	if limit.Cur < wasmStackBytesMax+hostStackBytes {
		return fmt.Errorf("the stack of this process is limited to %d KiB, below the %d KiB that guests may need: set it with ulimit -s 8192",
			limit.Cur>>10, (wasmStackBytesMax+hostStackBytes)>>10)
	}
	return nil
}

// Name is "wasmtime".
func (e *Engine) Name() string { return engineName }

// Version returns [Version].
func (e *Engine) Version() string { return Version }

// Close releases everything. Instances must have been closed. A compilation that
// goes on is not waited for; what it needs is released when it ends.
func (e *Engine) Close(context.Context) error {
	e.modules.close()
	return nil
}

// shut releases the engine itself, once nothing uses it.
func (e *Engine) shut() {
	e.linker.Close()
	e.engine.Close()
}
