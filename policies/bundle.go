package policies

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/bundle"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/storage/inmem"

	"github.com/writrun/writ/guest-abi/abi"
)

// Decisions a flow's own bundle can have a package for.
const (
	DecisionAuthority   = "authority"
	DecisionArbitration = "arbitration"
	DecisionReplay      = "replay"
	DecisionStanding    = "standing"
)

// entryRules returns the rule each decision is asked of.
func entryRules() map[string]string {
	return map[string]string{DecisionAuthority: "decision", DecisionArbitration: "decision", DecisionReplay: "verdict", DecisionStanding: "standing"}
}

// Bundle is a flow's own policies: packages flow.<flow_id>.<decision>, compiled
// apart from the operator's and with their own data. It is safe for concurrent
// use.
type Bundle struct {
	flowID    string
	origin    string
	digest    abi.Digest
	signature SignatureState
	decisions map[string]*policy
	archive   []byte
}

// BundleConfig says whose bundle is read and what it has to be signed with.
type BundleConfig struct {
	FlowID     string // the flow that brings it; its packages are flow.<flow_id>.<decision>
	Keys       []Key  // that may sign it; with none, signatures are not checked
	Registries Registries
}

// FlowID returns the flow whose bundle this is.
func (b *Bundle) FlowID() string { return b.flowID }

// Origin returns where the bundle came from: "folder", "archive", or the OCI
// reference with the digest of the manifest it was found under.
func (b *Bundle) Origin() string { return b.origin }

// Digest names what the bundle's decisions depend on: its sources and data, the
// tests left out, and the builtins policies may use. It is the same for a folder
// and for an archive of the same files.
func (b *Bundle) Digest() abi.Digest { return b.digest }

// Signature returns what is known of who signed the bundle.
func (b *Bundle) Signature() SignatureState { return b.signature }

// Decisions returns the decisions the bundle has a package for, sorted.
func (b *Bundle) Decisions() []string { return slices.Sorted(maps.Keys(b.decisions)) }

// Archive returns the bundle's files, its signature among them, as a tar of one
// form for the same files. It is what a run retains; [ReadBundle] reads it.
func (b *Bundle) Archive() []byte { return slices.Clone(b.archive) }

// LoadBundle reads and compiles the bundle a reference names: a folder, an OPA
// bundle archive (tar, tar.gz), oci-layout://folder:tag, or
// oci://host/repository:tag[@digest]. The error of a bundle that may not be used
// is a *[Refusal].
func LoadBundle(ctx context.Context, reference string, c BundleConfig) (*Bundle, error) {
	files, origin, err := fetch(ctx, reference, c.Registries)
	if err != nil {
		return nil, err
	}
	return newBundle(files, origin, c)
}

// ReadBundle reads and compiles an archive that is at hand, for instance one
// that a run retained.
func ReadBundle(archive []byte, c BundleConfig) (*Bundle, error) {
	files, err := readArchive(archive)
	if err != nil {
		return nil, err
	}
	return newBundle(files, originArchive, c)
}

func newBundle(files bundleFiles, origin string, c BundleConfig) (*Bundle, error) {
	if _, err := abi.ParseID(c.FlowID); err != nil {
		return nil, &Refusal{Code: CodeBundleFlow, Detail: fmt.Sprintf("a bundle belongs to a flow: %v", err)}
	}
	signature, verification, err := checkSignature(files, c.Keys)
	if err != nil {
		return nil, err
	}
	modules, err := parseBundle(files)
	if err != nil {
		return nil, err
	}
	content, err := readContent(files, verification)
	if err != nil {
		return nil, err
	}
	if err := checkRoots(c.FlowID, content, modules); err != nil {
		return nil, err
	}
	b := &Bundle{flowID: c.FlowID, origin: origin, signature: signature, archive: files.archive(), digest: digestOf(files.decisive())}
	maps.DeleteFunc(modules, func(path string, _ *ast.Module) bool { return isTest(path) })
	b.decisions, err = compileBundle(c.FlowID, modules, content.Data, b.digest)
	return b, err
}

// parseBundle parses the Rego of a bundle, tests included.
func parseBundle(files bundleFiles) (map[string]*ast.Module, error) {
	modules := map[string]*ast.Module{}
	for _, path := range files.paths() {
		if !strings.HasSuffix(path, bundle.RegoExt) {
			continue
		}
		text := string(files[path])
		m, err := ast.ParseModuleWithOpts(path, text, ast.ParserOptions{RegoVersion: ast.RegoV1, Capabilities: capabilities(), ProcessAnnotation: true})
		if err != nil {
			return nil, refuseSource(path, text, err)
		}
		modules[path] = m
	}
	return modules, nil
}

// readContent has OPA read the bundle: its manifest, its data, and, once more,
// its signature.
func readContent(files bundleFiles, verification *bundle.VerificationConfig) (*bundle.Bundle, error) {
	reader := bundle.NewCustomReader(&memoryLoader{files: files, paths: files.paths()}).
		IncludeManifestInData(false).WithRegoVersion(ast.RegoV1).WithCapabilities(capabilities()).WithSizeLimitBytes(BundleBytesMax).
		WithBundleVerificationConfig(verification).WithSkipBundleVerification(verification == nil)
	content, err := reader.Read()
	if err != nil {
		return nil, &Refusal{Code: CodeInvalid, Detail: fmt.Sprintf("read bundle: %v", err)}
	}
	m := content.Manifest
	if m.RegoVersion != nil && *m.RegoVersion != 1 {
		return nil, &Refusal{Code: CodeRegoV0, Detail: fmt.Sprintf(".manifest: rego_version is %d; only 1 is read", *m.RegoVersion)}
	}
	for pattern, version := range m.FileRegoVersions {
		if version != 1 {
			return nil, &Refusal{Code: CodeRegoV0, Detail: fmt.Sprintf(".manifest: the Rego version of %.200q is %d; only 1 is read", pattern, version)}
		}
	}
	if len(m.WasmResolvers) > 0 {
		return nil, &Refusal{Code: CodeBundleFile, Detail: ".manifest: policies compiled to Wasm are not run; give their Rego"}
	}
	return &content, checkData(content.Data)
}

// checkData refuses documents that would take long to go through or to compute
// with: each evaluation meets them.
func checkData(data map[string]any) error {
	v, err := ast.InterfaceToValue(data)
	if err != nil {
		return &Refusal{Code: CodeInvalid, Detail: fmt.Sprintf("data: %v", err)}
	}
	if err := values([]*ast.Term{ast.NewTerm(v)}); err != nil {
		return tooLarge("data: %v", err)
	}
	return nil
}

// compileBundle compiles the modules together and prepares each decision they
// have a package for, or rules that stand where its package would.
func compileBundle(flowID string, modules map[string]*ast.Module, data map[string]any, digest abi.Digest) (map[string]*policy, error) {
	c := newCompiler().WithPathConflictsCheck(func(path []string) (bool, error) { return holds(data, path), nil })
	if err := compileModules(c, modules); err != nil {
		return nil, err
	}
	if err := checkReads(flowID, c.Modules); err != nil {
		return nil, err
	}
	decisions := map[string]*policy{}
	for decision, rule := range entryRules() {
		pkg := flowRoot(flowID).Append(ast.StringTerm(decision))
		if !hasPackage(modules, pkg) && c.RuleTree.Find(pkg) == nil {
			continue
		}
		ref := pkg.Append(ast.StringTerm(rule))
		if !slices.ContainsFunc(c.GetRulesExact(ref), func(r *ast.Rule) bool { return r.Default }) {
			return nil, &Refusal{Code: CodeNoDefault, Detail: fmt.Sprintf("package %s has no default %s", packageName(pkg), rule)}
		}
		entrypoint := ref.String()
		query, err := prepare(c, entrypoint, rego.Store(inmem.NewFromObjectWithOpts(data, inmem.OptRoundTripOnWrite(false))))
		if err != nil {
			return nil, &Refusal{Code: CodeInvalid, Detail: err.Error()}
		}
		decisions[decision] = &policy{entrypoint: entrypoint, digest: digest, query: query}
	}
	if len(decisions) == 0 {
		return nil, &Refusal{Code: CodeBundleRoot, Detail: fmt.Sprintf("the bundle has no package %s.<decision> where decision is %s", packageName(flowRoot(flowID)), strings.Join(slices.Sorted(maps.Keys(entryRules())), ", "))}
	}
	return decisions, nil
}

func hasPackage(modules map[string]*ast.Module, pkg ast.Ref) bool {
	for _, m := range modules {
		if m.Package.Path.Equal(pkg) {
			return true
		}
	}
	return false
}

func isTest(path string) bool { return strings.HasSuffix(path, "_test.rego") }
