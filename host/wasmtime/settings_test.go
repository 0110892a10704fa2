//go:build cgo && !writ_nowasmtime

package wasmtime_test

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host/prepare"
	"github.com/writrun/writ/host/wasmtime"
)

// section is a section of a binary module.
func section(id byte, content ...byte) []byte {
	return append([]byte{id, byte(len(content))}, content...)
}

// module is a binary module of these sections.
func module(sections ...[]byte) []byte {
	m := []byte("\x00asm\x01\x00\x00\x00")
	for _, s := range sections {
		m = append(m, s...)
	}
	return m
}

// function is a module of one function () -> () with a memory and this body.
func function(body ...byte) []byte {
	code := append([]byte{1, byte(len(body) + 2), 0}, append(body, 0x0b)...)
	return module(section(1, 1, 0x60, 0, 0), section(3, 1, 0), section(5, 1, 0, 1), section(10, code...))
}

func TestOnlyTheFeaturesOfTheProfileAreOn(t *testing.T) {
	zero := []byte{0xfd, 0x0c, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0} // v128.const 0
	vectors := append(append([]byte(nil), zero...), zero...)
	for _, tt := range []struct {
		name string
		wasm []byte
		on   bool
	}{
		{"nothing", module(), true},
		{"bulk memory", function(0x41, 0, 0x41, 0, 0x41, 0, 0xfc, 0x0b, 0), true},
		{"saturating truncation", function(0x43, 0, 0, 0, 0, 0xfc, 0, 0x1a), true},
		{"sign extension", function(0x41, 0, 0xc0, 0x1a), true},
		{"reference types", function(0xd0, 0x70, 0x1a), true},
		{"SIMD", function(append(vectors, 0xfd, 0xae, 1, 0x1a)...), true},
		{"multi-value", module(section(1, 1, 0x60, 0, 2, 0x7f, 0x7f), section(3, 1, 0), section(10, 1, 6, 0, 0x41, 0, 0x41, 0, 0x0b)), true},
		{"relaxed SIMD", function(append(vectors, 0xfd, 0x80, 2, 0x1a)...), false},
		{"tail calls", function(0x12, 0), false},
		{"atomics", function(0xfe, 3, 0), false},
		{"shared memory", module(section(5, 1, 3, 1, 1)), false},
		{"memory64", module(section(5, 1, 4, 1)), false},
		{"two memories", module(section(5, 2, 0, 1, 0, 1)), false},
		{"custom page sizes", module(section(5, 1, 8, 0, 0)), false},
		{"wide arithmetic", function(0x42, 0, 0x42, 0, 0x42, 0, 0x42, 0, 0xfc, 19, 0x1a, 0x1a), false},
		{"exceptions", module(section(1, 1, 0x60, 0, 0), section(13, 1, 0, 0)), false},
		{"structures", module(section(1, 1, 0x5f, 0)), false},
		{"typed references", module(section(1, 2, 0x60, 0, 0, 0x60, 1, 0x63, 0, 0)), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, err := newEngine(t, wasmtime.Config{}).Compile(t.Context(), &prepare.Prepared{Wasm: tt.wasm, Digest: abi.DigestOf(tt.wasm)})
			if (err == nil) != tt.on {
				t.Errorf("it is on: %v (%v), want %v", err == nil, err, tt.on)
			}
			if err == nil {
				if err := m.Close(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

const (
	stackVariable = "WRIT_TEST_WASMTIME_STACK"
	notAllowed    = 77 // exit status where the limit cannot be set
)

// TestStackChild is a process of TestAProcessOfTooLittleStackIsRefused.
func TestStackChild(t *testing.T) {
	if os.Getenv(stackVariable) == "" {
		t.Skip("for another test")
	}
	e, err := wasmtime.New(t.Context(), wasmtime.Config{})
	if err == nil {
		_ = e.Close(t.Context())
		t.Fatal("no error")
	}
	t.Fatal(err)
}

func TestAProcessOfTooLittleStackIsRefused(t *testing.T) {
	for limit, want := range map[string]string{"2048": "limited to 2048 KiB", "unlimited": "unlimited", "8192": "no error"} {
		c := exec.CommandContext(t.Context(), "sh", "-c", `ulimit -s `+limit+` || exit 77; exec "$0" -test.run='^TestStackChild$'`, os.Args[0])
		c.Env = append(os.Environ(), stackVariable+"=1")
		out, err := c.CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			t.Fatalf("%v\n%s", err, out)
		}
		if exit.ExitCode() == notAllowed {
			t.Logf("this process may not set the limit %s", limit)
			continue
		}
		if !strings.Contains(string(out), want) || want != "no error" && !strings.Contains(string(out), "ulimit -s 8192") {
			t.Errorf("with a limit of %s: %s", limit, out)
		}
	}
}
