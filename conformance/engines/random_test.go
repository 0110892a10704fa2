package engines_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host"
	"github.com/writrun/writ/host/prepare"
	"github.com/writrun/writ/host/trace"
)

// fuelMax is the budget of a random module. Few use it up.
const fuelMax = 20_000_000

// ends counts how invocations ended, by cause.
type ends struct {
	mu     sync.Mutex
	causes map[string]int
}

func (e *ends) add(cause string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.causes == nil {
		e.causes = map[string]int{}
	}
	e.causes[cause]++
}

// require fails the test if what it compared was not as varied as it should be.
func (e *ends) require(t *testing.T, causes ...string) {
	t.Logf("invocations by how they ended: %v", e.causes)
	if os.Getenv("WRIT_SEED") != "" {
		return
	}
	for _, c := range causes {
		if e.causes[c] == 0 {
			t.Errorf("no invocation ended with %q", c)
		}
	}
}

// forEachSeed runs f for every seed, on as many goroutines as there are cores,
// each with engines of its own and until the first failure.
func forEachSeed(t *testing.T, f func(t *testing.T, on []host.Engine, seed uint64)) {
	all := seeds(t)
	var next atomic.Int64
	t.Run("seeds", func(t *testing.T) {
		for worker := range min(runtime.GOMAXPROCS(0), len(all)) {
			t.Run(fmt.Sprint(worker), func(t *testing.T) {
				t.Parallel()
				on := enginesOf(t)
				for !t.Failed() {
					i := int(next.Add(1)) - 1
					if i >= len(all) {
						return
					}
					f(t, on, all[i])
				}
			})
		}
	})
}

// trial runs one prepared random module, whose entry reads the clock before each
// of its functions: again and again, from the function after the one that
// trapped, and then with less fuel than it took.
type trial struct {
	seed uint64
	*ends
	// compare is given what each invocation with all its fuel left, if not nil.
	compare func(inv host.Invocation, got ended)
}

func (r trial) run(t *testing.T, s subject) {
	from, used := byte(0), uint64(0)
	for {
		inv := invocation([]byte{from}, abi.Limits{Fuel: fuelMax})
		got, different := s.invoke(t, inv)
		if different != "" || got.Err != "" {
			t.Errorf("seed %d, from function %d: %s %s", r.seed, from, different, got.Err)
			return
		}
		r.add(got.cause())
		used = max(used, got.Outcome.FuelUsed)
		if r.compare != nil {
			r.compare(inv, got)
		}
		tried := countCalls(got.Calls)
		if got.Outcome.Stop == nil || tried == 0 {
			break
		}
		from += byte(tried)
	}
	chance := rand.New(rand.NewPCG(r.seed, 1))
	for range 2 {
		fuel := 1 + chance.Uint64N(used+1)
		got, different := s.invoke(t, invocation([]byte{0}, abi.Limits{Fuel: fuel}))
		if different != "" || got.Err != "" {
			t.Errorf("seed %d, with %d fuel: %s %s", r.seed, fuel, different, got.Err)
		}
		r.add(got.cause())
	}
}

// countCalls counts the readings of the clock.
func countCalls(calls []trace.Call) (n int) {
	for _, c := range calls {
		if c.Fn == 1 {
			n++
		}
	}
	return n
}

// TestRandomModules: modules full of float arithmetic on NaNs, of branches,
// calls and traps leave the same on every engine, and what they would leave on
// one engine without preparation, had they written out themselves what becomes
// of NaNs.
func TestRandomModules(t *testing.T) {
	var all, bare ends
	forEachSeed(t, func(t *testing.T, on []host.Engine, seed uint64) {
		p, err := prepare.Prepare(randomModule(seed, flavour{}), prepare.Options{})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		s := compile(t, on, p)
		defer s.close(t)
		b := compile(t, on[:1], unprepared(randomModule(seed, flavour{spelled: true, bare: true})))
		defer b.close(t)
		trial{seed, &all, func(inv host.Invocation, got ended) {
			compareUnprepared(t, seed, b, inv, got, &bare)
		}}.run(t, s)
	})
	all.require(t, "", "fuel_exhausted", "stack_overflow", "memory_out_of_bounds", "unreachable", "indirect_call_type",
		"invalid_table_access", "integer_divide_by_zero", "integer_overflow", "invalid_conversion")
	bare.require(t, "")
}

// unprepared dresses a module up as a prepared one.
func unprepared(wasm []byte) *prepare.Prepared {
	d := abi.DigestOf(wasm)
	return &prepare.Prepared{Profile: prepare.ProfilePortable, Wasm: wasm, Digest: d, Original: d}
}

// compareUnprepared runs what ended in got without preparation, unless fuel or
// stack ended it. All but fuel must be the same.
func compareUnprepared(t *testing.T, seed uint64, bare subject, inv host.Invocation, got ended, counts *ends) {
	if c := got.cause(); c == "fuel_exhausted" || c == "stack_overflow" {
		return
	}
	want := invoke(t, bare.codes[0], inv)
	for _, e := range []*ended{&want, &got} {
		e.Outcome.FuelUsed = 0
		e.Outcome.Output = bytes.Clone(e.Outcome.Output)
		for i := range e.Calls {
			e.Calls[i].Fuel = 0
		}
	}
	counts.add(got.cause())
	if d := difference(want, got); d != "" {
		t.Errorf("seed %d, input %v: preparation changes what the module does: %s", seed, inv.Input, d)
	}
}

// TestGeneratorIsDeterministic: a seed that is reported makes the module again.
func TestGeneratorIsDeterministic(t *testing.T) {
	for seed := range uint64(20) {
		a, b := randomModule(seed, flavour{}), randomModule(seed, flavour{})
		if !bytes.Equal(a, b) {
			t.Errorf("seed %d makes two modules", seed)
		}
		if spelled := randomModule(seed, flavour{spelled: true, bare: true}); len(spelled) <= len(a) {
			t.Errorf("seed %d: spelled out, %d bytes become %d", seed, len(a), len(spelled))
		}
	}
	if _, err := newEngine(context.Background(), "none"); err == nil {
		t.Error("an engine of an unknown name is made")
	}
}
