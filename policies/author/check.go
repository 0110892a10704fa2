package author

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/writrun/writ/policies"
)

// compileErrorsMax is how many findings a compiler's stage may have.
const compileErrorsMax = 100

// Policy is a folder that was checked and compiled.
type Policy struct {
	Folder    *Folder
	Root      string     // "writ.arbitration", or "flow.<flow_id>" of a flow's own
	FlowID    string     // of the flow whose own it is, else ""
	Decisions []Decision // what it can be asked, by name
	modules   map[string]*ast.Module
	tests     map[string]*ast.Module
	compiler  *ast.Compiler // of the modules alone
	cases     []Case
}

// Decision is one question a policy answers.
type Decision struct {
	policies.Question
	Package    string
	Entrypoint string // data.<package>.<rule>
}

// Check parses and compiles the policy of a folder and its tests; the folder
// need not be on a disk. The error is of type [Findings], and says everything
// that is wrong, unless ctx ended.
func Check(ctx context.Context, f *Folder) (*Policy, error) {
	p := &Policy{Folder: f}
	modules, tests, found := parse(f)
	found = append(found, p.settleRoot(modules)...)
	found = append(found, p.checkData()...)
	if len(found) > 0 {
		return nil, sorted(found)
	}
	p.modules, p.tests = modules, tests
	p.compiler = policies.NewCompiler().SetErrorLimit(compileErrorsMax)
	if err := policies.Compile(p.compiler, modules); err != nil {
		return nil, sorted(compileFindings(p.compiler, err, f))
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if found = p.checkDefaults(); len(found) > 0 {
		return nil, sorted(found)
	}
	if len(tests) > 0 {
		all := maps.Clone(modules)
		maps.Copy(all, tests)
		c := policies.NewCompiler().SetErrorLimit(compileErrorsMax).WithEnablePrintStatements(true)
		if err := policies.Compile(c, all); err != nil {
			return nil, sorted(compileFindings(c, err, f))
		}
	}
	if found = p.readCases(); len(found) > 0 {
		return nil, sorted(found)
	}
	return p, ctx.Err()
}

// load has a run's own loader read the folder: it has the last word on what a
// run accepts.
func (p *Policy) load(ctx context.Context) error {
	var err error
	if p.FlowID != "" {
		_, err = policies.LoadBundle(ctx, p.Folder.Dir, policies.BundleConfig{FlowID: p.FlowID})
	} else {
		var c policies.Config
		folders := map[string]*fs.FS{"authority": &c.Authority, "arbitration": &c.Arbitration, "replay": &c.Replay, "standing": &c.Standing}
		*folders[p.Decisions[0].Name] = os.DirFS(p.Folder.Dir)
		_, err = policies.Load(c)
	}
	var r *policies.Refusal
	if errors.As(err, &r) {
		return Findings{{Code: r.Code, File: p.Folder.Dir, Message: strings.TrimSpace(r.Detail)}}
	}
	return err
}

// Load opens a folder, checks it, and makes sure that a run would load it.
func Load(ctx context.Context, dir string) (*Policy, error) {
	f, err := Open(dir)
	if err != nil {
		return nil, err
	}
	p, err := Check(ctx, f)
	if err != nil {
		return nil, err
	}
	if err := p.load(ctx); err != nil {
		return nil, err
	}
	return p, nil
}

func sorted(found Findings) Findings {
	slices.SortStableFunc(found, func(a, b Finding) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return slices.Compact(found)
}

func parse(f *Folder) (modules, tests map[string]*ast.Module, found Findings) {
	modules, tests = map[string]*ast.Module{}, map[string]*ast.Module{}
	for _, s := range f.Sources {
		m, err := ast.ParseModuleWithOpts(s.Name, string(s.Text), policies.ParserOptions())
		switch {
		case err != nil && isV0(s):
			found = append(found, v0Finding(s, err))
		case err != nil:
			found = append(found, findingsOf(err, s.Name)...)
		case s.IsTest():
			tests[s.Name] = m
		default:
			modules[s.Name] = m
		}
	}
	return modules, tests, found
}

func compileFindings(c *ast.Compiler, err error, f *Folder) Findings {
	if c.Failed() {
		return findingsOf(c.Errors, f.Dir)
	}
	return findingsOf(err, f.Dir)
}

// packageParts is a package's path as text, without "data".
func packageParts(m *ast.Module) []string {
	var parts []string
	for _, t := range m.Package.Path[1:] {
		if s, ok := t.Value.(ast.String); ok {
			parts = append(parts, string(s))
		}
	}
	return parts
}

// rootParts is the root that a package lies in: writ.<question>, or
// flow.<flow_id>.
func rootParts(parts []string) (root []string, ok bool) {
	switch {
	case len(parts) >= 3 && parts[0] == "flow":
		return parts[:2], true
	case len(parts) == 2 && parts[0] == "writ" && question(parts[1]) != nil:
		return parts, true
	}
	return nil, false
}

func question(name string) *policies.Question {
	all := policies.Questions()
	if i := slices.IndexFunc(all, func(q policies.Question) bool { return q.Name == name }); i >= 0 {
		return &all[i]
	}
	return nil
}

func questionNames() string { return strings.Join(Names(), ", ") }

// settleRoot finds the root all packages must share, and the decisions.
func (p *Policy) settleRoot(modules map[string]*ast.Module) Findings {
	var found Findings
	var root []string
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(modules)) {
		m := modules[name]
		parts := packageParts(m)
		own, ok := rootParts(parts)
		switch {
		case !ok:
			found = append(found, at(m.Package.Location, policies.CodeRoot, fmt.Sprintf("package %s lies in no root of policies", packageName(m)),
				"name it writ.<decision> for the operator's policies, or flow.<flow_id>.<decision> for a flow's own; a decision is one of "+questionNames()))
			continue
		case root == nil:
			root = own
			if own[0] == "flow" {
				p.FlowID = own[1]
			}
			p.Root = strings.TrimPrefix(m.Package.Path[:len(own)+1].String(), "data.")
		case !slices.Equal(root, own):
			found = append(found, at(m.Package.Location, policies.CodeRoot, fmt.Sprintf("package %s lies outside %s, the root of this folder", packageName(m), p.Root),
				"keep the policies of another root in a folder of their own"))
			continue
		}
		q := question(parts[len(parts)-1])
		isDecision := parts[0] == "writ" || len(parts) == 3 // flow.<flow_id>.<decision>
		if q == nil || !isDecision || seen[q.Name] {
			continue
		}
		seen[q.Name] = true
		p.Decisions = append(p.Decisions, Decision{*q, packageName(m), m.Package.Path.String() + "." + q.Rule})
	}
	slices.SortFunc(p.Decisions, func(a, b Decision) int { return strings.Compare(a.Name, b.Name) })
	if len(found) == 0 && root != nil && len(p.Decisions) == 0 {
		found = append(found, Finding{Code: policies.CodeNoDefault, File: p.Folder.Dir, Message: "no package of " + p.Root + " is a decision",
			Hint: fmt.Sprintf("name one %s.<decision>; a decision is one of %s", p.Root, questionNames())})
	}
	return found
}

func packageName(m *ast.Module) string { return strings.TrimPrefix(m.Package.Path.String(), "data.") }

func at(l *ast.Location, code, message, hint string) Finding {
	f := Finding{Code: code, Message: message, Hint: hint}
	if l != nil {
		f.File, f.Line, f.Column = l.File, l.Row, l.Col
	}
	return f
}

// checkData refuses data that a run would not give to the policy.
func (p *Policy) checkData() Findings {
	wrong := func(message, hint string) Findings {
		return Findings{{Code: policies.CodeRoot, File: p.Folder.Dir, Message: message, Hint: hint}}
	}
	if p.Root == "" || len(p.Folder.Data) == 0 {
		return nil
	}
	if p.FlowID == "" {
		return wrong("the folder has data files, and the operator's policies are asked without", "write the data as rules")
	}
	for key, value := range p.Folder.Data {
		flows, ok := value.(map[string]any)
		if key != "flow" || !ok || len(flows) != 1 || flows[p.FlowID] == nil {
			return wrong(fmt.Sprintf("the data at %s lies outside %s, the root of this folder", key, p.Root), "put data.json into the folder flow/"+p.FlowID)
		}
	}
	return nil
}

// checkDefaults finds decisions that could be undefined, and defaults that are
// no answer.
func (p *Policy) checkDefaults() Findings {
	var found Findings
	for _, d := range p.Decisions {
		var place *ast.Location
		var rule *ast.Rule
		for _, name := range slices.Sorted(maps.Keys(p.modules)) {
			m := p.modules[name]
			if packageName(m) != d.Package {
				continue
			}
			if place == nil {
				place = m.Package.Location
			}
			for _, r := range m.Rules {
				if r.Head.Ref().String() != d.Rule {
					continue
				}
				if rule == nil || r.Default {
					rule, place = r, r.Location
				}
			}
		}
		hint := fmt.Sprintf("add a default that claims nothing: default %s := %s", d.Rule, d.Default)
		switch {
		case rule == nil || !rule.Default:
			found = append(found, at(place, policies.CodeNoDefault, fmt.Sprintf("%s has no default and could be undefined", d.Entrypoint), hint))
		default:
			if err := d.checkTerm(rule.Head.Value); err != nil {
				found = append(found, at(place, policies.CodeResult, fmt.Sprintf("the default of %s is no answer: %s", d.Entrypoint, detail(err)), hint))
			}
		}
	}
	return found
}

// checkTerm holds a constant of Rego against the shape of the answer. One that
// only an evaluation can tell passes.
func (d Decision) checkTerm(t *ast.Term) error {
	value, err := ast.JSON(t.Value)
	if err != nil {
		return nil
	}
	text, err := json.Marshal(value)
	if err != nil {
		return nil
	}
	return d.CheckResult(text)
}

// detail is what a refusal says beside its code.
func detail(err error) string {
	var r *policies.Refusal
	if errors.As(err, &r) {
		return strings.TrimSpace(r.Detail)
	}
	return err.Error()
}
