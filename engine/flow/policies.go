package flow

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/writrun/writ/guest-abi/abi"
)

// ManifestPolicies is the bundle of policies a flow brings.
type ManifestPolicies struct {
	Bundle string     // folder or archive below the manifest's folder, or an OCI reference
	Digest abi.Digest // "" is pinned by the plan
}

// PlanPolicies is a flow's bundle, pinned. Whether it is signed is not in the
// plan: that depends on the keys of whoever runs it.
type PlanPolicies struct {
	Bundle    string     `json:"bundle"`
	Origin    string     `json:"origin"`    // folder, archive, or the OCI reference with its digest
	Digest    abi.Digest `json:"digest"`    // of what its decisions depend on
	Archive   abi.Digest `json:"archive"`   // of all its files, as a run retains them
	Decisions []string   `json:"decisions"` // those it has a package for, sorted
}

// PinnedPolicies is what was found under a bundle's reference.
type PinnedPolicies struct {
	Origin    string
	Digest    abi.Digest
	Decisions []string
	Archive   []byte // what a run retains of it
}

// bundleSchemes begin references that are no paths.
var bundleSchemes = []string{"oci://", "oci-layout://"}

func readPolicies(r *reader, n *node, path string) *ManifestPolicies {
	p := &ManifestPolicies{}
	o := r.object(n, path)
	o.required("bundle", "a folder or archive below the manifest's folder, or oci://…", func(n *node, path string) {
		p.Bundle = r.text(n, path, abi.PathBytesMax)
		if p.Bundle == "" || slices.ContainsFunc(bundleSchemes, func(s string) bool { return strings.HasPrefix(p.Bundle, s) }) {
			return
		}
		if err := checkRelative(p.Bundle); err != nil {
			r.fail(n.at, path, CodeBadPath, "name a folder or archive below the manifest's folder", "%v", err)
		}
	})
	o.optional("digest", func(n *node, path string) { p.Digest = r.digest(n, path) })
	o.end()
	return p
}

// ArbitrationEntrypoint is the rule by which a manifest says that its own bundle
// arbitrates.
func ArbitrationEntrypoint(flow abi.ID) string {
	return fmt.Sprintf("data.flow[%q].arbitration.decision", string(flow))
}

// policies pins the bundle a flow brings.
func (s *resolution) policies(ctx context.Context) {
	own := s.plan.Arbitration.Rule == ArbitrationEntrypoint(s.manifest.FlowID)
	want := s.manifest.Policies
	if want == nil {
		if own {
			s.failAt("verification.arbitration.rule", CodePolicies, "name it under policies.bundle", "the rule is an entrypoint of the flow's bundle, and the flow brings none")
		}
		return
	}
	if s.resolver.Policies == nil {
		s.failAt("policies.bundle", CodePolicies, "", "bundles of policies cannot be read here")
		return
	}
	found, err := s.resolver.Policies(ctx, s.root, want.Bundle, string(s.manifest.FlowID))
	if err != nil {
		if ctx.Err() == nil {
			s.failAt("policies.bundle", CodePolicies, "writ policy check says more", "bundle %q: %v", want.Bundle, plain(err))
			s.faults[len(s.faults)-1].Cause = err
		}
		return
	}
	if want.Digest != "" && want.Digest != found.Digest {
		s.failAt("policies.digest", CodePolicies, "restore the files, or state the new digest after looking at what changed", "bundle %q is %s, not %s", want.Bundle, found.Digest, want.Digest)
		return
	}
	arbitrates := slices.Contains(found.Decisions, "arbitration")
	switch {
	case own && !arbitrates:
		s.failAt("verification.arbitration.rule", CodePolicies, "", "bundle %q has no package for arbitration", want.Bundle)
	case arbitrates && !own:
		s.plan.warn("the flow's own bundle arbitrates; rule %s is only part of what it is asked", s.plan.Arbitration.Rule)
	}
	s.plan.Policies = &PlanPolicies{Bundle: want.Bundle, Origin: found.Origin, Digest: found.Digest, Archive: abi.DigestOf(found.Archive), Decisions: found.Decisions}
	s.materials.Policies = &found
}
