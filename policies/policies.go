// Package policies asks the four questions of a run in Rego: may it happen
// (writ.authority), what do its verification results come to (writ.arbitration),
// what does a replay show (writ.replay), and what may the run claim now
// (writ.standing).
//
// Every decision is a pure function of one JSON document. Anything but a result
// of exactly the published shape (undefined, a conflict, an error, a missing or
// extra field) is a *[Refusal], never a yes. What Go enforces whatever a policy
// says is in floor.go.
package policies

import (
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"

	"github.com/writrun/writ/guest-abi/abi"
)

//go:embed authority/*.rego arbitration/*.rego replay/*.rego standing/*.rego
var defaults embed.FS

// Entrypoints of the decisions.
const (
	AuthorityEntrypoint   = "data.writ.authority.decision"
	ArbitrationEntrypoint = "data.writ.arbitration.decision"
	ReplayEntrypoint      = "data.writ.replay.verdict"
	StandingEntrypoint    = "data.writ.standing.standing"
)

// Limits of a decision.
const (
	SourceBytesMax = 1 << 20         // one Rego file
	SourceFilesMax = 1000            // of one policy
	InputBytesMax  = 64 << 20        // the input document
	ResultBytesMax = 1 << 20         // the result
	EvaluationTime = 5 * time.Second // of one evaluation
	RulesFiredMax  = 1000            // kept of one evaluation
)

// Set is the compiled policies of one operator. It is safe for concurrent use.
type Set struct {
	authority, arbitration *policy
	replay, standing       *policy
	flow                   *Bundle // the flow's own; nil where it brings none
}

// Config names the folders policies are read from; a nil one is the default's.
type Config struct {
	Authority   fs.FS // package writ.authority
	Arbitration fs.FS // package writ.arbitration
	Replay      fs.FS // package writ.replay
	Standing    fs.FS // package writ.standing
}

// policy is one compiled entrypoint.
type policy struct {
	entrypoint string
	digest     abi.Digest
	query      rego.PreparedEvalQuery
}

// Default compiles the policies this package embeds.
func Default() (*Set, error) { return Load(Config{}) }

// Load reads and compiles policies. The error is a *[Refusal] that lists what
// is wrong with them.
func Load(c Config) (*Set, error) {
	load := func(own fs.FS, folder, entrypoint string) (*policy, error) {
		if own == nil {
			sub, err := fs.Sub(defaults, folder)
			if err != nil {
				return nil, err
			}
			own = sub
		}
		return compile(own, folder, entrypoint)
	}
	var s Set
	for _, d := range []struct {
		own                fs.FS
		folder, entrypoint string
		policy             **policy
	}{
		{c.Authority, "authority", AuthorityEntrypoint, &s.authority},
		{c.Arbitration, "arbitration", ArbitrationEntrypoint, &s.arbitration},
		{c.Replay, "replay", ReplayEntrypoint, &s.replay},
		{c.Standing, "standing", StandingEntrypoint, &s.standing},
	} {
		p, err := load(d.own, d.folder, d.entrypoint)
		if err != nil {
			return nil, err
		}
		*d.policy = p
	}
	return &s, nil
}

// AuthorityDigest names the authority policy: its sources and the builtins
// policies may use.
func (s *Set) AuthorityDigest() abi.Digest { return s.authority.digest }

// ReplayDigest names the replay policy.
func (s *Set) ReplayDigest() abi.Digest { return s.replay.digest }

// StandingDigest names the standing policy.
func (s *Set) StandingDigest() abi.Digest { return s.standing.digest }

// compile reads every .rego file of folder but the tests.
func compile(folder fs.FS, name, entrypoint string) (*policy, error) {
	sources, err := readSources(folder)
	if err != nil {
		return nil, &Refusal{Code: CodeUnreadable, Detail: fmt.Sprintf("read policy %s: %v", name, err)}
	}
	modules := map[string]*ast.Module{}
	for path, text := range sources {
		m, err := ast.ParseModuleWithOpts(path, text, ast.ParserOptions{RegoVersion: ast.RegoV1, Capabilities: capabilities()})
		if err != nil {
			return nil, refuseSource(path, text, err)
		}
		if want := "data.writ." + name; m.Package.Path.String() != want {
			return nil, &Refusal{Code: CodeRoot, Detail: fmt.Sprintf("%s: package %s lies outside %s", path, m.Package.Path, want)}
		}
		modules[path] = m
	}
	c := newCompiler()
	if err := compileModules(c, modules); err != nil {
		return nil, err
	}
	if !hasDefault(modules, entrypoint) {
		return nil, &Refusal{Code: CodeNoDefault, Detail: fmt.Sprintf("policy %s has no default for %s", name, entrypoint)}
	}
	query, err := prepare(c, entrypoint)
	if err != nil {
		return nil, &Refusal{Code: CodeInvalid, Detail: err.Error()}
	}
	return &policy{entrypoint: entrypoint, digest: digestOf(sources), query: query}, nil
}

// refuseSource tells a policy of Rego v0 from one that is wrong.
func refuseSource(path, text string, err error) *Refusal {
	if _, old := ast.ParseModuleWithOpts(path, text, ast.ParserOptions{RegoVersion: ast.RegoV0}); old == nil {
		return &Refusal{Code: CodeRegoV0, Detail: fmt.Sprintf("%s is Rego v0; rewrite it with: opa fmt --write --v0-v1 %s", path, path)}
	}
	return &Refusal{Code: CodeInvalid, Detail: err.Error()}
}

func readSources(folder fs.FS) (map[string]string, error) {
	sources := map[string]string{}
	err := fs.WalkDir(folder, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".rego") || strings.HasSuffix(path, "_test.rego") {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if info.Size() > SourceBytesMax || len(sources) == SourceFilesMax {
			return fmt.Errorf("%s: more than %d bytes in a file or %d files", path, SourceBytesMax, SourceFilesMax)
		}
		text, err := fs.ReadFile(folder, path)
		sources[path] = string(text)
		return err
	})
	if err == nil && len(sources) == 0 {
		err = fmt.Errorf("there is no .rego file")
	}
	return sources, err
}

func hasDefault(modules map[string]*ast.Module, entrypoint string) bool {
	name := entrypoint[strings.LastIndexByte(entrypoint, '.')+1:]
	for _, m := range modules {
		if slices.ContainsFunc(m.Rules, func(r *ast.Rule) bool { return r.Default && r.Head.Ref().String() == name }) {
			return true
		}
	}
	return false
}

// digestOf covers what a decision depends on beside its input.
func digestOf(sources map[string]string) abi.Digest {
	digests := map[string]abi.Digest{}
	for path, text := range sources {
		digests[path] = abi.DigestOf([]byte(text))
	}
	b, err := abi.EncodeMessage(map[string]any{"sources": digests, "builtins": allowedBuiltins()})
	if err != nil {
		// Paths come from a file system walk and digests are text.
		panic("policies: digest sources: " + err.Error())
	}
	return abi.DigestOf(b)
}
