package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/writrun/writ/engine/evidence"
	"github.com/writrun/writ/engine/flow"
	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host"
	"github.com/writrun/writ/host/prepare"
	"github.com/writrun/writ/host/trace"
)

// run is one admitted run in this process.
type run struct {
	*Runner
	req        Request
	plan       *flow.Plan
	id         abi.RunID
	journal    *evidence.Journal // nil in a replay
	record     record            // the journal, or in a replay the comparison
	compared   *comparison       // nil in a live run
	identity   trace.Identity
	seed       [32]byte
	policies   Decider // the runner's, with those the flow brings
	clockStart int64
	steps      map[abi.ID]*stepState
	order      []*stepState
	rules      map[abi.ID]flow.PlanRule
	pinned     map[abi.ID]host.Dataset
	compiled   map[abi.Digest]host.Compiled
	slots      chan struct{}
	denied     map[uint16]string // host calls the entropy budget does not allow, and their sources
	endedCount atomic.Int64
}

// Run admits req, executes it to its end and seals it. A *Refused error means
// that no run exists; ErrInterrupted beside a Result means that the run stopped
// before its end and its journal is kept.
func (r *Runner) Run(ctx context.Context, req Request) (Result, error) {
	if existing, found, err := r.existing(req); err != nil || found {
		return existing, err
	}
	n, err := r.admit(ctx, req)
	if err != nil {
		return Result{}, err
	}
	return n.live(ctx)
}

// live takes an admitted run to its seal, or leaves a resumable journal.
func (r *run) live(ctx context.Context) (Result, error) {
	result, err := r.attempt(ctx)
	r.closeModules()
	if err == nil {
		return result, nil
	}
	reason := "infrastructure"
	var d *doubt
	switch {
	case errors.As(err, &d):
		reason = d.Error()
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		reason = "cancelled"
	}
	if stop := r.journal.Interrupt(reason); stop != nil {
		return Result{}, errors.Join(err, fmt.Errorf("keep journal of run %s: %w", r.id, stop))
	}
	result, shown := r.Show(r.id)
	switch {
	case shown != nil:
		return result, errors.Join(err, shown)
	case d != nil:
		return result, nil
	case errors.Is(err, context.Canceled):
		return result, ErrInterrupted
	}
	return result, fmt.Errorf("run %s stopped; its journal is kept: %w", r.id, err)
}

func (r *run) attempt(ctx context.Context) (Result, error) {
	if err := r.begin(); err != nil {
		return Result{}, err
	}
	if err := r.allSteps(ctx); err != nil {
		return Result{}, err
	}
	return r.finish(ctx)
}

// allSteps executes every step, each as soon as what it needs has ended.
func (r *run) allSteps(parent context.Context) error {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	var all sync.WaitGroup
	for _, s := range r.order {
		all.Go(func() {
			if err := r.step(ctx, s); err != nil {
				cancel(err)
			}
		})
	}
	all.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// slot waits for leave to execute a guest. The caller calls release after.
func (r *run) slot(ctx context.Context) (release func(), err error) {
	select {
	case r.slots <- struct{}{}:
		return func() { <-r.slots }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// compile compiles every module of the plan once. With an error it returns the
// module that cannot be compiled.
func (r *run) compile(ctx context.Context) (flow.PreparedModule, error) {
	for _, digest := range slices.Sorted(maps.Keys(r.req.Materials.Modules)) {
		m := r.req.Materials.Modules[digest]
		r.progress("compile", string(m.Metadata.Name))
		c, err := r.Engine.Compile(ctx, &prepare.Prepared{Profile: prepare.Profile + "/" + r.plan.StackProfile, Wasm: m.PreparedBytes, Digest: m.Prepared, Original: m.Original})
		if err != nil {
			return m, err
		}
		r.compiled[m.Prepared] = c
	}
	return flow.PreparedModule{}, nil
}

func (r *run) closeModules() {
	for _, c := range r.compiled {
		// The run's outcome is settled; a module that cannot be closed only
		// holds memory until the engine is closed.
		_ = c.Close(context.Background())
	}
}

// append adds an event to a lane and returns its address.
func (r *run) append(lane trace.Lane, kind trace.Kind, cause trace.Cause, payload any) (string, error) {
	b, err := trace.EncodePayload(payload)
	if err != nil {
		return "", fmt.Errorf("encode %s of lane %s: %w", kind, lane, err)
	}
	a, err := r.record.Append(lane, trace.Event{Kind: kind, Cause: cause, Attempt: 1, Payload: b})
	if err != nil {
		return "", fmt.Errorf("record %s in lane %s: %w", kind, lane, err)
	}
	return a.String(), nil
}

func (r *run) progress(phase, name string) {
	r.Progress(Progress{Phase: phase, Name: name, Done: int(r.endedCount.Load()), Total: len(r.order)})
}

func (r *run) ended(s *stepState) {
	r.endedCount.Add(1)
	phase := "done"
	if !s.ok() {
		phase = s.state
	}
	r.progress(phase, string(s.plan.ID))
}
