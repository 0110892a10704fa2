package policies_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/policies"
)

// drawing is a policy whose answer depends on everything it is given.
const drawing = `package writ.authority
default decision := {"allow": false, "reasons": []}
decision := {"allow": rand.intn("allow", 2) == 1, "reasons": [sprintf("%d", [time.now_ns()]), uuid.rfc4122(input.tenant), sprintf("%v", [3.14159 - 3])]}`

func throughJSON(t *testing.T, r policies.Record) policies.Record {
	t.Helper()
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var back policies.Record
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	return back
}

func TestDecisionsAreReproducedFromTheirRecords(t *testing.T) {
	ctx := policies.WithSeed(t.Context(), policies.Seed{9})
	drawn, err := policies.Load(policies.Config{Authority: folder(drawing)})
	if err != nil {
		t.Fatal(err)
	}
	authority, err := drawn.Authority(ctx, policies.AuthorityInput{Action: "run", Tenant: "demo", Now: 1_700_000_000_000_000_001})
	if err != nil {
		t.Fatal(err)
	}
	set := defaults(t)
	arbitration, err := set.Arbitrate(ctx, input("quorum", 0.6, allStatuses...))
	if err != nil {
		t.Fatal(err)
	}
	verdict, err := set.ReplayVerdict(ctx, rerun())
	if err != nil {
		t.Fatal(err)
	}
	standing, err := set.Standing(ctx, facts("yes"))
	if err != nil {
		t.Fatal(err)
	}
	refusing, err := policies.Load(policies.Config{Authority: folder(`package writ.authority
default decision := {"allow": false, "reasons": []}
decision := {"allow": true, "reasons": [sprintf("%v", [1 / count(input.modules)])]}`)})
	if err != nil {
		t.Fatal(err)
	}
	refused, err := refusing.Authority(ctx, policies.AuthorityInput{Action: "run"})
	if err == nil || refused.Record.Result != nil {
		t.Fatalf("error %v, result %s", err, refused.Record.Result)
	}
	cases := []struct {
		name   string
		set    *policies.Set
		record policies.Record
	}{
		{"authority that draws", drawn, authority.Record},
		{"arbitration", set, arbitration.Record},
		{"replay", set, verdict.Record},
		{"standing", set, standing.Record},
		{"a refusal", refusing, refused.Record},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			record := throughJSON(t, c.record)
			if diff := cmp.Diff(c.record, record); diff != "" {
				t.Errorf("after a JSON round trip (-before +after):\n%s", diff)
			}
			// The context's own seed has no part in it.
			got, err := c.set.Reevaluate(t.Context(), record)
			if err != nil || string(got) != string(c.record.Result) {
				t.Errorf("%s, %v; want %s", got, err, c.record.Result)
			}
		})
	}
}

func TestWhatIsNotReproducedIsSaid(t *testing.T) {
	drawn, err := policies.Load(policies.Config{Authority: folder(drawing)})
	if err != nil {
		t.Fatal(err)
	}
	d, err := drawn.Authority(t.Context(), policies.AuthorityInput{Action: "run", Tenant: "demo", Now: 5})
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	cases := []struct {
		name   string
		set    *policies.Set
		ctx    context.Context
		change func(*policies.Record)
		code   string
		says   string
	}{
		{"another time", drawn, t.Context(), func(r *policies.Record) { r.Now = 6 }, policies.CodeNotReproduced, "came to"},
		{"another seed", drawn, t.Context(), func(r *policies.Record) { r.Seed = policies.Seed{1} }, policies.CodeNotReproduced, "came to"},
		{"another result", drawn, t.Context(), func(r *policies.Record) { r.Result = []byte(`{}`) }, policies.CodeNotReproduced, "came to {}"},
		{"a result where there was none", drawn, t.Context(), func(r *policies.Record) { r.Result = nil }, policies.CodeNotReproduced, "came to a refusal"},
		{"another policy", defaults(t), t.Context(), func(*policies.Record) {}, policies.CodeNotReproduced, "was decided under policy"},
		{"another decision", drawn, t.Context(), func(r *policies.Record) { r.Entrypoint = "data.writ.other" }, policies.CodeInput, "no decision"},
		{"no input", drawn, t.Context(), func(r *policies.Record) { r.Input = nil }, policies.CodeInput, "not retained"},
		{"other input", drawn, t.Context(), func(r *policies.Record) { r.Input = []byte(`{}`) }, policies.CodeInput, "digest"},
		{"no JSON", drawn, t.Context(), func(r *policies.Record) { r.Input = []byte(`{`); r.InputDigest = abi.DigestOf(r.Input) }, policies.CodeInput, "unexpected end"},
		{"a number too large", drawn, t.Context(), func(r *policies.Record) {
			r.Input = []byte(`{"tenant": 1e99999}`)
			r.InputDigest = abi.DigestOf(r.Input)
		}, policies.CodeInput, "too big"},
		{"an ended caller", drawn, ended, func(*policies.Record) {}, "", "canceled"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			record := d.Record
			c.change(&record)
			_, err := c.set.Reevaluate(c.ctx, record)
			var r *policies.Refusal
			if err == nil || !strings.Contains(err.Error(), c.says) || c.code != "" && (!errors.As(err, &r) || r.Code != c.code) {
				t.Errorf("error %v, want %s saying %q", err, c.code, c.says)
			}
		})
	}
}

func TestOrderOfKeysIsNothingToADecision(t *testing.T) {
	set := defaults(t)
	d, err := set.Arbitrate(t.Context(), input("quorum", 0.6, allStatuses...))
	if err != nil {
		t.Fatal(err)
	}
	var doc any
	if err := json.Unmarshal(d.Record.Input, &doc); err != nil {
		t.Fatal(err)
	}
	shuffle := rand.New(rand.NewSource(1))
	for range 1000 {
		record := d.Record
		record.Input = shuffled(shuffle, doc)
		record.InputDigest = abi.DigestOf(record.Input)
		got, err := set.Reevaluate(t.Context(), record)
		if err != nil || string(got) != string(d.Record.Result) {
			t.Fatalf("%s gave %s, %v", record.Input, got, err)
		}
		var typed policies.ArbitrationInput
		if err := json.Unmarshal(record.Input, &typed); err != nil {
			t.Fatal(err)
		}
		if again, err := abi.EncodeMessage(typed); err != nil || abi.DigestOf(again) != d.Record.InputDigest {
			t.Fatalf("digest of %s differs: %v", again, err)
		}
	}
}

// shuffled writes a document with the keys of its objects in any order.
func shuffled(shuffle *rand.Rand, v any) []byte {
	switch v := v.(type) {
	case map[string]any:
		keys := slices.Sorted(maps.Keys(v))
		shuffle.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
		b := []byte{'{'}
		for i, k := range keys {
			if i > 0 {
				b = append(b, ',')
			}
			name, _ := json.Marshal(k)
			b = append(append(append(b, name...), ':'), shuffled(shuffle, v[k])...)
		}
		return append(b, '}')
	case []any:
		b := []byte{'['}
		for i, e := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(b, shuffled(shuffle, e)...)
		}
		return append(b, ']')
	}
	b, _ := json.Marshal(v)
	return b
}

func FuzzRecordsAreReproducedOrRefused(f *testing.F) {
	set, err := policies.Default()
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{`{}`, `{"action": "arbitrate", "rule": "unanimous", "results": []}`, `{"results": 1e400}`, `[`, `{"rule": "quorum", "results": [{"status": "PASS"}], "quorum_needed": 18446744073709551617}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		record := policies.Record{Entrypoint: policies.ArbitrationEntrypoint, Policy: set.ArbitrationDigest(), Input: doc, InputDigest: abi.DigestOf(doc)}
		first, err := set.Ask(t.Context(), record)
		if err != nil {
			return
		}
		if _, err := set.Reevaluate(t.Context(), first); err != nil {
			t.Error(err)
		}
	})
}
