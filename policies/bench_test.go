package policies

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"

	"github.com/writrun/writ/guest-abi/abi"
)

// tenResults is the document of one arbitration of ten results.
func tenResults(b *testing.B) []byte {
	b.Helper()
	in := ArbitrationInput{Action: "arbitrate", Tenant: "demo", Now: 1, Mode: "live", FlowID: "f", Target: "s", Rule: "quorum", QuorumThreshold: 0.6}
	for i := range 10 {
		status := abi.Pass
		if i%4 == 3 {
			status = abi.Fail
		}
		in.Results = append(in.Results, ArbitrationResult{RuleID: fmt.Sprintf("rule-%d", i), Target: "s", Status: status, Severity: "error", Randomness: "deterministic"})
	}
	in.Coverage.Expected = len(in.Results)
	if err := in.complete(); err != nil {
		b.Fatal(err)
	}
	doc, err := abi.EncodeMessage(in)
	if err != nil {
		b.Fatal(err)
	}
	return doc
}

// plainOPA is the default arbitration as OPA prepares it.
func plainOPA(b *testing.B) func(doc []byte) {
	b.Helper()
	text, err := fs.ReadFile(defaults, "arbitration/arbitration.rego")
	if err != nil {
		b.Fatal(err)
	}
	query, err := rego.New(rego.Query(ArbitrationEntrypoint), rego.Module("arbitration.rego", string(text)), rego.StrictBuiltinErrors(true)).PrepareForEval(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	return func(doc []byte) {
		v, err := ast.ValueFromReader(bytes.NewReader(doc))
		if err != nil {
			b.Error(err)
			return
		}
		if results, err := query.Eval(context.Background(), rego.EvalParsedInput(v)); err != nil || len(results) != 1 {
			b.Error(len(results), err)
		}
	}
}

// arbitrated is one arbitration from bytes to a checked result with digests.
func arbitrated(b *testing.B, p *policy, doc []byte) {
	result, _, err := p.answer(context.Background(), &call{now: 1}, doc)
	if err != nil {
		b.Error(err)
		return
	}
	var r arbitrationResult
	if err := decodeResult(result, &r); err != nil || abi.DigestOf(doc) == abi.DigestOf(result) {
		b.Error(err)
	}
}

// BenchmarkFigureArbitration compares the median time of an arbitration of ten
// results with that of a plain OPA query over the same bytes, taken in turns.
func BenchmarkFigureArbitration(b *testing.B) {
	const rounds = 2000
	start := time.Now()
	set, err := Default()
	if err != nil {
		b.Fatal(err)
	}
	b.Logf("figure: cold load of the default policies: %v", time.Since(start))
	doc, plain := tenResults(b), plainOPA(b)
	var ours, theirs []time.Duration
	for range rounds {
		start := time.Now()
		arbitrated(b, set.arbitration, doc)
		between := time.Now()
		plain(doc)
		ours, theirs = append(ours, between.Sub(start)), append(theirs, time.Since(between))
	}
	slices.Sort(ours)
	slices.Sort(theirs)
	a, e := ours[rounds/2], theirs[rounds/2]
	b.Logf("figure: arbitration of 10 results: %v, %.2f times a plain OPA query of %v (at most 1.3)", a, float64(a)/float64(e), e)
}

// BenchmarkFigureArbitrationsAtOnce gives the 99th percentile of eight callers.
func BenchmarkFigureArbitrationsAtOnce(b *testing.B) {
	const callers, each = 8, 500
	set, err := Default()
	if err != nil {
		b.Fatal(err)
	}
	doc := tenResults(b)
	times := make([][]time.Duration, callers)
	var all sync.WaitGroup
	for n := range callers {
		all.Go(func() {
			for range each {
				start := time.Now()
				arbitrated(b, set.arbitration, doc)
				times[n] = append(times[n], time.Since(start))
			}
		})
	}
	all.Wait()
	sorted := slices.Sorted(slices.Values(slices.Concat(times...)))
	b.Logf("figure: arbitration of 10 results under %d callers: median %v, p99 %v", callers, sorted[len(sorted)/2], sorted[len(sorted)*99/100])
}

// BenchmarkFigureAskAgain gives how many recorded decisions a second are asked
// again, as policy replay does, beside a plain OPA query over the same inputs.
func BenchmarkFigureAskAgain(b *testing.B) {
	const rounds = 2000
	set, err := Default()
	if err != nil {
		b.Fatal(err)
	}
	doc, plain := tenResults(b), plainOPA(b)
	now, _ := InputTime(doc)
	recorded := Record{Entrypoint: ArbitrationEntrypoint, Input: doc, InputDigest: abi.DigestOf(doc), Now: now}
	var ours, theirs time.Duration
	for range rounds {
		start := time.Now()
		if _, err := set.Ask(b.Context(), recorded); err != nil {
			b.Fatal(err)
		}
		between := time.Now()
		plain(doc)
		ours, theirs = ours+between.Sub(start), theirs+time.Since(between)
	}
	perSecond := func(d time.Duration) float64 { return rounds / d.Seconds() }
	b.Logf("figure: past decisions asked again: %.0f a second, %.2f of the %.0f of a plain OPA query", perSecond(ours), perSecond(ours)/perSecond(theirs), perSecond(theirs))
}
