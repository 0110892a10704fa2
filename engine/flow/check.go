package flow

import (
	"fmt"
	"slices"
	"strings"

	"github.com/writrun/writ/guest-abi/abi"
)

// check reports what the fields, each fine by itself, do not mean together.
func (m *Manifest) check(r *reader) {
	m.checkIDs(r)
	m.checkReferences(r)
	m.checkLevels(r)
	m.checkEntropy(r)
	if len(r.faults) > 0 {
		return // what follows would only repeat them
	}
	if m.checkOrder(r); len(r.faults) > 0 {
		return
	}
	m.checkCoverage(r)
	m.checkRequires(r)
}

func (m *Manifest) checkIDs(r *reader) {
	for _, l := range []struct {
		list, name string
		count      int
		id         func(i int) abi.ID
	}{
		{"datasets", "id", len(m.Datasets), func(i int) abi.ID { return m.Datasets[i].ID }},
		{"steps", "id", len(m.Steps), func(i int) abi.ID { return m.Steps[i].ID }},
		{"verification.rules", "rule_id", len(m.Rules), func(i int) abi.ID { return m.Rules[i].RuleID }},
		{"nondeterminism_intent", "source", len(m.Intents), func(i int) abi.ID { return abi.ID(m.Intents[i].Source) }},
	} {
		first := map[abi.ID]int{}
		for i := range l.count {
			id := l.id(i)
			if at, taken := first[id]; taken {
				r.failAt(fmt.Sprintf("%s[%d].%s", l.list, i, l.name), CodeDuplicateID, "give each its own", "%q is already that of %s[%d]", id, l.list, at)
				continue
			}
			first[id] = i
		}
	}
}

func (m *Manifest) checkReferences(r *reader) {
	steps := make([]string, 0, len(m.Steps))
	for _, s := range m.Steps {
		steps = append(steps, string(s.ID))
	}
	datasets := make([]string, 0, len(m.Datasets))
	for _, d := range m.Datasets {
		datasets = append(datasets, string(d.ID))
	}
	known := func(path, code, what, id string, all []string) {
		if !slices.Contains(all, id) {
			r.failAt(path, code, "known: "+listed(all), "no %s is named %q", what, id)
		}
	}
	for i, s := range m.Steps {
		for j, id := range s.Needs {
			known(fmt.Sprintf("steps[%d].needs[%d]", i, j), CodeUnknownStep, "step", string(id), steps)
		}
		for j, id := range s.Datasets {
			known(fmt.Sprintf("steps[%d].datasets[%d]", i, j), CodeUnknownDataset, "dataset", string(id), datasets)
		}
	}
	for i, v := range m.Rules {
		for j, target := range v.Targets {
			if target != TargetFlow {
				known(fmt.Sprintf("verification.rules[%d].targets[%d]", i, j), CodeUnknownStep, "step", target, steps)
			}
		}
	}
}

// listed names the first few of a list.
func listed(all []string) string {
	const shown = 20
	if len(all) == 0 {
		return "none"
	}
	if len(all) > shown {
		return strings.Join(all[:shown], ", ") + ", …"
	}
	return strings.Join(all, ", ")
}

// legal is which replay modes and acceptabilities a determinism level may have.
func legal(level string) (modes, acceptabilities []string) {
	switch level {
	case LevelStrict:
		return []string{ModeStrict}, []string{ExactMatch}
	case LevelBounded:
		return []string{ModeStrict, ModeBounded}, []string{ExactMatch, InvariantPreserving}
	default:
		modes = []string{ModeBounded, ModeObservational}
		if level == LevelUnconstrained {
			modes = []string{ModeObservational}
		}
		return modes, []string{ExactMatch, InvariantPreserving, StatisticallyBounded}
	}
}

func (m *Manifest) checkLevels(r *reader) {
	modes, acceptabilities := legal(m.DeterminismLevel)
	if !slices.Contains(modes, m.ReplayMode) {
		r.failAt("replay_mode", CodeIllegalLevels, "with it: "+strings.Join(modes, ", "),
			"%s is not legal with determinism_level %s", m.ReplayMode, m.DeterminismLevel)
	}
	if !slices.Contains(acceptabilities, m.ReplayAcceptability) {
		r.failAt("replay_acceptability", CodeIllegalLevels, "with it: "+strings.Join(acceptabilities, ", "),
			"%s is not legal with determinism_level %s", m.ReplayAcceptability, m.DeterminismLevel)
	}
	switch {
	case m.ReplayEnvelope == nil && m.ReplayMode == ModeBounded:
		r.failAt("replay_envelope", CodeIllegalLevels, "give min_claim_overlap and max_contradiction_delta", "is missing where replay_mode is bounded")
	case m.ReplayEnvelope != nil && m.ReplayMode != ModeBounded:
		r.failAt("replay_envelope", CodeIllegalLevels, "leave it out", "belongs to replay_mode bounded only, which is %s", m.ReplayMode)
	}
	for i, d := range m.Datasets {
		path := fmt.Sprintf("datasets[%d].state", i)
		switch {
		case m.FlowState == StateFrozen && d.State != StateFrozen:
			r.failAt(path, CodeDatasetState, "freeze the dataset, or set flow_state to validated", "a frozen flow reads frozen datasets only, and %s is %s", d.ID, d.State)
		case m.DeterminismLevel == LevelStrict && d.State == StateExperimental:
			r.failAt(path, CodeDatasetState, "freeze the dataset, or choose determinism_level bounded", "determinism_level strict reads no experimental dataset, and %s is one", d.ID)
		}
	}
}

func (m *Manifest) checkEntropy(r *reader) {
	strict := m.DeterminismLevel == LevelStrict
	if strict {
		for i, source := range m.allowedSources() {
			if source != SourceSeededRNG && source != SourceData {
				r.failAt("entropy_budget.allowed_sources", CodeStrict, "choose determinism_level bounded", "determinism_level strict draws on seeded_rng and data only, and entry %d is %s", i, source)
			}
		}
		if len(m.Intents) > 0 {
			r.failAt("nondeterminism_intent", CodeStrict, "leave it out, or choose determinism_level bounded", "determinism_level strict has no nondeterminism to declare")
		}
	}
	declared := map[string]bool{}
	for _, i := range m.Intents {
		declared[i.Source] = true
	}
	for i, s := range m.Steps {
		path := fmt.Sprintf("steps[%d]", i)
		if len(s.Effects) > 0 && strict {
			r.failAt(path+".effects", CodeStrict, "choose determinism_level bounded", "determinism_level strict has no effects, and step %s has %d", s.ID, len(s.Effects))
			continue
		}
		if len(s.Datasets) > 0 {
			m.needsSource(r, path+".datasets", SourceData)
		}
		for j, e := range s.Effects {
			path := fmt.Sprintf("%s.effects[%d].intent", path, j)
			if !declared[e.Intent] {
				r.failAt(path, CodeIntentMissing, "add {source: "+e.Intent+", justification: …} to nondeterminism_intent", "no nondeterminism_intent of source %s covers this effect", e.Intent)
			}
			m.needsSource(r, path, e.entropySource())
		}
	}
}

func (m *Manifest) needsSource(r *reader, path, source string) {
	if !slices.Contains(m.allowedSources(), source) {
		r.failAt(path, CodeSource, "add "+source+" to entropy_budget.allowed_sources", "draws on %s, which is not among the allowed sources (%s)", source, listed(m.allowedSources()))
	}
}

// checkOrder reports a cycle, naming every step in it.
func (m *Manifest) checkOrder(r *reader) {
	if cycle := m.cycle(); cycle != nil {
		names := make([]string, 0, len(cycle)+1)
		for _, id := range append(cycle, cycle[0]) {
			names = append(names, string(id))
		}
		i := slices.IndexFunc(m.Steps, func(s Step) bool { return s.ID == cycle[0] })
		r.failAt(fmt.Sprintf("steps[%d].needs", i), CodeCycle, "remove one of these needs", "steps need each other in a circle: %s", strings.Join(names, " needs "))
	}
}

// cycle returns the ids of a cycle in the order of their needs, beginning with
// the smallest id, or nil. Its stack grows on the heap: a chain may be long.
func (m *Manifest) cycle() []abi.ID {
	order := m.order()
	if len(order) == len(m.Steps) {
		return nil
	}
	// Every step left over needs another one left over, so walking on among
	// them must come around.
	var left []abi.ID
	for _, s := range m.Steps {
		if !slices.Contains(order, s.ID) {
			left = append(left, s.ID)
		}
	}
	at := slices.Min(left)
	var walk []abi.ID
	for !slices.Contains(walk, at) {
		walk = append(walk, at)
		var needs []abi.ID
		for _, id := range m.step(at).Needs {
			if slices.Contains(left, id) {
				needs = append(needs, id)
			}
		}
		at = slices.Min(needs)
	}
	walk = walk[slices.Index(walk, at):]
	first := slices.Index(walk, slices.Min(walk))
	return append(slices.Clone(walk[first:]), walk[:first]...)
}

// order returns the steps in topological order, ties by id. Steps in a cycle,
// and those that need them, are left out.
func (m *Manifest) order() []abi.ID {
	waiting := map[abi.ID]int{}
	dependents := map[abi.ID][]abi.ID{}
	var ready []abi.ID
	for _, s := range m.Steps {
		waiting[s.ID] = len(s.Needs)
		if len(s.Needs) == 0 {
			ready = append(ready, s.ID)
		}
		for _, need := range s.Needs {
			dependents[need] = append(dependents[need], s.ID)
		}
	}
	out := make([]abi.ID, 0, len(m.Steps))
	slices.Sort(ready)
	for len(ready) > 0 {
		id := ready[0]
		ready = ready[1:]
		out = append(out, id)
		for _, d := range dependents[id] {
			if waiting[d]--; waiting[d] == 0 {
				at, _ := slices.BinarySearch(ready, d)
				ready = slices.Insert(ready, at, d)
			}
		}
	}
	return out
}

// checkCoverage requires every claiming step to be the target of a rule.
func (m *Manifest) checkCoverage(r *reader) {
	for i, s := range m.Steps {
		if s.Claims && !m.isTarget(s.ID) {
			r.failAt(fmt.Sprintf("steps[%d]", i), CodeNotCovered, "add it to the targets of a rule, or state claims: false", "step %s makes claims and is the target of no rule", s.ID)
		}
	}
}

func (m *Manifest) isTarget(id abi.ID) bool {
	return slices.ContainsFunc(m.Rules, func(v Rule) bool { return slices.Contains(v.Targets, string(id)) })
}

// checkRequires refuses a step that waits for a PASS nobody upstream can give.
func (m *Manifest) checkRequires(r *reader) {
	for i, s := range m.Steps {
		if s.Requires != "" && !slices.ContainsFunc(m.upstream(s.ID), m.isTarget) {
			r.failAt(fmt.Sprintf("steps[%d].requires", i), CodeRequiresNothing, "verify a step it needs, or leave requires out",
				"step %s requires %s, and nothing it needs is the target of a rule", s.ID, s.Requires)
		}
	}
}

// requires returns what a step waits for, its default included.
func (m *Manifest) requires(s *Step) string {
	if s.Requires != "" || len(s.Effects) == 0 {
		return s.Requires
	}
	if slices.ContainsFunc(m.upstream(s.ID), func(id abi.ID) bool { return m.step(id).Claims }) {
		return RequiresPass
	}
	return ""
}

// upstream returns every step id needs, directly or not, sorted.
func (m *Manifest) upstream(id abi.ID) []abi.ID {
	seen := map[abi.ID]bool{}
	queue := slices.Clone(m.step(id).Needs)
	var out []abi.ID
	for len(queue) > 0 {
		next := queue[0]
		queue = queue[1:]
		if !seen[next] {
			seen[next] = true
			out = append(out, next)
			queue = append(queue, m.step(next).Needs...)
		}
	}
	slices.Sort(out)
	return out
}
