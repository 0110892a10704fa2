package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/guest-abi/go/guest"
)

const (
	ruleID           = "forbidden-licence"
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
	response := abi.VerifyResponse{Status: abi.Pass}
	judged, unknown := 0, 0
	for _, claim := range c.Request.Claims {
		if claim.Predicate != licencePredicate {
			continue
		}
		judged++
		finding, isUnknown := judge(claim, conf)
		if isUnknown {
			unknown++
		}
		if finding != "" {
			response.Violations = append(response.Violations, abi.Violation{RuleID: ruleID, Subject: claim.ClaimID, Message: finding})
		}
	}
	switch {
	case judged == 0:
		response.Status, response.Reason = abi.Escalate, "nothing evaluated: the target makes no claims with predicate "+licencePredicate
	case len(response.Violations) > 0:
		response.Status, response.Reason = abi.Fail, fmt.Sprintf("%d of %d licence claims are not allowed", len(response.Violations), judged)
	case unknown > 0 && conf.Unknown == "escalate":
		response.Status, response.Reason = abi.Escalate, fmt.Sprintf("%d of %d licences are unknown", unknown, judged)
	}
	return response, nil
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

// judge returns what is wrong with a licence claim, or "", and whether its
// licence is unknown.
func judge(claim abi.Claim, conf config) (finding string, isUnknown bool) {
	var value string
	if err := json.Unmarshal(claim.Value, &value); err != nil {
		return "the claim's value is not a string", false
	}
	expression, err := parse(value)
	if err != nil {
		return fmt.Sprintf("licence %q cannot be read: %v", value, err), false
	}
	switch expression.judge(conf.Forbidden) {
	case forbidden:
		return fmt.Sprintf("%s has licence %s; forbidden: %s", claim.Subject, value, strings.Join(conf.Forbidden, ", ")), false
	case unknown:
		if conf.Unknown == "fail" {
			return fmt.Sprintf("%s has an unknown licence (%s)", claim.Subject, value), true
		}
		return "", true
	}
	return "", false
}
