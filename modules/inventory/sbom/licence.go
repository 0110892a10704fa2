package sbom

import (
	"slices"
	"strings"
)

// NoAssertion is the licence of a component whose bill of materials names none.
const NoAssertion = "NOASSERTION"

// licenceChoice is one entry of a CycloneDX licenses array: an SPDX expression,
// or one licence by SPDX id or by name.
type licenceChoice struct {
	Expression string `json:"expression"`
	License    *struct {
		ID   string `json:"id"`
		Name string `json:"name"`
	} `json:"license"`
}

// terms returns what the entries say as SPDX terms, without repetition, in order,
// and the names of licences given by name. A name is what CycloneDX has for a
// licence without an SPDX id, so it stands among the terms as [NoAssertion]:
// taking "GPLv3" for an id would get it past every list of ids.
func terms(choices []licenceChoice) (terms, names []string) {
	for _, c := range choices {
		term := strings.TrimSpace(c.Expression)
		if c.License != nil {
			term = strings.TrimSpace(c.License.ID)
			if name := strings.TrimSpace(c.License.Name); term == "" && name != "" {
				term = NoAssertion
				names = append(names, name)
			}
		}
		if term != "" && !slices.Contains(terms, term) {
			terms = append(terms, term)
		}
	}
	return terms, names
}

// Expression joins licence terms to one SPDX expression. CycloneDX does not say
// how several entries relate; the strict reading, that all of them bind, is taken.
// No terms are [NoAssertion].
func Expression(terms []string) string {
	switch len(terms) {
	case 0:
		return NoAssertion
	case 1:
		return terms[0]
	}
	parts := make([]string, len(terms))
	for i, t := range terms {
		if strings.Contains(t, " ") {
			t = "(" + t + ")"
		}
		parts[i] = t
	}
	return strings.Join(parts, " AND ")
}
