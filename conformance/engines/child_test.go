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
	Failure      string // of preparing or compiling
	BytesBefore  int64  // resident when the job began
	BytesPeak    int64  // resident at most while it ran
	CompileTime  time.Duration
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
			if r.BytesBefore, err = residentBytes("VmRSS:"); err != nil {
				return err
			}
			started := time.Now()
			m, err := e.Compile(ctx, p)
			r.CompileTime = time.Since(started)
			switch {
			case err != nil:
				r.Failure = err.Error()
			case !j.CompileOnly:
				r.Ended = invoke(&testing.T{}, m, invocation([]byte("{}"), j.Limits))
			}
			if r.BytesPeak, err = residentBytes("VmHWM:"); err != nil {
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

// forgetPeak makes the kernel measure the peak from now on. Where it cannot, the
// peak is the one since the process began, which is not below the true one.
func forgetPeak() {
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
}

func residentBytes(field string) (int64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	_, after, _ := strings.Cut(string(status), field)
	words := strings.Fields(after)
	if len(words) == 0 {
		return 0, fmt.Errorf("/proc/self/status has no %s", field)
	}
	kilobytes, err := strconv.ParseInt(words[0], 10, 64)
	return kilobytes << 10, err
}

// runInChild runs jobs on an engine in one process of its own.
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
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), childEngine+"="+engine)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = &in, &out, &failure
	if err := cmd.Run(); err != nil {
		text := failure.String()
		t.Errorf("%s: the child died: %v\n%s", engine, err, text[:min(len(text), 4000)])
	}
	var reports []report
	decoder := gob.NewDecoder(&out)
	for len(reports) < len(jobs) {
		var r report
		if err := decoder.Decode(&r); err != nil {
			t.Fatalf("%s: no report on %s: %v", engine, jobs[len(reports)].Name, err)
		}
		reports = append(reports, r)
	}
	return reports
}
