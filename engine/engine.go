// Package engine is the lifecycle of a run: it admits a plan, executes its
// steps and rules in the sandbox, has their results arbitrated, and seals the
// record.
//
// It refuses to run anything whose admission is not durable, and says of a run
// only what the sealed record says. It holds no SQL, no WebAssembly engine and
// no Rego text: engines and policies come in through [Config].
package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/writrun/writ/engine/effect"
	"github.com/writrun/writ/engine/evidence"
	"github.com/writrun/writ/engine/flow"
	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host"
	"github.com/writrun/writ/policies"
)

// Decider answers the policy questions of a run. It must be safe for
// concurrent use; policies.Set is one.
type Decider interface {
	Authority(context.Context, policies.AuthorityInput) (policies.AuthorityDecision, error)
	Arbitrate(context.Context, policies.ArbitrationInput) (policies.ArbitrationDecision, error)
	AuthorityDigest() abi.Digest
	ArbitrationDigest() abi.Digest
}

// Principal is who asks. On the command line it is the operating system's
// user, of kind "local, unauthenticated".
type Principal struct {
	Name string
	Kind string
}

// Config is what a [Runner] works with. Store, Tenant, Engine, Policies, Now
// and Rand are required; Rand must be cryptographically random.
type Config struct {
	Store      *evidence.Store
	Tenant     *evidence.Tenant
	TenantID   abi.TenantID
	Engine     host.Engine
	Policies   Decider
	Drivers    []effect.Driver
	Secrets    []effect.Secret
	Now        func() time.Time
	Rand       io.Reader
	Principal  Principal
	Provenance map[string]string // versions and machine, recorded and shown, never identity
	Jobs       int               // guests executing at once; 0 means one per CPU
	Progress   func(Progress)    // called from several goroutines; nil means none
	// WithFlow returns the policies of a run whose flow brings a bundle of its own,
	// made of the archive the plan pinned. Nil refuses such runs.
	WithFlow func(flow flow.PinnedPolicies, flowID abi.ID) (Decider, error)
	Decided  func(PolicyDecision) // called after each decision, from several goroutines; it must not block; nil means none
}

// Progress is one thing that happened while a run goes on.
type Progress struct {
	Phase string // compile, start, done, failed, skipped, verify, arbitrate or seal
	Name  string // step, rule@target, target or module
	Done  int    // steps ended
	Total int    // steps of the run
}

// Runner executes plans for one tenant.
type Runner struct {
	Config
	env     abi.Digest
	drivers map[string]effect.Driver
	secrets map[string]effect.Secret
}

// New checks c and returns a Runner.
func New(c Config) (*Runner, error) {
	switch {
	case c.Store == nil || c.Tenant == nil || c.TenantID.IsZero():
		return nil, errors.New("engine: store and tenant are required")
	case c.Engine == nil || c.Policies == nil:
		return nil, errors.New("engine: engine and policies are required")
	case c.Now == nil || c.Rand == nil:
		return nil, errors.New("engine: clock and randomness are required")
	}
	if c.Jobs <= 0 {
		c.Jobs = runtime.GOMAXPROCS(0)
	}
	if c.Progress == nil {
		c.Progress = func(Progress) {}
	}
	if c.Decided == nil {
		c.Decided = func(PolicyDecision) {}
	}
	env, err := Environment()
	if err != nil {
		return nil, err
	}
	r := &Runner{Config: c, env: env, drivers: map[string]effect.Driver{}, secrets: map[string]effect.Secret{}}
	for _, d := range c.Drivers {
		if _, twice := r.drivers[d.Name()]; twice {
			return nil, fmt.Errorf("engine: driver %q is registered twice", d.Name())
		}
		r.drivers[d.Name()] = d
	}
	for _, s := range c.Secrets {
		if _, twice := r.secrets[s.Name]; twice {
			return nil, fmt.Errorf("engine: secret %q is given twice", s.Name)
		}
		r.secrets[s.Name] = s
	}
	return r, nil
}

// Request asks for one run of a plan.
type Request struct {
	Manifest        *flow.Manifest
	Plan            *flow.Plan
	Materials       *flow.Materials
	RequestID       string    // "" means none; unique per tenant
	RunID           abi.RunID // "" draws one
	Seed            *[32]byte // nil: the plan's, else drawn and recorded
	ClockStart      time.Time // zero: the plan's, else the admission time
	AllowDeprecated bool      // a deprecated flow may run
	FromPlanFile    bool      // the plan is a lock file; a frozen flow needs it
}

// Refused is an admission that was not granted: no run exists, and the ledger
// holds a record of it.
type Refused struct {
	Action  string   `json:"action"`
	Code    string   `json:"code"`
	Reasons []string `json:"reasons"`
	Next    []string `json:"next"` // what may be done instead
}

// Error says what was refused and why.
func (r *Refused) Error() string {
	s := fmt.Sprintf("%s refused: %s", r.Action, r.Code)
	for _, reason := range r.Reasons {
		s += ": " + reason
	}
	return s
}

// ErrInterrupted is returned beside a Result whose run was interrupted; its
// journal is kept and resumable.
var ErrInterrupted = errors.New("run interrupted; its journal is kept")
