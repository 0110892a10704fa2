package flow

import (
	"time"

	"github.com/writrun/writ/guest-abi/abi"
)

// read fills m from its tree.
func (m *Manifest) read(r *reader) {
	r.places[""] = m.tree.at
	o := r.object(m.tree, "")
	o.required("manifest", "manifest: 1", func(n *node, path string) { r.integer(n, path, CodeBadValue, Version, Version) })
	o.required("flow_id", "", func(n *node, path string) { m.FlowID = r.id(n, path) })
	o.required("tenant_id", "it must equal the caller's tenant", func(n *node, path string) { m.TenantID = string(r.id(n, path)) })
	o.required("flow_state", "one of draft, validated, frozen, deprecated", func(n *node, path string) {
		m.FlowState = r.choice(n, path, StateDraft, StateValidated, StateFrozen, StateDeprecated)
	})
	o.required("determinism_level", "one of strict, bounded, probabilistic, unconstrained", func(n *node, path string) {
		m.DeterminismLevel = r.choice(n, path, LevelStrict, LevelBounded, LevelProbabilistic, LevelUnconstrained)
	})
	o.required("replay_mode", "one of strict, bounded, observational", func(n *node, path string) {
		m.ReplayMode = r.choice(n, path, ModeStrict, ModeBounded, ModeObservational)
	})
	o.required("replay_acceptability", "one of exact_match, invariant_preserving, statistically_bounded", func(n *node, path string) {
		m.ReplayAcceptability = r.choice(n, path, ExactMatch, InvariantPreserving, StatisticallyBounded)
	})
	o.optional("replay_envelope", func(n *node, path string) { m.ReplayEnvelope = readEnvelope(r, n, path) })
	o.optional("clock", func(n *node, path string) { m.Clock = readClock(r, n, path) })
	o.optional("stack_profile", func(n *node, path string) { m.StackProfile = r.choice(n, path, StackPortable, StackDeep) })
	o.optional("seed", func(n *node, path string) { m.Seed = readSeed(r, n, path) })
	o.optional("entropy_budget", func(n *node, path string) { m.EntropyBudget = readBudget(r, n, path) })
	o.optional("nondeterminism_intent", func(n *node, path string) {
		r.list(n, path, 0, ListItemsMax, func(n *node, path string) { m.Intents = append(m.Intents, readIntent(r, n, path)) })
	})
	o.optional("datasets", func(n *node, path string) {
		r.list(n, path, 0, DatasetsMax, func(n *node, path string) { m.Datasets = append(m.Datasets, readDataset(r, n, path)) })
	})
	o.required("steps", "a flow has at least one step", func(n *node, path string) {
		r.list(n, path, 1, StepsMax, func(n *node, path string) { m.Steps = append(m.Steps, readStep(r, n, path)) })
	})
	o.optional("policies", func(n *node, path string) { m.Policies = readPolicies(r, n, path) })
	o.optional("verification", m.readVerification(r))
	o.end()
}

func readEnvelope(r *reader, n *node, path string) *ReplayEnvelope {
	e := &ReplayEnvelope{}
	o := r.object(n, path)
	o.required("min_claim_overlap", "a fraction from 0 to 1", func(n *node, path string) { e.MinClaimOverlap = r.fraction(n, path, 0, true) })
	o.required("max_contradiction_delta", "a count", func(n *node, path string) {
		e.MaxContradictionDelta = r.integer(n, path, CodeBadValue, 0, abi.IntegerMax)
	})
	o.end()
	return e
}

func readClock(r *reader, n *node, path string) *ManifestClock {
	c := &ManifestClock{}
	o := r.object(n, path)
	o.required("kind", "virtual", func(n *node, path string) { c.Kind = r.choice(n, path, ClockVirtual) })
	o.optional("start", func(n *node, path string) {
		c.Start = r.text(n, path, 64)
		if _, err := parseStart(c.Start); c.Start != "" && err != nil {
			r.fail(n.at, path, CodeBadValue, "for instance 2026-01-31T00:00:00Z", "%.64q is not an RFC 3339 time from 1970 to 2261, in UTC", c.Start)
		}
	})
	o.optional("step_ns", func(n *node, path string) {
		c.StepNanos = int64(r.integer(n, path, CodeBadValue, 1, ClockStepNanosMax))
	})
	o.end()
	return c
}

// parseStart reads a clock start as nanoseconds since 1970, which must be above
// zero. Only UTC: one instant has one spelling of its zone.
func parseStart(text string) (int64, error) {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return 0, err
	}
	if _, offset := t.Zone(); offset != 0 || t.Year() < 1970 || t.Year() > 2261 || t.UnixNano() <= 0 {
		return 0, &time.ParseError{Layout: time.RFC3339Nano, Value: text, Message: ": out of range"}
	}
	return t.UnixNano(), nil
}

func readSeed(r *reader, n *node, path string) *Seed {
	if !r.is(n, path, kindText) {
		return nil
	}
	s, err := ParseSeed(n.text)
	if err != nil {
		r.fail(n.at, path, CodeBadValue, "for instance from: openssl rand -hex 32", "%v", err)
		return nil
	}
	return &s
}

func readBudget(r *reader, n *node, path string) *EntropyBudget {
	b := &EntropyBudget{ExhaustionAction: ExhaustionHalt}
	o := r.object(n, path)
	o.required("allowed_sources", "any of seeded_rng, external_oracle, human_input, data", func(n *node, path string) {
		b.AllowedSources = r.words(n, path, SourceSeededRNG, SourceExternalOracle, SourceHumanInput, SourceData)
	})
	o.optional("exhaustion_action", func(n *node, path string) { b.ExhaustionAction = r.choice(n, path, ExhaustionHalt) })
	o.end()
	return b
}

func readIntent(r *reader, n *node, path string) Intent {
	var i Intent
	o := r.object(n, path)
	o.required("source", "one of llm, retrieval, human, external", func(n *node, path string) { i.Source = r.choice(n, path, intentSources...) })
	o.required("justification", "say why, for people", func(n *node, path string) { i.Justification = r.text(n, path, TextBytesMax) })
	o.end()
	return i
}

func readDataset(r *reader, n *node, path string) Dataset {
	var d Dataset
	o := r.object(n, path)
	o.required("id", "", func(n *node, path string) { d.ID = r.id(n, path) })
	o.required("version", "text, for instance \"2026-01\"", func(n *node, path string) { d.Version = r.text(n, path, VersionBytesMax) })
	o.required("state", "one of experimental, frozen, deprecated", func(n *node, path string) {
		d.State = r.choice(n, path, StateExperimental, StateFrozen, StateDeprecated)
	})
	o.optional("hash", func(n *node, path string) { d.Hash = r.digest(n, path) })
	o.required("storage_uri", "a path below the manifest's folder, or file:///PATH", func(n *node, path string) {
		d.StorageURI = r.text(n, path, abi.PathBytesMax)
		if _, err := parseStorage(d.StorageURI); d.StorageURI != "" && err != nil {
			r.fail(n.at, path, CodeBadPath, "a path below the manifest's folder, or file:///PATH", "%v", err)
		}
	})
	o.end()
	return d
}

func readStep(r *reader, n *node, path string) Step {
	s := Step{Claims: true, Config: emptyObject}
	o := r.object(n, path)
	o.required("id", "", func(n *node, path string) { s.ID = r.id(n, path) })
	o.required("module", "path of a .wasm file below the manifest's folder", func(n *node, path string) { s.Module = readModule(r, n, path) })
	o.optional("module_digest", func(n *node, path string) { s.ModuleDigest = r.digest(n, path) })
	o.required("role", "one of agent, retrieval, reasoning", func(n *node, path string) {
		s.Role = abi.Role(r.choice(n, path, string(abi.RoleAgent), string(abi.RoleRetrieval), string(abi.RoleReasoning)))
	})
	o.optional("needs", func(n *node, path string) { s.Needs = r.ids(n, path) })
	o.optional("requires", func(n *node, path string) { s.Requires = r.choice(n, path, RequiresPass, RequiresPassPermissive) })
	o.optional("claims", func(n *node, path string) { s.Claims = r.boolean(n, path) })
	o.optional("config", func(n *node, path string) { s.Config = readConfig(r, n, path) })
	o.optional("datasets", func(n *node, path string) { s.Datasets = r.ids(n, path) })
	o.optional("effects", func(n *node, path string) {
		r.list(n, path, 1, ListItemsMax, func(n *node, path string) { s.Effects = append(s.Effects, readEffect(r, n, path)) })
	})
	o.optional("budget", func(n *node, path string) { s.Budget = readLimits(r, n, path, len(abi.LimitTable)) })
	o.end()
	return s
}

func readModule(r *reader, n *node, path string) string {
	module := r.text(n, path, abi.PathBytesMax)
	if module == "" {
		return ""
	}
	if err := checkRelative(module); err != nil {
		r.fail(n.at, path, CodeBadPath, "name a file below the manifest's folder", "%v", err)
	}
	return module
}

func readConfig(r *reader, n *node, path string) []byte {
	if !r.is(n, path, kindObject) {
		return emptyObject
	}
	return n.canonical()
}

// readLimits reads a budget of the first count limits of abi.LimitTable.
func readLimits(r *reader, n *node, path string, count int) abi.Limits {
	var l abi.Limits
	fields := []*uint64{&l.Fuel, &l.MemoryBytes, &l.OutputBytes, &l.HostCalls, &l.LogBytes, &l.Effects, &l.Artifacts}
	o := r.object(n, path)
	for i, limit := range abi.LimitTable[:count] {
		low := uint64(1)
		if limit.Name == "memory_bytes" {
			low = abi.PageBytes
		}
		o.optional(limit.Name, func(n *node, path string) {
			*fields[i] = r.integer(n, path, CodeBudgetCeiling, low, limit.Ceiling)
		})
	}
	o.end()
	return l
}

// ruleLimits is how many limits a rule's budget may name: all but those of
// effects and artifacts, which rules have not.
const ruleLimits = 5

func (m *Manifest) readVerification(r *reader) func(n *node, path string) {
	return func(n *node, path string) {
		o := r.object(n, path)
		o.required("rules", "", func(n *node, path string) {
			r.list(n, path, 0, RulesMax, func(n *node, path string) { m.Rules = append(m.Rules, readRule(r, n, path)) })
		})
		o.optional("arbitration", func(n *node, path string) { m.Arbitration = readArbitration(r, n, path, m.FlowID) })
		o.optional("max_cost", func(n *node, path string) { m.MaxCost = r.integer(n, path, CodeBadValue, 1, abi.IntegerMax) })
		o.end()
	}
}

func readRule(r *reader, n *node, path string) Rule {
	v := Rule{Config: emptyObject}
	o := r.object(n, path)
	o.required("rule_id", "one of the module's rules", func(n *node, path string) { v.RuleID = r.id(n, path) })
	o.required("module", "path of a .wasm file below the manifest's folder", func(n *node, path string) { v.Module = readModule(r, n, path) })
	o.optional("module_digest", func(n *node, path string) { v.ModuleDigest = r.digest(n, path) })
	o.optional("config", func(n *node, path string) { v.Config = readConfig(r, n, path) })
	o.required("targets", "step ids, or flow", func(n *node, path string) {
		r.list(n, path, 1, StepsMax+1, func(n *node, path string) {
			target := TargetFlow
			if n.kind != kindText || n.text != TargetFlow {
				target = string(r.id(n, path))
			}
			if target != "" && once(r, n, path, v.Targets, target) {
				v.Targets = append(v.Targets, target)
			}
		})
	})
	o.optional("severity", func(n *node, path string) { v.Severity = r.choice(n, path, "info", "warning", "error") })
	o.optional("budget", func(n *node, path string) { v.Budget = readLimits(r, n, path, ruleLimits) })
	o.end()
	return v
}

func readArbitration(r *reader, n *node, path string, flow abi.ID) *Arbitration {
	a := &Arbitration{}
	o := r.object(n, path)
	o.required("rule", "one of unanimous, quorum, strict_first_failure, or the entrypoint of the flow's own bundle", func(n *node, path string) {
		a.Rule = r.choice(n, path, ArbitrationUnanimous, ArbitrationQuorum, ArbitrationFirstFailure, ArbitrationEntrypoint(flow))
	})
	given := false
	o.optional("quorum_threshold", func(n *node, path string) {
		given = true
		a.QuorumThreshold = r.fraction(n, path, 0.5, false)
	})
	o.end()
	if a.Rule != "" && given != (a.Rule == ArbitrationQuorum) {
		r.fail(n.at, join(path, "quorum_threshold"), CodeBadValue, "a fraction above 0.5, at most 1, exactly where rule is quorum",
			"quorum_threshold and rule %s do not go together", a.Rule)
	}
	return a
}
