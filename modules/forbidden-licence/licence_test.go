package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/guest-abi/go/guest"
	"github.com/writrun/writ/guest-abi/go/guest/guesttest"
)

func TestCheck(t *testing.T) {
	const gpl = `{"forbidden":["GPL-3.0-only","AGPL-3.0-only"]}`
	const gplOr = `{"forbidden":["GPL-3.0-only","AGPL-3.0-only"],"unknown":%q}`
	for _, c := range []struct {
		name, config string
		licences     []string // JSON values, one claim each
		want         string   // status, number of violations, reason; or the error's code
	}{
		{"no licence claims", gpl, nil, "ESCALATE 0 nothing evaluated: no claims with predicate licence"},
		{"allowed", gpl, []string{`"MIT"`, `"Apache-2.0"`}, "PASS 0 2 claims with predicate licence evaluated"},
		{"forbidden", gpl, []string{`"MIT"`, `"GPL-3.0-only"`}, "FAIL 1 1 violations in 2 claims with predicate licence"},
		{"one alternative allowed", gpl, []string{`"MIT OR GPL-3.0-only"`}, "PASS 0 1 claims with predicate licence evaluated"},
		{"no alternative allowed", gpl, []string{`"AGPL-3.0-only OR GPL-3.0-only"`}, "FAIL 1 1 violations in 1 claims with predicate licence"},
		{"needs all", gpl, []string{`"MIT AND GPL-3.0-only"`}, "FAIL 1 1 violations in 1 claims with predicate licence"},
		{"unknown escalates", gpl, []string{`"MIT"`, `"NOASSERTION"`}, "ESCALATE 0 pkg:1 has an unknown licence (NOASSERTION)"},
		{"unknown escalates when asked", fmt.Sprintf(gplOr, "escalate"), []string{`"NONE"`}, "ESCALATE 0 pkg:0 has an unknown licence (NONE)"},
		{"unknown fails when asked", fmt.Sprintf(gplOr, "fail"), []string{`"NOASSERTION"`}, "FAIL 1 1 violations in 1 claims with predicate licence"},
		{"unknown allowed when asked", fmt.Sprintf(gplOr, "allow"), []string{`"NOASSERTION"`}, "PASS 0 1 claims with predicate licence evaluated"},
		{"allowed alternative to the unknown", gpl, []string{`"NOASSERTION OR MIT"`}, "PASS 0 1 claims with predicate licence evaluated"},
		{"forbidden beside the unknown", fmt.Sprintf(gplOr, "allow"), []string{`"NOASSERTION AND GPL-3.0-only"`}, "FAIL 1 1 violations in 1 claims with predicate licence"},
		{"value not a string", gpl, []string{`["MIT"]`}, "FAIL 1 1 violations in 1 claims with predicate licence"},
		{"no value", gpl, []string{``}, "FAIL 1 1 violations in 1 claims with predicate licence"},
		{"no expression", gpl, []string{`"MIT OR"`}, "FAIL 1 1 violations in 1 claims with predicate licence"},
		{"config without a list", `{}`, nil, "invalid_config"},
		{"config with an empty list", `{"forbidden":[]}`, nil, "invalid_config"},
		{"config with an expression", `{"forbidden":["MIT OR BSD"]}`, nil, "invalid_config"},
		{"config with an unknown word", fmt.Sprintf(gplOr, "ignore"), nil, "invalid_config"},
		{"config with an unknown field", `{"forbidden":["MIT"],"allowed":[]}`, nil, "invalid_config"},
	} {
		t.Run(c.name, func(t *testing.T) {
			request := abi.VerifyRequest{ABI: abi.Version, Rule: abi.VerifyRule{ID: "forbidden-licence", Config: json.RawMessage(c.config), Phase: abi.PhaseStep, Target: "licences"}}
			request.Claims = []abi.Claim{{ClaimID: "other", Statement: "s", Predicate: "affected_by:X", Value: json.RawMessage(`true`)}}
			for i, l := range c.licences {
				request.Claims = append(request.Claims, abi.Claim{
					ClaimID: fmt.Sprint("c", i), Statement: "s", Subject: fmt.Sprint("pkg:", i), Predicate: licencePredicate, Value: json.RawMessage(l),
				})
			}
			raw, err := abi.EncodeMessage(request)
			if err != nil {
				t.Fatal(err)
			}
			r, err := abi.DecodeVerifyResponse(guest.RunVerify(&guesttest.Host{}, raw, check))
			got := fmt.Sprintf("%s %d %s", r.Status, len(r.Violations), r.Reason)
			if e, ok := err.(*abi.GuestError); ok {
				got = e.Code
			} else if err != nil {
				t.Fatal(err)
			}
			if got != c.want {
				t.Errorf("got  %q\nwant %q\n%v", got, c.want, err)
			}
		})
	}
}

func TestExpressions(t *testing.T) {
	list := []string{"GPL-3.0-only", "GPL-2.0-or-later", "BUSL-1.1"}
	for _, c := range []struct {
		text string
		want string // forbidden, unknown, allowed, or a part of the error
	}{
		{"MIT", "allowed"},
		{"GPL-3.0-only", "forbidden"},
		{"gpl-3.0-ONLY", "forbidden"},
		{"GPL-3.0", "forbidden"},
		{"GPL-3.0-or-later", "allowed"},
		{"GPL-2.0+", "forbidden"},
		{"GPL-2.0", "allowed"},
		{"BUSL-1.1", "forbidden"},
		{"NONE", "unknown"},
		{"LicenseRef-acme-1", "allowed"},
		{"DocumentRef-x:LicenseRef-y", "allowed"},
		{"GPL-3.0-only WITH Classpath-exception-2.0", "forbidden"},
		{"MIT OR GPL-3.0-only AND BUSL-1.1", "allowed"},
		{"(MIT OR GPL-3.0-only) AND BUSL-1.1", "forbidden"},
		{"((MIT))", "allowed"},
		{"MIT or BUSL-1.1", "allowed"},
		{"MIT AND NOASSERTION", "unknown"},
		{"MIT OR NOASSERTION", "allowed"},
		{"", "ends where a licence is expected"},
		{"MIT AND", "ends where a licence is expected"},
		{"OR MIT", `"OR" is no licence id`},
		{"MIT BSD", `unexpected "BSD"`},
		{"(MIT", "not closed"},
		{"MIT)", `unexpected ")"`},
		{"MIT WITH", "not followed by an exception"},
		{"MIT, BSD", "is no licence id"},
		{"The MIT License", `unexpected "MIT"`},
		{strings.Repeat("(", 100) + "MIT", "nested deeper"},
		{strings.Repeat("MIT OR ", 2000) + "MIT", "longer than"},
	} {
		t.Run(fmt.Sprintf("%.40s", c.text), func(t *testing.T) {
			n, err := parse(c.text)
			got := ""
			if err != nil {
				got = err.Error()
			} else {
				got = []string{"forbidden", "unknown", "allowed"}[n.judge(list)]
			}
			if err == nil && got != c.want || err != nil && !strings.Contains(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"MIT", "(MIT OR A AND B) WITH C", "((", "NOASSERTION"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if n, err := parse(text); err == nil {
			n.judge([]string{"MIT"})
		}
	})
}

func TestMetadata(t *testing.T) {
	data, err := os.ReadFile("module.json")
	if err != nil {
		t.Fatal(err)
	}
	if m, err := abi.ParseMetadata(data); err != nil || m.Rules[0].RuleID != "forbidden-licence" {
		t.Errorf("%+v, %v", m, err)
	}
}
