package abi

import (
	"fmt"
	"strings"
)

// Limits of a message's parts. A message as a whole is bounded by output_bytes.
const (
	ItemIDBytesMax    = 512      // a claim_id or evidence_id
	SubjectBytesMax   = 4096     // a claim's subject or predicate, a violation's subject
	StatementBytesMax = 64 << 10 // a claim's statement
	ReasonBytesMax    = 64 << 10 // a verification result's reason, a violation's or error's message
	NameBytesMax      = 255      // an artifact's name or media type
	ErrorCodeBytesMax = 64       // a guest error's code
	ClaimsMax         = 100_000  // claims of one step
	EvidenceMax       = 100_000  // evidence of one step, and evidence ids of one claim
	ArtifactsMax      = 100_000  // artifacts of one step
	ViolationsMax     = 100_000  // violations of one verification result

	// RequestDepthMax bounds the nesting of a request, which wraps responses.
	RequestDepthMax = MessageDepthMax + 16
)

// The kinds of evidence.
const (
	EvidenceInline   = "inline"   // a text: content
	EvidenceDataset  = "dataset"  // a file of a dataset: path
	EvidenceArtifact = "artifact" // a retained artifact: artifact
)

// MessageError says which part of a well-formed message breaks the ABI.
type MessageError struct {
	Path   string // for instance claims[3].claim_id
	Reason string // what is wrong with it
}

// Error returns the path and the reason.
func (e *MessageError) Error() string { return "invalid message: " + e.Path + ": " + e.Reason }

func broken(path, format string, args ...any) error {
	return &MessageError{path, fmt.Sprintf(format, args...)}
}

func checkRequest(version int, configPath string, config []byte) error {
	if version != Version {
		return broken("abi", "is %d; this is version %d", version, Version)
	}
	if !strings.HasPrefix(strings.TrimLeft(string(config), " \t\r\n"), "{") {
		return broken(configPath, "is not an object")
	}
	return nil
}

func checkDatasets(datasets []DatasetHandle) error {
	seen := map[ID]bool{}
	for i, d := range datasets {
		path := fmt.Sprintf("datasets[%d]", i)
		if _, err := ParseID(string(d.ID)); err != nil {
			return broken(path+".id", "%v", err)
		}
		if seen[d.ID] {
			return broken(path+".id", "%q appears twice", d.ID)
		}
		seen[d.ID] = true
		if d.Size < 0 {
			return broken(path+".size", "is negative")
		}
		if _, err := ParseDigest(string(d.Digest)); err != nil {
			return broken(path+".digest", "%v", err)
		}
	}
	return nil
}

// check judges one step's output. Claim ids may repeat: a rule judges that.
func (o *StepOutput) check(prefix string) error {
	for _, l := range []struct {
		name       string
		count, max int
	}{
		{"claims", len(o.Claims), ClaimsMax},
		{"evidence", len(o.Evidence), EvidenceMax},
		{"artifacts", len(o.Artifacts), ArtifactsMax},
	} {
		if l.count > l.max {
			return broken(prefix+l.name, "%d are more than %d", l.count, l.max)
		}
	}
	if err := checkItems(prefix, o.Claims, o.Evidence, o.Artifacts); err != nil {
		return err
	}
	seen := make(map[string]bool, len(o.Evidence))
	for i, e := range o.Evidence {
		if seen[e.EvidenceID] {
			return broken(fmt.Sprintf("%sevidence[%d].evidence_id", prefix, i), "%.80q appears twice", e.EvidenceID)
		}
		seen[e.EvidenceID] = true
	}
	return nil
}

func checkItems(prefix string, claims []Claim, evidence []Evidence, artifacts []Artifact) error {
	for i := range claims {
		if err := claims[i].check(fmt.Sprintf("%sclaims[%d]", prefix, i)); err != nil {
			return err
		}
	}
	for i := range evidence {
		if err := evidence[i].check(fmt.Sprintf("%sevidence[%d]", prefix, i)); err != nil {
			return err
		}
	}
	for i := range artifacts {
		if err := artifacts[i].check(fmt.Sprintf("%sartifacts[%d]", prefix, i)); err != nil {
			return err
		}
	}
	return nil
}

func (c *Claim) check(path string) error {
	if err := checkNamed(path+".claim_id", c.ClaimID, ItemIDBytesMax); err != nil {
		return err
	}
	if err := checkNamed(path+".statement", c.Statement, StatementBytesMax); err != nil {
		return err
	}
	if err := checkText(path+".subject", c.Subject, SubjectBytesMax); err != nil {
		return err
	}
	if err := checkText(path+".predicate", c.Predicate, SubjectBytesMax); err != nil {
		return err
	}
	if len(c.Evidence) > EvidenceMax {
		return broken(path+".evidence", "%d are more than %d", len(c.Evidence), EvidenceMax)
	}
	for i, id := range c.Evidence {
		if err := checkNamed(fmt.Sprintf("%s.evidence[%d]", path, i), id, ItemIDBytesMax); err != nil {
			return err
		}
	}
	return nil
}

func (e *Evidence) check(path string) error {
	if err := checkNamed(path+".evidence_id", e.EvidenceID, ItemIDBytesMax); err != nil {
		return err
	}
	if _, err := ParseDigest(string(e.Digest)); err != nil {
		return broken(path+".digest", "%v", err)
	}
	// A field of another kind would be evidence nobody checks.
	for _, f := range []struct{ kind, name, value string }{
		{EvidenceDataset, "path", e.Path},
		{EvidenceArtifact, "artifact", string(e.Artifact)},
		{EvidenceInline, "content", e.Content},
	} {
		if f.kind != e.Kind && f.value != "" {
			return broken(path+"."+f.name, "is not a field of kind %.40q", e.Kind)
		}
	}
	switch e.Kind {
	case EvidenceInline:
		return nil
	case EvidenceDataset:
		return checkNamed(path+".path", e.Path, PathBytesMax)
	case EvidenceArtifact:
		if _, err := ParseDigest(string(e.Artifact)); err != nil {
			return broken(path+".artifact", "%v", err)
		}
		return nil
	}
	return broken(path+".kind", "is %.40q; it is inline, dataset or artifact", e.Kind)
}

func (a *Artifact) check(path string) error {
	if _, err := ParseDigest(string(a.ArtifactID)); err != nil {
		return broken(path+".artifact_id", "%v", err)
	}
	if err := checkNamed(path+".name", a.Name, NameBytesMax); err != nil {
		return err
	}
	if err := checkNamed(path+".media_type", a.MediaType, NameBytesMax); err != nil {
		return err
	}
	if a.Size < 0 || a.Size > ArtifactBytesMax {
		return broken(path+".size", "%d is not between 0 and %d bytes", a.Size, ArtifactBytesMax)
	}
	return nil
}

func (e *GuestError) check() error {
	if !isSnakeCase(e.Code) || len(e.Code) > ErrorCodeBytesMax {
		return broken("error.code", "%.80q is not snake_case of at most %d bytes", e.Code, ErrorCodeBytesMax)
	}
	return checkText("error.message", e.Message, ReasonBytesMax)
}

func isSnakeCase(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (i == 0 || c != '_' && (c < '0' || c > '9')) {
			return false
		}
	}
	return s != ""
}

// checkNamed is checkText for what must not be empty.
func checkNamed(path, s string, bytesMax int) error {
	if s == "" {
		return broken(path, "is empty or absent")
	}
	return checkText(path, s, bytesMax)
}

func checkText(path, s string, bytesMax int) error {
	if len(s) > bytesMax {
		return broken(path, "%d bytes are more than %d", len(s), bytesMax)
	}
	return nil
}

// fill makes nil arrays empty.
func (o *StepOutput) fill() {
	o.Claims, o.Evidence, o.Artifacts = orEmpty(o.Claims), orEmpty(o.Evidence), orEmpty(o.Artifacts)
	for i := range o.Claims {
		o.Claims[i].Evidence = orEmpty(o.Claims[i].Evidence)
	}
}

func orEmpty[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}
