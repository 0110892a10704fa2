package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/writrun/writ/host/hosttest"
	"github.com/writrun/writ/host/prepare"
	"github.com/writrun/writ/host/wasmtime"
)

// entangled is a guest of few bytes that is dear to compile: every branch out of
// a block finds other values in every local.
func entangled(t *testing.T) *prepare.Prepared {
	const locals, branches = 1000, 1000
	var b strings.Builder
	b.WriteString("(func (local" + strings.Repeat(" i64", locals) + ") (block ")
	for i := range branches {
		fmt.Fprintf(&b, "(local.set %d (i64.const %d)) (br_if 0 (memory.size))", i%locals, i)
	}
	b.WriteString(")")
	for i := range locals {
		fmt.Fprintf(&b, "(i64.store (i32.const 8) (local.get %d))", i)
	}
	return hosttest.Prepared(t, hosttest.With(hosttest.Echo(), b.String()+")"))
}

// TestCompilationsAreBounded: a module that would keep a compiler busy is given up
// for its time, its memory or the caller's wish, and leaves nothing behind; other
// modules are compiled.
func TestCompilationsAreBounded(t *testing.T) {
	bomb, echo := entangled(t), hosttest.Prepared(t, hosttest.Echo())
	stop := errors.New("interrupted")
	for _, c := range engineChoices() {
		if !c.compiles || c.name == "wasmtime" && !wasmtime.Available {
			continue
		}
		for _, tt := range []struct {
			name   string
			bounds compileBounds
			module *prepare.Prepared
			want   string // in the error; "" for none
		}{
			{"within", defaultCompileBounds, echo, ""},
			{"processor time", compileBounds{1, time.Minute, 1 << 30}, bomb, "more than 1 seconds of processor time"},
			{"memory", compileBounds{60, time.Minute, 160 << 20}, bomb, "more than 160 MiB of memory"},
			{"time", compileBounds{60, time.Millisecond, 1 << 30}, bomb, "longer than 1ms"},
			{"interrupted", compileBounds{60, time.Minute, 1 << 30}, bomb, stop.Error()},
		} {
			t.Run(c.name+", "+tt.name, func(t *testing.T) {
				dir := t.TempDir()
				if err := os.Chmod(dir, 0o700); err != nil {
					t.Fatal(err)
				}
				inner, err := c.open(t.Context(), dir)
				if err != nil {
					t.Fatal(err)
				}
				e := boundCompile(inner, dir, true)
				e.bounds = tt.bounds
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				if tt.name == "interrupted" {
					cancel(stop)
				}
				m, err := e.Compile(ctx, tt.module)
				switch {
				case tt.want == "" && err != nil:
					t.Error(err)
				case tt.want == "":
					if !e.Kept(tt.module) {
						t.Error("the code is not kept")
					}
					if err := m.Close(ctx); err != nil {
						t.Error(err)
					}
				case err == nil || !strings.Contains(err.Error(), tt.want):
					t.Errorf("error %v, want %q", err, tt.want)
				case e.Kept(tt.module):
					t.Error("code of a compilation that was given up is kept")
				}
				if err := e.Close(context.Background()); err != nil {
					t.Error(err)
				}
				if _, err := os.Stat(dir); !os.IsNotExist(err) {
					t.Errorf("a cache of its own is still there: %v", err)
				}
			})
		}
	}
}

// TestLargeStacksOfThreadsAreNoData: how large the stacks of threads may be is the
// caller's shell's choice, and says nothing of the module.
func TestLargeStacksOfThreadsAreNoData(t *testing.T) {
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_STACK, &before); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_STACK, &unix.Rlimit{Cur: 512 << 20, Max: before.Max}); err != nil {
		t.Skip("SKIPPED: the stack of this process is bounded: ", err)
	}
	defer func() {
		if err := unix.Setrlimit(unix.RLIMIT_STACK, &before); err != nil {
			t.Error(err)
		}
	}()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	inner, err := engineChoices()[0].open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	e := boundCompile(inner, dir, true)
	defer e.Close(context.Background())
	m, err := e.Compile(t.Context(), hosttest.Prepared(t, hosttest.Echo()))
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestWhyACompilationEnded(t *testing.T) {
	bounds := compileBounds{processorSecondsMax: 120, dataBytesMax: 1 << 30}
	for _, tt := range []struct{ script, text, want string }{
		{"kill -XCPU $$", "", "it took more than 120 seconds of processor time"},
		{"kill -KILL $$", "", "its process was killed, by someone or for want of memory"},
		{"exit 2", "fatal error: runtime: cannot allocate memory\ngoroutine 1", "it took more than 1024 MiB of memory"},
		{"exit 2", "runtime/cgo: pthread_create failed: Resource temporarily unavailable", "it took more than 1024 MiB of memory"},
		{"exit 1", "writ: error: compile module : it took longer than 2m0s\nwrit: hint: none", "it took longer than 2m0s"},
		{"exit 1", "", "exit status 1"},
	} {
		if got := bounds.why(tt.text, exec.Command("sh", "-c", tt.script).Run()); got != tt.want {
			t.Errorf("%s, %q: %q, want %q", tt.script, tt.text, got, tt.want)
		}
	}
}
