package decisionlog

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// Limits of sending to a service.
const (
	AttemptsMax       = 4                // of one chunk
	AttemptTime       = 10 * time.Second // of one
	firstPause        = 200 * time.Millisecond
	responseBytesRead = 64 << 10 // of an answer, so that the connection can be used again
)

// Lines writes each event as a line.
type Lines struct{ W io.Writer }

// Send writes a chunk at once. It heeds no context: a writer that hangs is left
// behind when the log is closed.
func (s Lines) Send(_ context.Context, events [][]byte) error {
	var b bytes.Buffer
	for _, e := range events {
		b.Write(e)
		b.WriteByte('\n')
	}
	_, err := s.W.Write(b.Bytes())
	return err
}

// HTTP posts chunks as OPA does: a gzipped JSON array of events.
type HTTP struct {
	url    string
	client interface {
		Do(*http.Request) (*http.Response, error)
	}
}

// NewHTTP returns a sink that posts to a URL. An answer that is not of the 200s
// is a failure; one that may pass (408, 429, 500s, no answer) is tried again.
func NewHTTP(address string, client interface {
	Do(*http.Request) (*http.Response, error)
}) (*HTTP, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("decision log: %.200q is no http or https URL", address)
	}
	return &HTTP{address, client}, nil
}

// Send posts a chunk, several times if need be.
func (s *HTTP) Send(ctx context.Context, events [][]byte) error {
	body, err := compress(events)
	if err != nil {
		return err
	}
	pause := firstPause
	for attempt := 1; ; attempt++ {
		again, err := s.post(ctx, body)
		if err == nil || !again || attempt == AttemptsMax || ctx.Err() != nil {
			return err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return errors.Join(err, context.Cause(ctx))
		}
		pause *= 2
	}
}

func compress(events [][]byte) ([]byte, error) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(append(append([]byte{'['}, bytes.Join(events, []byte{','})...), ']'))
	if err = errors.Join(err, w.Close()); err != nil {
		return nil, fmt.Errorf("compress decision log: %w", err)
	}
	return b.Bytes(), nil
}

// post tries once; again says whether another try may help.
func (s *HTTP) post(ctx context.Context, body []byte) (again bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, AttemptTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Content-Encoding", "gzip")
	resp, err := s.client.Do(req)
	var about *url.Error
	if errors.As(err, &about) {
		err = about.Err // the URL may hold keys
	}
	if err != nil {
		return true, err
	}
	defer resp.Body.Close()
	// The answer says nothing that is needed; what cannot be read is not missed.
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, responseBytesRead))
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return false, nil
	}
	again = resp.StatusCode == http.StatusRequestTimeout || resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode >= 500
	return again, fmt.Errorf("the service answered %s", resp.Status)
}
