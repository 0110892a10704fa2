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

// terms returns what the entries say as SPDX terms, without repetition, in order.
func terms(choices []licenceChoice) []string {
	var out []string
	for _, c := range choices {
		term := strings.TrimSpace(c.Expression)
		if c.License != nil {
			term = strings.TrimSpace(c.License.ID)
			if term == "" {
				term = licenceRef(c.License.Name)
			}
		}
		if term != "" && !slices.Contains(out, term) {
			out = append(out, term)
		}
	}
	return out
}

// licenceRef makes an SPDX term of a licence's name. A name that has the form of
// an SPDX id is taken as one; any other becomes a LicenseRef, because a free text
// inside an expression could be read as operators.
func licenceRef(name string) string {
	name = strings.TrimSpace(name)
	clean := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '-', r == '+':
			return r
		}
		return '-'
	}, name)
	if name == "" || clean == name {
		return name
	}
	return "LicenseRef-" + strings.Trim(strings.ReplaceAll(clean, "+", "-"), "-")
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
