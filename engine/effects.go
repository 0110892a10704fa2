package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/writrun/writ/engine/effect"
	"github.com/writrun/writ/engine/flow"
	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host"
	"github.com/writrun/writ/host/trace"
)

// doubt is an effect whose outcome nobody here can know. The run goes no
// further.
type doubt struct{ address string }

func (d *doubt) Error() string { return "effect " + d.address + " has an unknown outcome" }

// effects returns the function that performs the effects of one step lane:
// intent durable, driver, outcome durable, and only then the guest sees it.
func (r *run) effects(lane trace.Lane, s *stepState) func(context.Context, host.EffectCall) (host.EffectReply, error) {
	if len(s.plan.Effects) == 0 {
		return nil
	}
	if r.compared != nil {
		return r.served(lane)
	}
	return func(ctx context.Context, c host.EffectCall) (host.EffectReply, error) {
		intent := trace.EffectIntent{Ordinal: c.Ordinal, Driver: c.Driver, Request: c.Request, Fuel: c.Fuel}
		address, err := r.append(lane, trace.KindEffectIntent, trace.CauseTool, intent)
		if err != nil {
			return host.EffectReply{}, err
		}
		grant, refused := r.grant(s.plan.Effects, c)
		if refused != nil {
			return r.refuseEffect(lane, address, c, refused)
		}
		if err := r.journal.Sync(); err != nil {
			return host.EffectReply{}, err
		}
		out, err := r.perform(ctx, lane, address, grant, c)
		if err != nil {
			return host.EffectReply{}, err
		}
		return r.settle(lane, c, out)
	}
}

// refuseEffect records an effect that no grant covers: why in control, and in
// the lane what the guest is shown.
func (r *run) refuseEffect(lane trace.Lane, address string, c host.EffectCall, why error) (host.EffectReply, error) {
	record := trace.EffectAttempt{Address: address, Ordinal: c.Ordinal, Status: string(effect.StatusFailed), Error: why.Error()}
	if _, err := r.append(trace.LaneControl, trace.KindEffectAttempt, trace.CauseRuntime, record); err != nil {
		return host.EffectReply{}, err
	}
	code := abi.NotGranted
	errors.As(why, &code)
	return r.settle(lane, c, effect.Outcome{Status: effect.StatusFailed, Code: code})
}

// grant finds the grant of the step that covers a request, or says why none does.
func (r *run) grant(grants []flow.Effect, c host.EffectCall) (flow.Effect, error) {
	refused := fmt.Errorf("no grant for driver %q", c.Driver)
	for _, g := range grants {
		driver := r.drivers[g.Driver]
		if g.Driver != c.Driver || driver == nil {
			continue
		}
		if err := driver.Covers(g, c.Request); err != nil {
			refused = err
			continue
		}
		return g, nil
	}
	return flow.Effect{}, refused
}

// perform tries an effect until its outcome is known or its attempts are used
// up. Each try is recorded in control. An outcome that stays unknown is a
// *doubt.
func (r *run) perform(ctx context.Context, lane trace.Lane, address string, g flow.Effect, c host.EffectCall) (effect.Outcome, error) {
	key := r.journal.EffectKey(lane, c.Ordinal)
	secrets := r.secretsOf(g)
	masker := effect.NewMasker(secrets)
	attempts := uint32(1)
	if g.Delivery == flow.DeliveryIdempotent && g.AttemptsMax > 1 {
		attempts = uint32(g.AttemptsMax)
	}
	for n := uint32(1); ; n++ {
		start := r.Now()
		out := r.drivers[g.Driver].Perform(ctx, effect.Attempt{Grant: g, Request: c.Request, Key: key, Secrets: secrets, Number: n})
		out = masker.Outcome(out)
		record := trace.EffectAttempt{Address: address, Ordinal: c.Ordinal, Attempt: n, Key: key, Status: string(out.Status),
			Peer: out.Details.Peer, Certificate: out.Details.Certificate, StartNanos: start.UnixNano(), EndNanos: r.Now().UnixNano(), HTTPStatus: out.Details.HTTPStatus, Error: out.Details.Error}
		if _, err := r.append(trace.LaneControl, trace.KindEffectAttempt, trace.CauseEnvironment, record); err != nil {
			return out, err
		}
		if out.Status == effect.StatusFailed && ctx.Err() != nil {
			// Nothing was sent because the run is being stopped. That is no outcome
			// of the effect: a resumed run will try it.
			return out, context.Cause(ctx)
		}
		if out.Status != effect.StatusUnknown {
			return out, nil
		}
		if n >= attempts || ctx.Err() != nil {
			return out, &doubt{address: address}
		}
	}
}

// settle records what the guest will see and makes it durable.
func (r *run) settle(lane trace.Lane, c host.EffectCall, out effect.Outcome) (host.EffectReply, error) {
	record := trace.EffectOutcome{Ordinal: c.Ordinal, Status: string(out.Status), Response: out.Response,
		Code: int32(out.Code), Withheld: out.Withheld}
	if _, err := r.append(lane, trace.KindEffectOutcome, trace.CauseTool, record); err != nil {
		return host.EffectReply{}, err
	}
	if err := r.journal.Sync(); err != nil {
		return host.EffectReply{}, err
	}
	return host.EffectReply{Response: out.Response, Code: out.Code}, nil
}

// secretsOf returns the secrets a grant binds, by name. That each was given is
// checked at admission.
func (r *run) secretsOf(g flow.Effect) map[string]effect.Secret {
	bound := map[string]effect.Secret{}
	for _, s := range g.Secrets {
		bound[s.Name] = r.secrets[s.Name]
	}
	return bound
}
