// Receiver is the far side of the release-gate example: a small HTTP server on
// the loopback address that prints what is posted to it. A post whose
// Idempotency-Key it has seen is acknowledged and not taken again, as a receiver
// of retried effects should.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"
)

const (
	bodyBytesMax = 16 << 20
	keysMax      = 10_000
	keyBytesMax  = 256
)

func main() {
	port := flag.Int("port", 8787, "port on 127.0.0.1; 0 takes a free one")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := serve(ctx, *port, os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "receiver: error: %v\n", err)
		os.Exit(1)
	}
}

// serve receives until ctx ends. The first line it prints is its address, once
// it can be reached.
func serve(ctx context.Context, port int, out io.Writer) error {
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", address, err)
	}
	fmt.Fprintf(out, "listening on http://%s\n", listener.Addr())
	server := &http.Server{Handler: &receiver{out: out, seen: map[string]bool{}}, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second}
	done := make(chan error, 1)
	go func() {
		<-ctx.Done()
		grace, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		done <- server.Shutdown(grace)
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-done
}

type receiver struct {
	mu   sync.Mutex
	out  io.Writer
	seen map[string]bool // idempotency keys of posts that were taken
}

// ServeHTTP answers 202 to a post it takes, 200 to one it has taken before.
func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if request.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "post a message here", http.StatusMethodNotAllowed)
		return
	}
	key := request.Header.Get("Idempotency-Key")
	if len(key) > keyBytesMax {
		http.Error(w, "Idempotency-Key is too long", http.StatusBadRequest)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, request.Body, bodyBytesMax))
	if err != nil {
		http.Error(w, "body cannot be read: "+err.Error(), http.StatusBadRequest)
		return
	}
	status, word := r.take(key, request.URL.Path, body)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprintf(w, "{\"result\":%q}\n", word)
}

func (r *receiver) take(key, path string, body []byte) (status int, word string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if key != "" && r.seen[key] {
		fmt.Fprintf(r.out, "POST %q key %q: seen before, not taken again\n", path, key)
		return http.StatusOK, "duplicate"
	}
	if len(r.seen) >= keysMax {
		return http.StatusServiceUnavailable, "full"
	}
	if key != "" {
		r.seen[key] = true
	}
	fmt.Fprintf(r.out, "POST %q key %q: %d bytes\n%s\n", path, key, len(body), printable(body))
	return http.StatusAccepted, "taken"
}

// printable returns text as it is, or quoted where it could move a terminal's cursor.
func printable(text []byte) string {
	s := string(text)
	if !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) && r != '\n' && r != '\t' }) {
		return strconv.Quote(s)
	}
	return s
}
