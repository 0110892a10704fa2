// Package review asks one decision of a policy that is not in force, and tells
// in plain order how the answer came about.
//
// It asks the way a run does, over a document that is given, with the time and
// the seed that are given; it decides nothing, and what Go enforces whatever a
// policy says is not in its answers.
package review

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/storage/inmem"

	"github.com/writrun/writ/policies"
	"github.com/writrun/writ/policies/author"
)

// Policy is a checked policy that can be asked. It is safe for concurrent use.
type Policy struct {
	*author.Policy
	compiler *ast.Compiler
}

// Load reads the policy of a folder. The error of one that is wrong is of type
// [author.Findings].
func Load(ctx context.Context, dir string) (*Policy, error) {
	checked, err := author.Load(ctx, dir)
	if err != nil {
		return nil, err
	}
	return compile(checked)
}

// Default returns the policy that runs are asked with where nobody brings one.
func Default(decision string) (*Policy, error) {
	var asked *policies.Question
	for _, q := range policies.Questions() {
		if q.Name == decision {
			asked = &q
		}
	}
	if asked == nil {
		return nil, fmt.Errorf("open default policy: there is no decision %.40q", decision)
	}
	files, err := policies.DefaultFolder(decision)
	if err != nil {
		return nil, fmt.Errorf("open default policy %s: %w", decision, err)
	}
	f := &author.Folder{Dir: decision, Data: map[string]any{}}
	err = fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".rego") || strings.HasSuffix(name, "_test.rego") {
			return err
		}
		text, err := fs.ReadFile(files, name)
		f.Sources = append(f.Sources, author.Source{Name: name, Text: text})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read default policy %s: %w", decision, err)
	}
	root := "writ." + decision
	return compile(&author.Policy{Folder: f, Root: root, Decisions: []author.Decision{{Question: *asked, Package: root, Entrypoint: "data." + root + "." + asked.Rule}}})
}

func compile(checked *author.Policy) (*Policy, error) {
	modules := map[string]*ast.Module{}
	for _, s := range checked.Folder.Sources {
		if s.IsTest() {
			continue
		}
		m, err := ast.ParseModuleWithOpts(s.Name, string(s.Text), policies.ParserOptions())
		if err != nil {
			return nil, fmt.Errorf("parse policy %s: %w", s.Name, err)
		}
		modules[s.Name] = m
	}
	p := &Policy{Policy: checked, compiler: policies.NewCompiler()}
	if err := policies.Compile(p.compiler, modules); err != nil {
		return nil, fmt.Errorf("compile policy %s: %w", checked.Folder.Dir, err)
	}
	return p, nil
}

// Question is what a decision is asked over.
type Question struct {
	Input []byte // JSON
	Now   int64  // nanoseconds since 1970; what time.now_ns gives
	Seed  policies.Seed
}

// QuestionOf asks over a document at the time it names as its now, else at
// [author.TestTime], so that the answer is the same wherever it is asked.
func QuestionOf(input []byte) (Question, error) {
	doc, err := policies.Canonical(input)
	if err != nil {
		return Question{}, &policies.Refusal{Code: policies.CodeInput, Detail: err.Error()}
	}
	q := Question{Input: doc, Now: author.TestTime}
	if now, ok := policies.InputTime(doc); ok {
		q.Now = now
	}
	return q, nil
}

// Answer is what a policy says.
type Answer struct {
	Result     json.RawMessage `json:"result,omitempty"` // canonical, before the floor; absent where there is no valid one
	RulesFired []string        `json:"rules_fired"`      // "file:row name" of the rules that were true, sorted
	Code       string          `json:"code,omitempty"`   // of why there is no valid answer
	Error      string          `json:"error,omitempty"`  // why; with every value and place of a conflict
}

// Ask asks a decision. A policy that gives no valid answer is an Answer too; the
// error is one of the question, or of ctx.
func (p *Policy) Ask(ctx context.Context, d *author.Decision, q Question) (Answer, error) {
	entry, err := p.prepare(d)
	if err != nil {
		return Answer{}, err
	}
	return ask(ctx, entry, d, q)
}

func (p *Policy) prepare(d *author.Decision) (*policies.Entrypoint, error) {
	return policies.PrepareEntrypoint(p.compiler, d.Entrypoint, rego.Store(inmem.NewFromObject(p.Folder.Data)))
}

func ask(ctx context.Context, entry *policies.Entrypoint, d *author.Decision, q Question) (Answer, error) {
	result, fired, err := entry.Ask(ctx, q.Now, q.Seed, q.Input)
	if err == nil {
		err = d.CheckResult(result)
	}
	answer := Answer{Result: result, RulesFired: fired}
	if fired == nil {
		answer.RulesFired = []string{}
	}
	var r *policies.Refusal
	switch {
	case err == nil:
		return answer, nil
	case errors.As(err, &r) && r.Code != policies.CodeInput:
		answer.Code, answer.Error = r.Code, strings.TrimSpace(r.Detail)
		return answer, nil
	}
	return Answer{}, err
}
