package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/writrun/writ/guest-abi/abi"
)

// tally adds up what past decisions came to.
type tally struct {
	counts replayCounts
	runs   map[abi.RunID]bool
	groups map[string]*flipGroup
	gaps   []orderedGap
}

// orderedGap is a gap and its place in the ledger.
type orderedGap struct {
	replayGap
	order int
}

func newTally() *tally {
	return &tally{runs: map[abi.RunID]bool{}, groups: map[string]*flipGroup{}}
}

func (t *tally) add(c pastCase, since time.Time) {
	if c.past.RunID != "" {
		t.runs[c.past.RunID] = true
	}
	if c.past.At.Before(since) {
		return
	}
	t.counts.Decisions++
	switch {
	case !c.asks:
		t.counts.NotAsked++
	case c.past.Input == nil:
		t.counts.NotRetained++
		t.gap(c, c.past.NotRetained)
	case c.failure != nil:
		t.counts.Unaskable++
		t.gap(c, c.failure.Error())
	case !c.past.Result.Same(c.now.Result):
		t.counts.Flipped++
		t.flip(c)
	case slices.Equal(c.past.Result.Reasons, c.now.Result.Reasons):
		t.counts.Same++
	default:
		t.counts.Reworded++
	}
	if c.now.Error != "" {
		t.counts.NoAnswer++
	}
}

// gap keeps the first gaps of the ledger, whatever order they come in.
func (t *tally) gap(c pastCase, why string) {
	t.gaps = append(t.gaps, orderedGap{replayGap{c.past.RunID, c.past.Address, why}, c.order})
	if len(t.gaps) >= 2*gapsShownMax {
		t.trimGaps()
	}
}

func (t *tally) trimGaps() {
	slices.SortFunc(t.gaps, func(x, y orderedGap) int { return cmp.Compare(x.order, y.order) })
	t.gaps = t.gaps[:min(len(t.gaps), gapsShownMax)]
}

func (t *tally) flip(c pastCase) {
	from, to := resultWords(c.past.Result), resultWords(c.now.Result)
	key := fmt.Sprintf("%q", append([]string{c.past.Name(), from, to, c.now.Error}, c.now.Result.Reasons...))
	example := flipExample{RunID: c.past.RunID, Address: c.past.Address, At: c.past.At, FlowID: c.past.FlowID,
		Recorded: c.past.Result, Now: c.now.Result, order: c.order}
	g := t.groups[key]
	switch {
	case g == nil && len(t.groups) == flipGroupsMax:
		t.counts.OtherFlips++
		return
	case g == nil:
		g = &flipGroup{Decision: c.past.Name(), From: from, To: to, Reasons: orEmpty(c.now.Result.Reasons), Error: c.now.Error, Example: example}
		t.groups[key] = g
	case example.order < g.Example.order:
		g.Example = example
	}
	g.Count++
}

func (t *tally) finish(doc *policyReplayDocument) {
	t.counts.Runs = len(t.runs)
	t.trimGaps()
	doc.Counts, doc.Flips, doc.Gaps = t.counts, []flipGroup{}, []replayGap{}
	for _, g := range t.groups {
		doc.Flips = append(doc.Flips, *g)
	}
	slices.SortFunc(doc.Flips, func(x, y flipGroup) int {
		return cmp.Or(cmp.Compare(y.Count, x.Count), cmp.Compare(x.Example.order, y.Example.order))
	})
	for _, g := range t.gaps {
		doc.Gaps = append(doc.Gaps, g.replayGap)
	}
}

func (a *app) showReplay(doc policyReplayDocument) {
	c := doc.Counts
	fmt.Fprintf(a.stdout, "%s over %s of %s\n\n", policyName(doc.Dir), plural(c.Decisions, "decision"), plural(c.Runs, "run"))
	number := func(n int) string {
		if n == 0 {
			return ""
		}
		return fmt.Sprint(n)
	}
	a.pairs("", "the same", fmt.Sprint(c.Same), "same, other reasons", number(c.Reworded), "flip", a.flips(c.Flipped),
		"no valid answer", number(c.NoAnswer), "not for this policy", number(c.NotAsked), "not retained", number(c.NotRetained), "cannot be asked", number(c.Unaskable))
	var rows [][]string
	for _, g := range doc.Flips {
		why := strings.Join(g.Reasons, "; ")
		if g.Error != "" {
			why = g.Error
		}
		rows = append(rows, []string{fmt.Sprint(g.Count), g.Decision, a.word(g.From), a.word(g.To), short(why, 80), safe(pastName(g.Example.RunID, g.Example.Address))})
	}
	if len(rows) > 0 {
		fmt.Fprintln(a.stdout)
		a.table([]string{"FLIPS", "DECISION", "FROM", "TO", "REASONS", "FOR EXAMPLE"}, rows)
	}
	if c.OtherFlips > 0 {
		fmt.Fprintf(a.stdout, "and %d of further kinds\n", c.OtherFlips)
	}
	for i, g := range doc.Gaps {
		if i == 0 {
			fmt.Fprintln(a.stdout, "\nnot asked again:")
		}
		fmt.Fprintf(a.stdout, "  %s: %s\n", safe(pastName(g.RunID, g.Address)), short(g.Why, 200))
	}
	if more := c.NotRetained + c.Unaskable - len(doc.Gaps); more > 0 {
		fmt.Fprintf(a.stdout, "  and %d more\n", more)
	}
	switch {
	case len(doc.Flips) > 0:
		example := doc.Flips[0].Example
		next := "writ policy explain"
		if example.RunID != "" {
			next += " --run " + string(example.RunID)
		}
		next += " --decision " + safe(example.Address)
		if doc.Dir != "" {
			next += " --policy " + safe(doc.Dir)
		}
		fmt.Fprintf(a.stdout, "\nnext: %s\n", next)
	case c.Same+c.Reworded == 0:
		fmt.Fprintln(a.stdout, "\nno decision was asked")
	}
}

func (a *app) flips(n int) string {
	if n == 0 {
		return a.paint(green, "0")
	}
	return a.paint(yellow, fmt.Sprint(n))
}
