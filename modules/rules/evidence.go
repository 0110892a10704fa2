package main

import (
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/guest-abi/go/guest"
)

// evidenceHashMatches: the digest of every piece of evidence is that of the bytes
// it stands for. Evidence of another step may rest on a dataset this target may
// not read; that is a doubt if a claim cites it, or if there are no claims at all.
func evidenceHashMatches(c *guest.Check) (abi.VerifyResponse, error) {
	if _, err := guest.Config[none](c.Request.Rule.Config); err != nil {
		return abi.VerifyResponse{}, err
	}
	cited := map[string]bool{}
	for _, claim := range c.Request.Claims {
		for _, id := range claim.Evidence {
			cited[id] = true
		}
	}
	f := guest.NewFindings(c)
	for _, e := range c.Request.Evidence {
		found, err := evidenceDigest(c.Calls, e)
		switch {
		case outOfScope(err):
			if cited[e.EvidenceID] || len(c.Request.Claims) == 0 {
				f.Doubt("evidence %q cannot be read here: %v", e.EvidenceID, err)
			}
			continue
		case err != nil:
			return abi.VerifyResponse{}, err
		}
		f.Evaluated()
		switch {
		case found != e.Digest:
			f.Violation(e.EvidenceID, "digest is %s and the evidence says %s", found, e.Digest)
		case e.Kind == abi.EvidenceArtifact && e.Artifact != e.Digest:
			f.Violation(e.EvidenceID, "digest %s is not the artifact's id %s", e.Digest, e.Artifact)
		}
	}
	return f.Response("pieces of evidence"), nil
}

func outOfScope(err error) bool {
	return errors.Is(err, abi.NotFound) || errors.Is(err, abi.NotGranted)
}

// evidenceDigest hashes the bytes a piece of evidence stands for.
func evidenceDigest(c guest.Calls, e abi.Evidence) (abi.Digest, error) {
	switch e.Kind {
	case abi.EvidenceInline:
		return abi.DigestOf([]byte(e.Content)), nil
	case abi.EvidenceArtifact:
		data, err := c.Artifact(e.Artifact)
		return abi.DigestOf(data), err
	case abi.EvidenceDataset:
		return datasetDigest(c, e.Path)
	}
	return "", guest.Fail("invalid_request", "evidence %q has unknown kind %q", e.EvidenceID, e.Kind)
}

// pieceBytesMax is how much of a dataset file is in memory at a time.
const pieceBytesMax = 1 << 20

func datasetDigest(c guest.Calls, path string) (abi.Digest, error) {
	size, err := c.DatasetSize(path)
	if err != nil {
		return "", fmt.Errorf("dataset %q: %w", path, err)
	}
	hash := sha256.New()
	piece := make([]byte, min(size, pieceBytesMax))
	for at := int64(0); at < size; {
		n, err := c.DatasetRead(path, at, piece[:min(size-at, pieceBytesMax)])
		if err != nil {
			return "", fmt.Errorf("dataset %q: %w", path, err)
		}
		if n == 0 {
			return "", fmt.Errorf("dataset %q ends at byte %d of %d", path, at, size)
		}
		hash.Write(piece[:n])
		at += int64(n)
	}
	return abi.DigestFromSum([32]byte(hash.Sum(nil))), nil
}

// artifactHashCited: every artifact is cited, by its digest, by evidence of kind
// artifact, and no such evidence cites an artifact that is not there.
func artifactHashCited(c *guest.Check) (abi.VerifyResponse, error) {
	if _, err := guest.Config[none](c.Request.Rule.Config); err != nil {
		return abi.VerifyResponse{}, err
	}
	cited, present := map[abi.Digest]bool{}, map[abi.Digest]bool{}
	for _, a := range c.Request.Artifacts {
		present[a.ArtifactID] = true
	}
	f := guest.NewFindings(c)
	for _, e := range c.Request.Evidence {
		if e.Kind != abi.EvidenceArtifact {
			continue
		}
		f.Evaluated()
		cited[e.Artifact] = cited[e.Artifact] || e.Digest == e.Artifact
		if !present[e.Artifact] {
			f.Violation(e.EvidenceID, "artifact %s is not among the target's artifacts", e.Artifact)
		}
	}
	for _, a := range c.Request.Artifacts {
		f.Evaluated()
		if !cited[a.ArtifactID] {
			f.Violation(string(a.ArtifactID), "no evidence cites the digest of artifact %q", a.Name)
		}
	}
	return f.Response("artifacts and citations of artifacts"), nil
}
