// Licences is an executor that claims for each component of an inventory which
// licence it is under, as an SPDX expression. What is allowed is for a rule to say.
package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/guest-abi/go/guest"
	"github.com/writrun/writ/modules/inventory/sbom"
)

//go:wasmexport writ_execute
func writExecute(ptr, size uint32) uint64 { return guest.Execute(ptr, size, licences) }

func main() {} // a module is a library; main never runs

type config struct {
	Inventory abi.ID                `json:"inventory"` // the step whose output is the inventory; default: the only needed step
	Concluded map[string]conclusion `json:"concluded"` // by package URL, with or without version
}

// conclusion is a licence somebody found out where the inventory has none or a
// wrong one.
type conclusion struct {
	Licence string `json:"licence"` // SPDX expression
	Because string `json:"because"`
}

// summary is the step's output.
type summary struct {
	Components int            `json:"components"`
	ByLicence  map[string]int `json:"by_licence"`
	Unknown    []string       `json:"unknown"`   // package URLs of components whose licence, or part of it, has no SPDX id
	Concluded  []string       `json:"concluded"` // package URLs whose licence comes from config.concluded
	Unused     []string       `json:"unused"`    // keys of config.concluded that name no component
}

func licences(s *guest.Step) (abi.StepOutput, error) {
	c, err := guest.Config[config](s.Request.Step.Config)
	if err != nil {
		return abi.StepOutput{}, err
	}
	conclusions, err := readConclusions(c.Concluded)
	if err != nil {
		return abi.StepOutput{}, err
	}
	inv, err := sbom.FromInputs(s.Request.Inputs, c.Inventory)
	if err != nil {
		return abi.StepOutput{}, err
	}
	out := abi.StepOutput{}
	sum := summary{ByLicence: map[string]int{}, Unknown: []string{}, Concluded: []string{}, Unused: []string{}}
	for _, component := range inv.Components {
		expression, evidence, err := conclude(component, conclusions, &out)
		if err != nil {
			return abi.StepOutput{}, err
		}
		claim, err := claimOf(component, expression, evidence)
		if err != nil {
			return abi.StepOutput{}, err
		}
		out.Claims = append(out.Claims, claim)
		sum.Components++
		sum.ByLicence[expression]++
		switch {
		case evidence != sbom.EvidenceID(component.PURL):
			sum.Concluded = append(sum.Concluded, component.PURL)
		case strings.Contains(expression, sbom.NoAssertion):
			sum.Unknown = append(sum.Unknown, component.PURL)
		}
	}
	for _, k := range conclusions {
		if !k.used {
			sum.Unused = append(sum.Unused, k.key)
		}
	}
	out.Output, err = abi.EncodeMessage(sum)
	return out, err
}

// keyed is a conclusion with the package it is about.
type keyed struct {
	conclusion
	key      string
	purl     sbom.PURL
	evidence string
	used     bool
}

// readConclusions returns the conclusions in the order of their keys.
func readConclusions(concluded map[string]conclusion) ([]*keyed, error) {
	var out []*keyed
	for _, key := range slices.Sorted(maps.Keys(concluded)) {
		c := concluded[key]
		p, err := sbom.ParsePURL(key)
		if err != nil {
			return nil, guest.Fail("invalid_config", "config.concluded: %v", err)
		}
		if strings.TrimSpace(c.Licence) == "" || strings.TrimSpace(c.Because) == "" {
			return nil, guest.Fail("invalid_config", "config.concluded: %q needs a licence and a because", key)
		}
		out = append(out, &keyed{conclusion: c, key: key, purl: p, evidence: "concluded:" + key})
	}
	return out, nil
}

func (k *keyed) covers(c sbom.Component) bool {
	return k.purl.Type == c.Type && k.purl.Name == c.Name && (k.purl.Version == "" || k.purl.Version == c.Version)
}

// conclude returns a component's licence and the id of the evidence for it. A
// conclusion becomes evidence when it is first used.
func conclude(c sbom.Component, conclusions []*keyed, out *abi.StepOutput) (expression, evidence string, err error) {
	for _, k := range conclusions {
		if !k.covers(c) {
			continue
		}
		if !k.used {
			text, err := abi.EncodeMessage(map[string]string{"package": k.key, "licence": k.Licence, "because": k.Because})
			if err != nil {
				return "", "", err
			}
			out.Evidence = append(out.Evidence, abi.Evidence{
				EvidenceID: k.evidence, Kind: "inline", Content: string(text), Digest: abi.DigestOf(text),
			})
			k.used = true
		}
		return k.Licence, k.evidence, nil
	}
	return sbom.Expression(c.Licences), sbom.EvidenceID(c.PURL), nil
}

func claimOf(c sbom.Component, expression, evidence string) (abi.Claim, error) {
	value, err := abi.EncodeMessage(expression)
	if err != nil {
		return abi.Claim{}, err
	}
	words := "declares licence " + expression
	switch {
	case evidence != sbom.EvidenceID(c.PURL):
		words = "was concluded to be under licence " + expression
	case len(c.LicenceNames) > 0:
		words = fmt.Sprintf("names licences without an SPDX id: %q", c.LicenceNames)
	case c.LicenceSource == "detected":
		words = "was detected to be under licence " + expression
	case expression == sbom.NoAssertion:
		words = "names no licence"
	}
	certain := 1.0
	return abi.Claim{
		ClaimID:    "licence:" + c.PURL,
		Statement:  c.Name + " " + c.Version + " " + words,
		Subject:    c.PURL,
		Predicate:  "licence",
		Value:      value,
		Confidence: &certain,
		Evidence:   []string{evidence},
	}, nil
}
