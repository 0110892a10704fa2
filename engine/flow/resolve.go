package flow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/writrun/writ/guest-abi/abi"
)

// Resolver is what a plan is resolved with. Root and Prepare are required.
type Resolver struct {
	Root    string // folder of the manifest; relative module and data paths stay below it
	Prepare func(wasm []byte, memoryBytesMax uint64, stackProfile string) (PreparedModule, error)
	// Policies reads the bundle of policies of a flow: a path below root, or an
	// OCI reference. Nil refuses flows that bring one.
	Policies func(ctx context.Context, root *os.Root, reference, flowID string) (PinnedPolicies, error)
}

// PreparedModule is a module that may run: the bytes as they came, what was made
// of them for a memory budget, and what the module says of itself.
type PreparedModule struct {
	Original      abi.Digest
	Prepared      abi.Digest
	OriginalBytes []byte
	PreparedBytes []byte
	Metadata      abi.Metadata
}

// Materials is what a plan's digests stand for, as it was found when the plan
// was resolved.
type Materials struct {
	Modules  map[abi.Digest]PreparedModule // by prepared digest
	Datasets map[abi.ID]PinnedDataset
	Policies *PinnedPolicies // nil: the flow brings none
}

// resolution is a plan in the making.
type resolution struct {
	*reader
	manifest  *Manifest
	resolver  Resolver
	root      *os.Root
	plan      *Plan
	materials *Materials
	prepared  map[preparedKey]*PreparedModule // nil: refused and reported
}

type preparedKey struct {
	path   string
	memory uint64
}

// Resolve pins everything a manifest names. The error is an [Errors] with
// everything that is wrong, or the context's.
func Resolve(ctx context.Context, m *Manifest, r Resolver) (*Plan, *Materials, error) {
	if r.Prepare == nil {
		return nil, nil, errors.New("resolve plan: no function to prepare modules with")
	}
	root, err := os.OpenRoot(r.Root)
	if err != nil {
		return nil, nil, fmt.Errorf("resolve plan: open manifest folder: %w", err)
	}
	defer root.Close()
	s := &resolution{
		reader:   &reader{file: m.file, places: m.places},
		manifest: m, resolver: r, root: root, plan: m.plan(),
		materials: &Materials{Modules: map[abi.Digest]PreparedModule{}, Datasets: map[abi.ID]PinnedDataset{}},
		prepared:  map[preparedKey]*PreparedModule{},
	}
	s.steps(ctx)
	s.rules(ctx)
	s.datasets(ctx)
	s.policies(ctx)
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	if err := s.faults.orNil(); err != nil {
		return nil, nil, err
	}
	slices.Sort(s.plan.Warnings)
	s.plan.Warnings = slices.Compact(s.plan.Warnings)
	return s.plan, s.materials, nil
}

// plan returns what of a plan the manifest alone determines.
func (m *Manifest) plan() *Plan {
	p := &Plan{
		PlanVersion: PlanVersion, FlowID: m.FlowID, TenantID: m.TenantID, FlowState: m.FlowState, Manifest: m.Digest(),
		DeterminismLevel: m.DeterminismLevel, ReplayMode: m.ReplayMode, ReplayAcceptability: m.ReplayAcceptability,
		ReplayEnvelope: m.ReplayEnvelope, StackProfile: cmp.Or(m.StackProfile, StackPortable), Seed: m.Seed, Order: m.order(),
		Clock:         Clock{Kind: ClockVirtual, StepNanos: ClockStepNanosDefault},
		EntropyBudget: EntropyBudget{AllowedSources: m.allowedSources(), ExhaustionAction: ExhaustionHalt},
		Arbitration:   Arbitration{Rule: ArbitrationUnanimous},
		Intents:       slices.Clone(m.Intents), Warnings: []string{},
		Steps: []PlanStep{}, Rules: []PlanRule{}, Datasets: []PlanDataset{},
	}
	slices.SortFunc(p.Intents, func(a, b Intent) int { return strings.Compare(a.Source, b.Source) })
	if m.Clock != nil {
		p.Clock.setStart(m.Clock.Start)
		if m.Clock.StepNanos != 0 {
			p.Clock.StepNanos = m.Clock.StepNanos
		}
	}
	if m.Arbitration != nil {
		p.Arbitration = *m.Arbitration
	}
	if m.FlowState == StateDeprecated {
		p.warn("flow %s is deprecated", m.FlowID)
	}
	return p
}

// setStart sets the start to text that parseStart has accepted, or to none.
func (c *Clock) setStart(text string) {
	if text != "" {
		c.Start = text
		c.StartNanos, _ = parseStart(text)
	}
}

func (p *Plan) warn(format string, args ...any) {
	p.Warnings = append(p.Warnings, fmt.Sprintf(format, args...))
}

func (s *resolution) steps(ctx context.Context) {
	for _, id := range s.plan.Order {
		i := slices.IndexFunc(s.manifest.Steps, func(step Step) bool { return step.ID == id })
		step := &s.manifest.Steps[i]
		path := fmt.Sprintf("steps[%d]", i)
		out := PlanStep{ID: id, Role: step.Role, Claims: step.Claims, Requires: s.manifest.requires(step), Config: step.Config,
			Needs: append([]abi.ID{}, step.Needs...), Datasets: append([]abi.ID{}, step.Datasets...), Effects: []Effect{}}
		slices.Sort(out.Needs)
		for j, e := range step.Effects {
			out.Effects = append(out.Effects, e.resolved())
			if e.Delivery == DeliveryAtMostOnce {
				s.plan.warn("recovery unsafe: effect %s of step %s (grant %d) is at_most_once", e.Driver, id, j+1)
			}
		}
		var module *PreparedModule
		if out.Limits, module = s.module(ctx, path, step.Module, step.ModuleDigest, step.Budget); module != nil {
			out.Module = pin(step.Module, module)
			s.checkExecutor(path, step, module)
		}
		s.plan.Steps = append(s.plan.Steps, out)
	}
}

// checkExecutor compares a step with what its module says of itself.
func (s *resolution) checkExecutor(path string, step *Step, m *PreparedModule) {
	if m.Metadata.Kind != abi.Executor {
		s.failAt(path+".module", CodeModuleKind, "a step runs an executor", "module %q is of kind %s", step.Module, m.Metadata.Kind)
		return
	}
	s.checkConfig(path, step.Config, m)
	for _, want := range m.Metadata.Wants {
		driver, isEffect := strings.CutPrefix(want.Capability, "effect:")
		granted := slices.ContainsFunc(step.Effects, func(e Effect) bool { return e.Driver == driver })
		switch {
		case isEffect && !granted:
			s.plan.warn("step %s: its module wants effect %s and is not granted it", step.ID, driver)
		case want.Capability == "datasets" && len(step.Datasets) == 0:
			s.plan.warn("step %s: its module wants datasets and is given none", step.ID)
		case want.Capability == "random":
			s.manifest.needsSource(s.reader, path+".module", SourceSeededRNG)
		}
	}
}

func (s *resolution) rules(ctx context.Context) {
	for i := range s.manifest.Rules {
		rule := &s.manifest.Rules[i]
		path := fmt.Sprintf("verification.rules[%d]", i)
		out := PlanRule{RuleID: rule.RuleID, Config: rule.Config, Targets: slices.Clone(rule.Targets), Severity: rule.Severity}
		slices.Sort(out.Targets)
		var module *PreparedModule
		if out.Limits, module = s.module(ctx, path, rule.Module, rule.ModuleDigest, rule.Budget); module != nil {
			out.Module = pin(rule.Module, module)
			s.checkRule(path, rule, module, &out)
		}
		s.plan.Rules = append(s.plan.Rules, out)
	}
	slices.SortFunc(s.plan.Rules, func(a, b PlanRule) int { return strings.Compare(string(a.RuleID), string(b.RuleID)) })
	s.apportion()
}

// checkRule compares a rule with what its module says of it.
func (s *resolution) checkRule(path string, rule *Rule, m *PreparedModule, out *PlanRule) {
	if m.Metadata.Kind != abi.Rule {
		s.failAt(path+".module", CodeModuleKind, "verification runs rule modules", "module %q is of kind %s", rule.Module, m.Metadata.Kind)
		return
	}
	i := slices.IndexFunc(m.Metadata.Rules, func(r abi.RuleInfo) bool { return r.RuleID == rule.RuleID })
	if i < 0 {
		ids := make([]string, 0, len(m.Metadata.Rules))
		for _, r := range m.Metadata.Rules {
			ids = append(ids, string(r.RuleID))
		}
		s.failAt(path+".rule_id", CodeRuleNotInModule, "it has: "+listed(ids), "module %q has no rule %q", rule.Module, rule.RuleID)
		return
	}
	declared := m.Metadata.Rules[i]
	out.Randomness = declared.Randomness
	if out.Severity == "" {
		out.Severity = declared.Severity
	}
	for j, target := range rule.Targets {
		if declared.Target != "any" && (declared.Target == TargetFlow) != (target == TargetFlow) {
			s.failAt(fmt.Sprintf("%s.targets[%d]", path, j), CodeRuleNotInModule, "", "rule %s takes a target of kind %s only", rule.RuleID, declared.Target)
		}
	}
	s.checkConfig(path, rule.Config, m)
}

func pin(path string, m *PreparedModule) ModulePin {
	return ModulePin{Path: path, Digest: m.Original, Prepared: m.Prepared, Name: m.Metadata.Name, Version: m.Metadata.Version}
}

func (s *resolution) datasets(ctx context.Context) {
	for i, d := range s.manifest.Datasets {
		if ctx.Err() != nil {
			return
		}
		path := fmt.Sprintf("datasets[%d]", i)
		pinned, err := pinDataset(ctx, s.resolver.Root, d.StorageURI)
		if err != nil {
			s.failDataset(ctx, path, d, err)
			continue
		}
		if d.Hash != "" && d.Hash != pinned.Digest {
			s.failAt(path+".hash", CodeDatasetMismatch, "restore the bytes, or give the dataset a new version and hash",
				"dataset %s has the bytes of %s, not those of %s", d.ID, pinned.Digest, d.Hash)
			continue
		}
		s.materials.Datasets[d.ID] = pinned
		s.plan.Datasets = append(s.plan.Datasets, PlanDataset{ID: d.ID, Version: d.Version, State: d.State, Hash: pinned.Digest,
			StorageURI: d.StorageURI, Folder: pinned.Folder, Size: pinned.Size, Files: int64(len(pinned.Listing.Files))})
		if d.State == StateDeprecated {
			s.plan.warn("dataset %s is deprecated", d.ID)
		}
	}
	slices.SortFunc(s.plan.Datasets, func(a, b PlanDataset) int { return strings.Compare(string(a.ID), string(b.ID)) })
}

func (s *resolution) failDataset(ctx context.Context, path string, d Dataset, err error) {
	if ctx.Err() != nil {
		return
	}
	code, hint := CodeDatasetMissing, "relative paths start at the manifest's folder"
	var bad *datasetError
	if errors.As(err, &bad) {
		code, hint = bad.code, "a dataset is regular files and folders only"
	}
	s.failAt(path+".storage_uri", code, hint, "dataset %s at %q: %v", d.ID, d.StorageURI, plain(err))
	s.faults[len(s.faults)-1].Cause = err
}

// plain drops the operation and the path from a file system's error: the
// message already has them.
func plain(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
