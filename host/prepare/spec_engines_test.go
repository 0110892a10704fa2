package prepare

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/tetratelabs/wazero/api"
)

// specEngine runs the modules of one script.
type specEngine interface {
	// start instantiates a module and runs its start function. The name is the one
	// under which later modules import from it, if any.
	start(name string, wasm []byte) (specInstance, error)
	close()
}

// specInstance is one instance. Values are passed as wazero has them: a v128 is
// two, a reference 0 if it is null.
type specInstance interface {
	call(export string, args []uint64) ([]uint64, error)
	get(export string) []uint64
	left() int64 // fuel
}

// specEngines make an engine for prepared modules, by name. The first is the one
// others are compared with; those of a build with cgo are added to the list.
func specEngines(t testingT) map[string]func() specEngine {
	all := map[string]func() specEngine{}
	for name, config := range engines {
		all["wazero "+name] = func() specEngine { return wazeroSpec{newMachine(t, config(), 1<<60, FuelSlice)} }
	}
	for name, open := range furtherEngines(t) {
		all[name] = open
	}
	return all
}

type wazeroSpec struct{ *machine }

func (w wazeroSpec) start(name string, wasm []byte) (specInstance, error) {
	if w.rt.Module(name) != nil {
		name = "" // wazero gives a name once; nothing imports from the second
	}
	mod, err := w.machine.start(name, wasm)
	if err != nil {
		return nil, err
	}
	return wazeroInstance{w.machine, mod}, nil
}

func (w wazeroSpec) close() { w.rt.Close(context.Background()) }

type wazeroInstance struct {
	*machine
	mod api.Module
}

func (w wazeroInstance) call(export string, args []uint64) ([]uint64, error) {
	return call(w.mod, export, args...)
}

func (w wazeroInstance) get(export string) []uint64 {
	g := w.mod.ExportedGlobal(export)
	switch g.Type() {
	case api.ValueTypeI32, api.ValueTypeF32:
		return []uint64{uint64(uint32(g.Get()))}
	}
	return []uint64{g.Get()}
}

func (w wazeroInstance) left() int64 { return w.machine.left(w.mod) }

// side is a script's state on one engine.
type side struct {
	specEngine
	prepared bool
	named    map[string]specInstance
	last     specInstance
}

func newSide(e specEngine, prepared bool, spectest []byte) (*side, error) {
	s := &side{specEngine: e, prepared: prepared, named: map[string]specInstance{}}
	if prepared {
		p, err := prepare(spectest, specRules)
		if err != nil {
			return nil, err
		}
		spectest = p.Wasm
	}
	_, err := s.start("spectest", spectest)
	return s, err
}

// load instantiates the module of a command. The name is one a later register
// command gives it, if any.
func (s *side) load(name, as string, wasm []byte) string {
	mod, err := s.start(as, wasm)
	s.last = mod
	if err != nil {
		s.last = nil
		return outcome(nil, err)
	}
	if name != "" {
		s.named[name] = mod
	}
	return "ok"
}

func (s *side) of(a specAction) specInstance {
	if a.Module != "" {
		return s.named[a.Module]
	}
	return s.last
}

// act performs an action and returns its results or its trap as text.
func (s *side) act(a specAction) string {
	mod := s.of(a)
	if mod == nil {
		return "no module"
	}
	if a.Type == "get" {
		return fmt.Sprint(mod.get(a.Field))
	}
	args := []uint64{}
	for _, v := range a.Args {
		args = append(args, v.bits()...)
	}
	return outcome(mod.call(a.Field, args))
}

// fuelLeft is the fuel that is left after an action.
func (s *side) fuelLeft(a specAction) int64 {
	if mod := s.of(a); mod != nil && s.prepared {
		return mod.left()
	}
	return 0
}

// outcome writes results as bits, and an error as its first line, without the
// function names in the stack below it.
func outcome(results []uint64, err error) string {
	if err != nil {
		line, _, _ := strings.Cut(err.Error(), "\n")
		if strings.HasPrefix(line, "start function[") { // the original's, which runs at instantiation
			_, line, _ = strings.Cut(line, " failed: ")
		}
		return "error: " + line
	}
	if results == nil {
		results = []uint64{}
	}
	return fmt.Sprint(results)
}

// bits returns the value as wazero passes it. A reference to host object n is
// n+1, so that none is null.
func (v specValue) bits() []uint64 {
	if v.Type != "v128" {
		var s string
		if json.Unmarshal(v.Value, &s) != nil || s == "null" {
			return []uint64{0}
		}
		n, _ := strconv.ParseUint(s, 10, 64)
		if v.Type == "externref" {
			n++
		}
		return []uint64{n}
	}
	var lanes []string
	if err := json.Unmarshal(v.Value, &lanes); err != nil {
		return []uint64{0, 0}
	}
	width := 128 / len(lanes)
	halves := make([]uint64, 2)
	for i, lane := range lanes {
		n, _ := strconv.ParseUint(lane, 10, 64)
		at := i * width
		halves[at/64] |= n << (at % 64)
	}
	return halves
}
