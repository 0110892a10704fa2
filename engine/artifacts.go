package engine

import (
	"sync"

	"github.com/writrun/writ/engine/evidence"
	"github.com/writrun/writ/guest-abi/abi"
)

// artifactScope is the artifacts one lane may name: its own, and those of the
// steps it needs. Content is in the tenant's content store; a digest outside
// the scope is not found, even where the store has it.
type artifactScope struct {
	content *evidence.Content
	sealed  bool // no further artifacts

	mu      sync.Mutex
	mine    map[abi.Digest]bool
	visible map[abi.Digest]bool
}

func (r *run) newScope(needs []abi.ID) *artifactScope {
	s := &artifactScope{content: r.Tenant.Content(), mine: map[abi.Digest]bool{}, visible: map[abi.Digest]bool{}}
	for _, id := range needs {
		for _, d := range r.steps[id].arts.all() {
			s.visible[d] = true
		}
	}
	return s
}

// readOnly returns the scope a rule has of its subject: it reads and adds nothing.
func (s *artifactScope) readOnly() *artifactScope {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := map[abi.Digest]bool{}
	for d := range s.mine {
		seen[d] = true
	}
	for d := range s.visible {
		seen[d] = true
	}
	return &artifactScope{content: s.content, sealed: true, visible: seen}
}

func (s *artifactScope) own(d abi.Digest) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mine[d]
}

// Put stores content and adds it to the lane's own artifacts.
func (s *artifactScope) Put(content []byte) (abi.Digest, error) {
	if s.sealed {
		return "", abi.NotGranted
	}
	d, err := s.content.PutBytes(content)
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mine[d] = true
	return d, nil
}

// Get returns an artifact in scope.
func (s *artifactScope) Get(d abi.Digest) ([]byte, bool, error) {
	s.mu.Lock()
	known := s.mine[d] || s.visible[d]
	s.mu.Unlock()
	if !known {
		return nil, false, nil
	}
	b, err := s.content.Get(d, abi.ArtifactBytesMax)
	return b, err == nil, err
}

// all returns the artifacts of a lane that ran, or nothing for one that did not.
func (s *artifactScope) all() []abi.Digest {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []abi.Digest
	for d := range s.mine {
		out = append(out, d)
	}
	return out
}
