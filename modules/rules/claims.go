package main

import (
	"encoding/json"
	"reflect"

	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/guest-abi/go/guest"
)

// claimHasEvidence: every claim cites at least one piece of evidence.
func claimHasEvidence(c *guest.Check) (abi.VerifyResponse, error) {
	if _, err := guest.Config[none](c.Request.Rule.Config); err != nil {
		return abi.VerifyResponse{}, err
	}
	f := guest.NewFindings(c)
	for _, claim := range c.Request.Claims {
		f.Evaluated()
		if len(claim.Evidence) == 0 {
			f.Violation(claim.ClaimID, "the claim cites no evidence")
		}
	}
	return f.Response("claims"), nil
}

// evidenceKnown: every piece of evidence a claim cites is in the record.
func evidenceKnown(c *guest.Check) (abi.VerifyResponse, error) {
	if _, err := guest.Config[none](c.Request.Rule.Config); err != nil {
		return abi.VerifyResponse{}, err
	}
	known := map[string]bool{}
	for _, e := range c.Request.Evidence {
		known[e.EvidenceID] = true
	}
	f := guest.NewFindings(c)
	for _, claim := range c.Request.Claims {
		for _, id := range claim.Evidence {
			f.Evaluated()
			if !known[id] {
				f.Violation(claim.ClaimID, "evidence %q is not known", id)
			}
		}
	}
	return f.Response("citations of evidence"), nil
}

// confidenceConfig is the configuration of confidence-in-range.
type confidenceConfig struct {
	Required bool `json:"required"` // a claim without a confidence is a violation
}

// confidenceInRange: every stated confidence is between 0 and 1.
func confidenceInRange(c *guest.Check) (abi.VerifyResponse, error) {
	conf, err := guest.Config[confidenceConfig](c.Request.Rule.Config)
	if err != nil {
		return abi.VerifyResponse{}, err
	}
	f := guest.NewFindings(c)
	for _, claim := range c.Request.Claims {
		switch p := claim.Confidence; {
		case p != nil:
			f.Evaluated()
			if !(*p >= 0 && *p <= 1) {
				f.Violation(claim.ClaimID, "confidence %v is not between 0 and 1", *p)
			}
		case conf.Required:
			f.Evaluated()
			f.Violation(claim.ClaimID, "the claim states no confidence")
		}
	}
	return f.Response("claims with a confidence"), nil
}

// claimIDsUnique: no two claims of the target share an id.
func claimIDsUnique(c *guest.Check) (abi.VerifyResponse, error) {
	if _, err := guest.Config[none](c.Request.Rule.Config); err != nil {
		return abi.VerifyResponse{}, err
	}
	f := guest.NewFindings(c)
	seen := map[string]bool{}
	for _, claim := range c.Request.Claims {
		f.Evaluated()
		if seen[claim.ClaimID] {
			f.Violation(claim.ClaimID, "another claim has the same id")
		}
		seen[claim.ClaimID] = true
	}
	return f.Response("claims"), nil
}

// topic is what claims must agree on.
type topic struct{ subject, predicate string }

// contradiction: claims of one subject and predicate have one value. Each claim
// that differs from the first of its topic is one contradiction.
func contradiction(c *guest.Check) (abi.VerifyResponse, error) {
	if _, err := guest.Config[none](c.Request.Rule.Config); err != nil {
		return abi.VerifyResponse{}, err
	}
	type first struct {
		claim string
		value any
	}
	f := guest.NewFindings(c)
	firsts := map[topic]first{}
	for _, claim := range c.Request.Claims {
		if claim.Subject == "" || claim.Predicate == "" {
			continue
		}
		f.Evaluated()
		value, err := decodeValue(claim.Value)
		if err != nil {
			return abi.VerifyResponse{}, err
		}
		t := topic{claim.Subject, claim.Predicate}
		earlier, ok := firsts[t]
		switch {
		case !ok:
			firsts[t] = first{claim.ClaimID, value}
		case !reflect.DeepEqual(earlier.value, value):
			f.Violation(claim.ClaimID, "contradicts claim %q on %q of %q", earlier.claim, t.predicate, t.subject)
		}
	}
	return f.Response("claims with a subject and a predicate"), nil
}

// decodeValue makes values comparable: 1 equals 1.0, key order is ignored, and an
// absent value equals null.
func decodeValue(raw json.RawMessage) (any, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var v any
	err := json.Unmarshal(raw, &v)
	return v, err
}
