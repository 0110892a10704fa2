package engine

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/writrun/writ/engine/evidence"
	"github.com/writrun/writ/engine/flow"
	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host"
	"github.com/writrun/writ/host/prepare"
	"github.com/writrun/writ/host/trace"
	"github.com/writrun/writ/policies"
)

// ModeLive is the mode of this release's runs: effects are performed and
// verification is complete, or the run fails.
const ModeLive = "live"

// PolicySemantics is the version of what policies mean, part of the
// environment identity.
const PolicySemantics = 1

// Environment returns the environment identity of runs of this build. Engine and
// machine are not in it: prepared modules do the same on all of them.
func Environment() (abi.Digest, error) {
	b, err := abi.EncodeMessage(map[string]any{
		"profile": prepare.Profile, "abi": abi.Version, "policy_semantics": PolicySemantics,
	})
	return abi.DigestOf(b), err
}

// Prepare prepares a module for a plan: it is what a flow.Resolver is given.
func Prepare(wasm []byte, memoryBytesMax uint64, stackProfile string) (flow.PreparedModule, error) {
	p, err := prepare.Prepare(wasm, prepare.Options{MemoryBytesMax: memoryBytesMax, Profile: prepare.Profile + "/" + stackProfile})
	if err != nil {
		return flow.PreparedModule{}, err
	}
	m := flow.PreparedModule{Original: p.Original, Prepared: p.Digest, OriginalBytes: wasm, PreparedBytes: p.Wasm}
	if m.Metadata, err = abi.ParseMetadata(p.Info.Metadata); err != nil {
		return flow.PreparedModule{}, err
	}
	var imports []string
	for _, i := range p.Info.Imports {
		if i.Module == abi.ModuleWrit {
			imports = append(imports, i.Name)
		}
	}
	return m, m.Metadata.CheckImports(imports)
}

// existing looks for an earlier run of the same request id.
func (r *Runner) existing(req Request) (Result, bool, error) {
	if req.RequestID == "" {
		return Result{}, false, nil
	}
	first, found, err := r.Tenant.FindRequest(req.RequestID)
	if err != nil || !found {
		return Result{}, false, err
	}
	if first.Plan != req.Plan.Digest() {
		return Result{}, true, r.refuse(req, "request_id_reused", []string{
			fmt.Sprintf("request id %q belongs to run %s of plan %s; this plan is %s", req.RequestID, first.RunID, first.Plan, req.Plan.Digest()),
		}, "use another --request-id, or run the plan of the first request")
	}
	result, err := r.Show(first.RunID)
	result.Existing = true
	return result, true, err
}

// refuse records a refusal in the ledger and returns it.
func (r *Runner) refuse(req Request, code string, reasons []string, next ...string) error {
	return r.refuseOver(nil, req, code, reasons, next...)
}

// refuseOver is refuse, with the decision that it rests on.
func (r *Runner) refuseOver(d *evidence.Decision, req Request, code string, reasons []string, next ...string) error {
	err := r.Tenant.Refuse(evidence.AdmissionRefused{RequestID: req.RequestID, Action: "run", Code: code,
		Reasons: reasons, Plan: req.Plan.Digest(), FlowID: req.Plan.FlowID, Decision: d})
	if err != nil {
		return fmt.Errorf("record refusal %s: %w", code, err)
	}
	return &Refused{Action: "run", Code: code, Reasons: reasons, Next: next}
}

// admit decides whether req may run and makes the admission durable.
func (r *Runner) admit(ctx context.Context, req Request) (_ *run, err error) {
	if err := r.check(req); err != nil {
		return nil, err
	}
	n, err := r.newRun(req)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			n.closeModules()
		}
	}()
	decision, err := r.authorize(ctx, n)
	if err != nil {
		return nil, err
	}
	if err := r.compile(ctx, n); err != nil {
		return nil, err
	}
	var changed *changedError
	switch err := n.retain(); {
	case errors.As(err, &changed):
		return nil, r.refuse(req, "dataset_changed_since_plan", []string{changed.Error()}, "plan again and run the new plan")
	case err != nil:
		return nil, fmt.Errorf("retain inputs of run %s: %w", n.id, err)
	}
	n.journal, err = r.Tenant.Admit(evidence.Admission{FlowID: req.Plan.FlowID, Datasets: n.seen(), Admission: trace.Admission{
		Tenant: r.TenantID.String(), StoreID: r.Store.ID(), RunID: n.id, RequestID: req.RequestID,
		Principal: r.Principal.Name + " (" + r.Principal.Kind + ")", Identity: n.identity,
		Authority: n.policies.AuthorityDigest(), Provenance: r.provenance(),
	}})
	if err != nil {
		return nil, fmt.Errorf("admit run: %w", err)
	}
	n.record = n.journal
	a, err := n.append(trace.LaneControl, trace.KindAuthorityDecision, trace.CausePolicy, trace.AuthorityDecision{
		Action: "run", Allow: decision.Allow, Reasons: decision.Reasons, Entrypoint: decision.Record.Entrypoint,
		Policy: decision.Record.Policy, Input: decision.Record.InputDigest, InputDocument: decision.Record.Input,
	})
	n.decided(n.id, a, decision.Record, DecisionResult{Decision: allowed(decision.Allow), Reasons: decision.Reasons}, nil)
	for _, further := range decision.Records[min(1, len(decision.Records)):] {
		if err != nil {
			break
		}
		a, err = n.append(trace.LaneControl, trace.KindAuthorityDecision, trace.CausePolicy, trace.AuthorityDecision{
			Action: "run", Allow: decision.Allow, Reasons: decision.Reasons, Entrypoint: further.Entrypoint,
			Policy: further.Policy, Input: further.InputDigest, InputDocument: further.Input,
		})
		n.decided(n.id, a, further, DecisionResult{Decision: allowed(decision.Allow), Reasons: decision.Reasons}, nil)
	}
	return n, err
}

// compile compiles what n runs, so that no run is admitted that cannot begin. What
// the engine says of a module it cannot compile is for the caller, not for the
// ledger.
func (r *Runner) compile(ctx context.Context, n *run) error {
	m, err := n.compile(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return r.refuse(n.req, "compile", []string{fmt.Sprintf("module %s %s could not be compiled", m.Metadata.Name, m.Original)},
			err.Error(), "use another engine, or smaller functions")
	}
	return nil
}

// provenance is the caller's, and the engine.
func (r *Runner) provenance() map[string]string {
	p := map[string]string{"engine": r.Engine.Name() + " " + r.Engine.Version()}
	for key, value := range r.Provenance {
		p[key] = value
	}
	return p
}

// check refuses what no policy can allow.
func (r *Runner) check(req Request) error {
	if req.Plan.TenantID != r.TenantID.String() {
		return r.refuse(req, "tenant_mismatch", []string{
			fmt.Sprintf("the manifest is of tenant %q and the caller is of tenant %q", req.Plan.TenantID, r.TenantID)},
			"name the manifest's tenant with --tenant, or change tenant_id")
	}
	if req.Plan.FlowState == flow.StateFrozen && !req.FromPlanFile {
		return r.refuse(req, "frozen_needs_plan_file", []string{"a frozen flow runs only from a plan file"},
			"make one with: writ plan -o flow.plan.json")
	}
	for _, d := range req.Plan.Datasets {
		if err := r.Tenant.CheckDataset(seenDataset(d)); err != nil {
			return r.refuse(req, "dataset_identity", []string{err.Error()}, "give the dataset a new version")
		}
	}
	for _, s := range req.Plan.Steps {
		for _, e := range s.Effects {
			if r.drivers[e.Driver] == nil {
				return r.refuse(req, "driver_unknown", []string{fmt.Sprintf("step %s: no driver %q", s.ID, e.Driver)})
			}
			for _, secret := range e.Secrets {
				if _, given := r.secrets[secret.Name]; !given {
					return r.refuse(req, "secret_missing", []string{fmt.Sprintf("step %s needs secret %q", s.ID, secret.Name)},
						fmt.Sprintf("give it with --secret %s=env:VAR or %s=file:PATH", secret.Name, secret.Name))
				}
			}
		}
	}
	return nil
}

// newRun fixes the identity, seed and clock of a run that is not yet admitted.
func (r *Runner) newRun(req Request) (*run, error) {
	n := &run{Runner: r, req: req, plan: req.Plan, id: req.RunID, steps: map[abi.ID]*stepState{},
		rules: map[abi.ID]flow.PlanRule{}, pinned: map[abi.ID]host.Dataset{}, compiled: map[abi.Digest]host.Compiled{}, slots: make(chan struct{}, r.Jobs),
		denied: deniedCalls(req.Plan.EntropyBudget.AllowedSources)}
	if n.id == "" {
		var random [16]byte
		if _, err := io.ReadFull(r.Rand, random[:]); err != nil {
			return nil, fmt.Errorf("draw run id: %w", err)
		}
		n.id = abi.NewRunID(random)
	}
	if err := r.decider(n); err != nil {
		return nil, err
	}
	n.identity = trace.Identity{
		Tenant: abi.DigestOf([]byte(r.TenantID.String())), Manifest: req.Manifest.Digest(), Plan: req.Plan.Digest(),
		Datasets: req.Plan.DatasetsDigest(), Environment: r.env,
		Policy: req.Plan.PolicyDigest(n.policies.ArbitrationDigest()), Store: abi.DigestOf([]byte(r.Store.ID())),
	}
	if err := n.fixEntropy(); err != nil {
		return nil, err
	}
	for _, d := range req.Plan.Datasets {
		pinned := req.Materials.Datasets[d.ID]
		n.pinned[d.ID] = host.Dataset{Handle: abi.DatasetHandle{ID: d.ID, Size: d.Size, Digest: d.Hash, Folder: d.Folder},
			Listing: pinned.Listing, ListingBytes: pinned.ListingBytes, Open: n.openContent}
	}
	for _, rule := range req.Plan.Rules {
		n.rules[rule.RuleID] = rule
	}
	for _, id := range req.Plan.Order {
		s := &stepState{plan: req.Plan.Step(id), done: make(chan struct{}), handles: []abi.DatasetHandle{}}
		for _, d := range s.plan.Datasets {
			s.handles = append(s.handles, n.pinned[d].Handle)
		}
		n.steps[id] = s
		n.order = append(n.order, s)
	}
	return n, nil
}

func (r *run) fixEntropy() error {
	switch {
	case r.req.Seed != nil:
		r.seed = *r.req.Seed
	case r.plan.Seed != nil:
		r.seed = [32]byte(*r.plan.Seed)
	default:
		if _, err := io.ReadFull(r.Rand, r.seed[:]); err != nil {
			return fmt.Errorf("draw seed: %w", err)
		}
	}
	switch {
	case !r.req.ClockStart.IsZero():
		r.clockStart = r.req.ClockStart.UnixNano()
	case r.plan.Clock.StartNanos != 0:
		r.clockStart = r.plan.Clock.StartNanos
	default:
		r.clockStart = r.Now().UnixNano()
	}
	if r.clockStart <= 0 {
		return fmt.Errorf("clock start %d ns: it must be after 1970-01-01T00:00:00Z", r.clockStart)
	}
	return nil
}

// decider sets the policies of a run: the runner's, with those the flow brings.
func (r *Runner) decider(n *run) error {
	n.policies = r.Policies
	want := n.plan.Policies
	if want == nil {
		return nil
	}
	found := n.req.Materials.Policies
	if r.WithFlow == nil || found == nil || found.Digest != want.Digest || abi.DigestOf(found.Archive) != want.Archive {
		return r.refuse(n.req, "policies_missing", []string{fmt.Sprintf("the flow brings the policies %s, and they are not at hand", want.Digest)}, "plan the flow again where its bundle is")
	}
	both, err := r.WithFlow(*found, n.plan.FlowID)
	if err != nil {
		return r.refuse(n.req, "policies_refused", []string{err.Error()}, "mend the bundle, or sign it with a key that is configured")
	}
	n.policies = both
	return nil
}

// authorize asks writ.authority; anything but an answer that allows is a refusal.
func (r *Runner) authorize(ctx context.Context, n *run) (policies.AuthorityDecision, error) {
	d, err := n.policies.Authority(policies.WithSeed(ctx, policies.PolicySeed(n.seed)), n.authorityInput())
	switch {
	case err != nil && ctx.Err() != nil:
		return d, context.Cause(ctx)
	case err != nil:
		n.decided("", "", d.Record, DecisionResult{Decision: DecisionDeny, Reasons: []string{reasonAuthorityUndecided}}, err)
		return d, r.refuseOver(refusing(d.Record), n.req, "authority_undecided", []string{err.Error()}, "mend the authority policy; nothing was run")
	case !d.Allow:
		n.decided("", "", d.Record, DecisionResult{Decision: DecisionDeny, Reasons: d.Reasons}, nil)
		return d, r.refuseOver(refusing(d.Record), n.req, "authority_denied", d.Reasons)
	}
	return d, nil
}

// authorityInput describes the run to the authority policy.
func (r *run) authorityInput() policies.AuthorityInput {
	p := r.plan
	in := policies.AuthorityInput{
		Action: "run", Tenant: r.TenantID.String(), Principal: policies.AuthorityPrincipal{Name: r.Principal.Name, Kind: r.Principal.Kind},
		Now: r.clockStart, Mode: ModeLive, FlowID: string(p.FlowID), FlowState: p.FlowState, DeterminismLevel: p.DeterminismLevel,
		Manifest: r.identity.Manifest, Plan: r.identity.Plan, AllowDeprecated: r.req.AllowDeprecated, Warnings: p.Warnings,
	}
	for _, s := range p.Steps {
		in.Modules = append(in.Modules, r.authorityModule(string(s.ID), s.Module))
		for _, e := range s.Effects {
			grant := policies.AuthorityEffect{Step: string(s.ID), Driver: e.Driver, Intent: e.Intent, Delivery: e.Delivery, Networks: e.Networks}
			for _, a := range e.Allow {
				for _, method := range a.Methods {
					grant.Reach = append(grant.Reach, method+" "+a.URLPrefix)
				}
			}
			in.Effects = append(in.Effects, grant)
		}
	}
	for _, rule := range p.Rules {
		in.Modules = append(in.Modules, r.authorityModule(string(rule.RuleID), rule.Module))
	}
	for _, d := range p.Datasets {
		in.Datasets = append(in.Datasets, policies.AuthorityDataset{ID: string(d.ID), Version: d.Version, State: d.State, Hash: d.Hash})
	}
	return in
}

func (r *run) authorityModule(user string, pin flow.ModulePin) policies.AuthorityModule {
	meta := r.req.Materials.Modules[pin.Prepared].Metadata
	m := policies.AuthorityModule{User: user, Kind: meta.Kind, Name: pin.Name, Version: pin.Version, Digest: pin.Digest}
	for _, w := range meta.Wants {
		m.Wants = append(m.Wants, w.Capability)
	}
	return m
}

// retain copies everything the plan rests on into the content store, digesting
// it again: from here on nothing is read from the live paths.
func (r *run) retain() (err error) {
	batch := r.Tenant.Content().Batch()
	defer func() { err = errors.Join(err, batch.Close()) }()
	keep := [][]byte{r.req.Manifest.Canonical(), r.plan.Canonical()}
	if p := r.req.Materials.Policies; r.plan.Policies != nil {
		keep = append(keep, p.Archive)
	}
	for _, digest := range slices.Sorted(maps.Keys(r.req.Materials.Modules)) {
		m := r.req.Materials.Modules[digest]
		keep = append(keep, m.OriginalBytes, m.PreparedBytes)
	}
	for _, b := range keep {
		if err := retainBytes(batch, b); err != nil {
			return err
		}
	}
	for _, d := range r.plan.Datasets {
		pinned := r.req.Materials.Datasets[d.ID]
		if d.Folder {
			if err := retainBytes(batch, pinned.ListingBytes); err != nil {
				return fmt.Errorf("dataset %s: %w", d.ID, err)
			}
		}
		for _, f := range pinned.Listing.Files {
			if err := r.retainFile(batch, pinned, f); err != nil {
				return fmt.Errorf("dataset %s: %w", d.ID, err)
			}
		}
	}
	return batch.Commit()
}

func retainBytes(batch *evidence.Batch, b []byte) error {
	if batch.Has(abi.DigestOf(b)) {
		return nil
	}
	_, _, err := batch.Put(bytes.NewReader(b))
	return err
}

// retainFile copies a file, or where the store has its bytes already, makes sure
// that they are still those: guests read the copy without looking again.
func (r *run) retainFile(batch *evidence.Batch, pinned flow.PinnedDataset, f abi.DatasetFile) error {
	if content := r.Tenant.Content(); content.Has(f.Digest) {
		return rehash(content, f.Digest)
	}
	if batch.Has(f.Digest) {
		return nil
	}
	src, err := pinned.Open(f.Path)
	if err != nil {
		return err
	}
	defer src.Close()
	got, _, err := batch.Put(src)
	if err == nil && got != f.Digest {
		err = &changedError{file: f, got: got}
	}
	return err
}

// changedError is a file that is not what the plan pinned any more.
type changedError struct {
	file abi.DatasetFile
	got  abi.Digest
}

// Error names the file and both digests.
func (e *changedError) Error() string {
	return fmt.Sprintf("file %q changed since the plan: it is %s and was %s", e.file.Path, e.got, e.file.Digest)
}

func rehash(content *evidence.Content, want abi.Digest) error {
	o, err := content.Open(want)
	if err != nil {
		return err
	}
	defer o.Close()
	h := sha256.New()
	if _, err := io.Copy(h, o); err != nil {
		return fmt.Errorf("read content %s: %w", want, err)
	}
	if got := abi.DigestFromSum([32]byte(h.Sum(nil))); got != want {
		return &evidence.Problem{Code: evidence.CodeContentMismatch, Detail: fmt.Sprintf("content %s has the digest %s", want, got)}
	}
	return nil
}

func (r *run) openContent(d abi.Digest) (io.ReaderAt, int64, error) {
	o, err := r.Tenant.Content().Open(d)
	if err != nil {
		return nil, 0, err
	}
	return o, o.Size, nil
}

func (r *run) datasets(ids []abi.ID) []host.Dataset {
	out := make([]host.Dataset, 0, len(ids))
	for _, id := range ids {
		out = append(out, r.pinned[id])
	}
	return out
}

// begin opens the run lane.
func (r *run) begin() error {
	id := r.identity
	_, err := r.append(trace.LaneRun, trace.KindRunStart, trace.CauseRuntime, trace.RunStart{
		FlowID: r.plan.FlowID, Mode: ModeLive, Manifest: id.Manifest, Plan: id.Plan, Datasets: id.Datasets,
		Environment: id.Environment, Policy: id.Policy, Seed: r.seed[:], ClockStartNanos: r.clockStart,
		ClockStepNanos: r.plan.Clock.StepNanos, DeterminismLevel: r.plan.DeterminismLevel,
	})
	if err != nil {
		return err
	}
	for _, d := range r.plan.Datasets {
		_, err := r.append(trace.LaneRun, trace.KindDatasetPinned, trace.CauseDataset, trace.DatasetPinned{
			DatasetID: d.ID, Version: d.Version, State: d.State, Hash: d.Hash, StorageURI: d.StorageURI, Size: d.Size,
			Files: int64(len(r.pinned[d.ID].Listing.Files)),
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// versioned reports a grant to a provider whose version nobody records.
func versioned(e flow.Effect) bool {
	return slices.Contains([]string{"llm", "external"}, e.Intent)
}

func seenDataset(d flow.PlanDataset) evidence.DatasetSeen {
	return evidence.DatasetSeen{DatasetID: d.ID, Version: d.Version, State: d.State, Hash: d.Hash}
}

func (r *run) seen() []evidence.DatasetSeen {
	var out []evidence.DatasetSeen
	for _, d := range r.plan.Datasets {
		out = append(out, seenDataset(d))
	}
	return out
}
