package flow

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/writrun/writ/guest-abi/abi"
)

// Lock is a plan file: a plan with the manifest it came from, so that it runs
// exactly that plan given the module and data files.
type Lock struct {
	Plan     *Plan
	Manifest *Manifest
}

// lockVersion is the format of plan files.
const lockVersion = 1

// Bytes returns the plan file: canonical JSON and a newline.
func (l *Lock) Bytes() []byte {
	return append(canonicalOf(map[string]any{
		"writ_plan": lockVersion,
		"plan":      json.RawMessage(l.Plan.Canonical()),
		"manifest":  json.RawMessage(l.Manifest.Canonical()),
	}), '\n')
}

// IsLock reports whether data looks like a plan file rather than a manifest.
func IsLock(data []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("{")) && bytes.Contains(data, []byte(`"writ_plan"`))
}

// ParseLock reads a plan file. The error is an [Errors].
func ParseLock(name string, data []byte) (*Lock, error) {
	r, tree := parsePlanTree(name, data)
	if tree == nil {
		return nil, r.faults.orNil()
	}
	var l Lock
	o := r.object(tree, "")
	o.required("writ_plan", "", func(n *node, path string) { r.integer(n, path, CodePlanFile, lockVersion, lockVersion) })
	o.required("manifest", "", func(n *node, path string) {
		m, err := ParseManifest(name+".json", n.canonical())
		if err != nil {
			r.fail(n.at, path, CodePlanFile, planHint, "the manifest in it is invalid: %v", err)
			return
		}
		m.file = name
		l.Manifest = m
	})
	o.required("plan", "", func(n *node, path string) { l.Plan = r.plan(n, path) })
	o.end()
	if l.Plan != nil && l.Manifest != nil && l.Plan.Manifest != l.Manifest.Digest() {
		r.failAt("plan", CodePlanFile, planHint, "the plan is of manifest %s, and the one in the file is %s", l.Plan.Manifest, l.Manifest.Digest())
	}
	if err := r.faults.orNil(); err != nil {
		return nil, err
	}
	return &l, nil
}

const planHint = "make it again with: writ plan -o FILE"

// ParsePlan reads a plan in the form [Plan.Canonical] writes, as it is retained.
// The error is an [Errors].
func ParsePlan(name string, data []byte) (*Plan, error) {
	r, tree := parsePlanTree(name, data)
	if tree == nil {
		return nil, r.faults.orNil()
	}
	p := r.plan(tree, "")
	if err := r.faults.orNil(); err != nil {
		return nil, err
	}
	return p, nil
}

func parsePlanTree(name string, data []byte) (*reader, *node) {
	r := &reader{file: name, places: map[string]position{"": {1, 1}}}
	if len(data) > PlanBytesMax {
		r.fail(position{}, "", CodePlanFile, "", "%d bytes are more than the %d a plan file may have", len(data), PlanBytesMax)
		return r, nil
	}
	tree := parseJSON(r, data, planDepthMax)
	if len(r.faults) > 0 {
		return r, nil
	}
	return r, tree
}

// plan reads a plan and requires that writing it gives the same again, so that
// nothing in it is unknown, missing or ignored.
func (r *reader) plan(n *node, path string) *Plan {
	text := n.canonical()
	var p Plan
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		r.fail(n.at, path, CodePlanFile, planHint, "not a plan: %v", err)
		return nil
	}
	if p.PlanVersion != PlanVersion {
		r.fail(n.at, path, CodePlanFile, planHint, "plan version %d is not known; this release reads %d", p.PlanVersion, PlanVersion)
		return nil
	}
	if p.Clock.Start != "" {
		start, err := parseStart(p.Clock.Start)
		if err != nil {
			r.fail(n.at, join(path, "clock.start"), CodePlanFile, planHint, "%.64q is not an RFC 3339 time", p.Clock.Start)
			return nil
		}
		p.Clock.StartNanos = start
	}
	if reason := p.inconsistent(); reason != "" || !bytes.Equal(canonicalOf(&p), text) {
		if reason == "" {
			reason = "not a plan in its canonical form"
		}
		r.fail(n.at, path, CodePlanFile, planHint, "%s", reason)
		return nil
	}
	return &p
}

// inconsistent says what in a plan contradicts itself, or "". Whoever runs a
// plan may rely on these.
func (p *Plan) inconsistent() string {
	if len(p.Order) == 0 || len(p.Order) != len(p.Steps) {
		return fmt.Sprintf("order has %d steps and %d are described", len(p.Order), len(p.Steps))
	}
	for i, s := range p.Steps {
		if s.ID != p.Order[i] {
			return fmt.Sprintf("step %d is %q and in the order it is %q", i, s.ID, p.Order[i])
		}
		for _, need := range s.Needs {
			if !slices.Contains(p.Order[:i], need) {
				return fmt.Sprintf("step %q needs %q, which is not before it", s.ID, need)
			}
		}
		for _, id := range s.Datasets {
			if !slices.ContainsFunc(p.Datasets, func(d PlanDataset) bool { return d.ID == id }) {
				return fmt.Sprintf("step %q reads dataset %q, which is not pinned", s.ID, id)
			}
		}
		if slices.Contains(p.Order[:i], s.ID) {
			return fmt.Sprintf("step %q is there twice", s.ID)
		}
	}
	if cost := p.rulesCost(); p.MaxCost > 0 && cost > p.MaxCost {
		return fmt.Sprintf("rules may use %d fuel, which is more than max_cost %d", cost, p.MaxCost)
	}
	for _, v := range p.Rules {
		for _, target := range v.Targets {
			if target != TargetFlow && !slices.Contains(p.Order, abi.ID(target)) {
				return fmt.Sprintf("rule %q has target %q, which is no step", v.RuleID, target)
			}
		}
	}
	return ""
}

// Resolve finds what the plan's digests stand for. It resolves the manifest of
// the file again and refuses any plan but the one in the file, naming what
// differs.
func (l *Lock) Resolve(ctx context.Context, r Resolver) (*Materials, error) {
	now, materials, err := Resolve(ctx, l.Manifest, r)
	if err != nil {
		return nil, err
	}
	if now.Digest() == l.Plan.Digest() {
		return materials, nil
	}
	e := Errors{}
	differ := func(path, format string, args ...any) {
		e = append(e, &Error{Code: CodePlanDiffers, File: l.Manifest.file, Path: path, Message: fmt.Sprintf(format, args...),
			Hint: "restore the file, or make a new plan with: writ plan -o FILE"})
	}
	for _, s := range l.Plan.Steps {
		if is := now.Step(s.ID).Module; is.Digest != s.Module.Digest {
			differ("plan.steps."+string(s.ID), "module %q is %s, and the plan pins %s", s.Module.Path, is.Digest, s.Module.Digest)
		} else if is.Prepared != s.Module.Prepared {
			differ("plan.steps."+string(s.ID), "module %q is prepared as %s by this build, and the plan pins %s", s.Module.Path, is.Prepared, s.Module.Prepared)
		}
	}
	for _, v := range l.Plan.Rules {
		i := slices.IndexFunc(now.Rules, func(o PlanRule) bool { return o.RuleID == v.RuleID })
		if i >= 0 && now.Rules[i].Module != v.Module {
			differ("plan.rules."+string(v.RuleID), "module %q is %s, and the plan pins %s", v.Module.Path, now.Rules[i].Module.Digest, v.Module.Digest)
		}
	}
	for _, d := range l.Plan.Datasets {
		i := slices.IndexFunc(now.Datasets, func(o PlanDataset) bool { return o.ID == d.ID })
		if i >= 0 && now.Datasets[i] != d {
			differ("plan.datasets."+string(d.ID), "dataset is %s, and the plan pins %s", now.Datasets[i].Hash, d.Hash)
		}
	}
	if len(e) == 0 {
		differ("plan", "this build makes plan %s of the same files, and the file has %s", now.Digest(), l.Plan.Digest())
	}
	return nil, e
}
