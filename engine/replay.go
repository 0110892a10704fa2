package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/writrun/writ/engine/evidence"
	"github.com/writrun/writ/engine/flow"
	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host/prepare"
	"github.com/writrun/writ/host/trace"
	"github.com/writrun/writ/policies"
)

// Replay is what a replay showed.
type Replay struct {
	RunID           abi.RunID   `json:"run_id"`
	FlowID          abi.ID      `json:"flow_id"`
	Engine          string      `json:"engine"` // that the replay ran on, with its version
	Verdict         string      `json:"verdict"`
	Reasons         []string    `json:"reasons"`
	Divergence      *Divergence `json:"divergence,omitempty"` // absent if every event was reproduced
	ExecutionDigest abi.Digest  `json:"execution_digest"`     // of the record, which was reproduced if there is no divergence
	Steps           int         `json:"steps"`                // executed
	Results         int         `json:"results"`              // of rules, compared
	Arbitrations    int         `json:"arbitrations"`         // asked again
	HostCalls       uint64      `json:"host_calls"`           // compared
	Effects         uint64      `json:"effects"`              // served from the record
}

// datasetListingBytesMax bounds the retained listing of a folder.
const datasetListingBytesMax = 1 << 30

// Accepted reports whether the verdict lets the replay pass.
func (r Replay) Accepted() bool {
	return r.Verdict == policies.VerdictAcceptable || r.Verdict == policies.VerdictAcceptableWithWarnings
}

// Replayer decides about replays; policies.Set is one.
type Replayer interface {
	Decider
	ReplayVerdict(context.Context, policies.ReplayInput) (policies.ReplayDecision, error)
}

// Replay executes every step and rule of a sealed run again, with effects served
// from the record, asks its arbitrations again, and compares every event with the
// recorded one. Nothing of the run changes; the verdict is a record of the
// ledger. A *Refused error means that the run may not be replayed, or not by this
// build and these policies.
func (r *Runner) Replay(ctx context.Context, id abi.RunID) (Replay, error) {
	tr, err := Open(r.Tenant, id)
	if err != nil {
		return Replay{}, err
	}
	defer tr.Close()
	n, err := r.recorded(tr)
	if err != nil {
		return Replay{}, err
	}
	defer n.closeModules()
	if err := r.allowReplay(ctx, n); err != nil {
		return Replay{}, err
	}
	if _, err := n.compile(ctx); err != nil {
		return Replay{}, fmt.Errorf("replay run %s: %w", id, err)
	}
	if err := n.again(ctx); err != nil {
		return Replay{}, err
	}
	return n.judge(ctx, tr)
}

// again executes the run over its record.
func (r *run) again(ctx context.Context) error {
	_, err := r.attempt(ctx)
	if err == nil || errors.Is(err, errDiverged) {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return fmt.Errorf("replay run %s: %w", r.id, err)
}

// recorded makes a run of what its record and the store retain. The record is
// read whole by that, so damage shows before anything is executed.
func (r *Runner) recorded(tr *evidence.Trace) (*run, error) {
	if !tr.Sealed() {
		return nil, r.refuseReplay(tr, nil, "not_sealed", []string{"the run has not ended"}, "a replay needs a sealed run; see writ list")
	}
	was, err := Summarize(tr)
	if err != nil {
		return nil, err
	}
	req, err := r.retained(was)
	if err != nil {
		return nil, fmt.Errorf("replay run %s: %w", was.RunID, err)
	}
	n, err := r.newRun(req)
	if err != nil {
		return nil, err
	}
	n.compared = newComparison(tr)
	n.record = n.compared
	if reasons := identityDifferences(was.Identity, n.identity); len(reasons) > 0 {
		return nil, r.refuseReplay(tr, nil, "identity_changed", reasons,
			"replay with the build and the policies of the run, for instance with --policies DIR", "or run the flow again and compare")
	}
	quiet := *r
	quiet.Decided = func(PolicyDecision) {} // they were told of when the run made them
	n.Runner = &quiet
	return n, nil
}

// retained reads what a run was made of from the content store; each object is
// checked against its digest there.
func (r *Runner) retained(was Summary) (Request, error) {
	req := Request{RunID: was.RunID, ClockStart: was.ClockStart, FromPlanFile: true, AllowDeprecated: true}
	req.Seed = new([32]byte)
	if copy(req.Seed[:], was.Seed) != len(req.Seed) || len(was.Seed) != len(req.Seed) {
		return req, fmt.Errorf("the record has a seed of %d bytes", len(was.Seed))
	}
	content := r.Tenant.Content()
	text, err := content.Get(was.Identity.Manifest, flow.ManifestBytesMax)
	if err != nil {
		return req, err
	}
	if req.Manifest, err = flow.ParseManifest("manifest.json", text); err != nil {
		return req, fmt.Errorf("read the retained manifest: %w", err)
	}
	if text, err = content.Get(was.Identity.Plan, flow.PlanBytesMax); err != nil {
		return req, err
	}
	if req.Plan, err = flow.ParsePlan("plan.json", text); err != nil {
		return req, fmt.Errorf("read the retained plan: %w", err)
	}
	req.Materials = &flow.Materials{Modules: map[abi.Digest]flow.PreparedModule{}, Datasets: map[abi.ID]flow.PinnedDataset{}}
	for _, s := range req.Plan.Steps {
		if err := r.retainedModule(req, s.Module); err != nil {
			return req, err
		}
	}
	for _, v := range req.Plan.Rules {
		if err := r.retainedModule(req, v.Module); err != nil {
			return req, err
		}
	}
	for _, d := range req.Plan.Datasets {
		if req.Materials.Datasets[d.ID], err = r.retainedDataset(d); err != nil {
			return req, fmt.Errorf("dataset %s: %w", d.ID, err)
		}
	}
	if p := req.Plan.Policies; p != nil {
		archive, err := content.Get(p.Archive, policies.BundleArchiveBytesMax)
		if err != nil {
			return req, err
		}
		req.Materials.Policies = &flow.PinnedPolicies{Origin: p.Origin, Digest: p.Digest, Decisions: p.Decisions, Archive: archive}
	}
	return req, nil
}

func (r *Runner) retainedModule(req Request, pin flow.ModulePin) error {
	if _, done := req.Materials.Modules[pin.Prepared]; done {
		return nil
	}
	original, err := r.Tenant.Content().Get(pin.Digest, abi.ModuleBytesMax)
	if err != nil {
		return err
	}
	prepared, err := r.Tenant.Content().Get(pin.Prepared, abi.PreparedBytesMax)
	if err != nil {
		return err
	}
	info, err := prepare.Inspect(original)
	if err != nil {
		return fmt.Errorf("module %s: %w", pin.Digest, err)
	}
	meta, err := abi.ParseMetadata(info.Metadata)
	if err != nil {
		return fmt.Errorf("module %s: %w", pin.Digest, err)
	}
	req.Materials.Modules[pin.Prepared] = flow.PreparedModule{Original: pin.Digest, Prepared: pin.Prepared, OriginalBytes: original, PreparedBytes: prepared, Metadata: meta}
	return nil
}

// retainedDataset reads what a dataset consists of. Its files are read, and
// checked, when a guest asks for them.
func (r *Runner) retainedDataset(d flow.PlanDataset) (flow.PinnedDataset, error) {
	pinned := flow.PinnedDataset{Digest: d.Hash, Folder: d.Folder, Size: d.Size}
	if !d.Folder {
		pinned.Listing = abi.DatasetListing{Files: []abi.DatasetFile{{Size: d.Size, Digest: d.Hash}}}
		return pinned, nil
	}
	var err error
	if pinned.ListingBytes, err = r.Tenant.Content().Get(d.Hash, datasetListingBytesMax); err != nil {
		return pinned, err
	}
	if err := json.Unmarshal(pinned.ListingBytes, &pinned.Listing); err != nil {
		return pinned, fmt.Errorf("read the retained listing: %w", err)
	}
	return pinned, nil
}

// identityDifferences names each identity that is not what it was, the causes
// before what follows from them.
func identityDifferences(was, is trace.Identity) []string {
	var reasons []string
	for _, part := range []struct {
		name    string
		was, is abi.Digest
	}{
		{"tenant", was.Tenant, is.Tenant}, {"store", was.Store, is.Store}, {"manifest", was.Manifest, is.Manifest}, {"plan", was.Plan, is.Plan},
		{"datasets", was.Datasets, is.Datasets}, {"environment", was.Environment, is.Environment}, {"policy", was.Policy, is.Policy},
	} {
		if part.was != part.is {
			reasons = append(reasons, fmt.Sprintf("%s is %s and was %s", part.name, part.is, part.was))
		}
	}
	return reasons
}

// allowReplay asks the authority policy in force now.
func (r *Runner) allowReplay(ctx context.Context, n *run) error {
	in := n.authorityInput()
	in.Action, in.Now = "replay", r.Now().UnixNano()
	d, err := n.policies.Authority(policies.WithSeed(ctx, policies.PolicySeed(n.seed)), in)
	switch {
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return r.refuseReplay(n.compared.trace, refusing(d.Record), "authority_undecided", []string{err.Error()}, "mend the authority policy; nothing was replayed")
	case !d.Allow:
		return r.refuseReplay(n.compared.trace, refusing(d.Record), "authority_denied", d.Reasons)
	}
	return nil
}

// refuseReplay records that a run was not replayed.
func (r *Runner) refuseReplay(tr *evidence.Trace, d *evidence.Decision, code string, reasons []string, next ...string) error {
	was := tr.Summary()
	err := r.Tenant.Refuse(evidence.AdmissionRefused{Action: "replay", Code: code, Reasons: reasons, Plan: was.Plan, FlowID: was.FlowID, Decision: d})
	if err != nil {
		return fmt.Errorf("record refusal %s: %w", code, err)
	}
	return &Refused{Action: "replay", Code: code, Reasons: reasons, Next: next}
}

// judge asks what the replay shows, and records the verdict.
func (r *run) judge(ctx context.Context, tr *evidence.Trace) (Replay, error) {
	digest, err := tr.ExecutionDigest()
	if err != nil {
		return Replay{}, err
	}
	out := Replay{RunID: r.id, FlowID: r.plan.FlowID, Engine: r.Engine.Name() + " " + r.Engine.Version(), Divergence: r.compared.first(),
		ExecutionDigest: digest, HostCalls: r.compared.calls, Effects: r.compared.effects,
		Results: r.compared.results, Arbitrations: r.compared.arbitrations}
	for _, s := range r.order {
		if s.state == StateSucceeded || s.state == StateFailed {
			out.Steps++
		}
	}
	asker, ok := r.policies.(Replayer)
	if !ok {
		return out, errors.New("replay: the policies do not judge replays")
	}
	d, err := asker.ReplayVerdict(policies.WithSeed(ctx, policies.PolicySeed(r.seed)), r.replayInput(out))
	if err != nil {
		return out, fmt.Errorf("replay run %s: no verdict: %w", r.id, err)
	}
	out.Verdict, out.Reasons = d.Verdict, d.Reasons
	record := evidence.ReplayDone{RunID: r.id, Verdict: d.Verdict, Engine: out.Engine, ExecutionDigest: digest, Policy: d.Record.Policy}
	if out.Divergence != nil {
		record.Divergence, record.Code = out.Divergence.Address, out.Divergence.Code
	}
	return out, r.Tenant.RecordReplay(record)
}

func (r *run) replayInput(out Replay) policies.ReplayInput {
	in := policies.ReplayInput{Action: "replay", Tenant: r.TenantID.String(), Now: r.Now().UnixNano(), FlowID: string(r.plan.FlowID),
		DeterminismLevel: r.plan.DeterminismLevel, Mode: r.plan.ReplayMode, Acceptability: r.plan.ReplayAcceptability,
		Measured: policies.ReplayMeasured{ClaimOverlap: 1}, Flags: policies.LimitingFlags{Draft: r.plan.FlowState == flow.StateDraft}}
	if e := r.plan.ReplayEnvelope; e != nil {
		in.Envelope = policies.ReplayEnvelope{Declared: true, MinClaimOverlap: e.MinClaimOverlap, MaxContradictionDelta: int(e.MaxContradictionDelta)}
	}
	if d := out.Divergence; d != nil {
		in.Measured.ClaimOverlap = 0
		in.Differences = []policies.ReplayDifference{{Name: d.Code + " at " + d.Address, Kind: "outputs", Blocking: true, Served: true, Address: d.Address, Detail: d.Kind}}
	}
	return in
}
