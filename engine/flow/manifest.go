package flow

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/writrun/writ/guest-abi/abi"
)

// Manifest declares a flow. It holds what the file states; what it leaves out
// is zero here and gets its default in the [Plan].
type Manifest struct {
	FlowID              abi.ID
	TenantID            string
	FlowState           string
	DeterminismLevel    string
	ReplayMode          string
	ReplayAcceptability string
	ReplayEnvelope      *ReplayEnvelope
	Clock               *ManifestClock
	StackProfile        string // "" means StackPortable
	Seed                *Seed
	EntropyBudget       *EntropyBudget
	Intents             []Intent
	Datasets            []Dataset
	Steps               []Step
	Rules               []Rule
	Arbitration         *Arbitration
	Policies            *ManifestPolicies
	MaxCost             uint64 // fuel of all results together; 0 means no bound beside the budgets

	file   string
	tree   *node
	places map[string]position
}

// ManifestClock is the clock a manifest asks for.
type ManifestClock struct {
	Kind      string
	Start     string // RFC 3339, or "" for the admission time
	StepNanos int64  // 0 means ClockStepNanosDefault
}

// Dataset is data a flow reads.
type Dataset struct {
	ID         abi.ID
	Version    string
	State      string
	Hash       abi.Digest // "" is pinned by the plan
	StorageURI string
}

// Step is one executor invocation.
type Step struct {
	ID           abi.ID
	Module       string
	ModuleDigest abi.Digest // "" takes the module as it is
	Role         abi.Role
	Needs        []abi.ID
	Requires     string // "" means RequiresPass where the step has effects and needs claim-making steps
	Claims       bool
	Config       json.RawMessage // canonical JSON of an object
	Datasets     []abi.ID
	Effects      []Effect
	Budget       abi.Limits
}

// Rule is one verification rule.
type Rule struct {
	RuleID       abi.ID
	Module       string
	ModuleDigest abi.Digest
	Config       json.RawMessage
	Targets      []string // step ids or TargetFlow
	Severity     string   // "" takes the module's
	Budget       abi.Limits
}

// ParseManifest reads a manifest in YAML, or in JSON if name ends in .json or
// data begins with "{" and name does not end in .yaml or .yml. The name appears
// in errors. The error is an [Errors] with everything that can be said without
// reading other files.
func ParseManifest(name string, data []byte) (*Manifest, error) {
	r := &reader{file: name, places: map[string]position{}}
	tree := r.tree(data)
	if tree == nil {
		return nil, r.faults.orNil()
	}
	m := &Manifest{file: name, tree: tree, places: r.places}
	m.read(r)
	if len(r.faults) == 0 {
		m.check(r)
	}
	if err := r.faults.orNil(); err != nil {
		return nil, err
	}
	return m, nil
}

// tree reads the bytes of a manifest into nodes.
func (r *reader) tree(data []byte) *node {
	if len(data) > ManifestBytesMax {
		r.fail(position{}, "", CodeTooLarge, "keep data in datasets and configuration short",
			"%d bytes are more than the %d a manifest may have", len(data), ManifestBytesMax)
		return nil
	}
	if at, bad := badText(data); bad != "" {
		r.fail(positionAt(data, at), "", CodeSyntax, "save the file as plain UTF-8", "%s", bad)
		return nil
	}
	if isJSON(r.file, data) {
		return parseJSON(r, data, DepthMax)
	}
	return parseYAML(r, data)
}

func isJSON(name string, data []byte) bool {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".json":
		return true
	case ".yaml", ".yml":
		return false
	}
	return bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("{"))
}

// badText finds the first byte that is not text.
func badText(data []byte) (offset int, what string) {
	if bytes.HasPrefix(data, []byte("\xef\xbb\xbf")) {
		return 0, "the file begins with a byte order mark"
	}
	for i := 0; i < len(data); {
		c, size := utf8.DecodeRune(data[i:])
		switch {
		case c == utf8.RuneError && size == 1:
			return i, "invalid UTF-8"
		case c < ' ' && c != '\t' && c != '\n' && c != '\r', c == 0x7f:
			return i, "a control character"
		}
		i += size
	}
	return 0, ""
}

// Canonical returns what the file states as JSON with sorted keys and no
// defaults. Its bytes are the same whether the file was YAML or JSON, and
// whatever its order, comments and spaces.
func (m *Manifest) Canonical() []byte { return m.tree.canonical() }

// Digest returns the digest of the canonical form: the manifest identity.
func (m *Manifest) Digest() abi.Digest { return abi.DigestOf(m.Canonical()) }

// Name returns the name the manifest was parsed under.
func (m *Manifest) Name() string { return m.file }

// step returns the step of an id, or nil.
func (m *Manifest) step(id abi.ID) *Step {
	for i := range m.Steps {
		if m.Steps[i].ID == id {
			return &m.Steps[i]
		}
	}
	return nil
}

// dataset returns the dataset of an id, or nil.
func (m *Manifest) dataset(id abi.ID) *Dataset {
	for i := range m.Datasets {
		if m.Datasets[i].ID == id {
			return &m.Datasets[i]
		}
	}
	return nil
}

// allowedSources returns the sources of the entropy budget, defaults included.
func (m *Manifest) allowedSources() []string {
	if m.EntropyBudget == nil {
		return []string{SourceData, SourceSeededRNG}
	}
	return m.EntropyBudget.AllowedSources
}
