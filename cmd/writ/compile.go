package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host"
	"github.com/writrun/writ/host/prepare"
)

// compileBounds hold one compilation. There are modules of a few kilobytes that keep a
// compiler busy for an hour, and no compiler can be interrupted, so modules that
// are not in the cache are compiled in a process of their own.
type compileBounds struct {
	processorSecondsMax uint64
	timeMax             time.Duration // where the machine is busy
	dataBytesMax        uint64
}

// defaultCompileBounds are those of the tool.
var defaultCompileBounds = compileBounds{processorSecondsMax: 120, timeMax: 5 * time.Minute, dataBytesMax: 1 << 30}

const (
	compileCommandName     = "compile-prepared"
	compileMessageBytesMax = 4 << 10
	threadStackBytes       = 8 << 20                // of a process that compiles
	processorTimeSlack     = 500 * time.Millisecond // by which a process is killed early
)

// keeper is an engine that keeps compiled code between processes.
type keeper interface {
	host.Engine
	Kept(p *prepare.Prepared) bool // whether Compile will find it
}

// boundedEngine compiles what is not in the cache in a process of its own, which
// leaves the code there.
type boundedEngine struct {
	keeper
	bounds   compileBounds
	cacheDir string
	scratch  bool          // the cache is this process's own and removed with the engine
	turn     chan struct{} // holds a token while a process compiles
}

func boundCompile(e keeper, cacheDir string, scratch bool) *boundedEngine {
	return &boundedEngine{keeper: e, bounds: defaultCompileBounds, cacheDir: cacheDir, scratch: scratch, turn: make(chan struct{}, 1)}
}

// Compile compiles p within the bounds.
func (b *boundedEngine) Compile(ctx context.Context, p *prepare.Prepared) (host.Compiled, error) {
	select {
	case b.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-b.turn }()
	if !b.Kept(p) {
		if err := b.compileApart(ctx, p); err != nil {
			return nil, fmt.Errorf("compile module %s on %s: %w", p.Original, b.Name(), err)
		}
	}
	return b.keeper.Compile(ctx, p)
}

// Close closes the engine, and removes a cache that was its own.
func (b *boundedEngine) Close(ctx context.Context) error {
	err := b.keeper.Close(ctx)
	if b.scratch {
		err = errors.Join(err, os.RemoveAll(b.cacheDir))
	}
	return err
}

func (b *boundedEngine) compileApart(ctx context.Context, p *prepare.Prepared) error {
	ctx, cancel := context.WithTimeoutCause(ctx, b.bounds.timeMax, fmt.Errorf("it took longer than %s", b.bounds.timeMax))
	defer cancel()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Args = []string{"writ", compileCommandName, "--engine", b.Name(), "--cache", b.cacheDir,
		"--seconds", fmt.Sprint(b.bounds.processorSecondsMax), "--bytes", fmt.Sprint(b.bounds.dataBytesMax)}
	cmd.Stdin = bytes.NewReader(p.Wasm)
	var message limitedBuffer
	cmd.Stderr = &message
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	err = cmd.Run()
	switch {
	case err == nil || errors.Is(err, syscall.ENOEXEC): // an emulated process cannot start another; it compiles itself
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return errors.New(b.bounds.why(message.String(), err))
}

// limitedBuffer keeps the beginning of what is written to it.
type limitedBuffer struct{ bytes.Buffer }

// Write never fails.
func (l *limitedBuffer) Write(p []byte) (int, error) {
	l.Buffer.Write(p[:min(len(p), compileMessageBytesMax-l.Len())])
	return len(p), nil
}

// why says in one line how a compilation ended, of which text is what it said.
func (c compileBounds) why(text string, err error) string {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		status, _ := exit.Sys().(syscall.WaitStatus)
		// The system kills at the bound, and tells of no reason; others kill as well.
		spent := exit.UserTime()+exit.SystemTime() > time.Duration(c.processorSecondsMax)*time.Second-processorTimeSlack
		switch {
		case status.Signaled() && (status.Signal() == syscall.SIGXCPU || status.Signal() == syscall.SIGKILL && spent):
			return fmt.Sprintf("it took more than %d seconds of processor time", c.processorSecondsMax)
		case status.Signaled() && status.Signal() == syscall.SIGKILL:
			return "its process was killed, by someone or for want of memory"
		}
	}
	lacksMemory := []string{"out of memory", "cannot allocate memory", "memory allocation", "pthread_create failed"}
	if slices.ContainsFunc(lacksMemory, func(words string) bool { return strings.Contains(text, words) }) {
		return fmt.Sprintf("it took more than %d MiB of memory", c.dataBytesMax>>20)
	}
	if line, _, _ := strings.Cut(strings.TrimSpace(text), "\n"); line != "" {
		return strings.TrimPrefix(strings.TrimPrefix(line, "writ: error: "), "compile module : ")
	}
	return err.Error()
}

// compileCommand is what boundedEngine starts. It is no command for people.
func (a *app) compileCommand() *cobra.Command {
	var engine, dir string
	var bounds compileBounds
	cmd := &cobra.Command{
		Use:    compileCommandName,
		Short:  "Compile a prepared module into the cache",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: a.work(func(cmd *cobra.Command, _ []string) error {
			if err := boundThreadStacks(); err != nil {
				return fmt.Errorf("bound compilation: %w", err)
			}
			for what, most := range map[int]uint64{unix.RLIMIT_CPU: bounds.processorSecondsMax, unix.RLIMIT_DATA: bounds.dataBytesMax, unix.RLIMIT_CORE: 0} {
				if err := unix.Setrlimit(what, &unix.Rlimit{Cur: most, Max: most}); err != nil {
					return fmt.Errorf("bound compilation: %w", err)
				}
			}
			return a.compileStdin(cmd.Context(), engine, dir)
		}),
	}
	cmd.Flags().StringVar(&engine, "engine", "", "")
	cmd.Flags().StringVar(&dir, "cache", "", "")
	cmd.Flags().Uint64Var(&bounds.processorSecondsMax, "seconds", defaultCompileBounds.processorSecondsMax, "")
	cmd.Flags().Uint64Var(&bounds.dataBytesMax, "bytes", defaultCompileBounds.dataBytesMax, "")
	return cmd
}

// boundThreadStacks begins the process anew where its threads would have larger
// stacks: they count as data, and their size is settled as a process begins.
func boundThreadStacks() error {
	var stack unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_STACK, &stack); err != nil || stack.Cur <= threadStackBytes {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := unix.Setrlimit(unix.RLIMIT_STACK, &unix.Rlimit{Cur: threadStackBytes, Max: stack.Max}); err != nil {
		return err
	}
	return syscall.Exec(self, os.Args, os.Environ())
}

func (a *app) compileStdin(ctx context.Context, engine, dir string) error {
	wasm, err := io.ReadAll(io.LimitReader(a.stdin, abi.PreparedBytesMax+1))
	if err != nil {
		return err
	}
	for _, c := range engineChoices() {
		if c.name != engine || c.open == nil {
			continue
		}
		e, err := c.open(ctx, dir)
		if err != nil {
			return err
		}
		defer e.Close(ctx)
		m, err := e.Compile(ctx, &prepare.Prepared{Wasm: wasm, Digest: abi.DigestOf(wasm)})
		if err != nil {
			return err
		}
		return m.Close(ctx)
	}
	return usagef("no engine %q compiles", engine)
}
