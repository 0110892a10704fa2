// Package decisionlog writes decisions in the form of OPA's decision log, for
// collectors that read it: to a file or a stream as lines, or to an HTTP service
// as gzipped arrays.
//
// It is never in the way of a run: adding a decision does not wait, memory is
// bounded, and what does not fit or cannot be delivered is dropped and counted.
// An input leaves only if that was asked for, and then without what is to be
// erased. The record of a run is elsewhere; this is a copy for other eyes.
//
// OPA's own log is a plugin of its server, with a configuration, a manager and
// status reports that a single decision has no use for; what is kept of it is the
// form of its events and chunks, and of its paths to erase.
package decisionlog

import (
	"context"
	"crypto/sha256"
	"errors"
	"hash"
	"sync"
	"time"

	"github.com/writrun/writ/guest-abi/abi"
)

// Limits of a log.
const (
	EventBytesMax  = 1 << 20  // one decision; a larger one goes without its input, or is dropped
	ChunkBytesMax  = 1 << 20  // of events sent at once, before compression; at least one event is sent
	BufferBytesMax = 16 << 20 // of events waiting to be sent, beside the chunk being sent
)

// Sink takes chunks of events, each a line of JSON without its end. Send returns
// when they are delivered or cannot be; it is called by one goroutine.
type Sink interface {
	Send(ctx context.Context, events [][]byte) error
}

// Config is what a log is made with. Sink is required.
type Config struct {
	Sink         Sink
	Labels       map[string]string // of who writes the log
	IncludeInput bool              // inputs leave too
	Erase        []string          // paths that do not leave: /input/principal/name, /result/reasons
	Linger       time.Duration     // how long a chunk waits for more events; 0 sends at once
}

// Report is what became of the decisions of a log.
type Report struct {
	Added     uint64
	Delivered uint64
	Dropped   uint64     // did not fit, were too large or could not be delivered
	Inputs    uint64     // delivered with their input
	Digest    abi.Digest // over the delivered lines, each with its end; "" without any
	Err       error      // the last failure to deliver, or nil
}

// Log takes decisions. It is safe for concurrent use.
type Log struct {
	config Config
	erase  []erasure
	stop   context.CancelFunc
	wake   chan struct{} // holds at most one signal
	done   chan struct{}

	mu     sync.Mutex
	queue  []entry
	bytes  int // of queue
	closed bool
	report Report
	sum    hash.Hash
}

// entry is an event that waits.
type entry struct {
	line  []byte
	input bool
}

// New starts a log. Close ends it.
func New(c Config) (*Log, error) {
	if c.Sink == nil {
		return nil, errors.New("decision log: a sink is required")
	}
	erase, err := parseErasures(c.Erase)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	l := &Log{config: c, erase: erase, stop: stop, wake: make(chan struct{}, 1), done: make(chan struct{}), sum: sha256.New()}
	go l.send(ctx)
	return l, nil
}

// Add takes a decision. It does not wait for the sink.
func (l *Log) Add(d Decision) {
	line, input := l.encode(d)
	l.mu.Lock()
	l.report.Added++
	if line == nil || l.closed || l.bytes+len(line) > BufferBytesMax {
		l.report.Dropped++
		l.mu.Unlock()
		return
	}
	l.queue = append(l.queue, entry{line, input})
	l.bytes += len(line)
	l.mu.Unlock()
	l.signal()
}

func (l *Log) signal() {
	select {
	case l.wake <- struct{}{}:
	default: // the sender has been told and not looked yet
	}
}

// Close sends what is waiting, as long as ctx lets it, and says what became of
// every decision. What is not delivered by then counts as dropped.
func (l *Log) Close(ctx context.Context) Report {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.signal()
	select {
	case <-l.done:
	case <-ctx.Done():
		l.stop()
		// A sink that heeds its context is done at once; one that hangs is left.
		grace := time.NewTimer(abandonAfter)
		defer grace.Stop()
		select {
		case <-l.done:
		case <-grace.C:
		}
	}
	l.stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.report
	if r.Dropped = r.Added - r.Delivered; r.Dropped > 0 && r.Err == nil && ctx.Err() != nil {
		r.Err = context.Cause(ctx)
	}
	if r.Delivered > 0 {
		r.Digest = abi.DigestFromSum([32]byte(l.sum.Sum(nil)))
	}
	return r
}

// abandonAfter is how long a sink may take to heed the end of its context.
const abandonAfter = 200 * time.Millisecond

// send is the one goroutine that talks to the sink.
func (l *Log) send(ctx context.Context) {
	defer close(l.done)
	for {
		chunk, last := l.next(ctx)
		if len(chunk) > 0 {
			lines := make([][]byte, len(chunk))
			for i, e := range chunk {
				lines[i] = e.line
			}
			l.sent(chunk, l.config.Sink.Send(ctx, lines))
		}
		if last && len(chunk) == 0 {
			return
		}
	}
}

// next waits for events and takes a chunk of them; last is true when no more
// will come. It lingers for more while the chunk is not full.
func (l *Log) next(ctx context.Context) (chunk []entry, last bool) {
	var linger <-chan time.Time
	for {
		l.mu.Lock()
		waiting, bytes, closed := len(l.queue), l.bytes, l.closed
		l.mu.Unlock()
		if closed || ctx.Err() != nil || bytes >= ChunkBytesMax || waiting > 0 && l.config.Linger <= 0 {
			return l.take(), closed || ctx.Err() != nil
		}
		if waiting > 0 && linger == nil {
			timer := time.NewTimer(l.config.Linger)
			defer timer.Stop()
			linger = timer.C
		}
		select {
		case <-l.wake:
		case <-linger:
			return l.take(), false
		case <-ctx.Done():
		}
	}
}

func (l *Log) take() []entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, bytes := 0, 0
	for n < len(l.queue) && (n == 0 || bytes+len(l.queue[n].line) <= ChunkBytesMax) {
		bytes += len(l.queue[n].line)
		n++
	}
	chunk := l.queue[:n:n]
	l.queue, l.bytes = l.queue[n:], l.bytes-bytes
	return chunk
}

// sent counts what became of a chunk.
func (l *Log) sent(chunk []entry, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.report.Dropped += uint64(len(chunk))
		l.report.Err = err
		return
	}
	for _, e := range chunk {
		l.report.Delivered++
		if e.input {
			l.report.Inputs++
		}
		l.sum.Write(e.line)
		l.sum.Write([]byte{'\n'})
	}
}
