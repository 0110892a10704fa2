// Package sbom reads a CycloneDX bill of materials in JSON, versions 1.2 to 1.7,
// as far as an inventory needs it: which packages, in which versions, under which
// licences.
//
// It states only what the file states. A component without a package URL cannot
// be named precisely and is listed as unidentified, never guessed at.
package sbom

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/writrun/writ/guest-abi/abi"
)

// ComponentsMax is the most components one bill of materials may have, nested
// ones included.
const ComponentsMax = 20_000

// Component is one package of a bill of materials.
type Component struct {
	PURL          string   `json:"purl"`           // as the file has it; names the component
	Type          string   `json:"type"`           // the package URL's type, for instance "golang"
	Name          string   `json:"name"`           // namespace and name; for golang the module path
	Version       string   `json:"version"`        // empty if the file has none
	Licences      []string `json:"licences"`       // SPDX ids and expressions, all of which bind
	LicenceNames  []string `json:"licence_names"`  // licences named without an SPDX id; each is NOASSERTION among Licences
	LicenceSource string   `json:"licence_source"` // declared, detected (CycloneDX evidence) or none
}

// Inventory is what a bill of materials lists.
type Inventory struct {
	Main         *Component  `json:"main"`         // what the bill is of; null if it is not said or has no package URL
	Components   []Component `json:"components"`   // in the order of the file, one per package URL
	Unidentified []string    `json:"unidentified"` // names of components without a usable package URL
}

// EvidenceID returns the id under which an inventory's evidence of a component
// is known to the steps that build on it.
func EvidenceID(purl string) string { return "component:" + purl }

type bom struct {
	Format      string `json:"bomFormat"`
	SpecVersion string `json:"specVersion"`
	Metadata    struct {
		Component *bomComponent `json:"component"`
	} `json:"metadata"`
	Components []bomComponent `json:"components"`
}

type bomComponent struct {
	Type     string          `json:"type"`
	Name     string          `json:"name"`
	Group    string          `json:"group"`
	Version  string          `json:"version"`
	PURL     string          `json:"purl"`
	Licenses []licenceChoice `json:"licenses"`
	Evidence struct {
		Licenses []licenceChoice `json:"licenses"`
	} `json:"evidence"`
	Components []bomComponent `json:"components"`
}

var specVersions = []string{"1.2", "1.3", "1.4", "1.5", "1.6", "1.7"}

// Read reads a bill of materials. A package URL that occurs twice is one
// component with the licences of both.
func Read(data []byte) (Inventory, error) {
	if err := abi.CheckJSON(data, abi.MessageDepthMax); err != nil {
		return Inventory{}, fmt.Errorf("not a CycloneDX file in JSON: %w", err)
	}
	var b bom
	if err := json.Unmarshal(data, &b); err != nil {
		return Inventory{}, fmt.Errorf("not a CycloneDX file in JSON: %w", err)
	}
	if b.Format != "CycloneDX" {
		return Inventory{}, fmt.Errorf("not a CycloneDX file: bomFormat is %.40q", b.Format)
	}
	if !slices.Contains(specVersions, b.SpecVersion) {
		return Inventory{}, fmt.Errorf("CycloneDX version %.40q is not one of %s", b.SpecVersion, strings.Join(specVersions, ", "))
	}
	r := reader{inventory: Inventory{Components: []Component{}, Unidentified: []string{}}, index: map[string]int{}}
	if main := b.Metadata.Component; main != nil {
		if c, err := component(*main); err == nil {
			r.inventory.Main = &c
		}
		if err := r.add(main.Components); err != nil {
			return Inventory{}, err
		}
	}
	if err := r.add(b.Components); err != nil {
		return Inventory{}, err
	}
	return r.inventory, nil
}

type reader struct {
	inventory Inventory
	index     map[string]int // position in Components by package URL
	seen      int
}

func (r *reader) add(list []bomComponent) error {
	for _, b := range list {
		if r.seen++; r.seen > ComponentsMax {
			return fmt.Errorf("more than %d components", ComponentsMax)
		}
		r.addOne(b)
		if err := r.add(b.Components); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) addOne(b bomComponent) {
	c, err := component(b)
	if err != nil {
		if b.Type == "file" {
			return // part of a package, not one itself
		}
		name := strings.TrimLeft(b.Group+"/"+b.Name, "/")
		r.inventory.Unidentified = append(r.inventory.Unidentified, name)
		return
	}
	if main := r.inventory.Main; main != nil && main.PURL == c.PURL {
		return
	}
	at, known := r.index[c.PURL]
	if !known {
		r.index[c.PURL] = len(r.inventory.Components)
		r.inventory.Components = append(r.inventory.Components, c)
		return
	}
	have := &r.inventory.Components[at]
	have.Licences = union(have.Licences, c.Licences)
	have.LicenceNames = union(have.LicenceNames, c.LicenceNames)
	if have.LicenceSource == "none" {
		have.LicenceSource = c.LicenceSource
	}
}

func union(a, b []string) []string {
	for _, s := range b {
		if !slices.Contains(a, s) {
			a = append(a, s)
		}
	}
	return a
}

func component(b bomComponent) (Component, error) {
	p, err := ParsePURL(b.PURL)
	if err != nil {
		return Component{}, err
	}
	c := Component{PURL: b.PURL, Type: p.Type, Name: p.Name, Version: p.Version, LicenceSource: "declared"}
	if c.Version == "" {
		c.Version = b.Version
	}
	if c.Licences, c.LicenceNames = terms(b.Licenses); len(c.Licences) == 0 {
		c.Licences, c.LicenceNames = terms(b.Evidence.Licenses)
		c.LicenceSource = "detected"
	}
	if len(c.Licences) == 0 {
		c.LicenceSource = "none"
	}
	// In the output, no licences are an empty list and not null.
	c.Licences, c.LicenceNames = append([]string{}, c.Licences...), append([]string{}, c.LicenceNames...)
	return c, nil
}
