package author

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/cover"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"github.com/open-policy-agent/opa/v1/tester"
	"github.com/open-policy-agent/opa/v1/util/channel"

	"github.com/writrun/writ/policies"
)

// TestTime is what time.now_ns gives in tests, and in cases whose input has no
// now: 2026-01-01T00:00:00Z. The seed of tests is all zeros.
const TestTime int64 = 1_767_225_600_000_000_000

// TestOptions choose tests. The zero value runs all and measures nothing.
type TestOptions struct {
	Run   *regexp.Regexp   // of names, as Result.Name shows them
	Cover bool             // measure what tests and cases evaluate
	Now   func() time.Time // gives cases their durations; nil gives none
}

// Outcomes of a test.
const (
	Passed  = "pass"
	Failed  = "fail"
	Errored = "error"
	Skipped = "skip"
)

// Result is what came of one test or case.
type Result struct {
	File     string        `json:"file"`
	Line     int           `json:"line"` // from 1; 0 of a case
	Name     string        `json:"name"` // data.<package>.<rule>, with a case's note after it
	Outcome  string        `json:"outcome"`
	Message  string        `json:"message"` // what went wrong
	Output   string        `json:"output"`  // what print calls wrote
	Duration time.Duration `json:"duration_ns"`
	Parts    []Part        `json:"parts"` // of a Rego test with cases inside
}

// Part is one case inside a Rego test.
type Part struct {
	Name    string `json:"name"`
	Outcome string `json:"outcome"`
}

// Report is what came of a run of tests.
type Report struct {
	Results  []Result
	Coverage *Coverage // where it was asked for
}

// Count is how many results have an outcome.
func (r *Report) Count(outcome string) int {
	n := 0
	for _, one := range r.Results {
		if one.Outcome == outcome {
			n++
		}
	}
	return n
}

// Passed reports whether there was something to run and nothing went wrong.
func (r *Report) Passed() bool {
	return r.Count(Failed)+r.Count(Errored) == 0 && r.Count(Passed) > 0
}

// Test runs the Rego tests and the cases of a policy. An error is one of ctx, or
// of type [Findings].
func (p *Policy) Test(ctx context.Context, o TestOptions) (*Report, error) {
	var covered *cover.Cover
	if o.Cover {
		covered = cover.New()
	}
	results, err := p.testRego(ctx, o.Run, covered)
	if err != nil {
		return nil, err
	}
	cases, err := p.testCases(ctx, o, covered)
	if err != nil {
		return nil, err
	}
	r := &Report{Results: append(results, cases...)}
	slices.SortStableFunc(r.Results, func(a, b Result) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), strings.Compare(a.Name, b.Name))
	})
	if covered != nil {
		r.Coverage = coverageOf(covered, p.modules)
	}
	return r, nil
}

// testRego runs the _test.rego files under OPA's own runner. Tests that failed
// run once more, traced, for what there is to say of them.
func (p *Policy) testRego(ctx context.Context, run *regexp.Regexp, covered *cover.Cover) ([]Result, error) {
	results, err := p.runRego(ctx, p.runner(covered), run)
	if err != nil {
		return nil, err
	}
	traced := map[string]*tester.Result{}
	var again []string
	for _, r := range results {
		if r.Fail && r.Duration < traceTimeMax {
			again = append(again, regexp.QuoteMeta(testName(r)))
		}
	}
	if len(again) > 0 {
		filter := regexp.MustCompile("^(" + strings.Join(again, "|") + ")$")
		more, err := p.runRego(ctx, p.runner(nil).EnableTracing(true), filter)
		if err != nil {
			return nil, err
		}
		for _, r := range more {
			traced[testName(r)] = r
		}
	}
	var all []Result
	for _, r := range results {
		all = append(all, regoResult(r, traced[testName(r)]))
	}
	return all, nil
}

// traceTimeMax is how long a test may take that is traced: traces are long.
const traceTimeMax = time.Second

func testName(r *tester.Result) string { return r.Package + "." + r.Name }

func (p *Policy) runner(covered *cover.Cover) *tester.Runner {
	modules := maps.Clone(p.modules)
	maps.Copy(modules, p.tests)
	runner := tester.NewRunner().
		SetCompiler(policies.NewCompiler().WithEnablePrintStatements(true)).
		AddCustomBuiltins([]*tester.Builtin{{Func: policies.PureFunctions(TestTime, policies.Seed{})}}).
		SetStore(inmem.NewFromObject(p.Folder.Data)).
		SetModules(modules).SetTimeout(policies.EvaluationTime).
		RaiseBuiltinErrors(true).CapturePrintOutput(true).SetCoverageRuns(nil)
	if covered != nil {
		runner.SetCoverageQueryTracer(covered)
	}
	return runner
}

func (p *Policy) runRego(ctx context.Context, runner *tester.Runner, run *regexp.Regexp) ([]*tester.Result, error) {
	if len(p.tests) == 0 {
		return nil, nil
	}
	if run != nil {
		runner.Filter(run.String())
	}
	results, err := runner.RunTests(ctx, nil)
	if err != nil {
		return nil, findingsOf(err, p.Folder.Dir)
	}
	return channel.Collect(results), ctx.Err()
}

// regoResult is what to say of a test; traced may be nil.
func regoResult(r, traced *tester.Result) Result {
	out := Result{File: r.Location.File, Line: r.Location.Row, Name: testName(r), Output: string(r.Output), Duration: r.Duration, Parts: []Part{}}
	switch {
	case r.Skip:
		out.Outcome = Skipped
	case r.Error != nil:
		out.Outcome, out.Message = Errored, policies.Readable(r.Error)
	case r.Fail:
		out.Outcome, out.Message = Failed, failedAt(traced)
	default:
		out.Outcome = Passed
	}
	for name, sub := range r.SubResults.Iter {
		if len(sub.SubResults) == 0 {
			part := Part{strings.Join(name, ": "), Passed}
			if sub.Fail {
				part.Outcome = Failed
			}
			out.Parts = append(out.Parts, part)
		}
	}
	return out
}

// failedAt is the expression that was not true, as OPA's reporter shows it.
func failedAt(r *tester.Result) string {
	if r == nil {
		return "the test is not true"
	}
	var b bytes.Buffer
	ch := make(chan *tester.Result, 1)
	ch <- &tester.Result{Location: r.Location, Package: r.Package, Name: r.Name, Fail: true, Trace: r.Trace, SubResults: r.SubResults}
	close(ch)
	// It writes to memory, and has no other errors.
	_ = tester.PrettyReporter{Output: &b, FailureLine: true, LocalVars: true}.Report(ch)
	_, text, ok := strings.Cut(b.String(), "FAILURES\n")
	if !ok {
		return "the test is not true"
	}
	// The form of the report is for a whole run of tests; this is one.
	isFrame := regexp.MustCompile(`^(-*$|(PASS|FAIL): \d+/\d+$|` + regexp.QuoteMeta(testName(r)+": FAIL") + ")")
	var lines []string
	for line := range strings.Lines(text) {
		if trimmed := strings.TrimSpace(line); !isFrame.MatchString(trimmed) {
			lines = append(lines, strings.ReplaceAll(strings.TrimRight(strings.TrimPrefix(line, "  "), "\n "), "\t", "  "))
		}
	}
	if len(lines) == 0 {
		return "the test is not true"
	}
	return "the test is not true; what was not:\n" + strings.Join(lines, "\n")
}

// testCases asks every case that is chosen.
func (p *Policy) testCases(ctx context.Context, o TestOptions, covered *cover.Cover) ([]Result, error) {
	prepared := map[string]*policies.Entrypoint{}
	var all []Result
	for i := range p.cases {
		c := &p.cases[i]
		name := c.decision.Entrypoint + ": " + c.Note
		if o.Run != nil && !o.Run.MatchString(name) {
			continue
		}
		entry := prepared[c.decision.Entrypoint]
		if entry == nil {
			var err error
			if entry, err = p.prepare(c.decision); err != nil {
				return nil, findingsOf(err, p.Folder.Dir)
			}
			prepared[c.decision.Entrypoint] = entry
		}
		r := Result{File: c.file, Name: name, Parts: []Part{}}
		var start time.Time
		if o.Now != nil {
			start = o.Now()
		}
		r.Outcome, r.Message = p.ask(ctx, entry, c)
		if o.Now != nil {
			r.Duration = o.Now().Sub(start)
		}
		if covered != nil {
			traceCase(ctx, covered, entry, c)
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		all = append(all, r)
	}
	return all, nil
}

func (p *Policy) prepare(d *Decision) (*policies.Entrypoint, error) {
	return policies.PrepareEntrypoint(p.compiler, d.Entrypoint, rego.Store(inmem.NewFromObject(p.Folder.Data)))
}

// time is when a case is asked.
func (c *Case) time() int64 {
	if c.Now != nil {
		return *c.Now
	}
	if now, ok := policies.InputTime(c.Input); ok {
		return now
	}
	return TestTime
}

// ask asks a case and compares.
func (p *Policy) ask(ctx context.Context, entry *policies.Entrypoint, c *Case) (outcome, message string) {
	got, _, err := entry.Ask(ctx, c.time(), c.Seed, c.Input)
	if err == nil {
		err = c.decision.CheckResult(got)
	}
	switch {
	case err != nil && c.WantError != "" && strings.Contains(err.Error(), c.WantError):
		return Passed, ""
	case err != nil && c.WantError != "":
		return Failed, fmt.Sprintf("want an error with  %s\ngot   %v", c.WantError, err)
	case err != nil:
		return Errored, err.Error()
	case c.WantError != "":
		return Failed, fmt.Sprintf("want an error with  %s\ngot   %s", c.WantError, got)
	case !bytes.Equal(got, c.Want):
		return Failed, fmt.Sprintf("want  %s\ngot   %s", c.Want, got)
	}
	return Passed, ""
}
