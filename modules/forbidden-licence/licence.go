package main

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/guest-abi/go/guest"
)

const (
	licencePredicate = "licence"     // of the claims this rule looks at
	noAssertion      = "NOASSERTION" // the value of a licence nobody knows
)

// config is the rule's configuration.
type config struct {
	Forbidden []string `json:"forbidden"`         // SPDX licence ids
	Unknown   string   `json:"unknown,omitempty"` // what a licence nobody knows means: fail, escalate (default) or allow
}

// check judges every licence claim of the target.
func check(c *guest.Check) (abi.VerifyResponse, error) {
	conf, err := readConfig(c.Request.Rule.Config)
	if err != nil {
		return abi.VerifyResponse{}, err
	}
	f := guest.NewFindings(c)
	for _, claim := range c.Request.Claims {
		if claim.Predicate != licencePredicate {
			continue
		}
		f.Evaluated()
		judge(f, claim, conf)
	}
	return f.Response("claims with predicate " + licencePredicate), nil
}

func readConfig(raw json.RawMessage) (config, error) {
	conf, err := guest.Config[config](raw)
	if err != nil {
		return conf, err
	}
	if conf.Unknown == "" {
		conf.Unknown = "escalate"
	}
	if !slices.Contains([]string{"fail", "escalate", "allow"}, conf.Unknown) {
		return conf, guest.Fail("invalid_config", "unknown is %q; it is fail, escalate or allow", conf.Unknown)
	}
	if len(conf.Forbidden) == 0 {
		return conf, guest.Fail("invalid_config", "forbidden lists no licences")
	}
	for _, id := range conf.Forbidden {
		if !isLicenceID(id) {
			return conf, guest.Fail("invalid_config", "forbidden has %q, which is no SPDX licence id", id)
		}
	}
	return conf, nil
}

// judge notes what is wrong with a licence claim.
func judge(f *guest.Findings, claim abi.Claim, conf config) {
	var value string
	if err := json.Unmarshal(claim.Value, &value); err != nil {
		f.Violation(claim.ClaimID, "the claim's value is not a string")
		return
	}
	expression, err := parse(value)
	if err != nil {
		f.Violation(claim.ClaimID, "licence %q cannot be read: %v", value, err)
		return
	}
	switch o := expression.judge(conf.Forbidden); {
	case o == forbidden:
		f.Violation(claim.ClaimID, "%s has licence %s; forbidden: %s", claim.Subject, value, strings.Join(conf.Forbidden, ", "))
	case o == unknown && conf.Unknown == "fail":
		f.Violation(claim.ClaimID, "%s has an unknown licence (%s)", claim.Subject, value)
	case o == unknown && conf.Unknown == "escalate":
		f.Doubt("%s has an unknown licence (%s)", claim.Subject, value)
	}
}
