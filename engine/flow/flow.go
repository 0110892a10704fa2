// Package flow reads what is to be run: it parses a manifest, resolves it to a
// plan that pins every module and dataset by digest, and digests both.
//
// A manifest is refused as a whole, with everything that is wrong with it at
// once, each with its place and what to do. A plan holds no absolute path and no
// time, so that the same input has the same plan digest on any machine and in
// any checkout. The package runs nothing: modules are prepared by a function it
// is given.
package flow

import (
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/writrun/writ/guest-abi/abi"
)

// Version is the manifest format this package reads.
const Version = 1

// Limits of manifests, plans and what they name.
const (
	ManifestBytesMax      = 1 << 20  // a manifest file
	PlanBytesMax          = 16 << 20 // a plan or lock file
	DepthMax              = 64       // nesting of a manifest
	YAMLTokensMax         = 30_000   // words and signs of a manifest in YAML; in JSON there is no such limit
	ErrorsMax             = 100      // faults reported of one manifest
	StepsMax              = 1000     // steps of a flow
	RulesMax              = 1000     // rules of a flow
	DatasetsMax           = 1000     // datasets of a flow
	ListItemsMax          = 1000     // items of any other list
	ObjectFieldsMax       = 10_000   // fields of one object
	VersionBytesMax       = 128      // a dataset's version
	TextBytesMax          = 4096     // a justification
	DatasetFilesMax       = 100_000  // files of one dataset
	DatasetFolderDepthMax = 64       // nesting of a folder dataset
	DatasetBytesMax       = 1 << 40  // bytes of one dataset
	EffectBytesMax        = 16 << 20 // request or response of an effect
	EffectBytesDefault    = 1 << 20  // where a grant names no limit
	TimeoutMillisMax      = 600_000  // one attempt of an effect
	TimeoutMillisDefault  = 10_000   // where a grant names no timeout
	AttemptsMax           = 100      // attempts of one effect
	AttemptsDefault       = 3        // of an idempotent effect
	SchemaWeightMax       = 100_000  // schemas a config_schema unfolds to
	ClockStepNanosMax     = 1e12     // step of the virtual clock
	ClockStepNanosDefault = 1e6      // where a manifest names no step
)

// Sizes of the budget a guest's nested calls have; a deep one is more than an
// engine that interprets can hold.
const (
	StackPortable = "portable"
	StackDeep     = "deep"
)

// States of a flow and of a dataset.
const (
	StateDraft        = "draft"
	StateValidated    = "validated"
	StateFrozen       = "frozen"
	StateDeprecated   = "deprecated"
	StateExperimental = "experimental"
)

// Determinism levels.
const (
	LevelStrict        = "strict"
	LevelBounded       = "bounded"
	LevelProbabilistic = "probabilistic"
	LevelUnconstrained = "unconstrained"
)

// Replay modes and acceptabilities.
const (
	ModeStrict              = "strict"
	ModeBounded             = "bounded"
	ModeObservational       = "observational"
	ExactMatch              = "exact_match"
	InvariantPreserving     = "invariant_preserving"
	StatisticallyBounded    = "statistically_bounded"
	ExhaustionHalt          = "halt"
	ClockVirtual            = "virtual"
	TargetFlow              = "flow"
	DriverHTTP              = "http"
	DeliveryIdempotent      = "idempotent"
	DeliveryAtMostOnce      = "at_most_once"
	RequiresPass            = "pass"
	RequiresPassPermissive  = "pass_permissive"
	ArbitrationUnanimous    = "unanimous"
	ArbitrationQuorum       = "quorum"
	ArbitrationFirstFailure = "strict_first_failure"
)

// Sources of entropy.
const (
	SourceSeededRNG      = "seeded_rng"
	SourceExternalOracle = "external_oracle"
	SourceHumanInput     = "human_input"
	SourceData           = "data"
)

// Seed is the 32 bytes all randomness of a run is drawn from.
type Seed [32]byte

// MarshalText writes the seed as 64 lower-case hex digits.
func (s Seed) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(s[:])), nil }

// UnmarshalText reads 64 lower-case hex digits.
func (s *Seed) UnmarshalText(b []byte) error {
	v, err := ParseSeed(string(b))
	if err == nil {
		*s = v
	}
	return err
}

// ParseSeed reads a seed in its one spelling, 64 lower-case hex digits.
func ParseSeed(text string) (Seed, error) {
	var s Seed
	raw, err := hex.DecodeString(text)
	if err != nil || len(raw) != len(s) || hex.EncodeToString(raw) != text {
		return s, fmt.Errorf("seed %.80q is not 64 lower-case hex digits", text)
	}
	copy(s[:], raw)
	return s, nil
}

// ReplayEnvelope is how far a bounded rerun may differ.
type ReplayEnvelope struct {
	MinClaimOverlap       float64 `json:"min_claim_overlap"`       // 0 to 1, Jaccard
	MaxContradictionDelta uint64  `json:"max_contradiction_delta"` // contradictions more than in the original
}

// EntropyBudget is which sources of entropy a run may draw on, and what happens
// when it reaches for another.
type EntropyBudget struct {
	AllowedSources   []string `json:"allowed_sources"` // sorted
	ExhaustionAction string   `json:"exhaustion_action"`
}

// Intent declares that a flow means to be nondeterministic, and why.
type Intent struct {
	Source        string `json:"source"` // llm, retrieval, human or external
	Justification string `json:"justification"`
}

// Effect is a grant: what one step may do to the outside world through one
// driver. In a plan every field has its value; in a manifest zero means default.
type Effect struct {
	Driver           string   `json:"driver"`
	Intent           string   `json:"intent"` // source of the covering Intent
	Allow            []Allow  `json:"allow"`
	Networks         []string `json:"networks"` // CIDR prefixes reachable although they are not public
	RequestBytesMax  uint64   `json:"request_bytes_max"`
	ResponseBytesMax uint64   `json:"response_bytes_max"`
	TimeoutMillis    uint64   `json:"timeout_ms"` // one attempt
	Delivery         string   `json:"delivery"`
	AttemptsMax      uint64   `json:"attempts_max"`
	Secrets          []Secret `json:"secrets"`
}

// Allow is one reach of an http grant: these methods under this URL.
type Allow struct {
	Methods   []string `json:"methods"`
	URLPrefix string   `json:"url_prefix"` // see ParseReach
}

// Secret binds a named secret to one request header. The value is never part of
// a manifest or a plan.
type Secret struct {
	Name   string `json:"name"`
	Header string `json:"header"`
}

// Arbitration is how results become a decision.
type Arbitration struct {
	Rule            string  `json:"rule"`
	QuorumThreshold float64 `json:"quorum_threshold,omitempty"` // above 0.5, at most 1; only of quorum
}

// emptyObject is the config of a step or rule that has none.
var emptyObject = json.RawMessage("{}")

// ModulePin is a module as a plan names it.
type ModulePin struct {
	Path     string     `json:"path"` // relative to the manifest's folder
	Digest   abi.Digest `json:"digest"`
	Prepared abi.Digest `json:"prepared"`
	Name     string     `json:"name"`
	Version  string     `json:"version"`
}
