package main

import (
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/writrun/writ/engine"
)

// bar shows progress on a terminal's stderr and nowhere else.
type bar struct {
	mu   sync.Mutex
	line *progressbar.ProgressBar
}

func (a *app) newBar(what string) *bar {
	if !isTerminal(a.stderr) || a.getenv("TERM") == "dumb" {
		return &bar{}
	}
	return &bar{line: progressbar.NewOptions(-1,
		progressbar.OptionSetWriter(a.stderr),
		progressbar.OptionSetDescription(what),
		progressbar.OptionSetWidth(20),
		progressbar.OptionShowCount(),
		progressbar.OptionThrottle(50*time.Millisecond),
		progressbar.OptionClearOnFinish(),
		progressbar.OptionSetPredictTime(false),
		progressbar.OptionSetRenderBlankState(true),
	)}
}

// set moves the bar to done of total.
func (b *bar) set(done, total int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.line == nil || total <= 0 {
		return
	}
	if b.line.GetMax() != total {
		b.line.ChangeMax(total)
	}
	// A bar that cannot be drawn is no reason to stop what it shows.
	_ = b.line.Set(min(done, total))
}

// run shows what a run is doing.
func (b *bar) run(p engine.Progress) {
	b.mu.Lock()
	if b.line != nil {
		b.line.Describe(p.Phase + " " + short(p.Name, 40))
	}
	b.mu.Unlock()
	b.set(p.Done, p.Total)
}

// end removes the bar.
func (b *bar) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.line != nil {
		_ = b.line.Clear()
		b.line = nil
	}
}
