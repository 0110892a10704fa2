// Package hosttest helps tests that run guests: it builds them, from text or
// from the modules of this repository, and stands in for the journal.
//
// It is for tests only and fails them with what to do where a tool is missing.
package hosttest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host"
	"github.com/writrun/writ/host/prepare"
	"github.com/writrun/writ/host/trace"
)

// Wat assembles a module from its text form.
func Wat(t testing.TB, src string) []byte {
	t.Helper()
	tool, err := exec.LookPath("wat2wasm")
	if err != nil {
		t.Fatal("wat2wasm is not installed: apt-get install wabt")
	}
	dir := t.TempDir()
	in, out := filepath.Join(dir, "module.wat"), filepath.Join(dir, "module.wasm")
	if err := os.WriteFile(in, []byte(src), 0o600); err != nil {
		t.Fatal(err)
	}
	if msg, err := exec.CommandContext(t.Context(), tool, in, "-o", out).CombinedOutput(); err != nil {
		t.Fatalf("assemble module: %v\n%s\n%s", err, msg, src)
	}
	wasm, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

// Prepared assembles and prepares a module.
func Prepared(t testing.TB, src string) *prepare.Prepared {
	t.Helper()
	p, err := prepare.Prepare(Wat(t, src), prepare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Compile compiles p on e and closes it with the test.
func Compile(t testing.TB, e host.Engine, p *prepare.Prepared) host.Compiled {
	t.Helper()
	m, err := e.Compile(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return m
}

// builds holds the reference modules this process has built, each once.
type builds struct {
	mu      sync.Mutex
	modules map[string]func() ([]byte, error)
}

var built = builds{modules: map[string]func() ([]byte, error){}}

// Guest returns the reference module modules/NAME, built at most once per
// process.
func Guest(t testing.TB, name string) []byte {
	t.Helper()
	built.mu.Lock()
	build := built.modules[name]
	if build == nil {
		build = sync.OnceValues(func() ([]byte, error) { return buildGuest(name) })
		built.modules[name] = build
	}
	built.mu.Unlock()
	wasm, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

func buildGuest(name string) ([]byte, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "writ-guest-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	cmd := exec.Command("go", "run", "./modules/build", "-o", dir, name)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build guest %s: %w\n%s", name, err, out)
	}
	return os.ReadFile(filepath.Join(dir, name+".wasm"))
}

// Root returns the folder of go.mod.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", fmt.Errorf("no go.mod above the working directory")
		}
		dir = parent
	}
}

// Sink keeps the events of one lane in memory. Its zero value is ready to use.
type Sink struct {
	Lane   trace.Lane
	Events []trace.Event
	Syncs  int
	Err    error // what Append returns, for tests of failing records
	next   uint64
}

// Append keeps a copy of e. It refuses a batch of host calls that could not be
// read back: a journal trusts a recorder to build them well, so tests look.
func (s *Sink) Append(e trace.Event) (trace.Address, error) {
	if s.Err != nil {
		return trace.Address{}, s.Err
	}
	if e.Kind == trace.KindHostCalls {
		if err := trace.CheckPayload(e.Payload); err != nil {
			return trace.Address{}, fmt.Errorf("batch of host calls: %w", err)
		}
	}
	a := trace.Address{Lane: s.Lane, Seq: s.next}
	s.next += max(e.Span, 1)
	e.Payload = bytes.Clone(e.Payload)
	s.Events = append(s.Events, e)
	return a, nil
}

// Sync counts.
func (s *Sink) Sync() error { s.Syncs++; return nil }

// Calls decodes every recorded host call, in order.
func (s *Sink) Calls(t testing.TB) []trace.Call {
	t.Helper()
	var calls []trace.Call
	for _, e := range s.Events {
		if e.Kind != trace.KindHostCalls {
			continue
		}
		var batch trace.HostCalls
		if err := trace.DecodePayload(e.Payload, &batch); err != nil {
			t.Fatal(err)
		}
		if uint64(len(batch.Calls)) != e.Span {
			t.Fatalf("event of %d calls has span %d", len(batch.Calls), e.Span)
		}
		calls = append(calls, batch.Calls...)
	}
	return calls
}

// Discard is a sink that keeps nothing but counts.
type Discard struct{ Events, Bytes int }

// Append counts e.
func (d *Discard) Append(e trace.Event) (trace.Address, error) {
	d.Events++
	d.Bytes += len(e.Payload)
	return trace.Address{}, nil
}

// Sync does nothing.
func (d *Discard) Sync() error { return nil }

// Artifacts is an artifact store in memory: what was put is in scope.
type Artifacts map[abi.Digest][]byte

// Put keeps a copy of content.
func (a Artifacts) Put(content []byte) (abi.Digest, error) {
	d := abi.DigestOf(content)
	a[d] = bytes.Clone(content)
	return d, nil
}

// Get returns what was put.
func (a Artifacts) Get(d abi.Digest) ([]byte, bool, error) {
	content, ok := a[d]
	return content, ok, nil
}
