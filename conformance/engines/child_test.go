package engines_test

import (
	"bytes"
	"context"
	"encoding/gob"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host/prepare"
)

// childEngine names, in the environment of a child process, the engine it runs
// what it is given on. What a module costs the host is measured in a child.
const childEngine = "WRIT_ENGINES_CHILD"

// job is a module for a child.
type job struct {
	Name        string
	Wasm        []byte // as it comes
	Limits      abi.Limits
	CompileOnly bool
}

// report is what a child says of a job.
type report struct {
	Name         string
	Ended        ended
	Failure      string        // of preparing or compiling
	BytesBefore  int64         // resident when the job began
	BytesPeak    int64         // resident at most while it ran
	CompileTime  time.Duration // of processors, as other processes may want them too
	PreparedSize int
}

func TestMain(m *testing.M) {
	if name := os.Getenv(childEngine); name != "" {
		if err := child(name, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child runs jobs one after the other.
func child(name string, in io.Reader, out io.Writer) error {
	ctx := context.Background()
	e, err := newEngine(ctx, name)
	if err != nil {
		return err
	}
	defer e.Close(ctx)
	var jobs []job
	if err := gob.NewDecoder(in).Decode(&jobs); err != nil {
		return fmt.Errorf("read jobs: %w", err)
	}
	encoder := gob.NewEncoder(out)
	for _, j := range jobs {
		r := report{Name: j.Name}
		p, err := prepare.Prepare(j.Wasm, prepare.Options{MemoryBytesMax: j.Limits.MemoryBytes})
		if err != nil {
			r.Failure = err.Error()
		} else {
			r.PreparedSize = len(p.Wasm)
			debug.FreeOSMemory()
			forgetPeak()
			if r.BytesBefore, err = residentBytes(os.Getpid(), "VmRSS:"); err != nil {
				return err
			}
			started := processorTime()
			m, err := e.Compile(ctx, p)
			r.CompileTime = processorTime() - started
			switch {
			case err != nil:
				r.Failure = err.Error()
			case !j.CompileOnly:
				r.Ended = invoke(&testing.T{}, m, invocation([]byte("{}"), j.Limits))
			}
			if r.BytesPeak, err = residentBytes(os.Getpid(), "VmHWM:"); err != nil {
				return err
			}
			if m != nil {
				if err := m.Close(ctx); err != nil {
					return err
				}
			}
		}
		if err := encoder.Encode(r); err != nil {
			return fmt.Errorf("report job: %w", err)
		}
	}
	return nil
}

// processorTime is what this process has used.
func processorTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// forgetPeak makes the kernel measure the peak from now on. Where it cannot, the
// peak is the one since the process began, which is not below the true one.
func forgetPeak() {
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
}

func residentBytes(pid int, field string) (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	_, after, _ := strings.Cut(string(status), field)
	words := strings.Fields(after)
	if len(words) == 0 {
		return 0, fmt.Errorf("the status of process %d has no %s", pid, field)
	}
	kilobytes, err := strconv.ParseInt(words[0], 10, 64)
	return kilobytes << 10, err
}

// Bounds of a child. It is killed beyond them, to spare the machine.
const (
	childTimeMax  = 3 * time.Minute
	childBytesMax = 3 << 30
	childLookedAt = 50 * time.Millisecond // how often
)

// watch kills a child that needs too much memory. It returns when done is closed.
func watch(t *testing.T, p *os.Process, done <-chan struct{}) {
	tick := time.NewTicker(childLookedAt)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
		}
		if now, err := residentBytes(p.Pid, "VmRSS:"); err == nil && now > childBytesMax {
			t.Errorf("the child needs %d MiB and is killed", now>>20)
			_ = p.Kill()
		}
	}
}

// runInChild runs jobs on an engine in one process of its own. There are fewer
// reports than jobs if the child died.
func runInChild(t *testing.T, engine string, jobs []job) []report {
	t.Helper()
	var in, out, failure bytes.Buffer
	if err := gob.NewEncoder(&in).Encode(jobs); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), childTimeMax)
	defer cancel()
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), childEngine+"="+engine)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = &in, &out, &failure
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go watch(t, cmd.Process, done)
	err = cmd.Wait()
	close(done)
	var reports []report
	decoder := gob.NewDecoder(&out)
	for len(reports) < len(jobs) {
		var r report
		if decodeErr := decoder.Decode(&r); decodeErr != nil {
			if err == nil {
				err = decodeErr
			}
			break
		}
		reports = append(reports, r)
	}
	if err != nil {
		text := failure.String()
		t.Errorf("%s: the child failed at %s: %v\n%s", engine, jobs[len(reports)].Name, err, text[:min(len(text), 2000)])
	}
	return reports
}
