package engines_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host/prepare"
)

// What the host may need for a hostile guest: copies of its linear memory, as
// wazero copies what grows and Go frees the old copies later, and beside it the
// code, the tables and the record.
const (
	memoryCopiesMax = 4
	bytesBeside     = 96 << 20
)

// hostile is a guest that means harm, as its file tells: a line of what it does,
// then lines of the form ";; limits: NAME=VALUE ...", and one of
//
//	;; stop: CAUSE PHASE FUNCTION    it is stopped, in that phase and function
//	;; output: SIZE                  it returns that many bytes
//	;; refused: CODE ...             preparation refuses it for these faults
type hostile struct {
	job
	stop    string
	output  int
	refused string
}

func (h *hostile) limit(name string, value uint64) error {
	switch name {
	case "fuel":
		h.Limits.Fuel = value
	case "memory_bytes":
		h.Limits.MemoryBytes = value
	case "output_bytes":
		h.Limits.OutputBytes = value
	case "host_calls":
		h.Limits.HostCalls = value
	case "log_bytes":
		h.Limits.LogBytes = value
	default:
		return fmt.Errorf("limit %q is unknown", name)
	}
	return nil
}

// header reads the lines that begin with two semicolons.
func (h *hostile) header(text string) error {
	for line := range strings.Lines(text) {
		line, ok := strings.CutPrefix(strings.TrimSpace(line), ";; ")
		if !ok {
			break
		}
		key, value, _ := strings.Cut(line, ": ")
		switch key {
		case "stop":
			h.stop = value
		case "refused":
			h.refused = value
		case "output":
			n, err := strconv.Atoi(value)
			if err != nil {
				return err
			}
			h.output = n
		case "limits":
			for _, f := range strings.Fields(value) {
				name, text, _ := strings.Cut(f, "=")
				n, err := strconv.ParseUint(text, 10, 64)
				if err != nil {
					return err
				}
				if err := h.limit(name, n); err != nil {
					return err
				}
			}
		}
	}
	ends := 0
	for _, given := range []bool{h.stop != "", h.refused != "", h.output > 0} {
		if given {
			ends++
		}
	}
	if ends != 1 {
		return errors.New("the header does not say how it ends, once")
	}
	return nil
}

func readHostile(t *testing.T) []hostile {
	t.Helper()
	tool, err := exec.LookPath("wat2wasm")
	if err != nil {
		t.Fatal("wat2wasm is missing: install wabt (apt-get install wabt)")
	}
	files, err := filepath.Glob("testdata/hostile/*.wat")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	out := filepath.Join(t.TempDir(), "out.wasm")
	var all []hostile
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		h := hostile{job: job{Name: strings.TrimSuffix(filepath.Base(file), ".wat")}}
		if err := h.header(string(text)); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if msg, err := exec.Command(tool, "--no-check", "--enable-all", file, "-o", out).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", file, err, msg)
		}
		if h.Wasm, err = os.ReadFile(out); err != nil {
			t.Fatal(err)
		}
		all = append(all, h)
	}
	return all
}

// TestHostileGuests: every guest of testdata/hostile ends as its file says, in
// the same way and with the same record on every engine, and costs the host no
// more memory than its limits and what is beside them.
func TestHostileGuests(t *testing.T) {
	all := readHostile(t)
	var jobs []job
	for _, h := range all {
		if h.refused == "" {
			jobs = append(jobs, h.job)
		} else {
			t.Run(h.Name, func(t *testing.T) { checkRefused(t, h) })
		}
	}
	reports := map[string][]report{}
	for _, engine := range engineNames() {
		if reports[engine] = runInChild(t, engine, jobs); len(reports[engine]) < len(jobs) {
			t.FailNow()
		}
	}
	next := 0
	for _, h := range all {
		if h.refused != "" {
			continue
		}
		t.Run(h.Name, func(t *testing.T) {
			first := reports[compiler][next]
			checkEnd(t, h, first.Ended)
			for _, engine := range engineNames() {
				r := reports[engine][next]
				if r.Failure != "" {
					t.Errorf("%s: %s", engine, r.Failure)
				}
				if d := difference(first.Ended, r.Ended); d != "" {
					t.Errorf("%s and %s differ: %s", compiler, engine, d)
				}
				limits, err := h.Limits.Resolve()
				if err != nil {
					t.Fatal(err)
				}
				if grown := r.BytesPeak - r.BytesBefore; grown > memoryCopiesMax*int64(limits.MemoryBytes)+bytesBeside {
					t.Errorf("%s: the host needs %d MiB more, with memory_bytes of %d MiB", engine, grown>>20, limits.MemoryBytes>>20)
				}
			}
		})
		next++
	}
}

func checkRefused(t *testing.T, h hostile) {
	_, err := prepare.Prepare(h.Wasm, prepare.Options{MemoryBytesMax: h.Limits.MemoryBytes})
	var refusal *prepare.Refusal
	if !errors.As(err, &refusal) {
		t.Fatalf("not refused: %v", err)
	}
	var codes []string
	for _, f := range refusal.Faults {
		codes = append(codes, f.Code)
	}
	if got := strings.Join(codes, " "); got != h.refused {
		t.Errorf("refused for %s, want %s\n%v", got, h.refused, err)
	}
}

func checkEnd(t *testing.T, h hostile, got ended) {
	stop := ""
	if s := got.Outcome.Stop; s != nil {
		stop = s.Cause + " " + s.Phase + " " + s.Function
	}
	if got.Err != "" || stop != h.stop || len(got.Outcome.Output) != h.output {
		t.Errorf("it ends with stop %q, %d bytes of output, error %q; want stop %q, %d bytes", stop, len(got.Outcome.Output), got.Err, h.stop, h.output)
	}
	limits, err := h.Limits.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	if got.cause() == "fuel_exhausted" && got.Outcome.FuelUsed != limits.Fuel {
		t.Errorf("it used %d fuel of %d", got.Outcome.FuelUsed, limits.Fuel)
	}
	if got.Outcome.MemoryBytes > max(limits.MemoryBytes, abi.PageBytes) {
		t.Errorf("it has %d bytes of memory, above %d", got.Outcome.MemoryBytes, limits.MemoryBytes)
	}
}
