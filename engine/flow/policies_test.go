package flow

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/writrun/writ/guest-abi/abi"
)

// TestPolicies states how the bundle a flow brings is pinned, and when not.
func TestPolicies(t *testing.T) {
	digest := abi.DigestOf([]byte("bundle"))
	whole := PinnedPolicies{Origin: "folder", Digest: digest, Decisions: []string{"arbitration", "authority"}, Archive: []byte("tar")}
	narrow := PinnedPolicies{Origin: "archive", Digest: digest, Decisions: []string{"authority"}, Archive: []byte("tar")}
	const warning = "the flow's own bundle arbitrates; rule quorum is only part of what it is asked"
	own := `{rule: 'data.flow["gate"].arbitration.decision'}`
	for _, c := range []struct {
		name     string
		policies string
		rule     string // "" for the example's quorum
		found    PinnedPolicies
		err      error
		warns    bool
		fault    string
	}{
		{"none", "", "", whole, nil, false, ""},
		{"a folder", "{bundle: policies}", "", whole, nil, true, ""},
		{"pinned", "{bundle: policies, digest: '" + string(digest) + "'}", "", narrow, nil, false, ""},
		{"an OCI reference", "{bundle: 'oci://registry.example/policies:1'}", own, whole, nil, false, ""},
		{"pinned to another", "{bundle: policies, digest: '" + string(abi.DigestOf(nil)) + "'}", "", whole, nil, false, "not " + string(abi.DigestOf(nil))},
		{"cannot be read", "{bundle: policies}", "", whole, errors.New("no such thing"), false, `bundle "policies": no such thing`},
		{"outside the folder", "{bundle: ../policies}", "", whole, nil, false, "policies.bundle"},
		{"absolute", "{bundle: /policies}", "", whole, nil, false, "policies.bundle"},
		{"no bundle", "{}", "", whole, nil, false, `field "bundle" is missing`},
		{"a rule of its own and no bundle", "", own, whole, nil, false, "the flow brings none"},
		{"a rule of its own and none in the bundle", "{bundle: policies}", own, narrow, nil, false, "has no package for arbitration"},
		{"a rule of another flow's", "{bundle: policies}", `{rule: 'data.flow["other"].arbitration.decision'}`, whole, nil, false, "is not known here"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := resolvable(t)
			if c.policies != "" {
				text = change(t, text, "verification:\n", "policies: "+c.policies+"\nverification:\n")
			}
			if c.rule != "" {
				text = change(t, text, "{rule: quorum, quorum_threshold: 0.75}", c.rule)
			}
			m, err := ParseManifest("flow.yaml", []byte(text))
			var p *Plan
			var materials *Materials
			if err == nil {
				p, materials, err = Resolve(t.Context(), m, Resolver{Root: checkout(t), Prepare: prepareForTest,
					Policies: func(context.Context, *os.Root, string, string) (PinnedPolicies, error) { return c.found, c.err }})
			}
			if c.fault != "" {
				if err == nil || !strings.Contains(err.Error(), c.fault) {
					t.Fatalf("error %v, want %q", err, c.fault)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(strings.Join(p.Warnings, "\n"), warning) != c.warns {
				t.Errorf("warnings %q", p.Warnings)
			}
			if c.policies == "" {
				if p.Policies != nil || materials.Policies != nil {
					t.Errorf("policies %+v", p.Policies)
				}
				return
			}
			want := &PlanPolicies{Bundle: m.Policies.Bundle, Origin: c.found.Origin, Digest: digest, Archive: abi.DigestOf([]byte("tar")), Decisions: c.found.Decisions}
			if diff := cmp.Diff(want, p.Policies); diff != "" || string(materials.Policies.Archive) != "tar" {
				t.Errorf("pinned (-want +got):\n%s", diff)
			}
			other := *p
			other.Policies = nil
			if p.PolicyDigest("") == other.PolicyDigest("") {
				t.Error("the policy identity does not cover the bundle")
			}
		})
	}
	if _, _, err := Resolve(t.Context(), mustParse(t, change(t, resolvable(t), "verification:\n", "policies: {bundle: p}\nverification:\n")),
		Resolver{Root: checkout(t), Prepare: prepareForTest}); err == nil || !strings.Contains(err.Error(), "cannot be read here") {
		t.Errorf("without a reader of bundles: %v", err)
	}
}
