package prepare

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// randomModules is how many modules TestRandomModules makes.
const randomModules = 50

// randomModule has wasm-opt make a module from random bytes.
func randomModule(t *testing.T, tool string, seed uint64) []byte {
	t.Helper()
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out.wasm")
	chacha := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
	text := make([]byte, 2000+seed%7*1000)
	chacha.Read(text)
	if err := os.WriteFile(in, text, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(tool, "-ttf", in, "-o", out, "--mvp-features", "--enable-sign-ext", "--enable-mutable-globals",
		"--enable-nontrapping-float-to-int", "--enable-bulk-memory", "--enable-simd", "--enable-multivalue")
	if msg, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("seed %d: wasm-opt: %v\n%s", seed, err, msg)
	}
	wasm, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

// trial is what a module did: the outcome of each export in turn, and at the end
// the fuel left and the memory.
type trial struct {
	outcomes []string
	fuel     int64
	memory   []byte
}

// try calls every export of a module that takes nothing.
func try(t *testing.T, engine string, wasm []byte, logged *[]uint64) trial {
	t.Helper()
	ctx := context.Background()
	m := newMachine(t, engines[engine](), 1<<40, FuelSlice)
	defer m.rt.Close(ctx)
	offerImports(t, m.rt, wasm, logged)
	mod, err := m.start("", wasm)
	if err != nil {
		return trial{outcomes: []string{outcome(nil, err)}}
	}
	var r trial
	code, _ := m.rt.CompileModule(ctx, wasm)
	names := code.ExportedFunctions()
	for _, e := range newRead(wasm).exports {
		if f := names[e.name]; f == nil || len(f.ParamTypes()) > 0 || strings.HasPrefix(e.name, reservedPrefix) {
			continue
		}
		r.outcomes = append(r.outcomes, e.name+" "+outcome(mod.ExportedFunction(e.name).Call(ctx)))
	}
	if fuel := mod.ExportedGlobal(FuelGlobal); fuel != nil {
		r.fuel = m.left(mod)
	}
	if memory := mod.Memory(); memory != nil {
		r.memory, _ = memory.Read(0, memory.Size())
		r.memory = bytes.Clone(r.memory)
	}
	return r
}

func newRead(wasm []byte) *module {
	m := newModule(wasm, anything)
	m.read()
	return m
}

// offerImports makes host functions that log their arguments and return zeros.
func offerImports(t *testing.T, rt wazero.Runtime, wasm []byte, logged *[]uint64) {
	t.Helper()
	builders := map[string]wazero.HostModuleBuilder{}
	m := newRead(wasm)
	for _, e := range m.imports {
		if e.kind != kindFunction || e.module == RefillModule {
			continue
		}
		b := builders[e.module]
		if b == nil {
			b = rt.NewHostModuleBuilder(e.module)
			builders[e.module] = b
		}
		typ := m.types[e.typeIndex]
		log := api.GoModuleFunc(func(_ context.Context, _ api.Module, stack []uint64) {
			for i, p := range typ.params {
				v := stack[i]
				if p == i32 || p == f32 {
					v = uint64(uint32(v))
				}
				*logged = append(*logged, v)
			}
			for i := range typ.results {
				stack[i] = 0
			}
		})
		b.NewFunctionBuilder().WithGoModuleFunction(log, valueTypes(typ.params), valueTypes(typ.results)).Export(e.name)
	}
	for _, b := range builders {
		if _, err := b.Instantiate(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
}

func valueTypes(types []byte) []api.ValueType { return types }

// TestRandomModules: random modules that the rules admit do the same before and
// after preparation, and use the same fuel on both engines.
func TestRandomModules(t *testing.T) {
	tool, err := exec.LookPath("wasm-opt")
	if err != nil {
		t.Skip("SKIPPED, wasm-opt is missing: install binaryen (apt-get install binaryen)")
	}
	ran, calls, traps := 0, 0, 0
	for seed := range uint64(randomModules) {
		wasm := randomModule(t, tool, seed)
		p, err := prepare(wasm, anything)
		if err != nil {
			t.Errorf("seed %d: %v", seed, err)
			continue
		}
		var first, second, third []uint64
		original := try(t, "compiler", wasm, &first)
		compiled := try(t, "compiler", p.Wasm, &second)
		interpreted := try(t, "interpreter", p.Wasm, &third)
		same := bytes.Equal(original.memory, compiled.memory) && slices.Equal(original.outcomes, compiled.outcomes) && slices.Equal(first, second)
		if !same {
			t.Errorf("seed %d: preparation changed what the module does:\noriginal %v\nprepared %v", seed, original.outcomes, compiled.outcomes)
		}
		if !deep(compiled) && !deep(interpreted) && compiled.fuel != interpreted.fuel {
			t.Errorf("seed %d: fuel left is %d on the compiler and %d on the interpreter", seed, compiled.fuel, interpreted.fuel)
		}
		ran++
		calls += len(original.outcomes)
		for _, o := range original.outcomes {
			if strings.Contains(o, "error") {
				traps++
			}
		}
	}
	t.Logf("%d modules ran %d calls, of which %d trapped", ran, calls, traps)
}

// deep reports whether a call overflowed the stack, whose depth is the engine's in this profile.
func deep(r trial) bool { return strings.Contains(strings.Join(r.outcomes, "\n"), "stack overflow") }
