package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/writrun/writ/engine"
	"github.com/writrun/writ/guest-abi/abi"
)

// exitFlips is the exit code of policy replay --fail-on-flip for a policy that
// would have changed a past decision.
const exitFlips = 4

// Limits of what policy replay keeps.
const (
	flipGroupsMax = 1000 // kinds of flips told apart; further ones are only counted
	gapsShownMax  = 100  // decisions that could not be asked, listed
	jobsMax       = 256  // decisions asked at once
)

// policyReplayDocument is what policy replay prints as JSON.
type policyReplayDocument struct {
	Dir    string       `json:"dir"` // "" for the default policies
	Policy abi.Digest   `json:"policy,omitempty"`
	Since  time.Time    `json:"since,omitzero"`
	Counts replayCounts `json:"counts"`
	Flips  []flipGroup  `json:"flips"` // the most frequent first
	Gaps   []replayGap  `json:"gaps"`  // decisions that could not be asked, at most 100
}

// replayCounts is how many decisions came to what. Decisions is the sum of Same,
// Reworded, Flipped, NotAsked, NotRetained and Unaskable.
type replayCounts struct {
	Runs        int `json:"runs"`
	Decisions   int `json:"decisions"`
	Same        int `json:"same"`
	Reworded    int `json:"reworded"`     // the same decision for other reasons
	Flipped     int `json:"flipped"`      // another decision, or permissive now or no more
	NoAnswer    int `json:"no_answer"`    // of the above, where the policy gave no valid answer
	NotAsked    int `json:"not_asked"`    // not for this policy to answer
	NotRetained int `json:"not_retained"` // what was asked is gone
	Unaskable   int `json:"unaskable"`    // what was asked cannot be asked of this policy
	OtherFlips  int `json:"other_flips"`  // of flipped, those in no group
}

// flipGroup is the flips of one kind.
type flipGroup struct {
	Decision string      `json:"decision"` // arbitration or authority
	From     string      `json:"from"`
	To       string      `json:"to"`
	Reasons  []string    `json:"reasons"` // of the new decision
	Error    string      `json:"error,omitempty"`
	Count    int         `json:"count"`
	Example  flipExample `json:"example"` // the first one in the ledger
}

// flipExample is one decision that flips.
type flipExample struct {
	RunID    abi.RunID             `json:"run_id"`
	Address  string                `json:"address"`
	At       time.Time             `json:"at"`
	FlowID   abi.ID                `json:"flow_id"`
	Recorded engine.DecisionResult `json:"recorded"`
	Now      engine.DecisionResult `json:"now"`
	order    int
}

// replayGap is a decision that could not be asked.
type replayGap struct {
	RunID   abi.RunID `json:"run_id"`
	Address string    `json:"address"`
	Why     string    `json:"why"`
}

func (a *app) policyReplayCommand() *cobra.Command {
	var dir, since string
	var jobs int
	var failOnFlip bool
	cmd := &cobra.Command{
		Use:   "replay",
		Short: "Ask every past decision of another policy and show which would flip",
		Long: `replay asks every decision that the store's runs recorded again, under another
policy, and shows those that would come out differently, grouped by the reasons
the policy gives, with one example each. What decisions there are is read from
the ledger. Nothing is written, and no guest is run.

A flip is another decision, or one that is permissive now or is no more. Both
sides are held to what is enforced whatever a policy says. A decision whose
payload is gone is counted as not retained, never passed over.

Exit code 4: a decision flips, and --fail-on-flip was given. 8: there was nothing
to ask.`,
		Example: `  writ policy replay --policy lenient
  writ policy replay --policy lenient --since 2026-11-01 --fail-on-flip
  writ policy replay --policy lenient --output json | jq '.flips[].example.run_id'`,
		Args: cobra.NoArgs,
		RunE: a.work(func(cmd *cobra.Command, _ []string) error {
			from, err := parseSince(since)
			if err != nil {
				return err
			}
			if jobs < 0 || jobs > jobsMax {
				return usagef("--jobs is %d; it is 1 to %d, or 0 for one per CPU", jobs, jobsMax)
			}
			return a.policyReplay(cmd.Context(), dir, from, jobs, failOnFlip)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&dir, "policy", "", "`DIR` of the policy (default: the one runs are asked with)")
	flags.StringVar(&since, "since", "", "only decisions from this `date` on: 2026-11-01, or an RFC 3339 time")
	flags.IntVar(&jobs, "jobs", 0, "`N` decisions at once (default: one per CPU)")
	flags.BoolVar(&failOnFlip, "fail-on-flip", false, "end with exit code 4 if a decision flips")
	return cmd
}

func parseSince(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, form := range []string{time.RFC3339Nano, time.DateOnly} {
		if at, err := time.Parse(form, text); err == nil {
			return at.UTC(), nil
		}
	}
	return time.Time{}, usagef("--since %q is neither a date such as 2026-11-01 nor an RFC 3339 time", text)
}

func (a *app) policyReplay(ctx context.Context, dir string, since time.Time, jobs int, failOnFlip bool) error {
	p, err := loadAsked(ctx, dir)
	if err != nil {
		return err
	}
	if jobs == 0 {
		jobs = runtime.GOMAXPROCS(0)
	}
	doc := policyReplayDocument{Dir: dir, Policy: p.digest, Since: since}
	err = a.replayAll(ctx, p, jobs, &doc)
	if errors.Is(err, context.Canceled) {
		fmt.Fprintln(a.stderr, "writ: error: interrupted; nothing was written")
		return exitStatus(engine.ExitInterrupted)
	}
	if err != nil {
		return err
	}
	if a.json() {
		err = a.writeJSON(doc)
	} else {
		a.showReplay(doc)
	}
	switch c := doc.Counts; {
	case err != nil:
		return err
	case c.Flipped > 0 && failOnFlip:
		return exitStatus(exitFlips)
	case c.Same+c.Reworded+c.Flipped == 0:
		return exitStatus(engine.ExitNothingEvaluated)
	}
	return nil
}

// pastCase is one decision on its way through a replay.
type pastCase struct {
	order   int
	past    engine.PolicyDecision
	asks    bool // the policy is the one to answer it
	now     engine.Asked
	failure error
}

// replayAll reads the ledger in one goroutine, asks in several, and adds up
// here. What is held at once is bounded by jobs.
func (a *app) replayAll(parent context.Context, p *askedPolicy, jobs int, doc *policyReplayDocument) error {
	store, tenant, err := a.openStore(true)
	if err != nil {
		return err
	}
	defer store.Close()
	runs, err := tenant.Runs()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	read, asked := make(chan pastCase, jobs), make(chan pastCase, jobs)
	go func() {
		defer close(read)
		n := 0
		err := engine.EachDecision(tenant, func(d engine.PolicyDecision) error {
			select {
			case read <- pastCase{order: n, past: d}:
				n++
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
		if err != nil {
			cancel(err)
		}
	}()
	var workers sync.WaitGroup
	for range jobs {
		workers.Go(func() {
			for c := range read {
				asked <- p.ask(ctx, c, doc.Since)
			}
		})
	}
	go func() { workers.Wait(); close(asked) }()
	bar := a.newBar("asking")
	defer bar.end()
	t := newTally()
	for c := range asked {
		t.add(c, doc.Since)
		bar.set(len(t.runs), len(runs))
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	t.finish(doc)
	return nil
}

// ask asks one past decision, where it is for this policy to answer.
func (p *askedPolicy) ask(ctx context.Context, c pastCase, since time.Time) pastCase {
	c.asks = p.asks(c.past)
	if c.asks && c.past.Input != nil && !c.past.At.Before(since) && ctx.Err() == nil {
		c.now, c.failure = engine.AskAgain(ctx, p.set, c.past)
	}
	return c
}
