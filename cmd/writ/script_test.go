package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host/wasmtime"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"writ": main})
}

// TestScripts runs every command as a person would.
func TestScripts(t *testing.T) {
	guests, err := filepath.Abs("testdata/guests")
	if err != nil {
		t.Fatal(err)
	}
	metadata, err := filepath.Abs("scaffold/count.json")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       os.Getenv("UPDATE") != "",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("WRIT_KEYS", filepath.Join(env.WorkDir, "keys"))
			env.Setenv("XDG_CACHE_HOME", filepath.Join(env.WorkDir, "cache"))
			env.Setenv("GUESTS", guests)
			env.Setenv("METADATA", metadata)
			return nil
		},
		Condition: func(name string) (bool, error) {
			if name == "wat2wasm" {
				_, err := exec.LookPath(name)
				return err == nil, nil
			}
			if name == "wasmtime" {
				return wasmtime.Available, nil
			}
			return false, fmt.Errorf("unknown condition %q", name)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"status": scriptStatus,
			"schema": scriptSchema,
			"same":   scriptSame,
			"guest":  scriptGuest,
			"await":  scriptAwait,
			"flip":   scriptFlip,
		},
	})
}

// scriptStatus runs a program and requires its exit code: status CODE PROGRAM ...
func scriptStatus(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status CODE PROGRAM ...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// scriptSchema requires that a file, by default what was printed last, is valid
// under a published schema: schema NAME [FILE]
func scriptSchema(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: schema NAME [FILE]")
	}
	file := "stdout"
	if len(args) == 2 {
		file = args[1]
	}
	entry, ok := schemas()[args[0]]
	if !ok {
		ts.Fatalf("no schema %q", args[0])
	}
	text, err := entry.text()
	ts.Check(err)
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	ts.Check(err)
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	ts.Check(c.AddResource("schema.json", doc))
	compiled, err := c.Compile("schema.json")
	ts.Check(err)
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(ts.ReadFile(file)))
	ts.Check(err)
	ts.Check(compiled.Validate(value))
}

// scriptSame requires that two JSON files agree in a field, or with "!" differ:
// same FIELD FILE FILE
func scriptSame(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: same FIELD FILE FILE")
	}
	var values [2]string
	for i, file := range args[1:] {
		var doc map[string]json.RawMessage
		ts.Check(json.Unmarshal([]byte(ts.ReadFile(file)), &doc))
		if doc[args[0]] == nil {
			ts.Fatalf("%s has no field %q", file, args[0])
		}
		values[i] = string(doc[args[0]])
	}
	if (values[0] == values[1]) == neg {
		ts.Fatalf("%s: %s and %s", args[0], values[0], values[1])
	}
}

// scriptGuest assembles a module of testdata/guests with the metadata of the
// scaffold's executor: guest NAME FILE
func scriptGuest(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: guest NAME FILE")
	}
	out := ts.MkAbs(args[1])
	ts.Check(ts.Exec("wat2wasm", filepath.Join(ts.Getenv("GUESTS"), args[0]+".wat"), "-o", out))
	wasm, err := os.ReadFile(out)
	ts.Check(err)
	metadata, err := os.ReadFile(ts.Getenv("METADATA"))
	ts.Check(err)
	wasm, err = abi.AppendMetadata(wasm, metadata)
	ts.Check(err)
	ts.Check(os.WriteFile(out, wasm, 0o644))
}

// scriptAwait waits until a pattern of file names matches: await PATTERN
func scriptAwait(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: await PATTERN")
	}
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if found, err := filepath.Glob(ts.MkAbs(args[0])); err == nil && len(found) > 0 {
			return
		}
	}
	ts.Fatalf("nothing matches %s", args[0])
}

// scriptFlip changes one byte in the middle of the one file that a pattern
// matches: flip PATTERN
func scriptFlip(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: flip PATTERN")
	}
	found, err := filepath.Glob(ts.MkAbs(args[0]))
	ts.Check(err)
	if len(found) != 1 {
		ts.Fatalf("%d files match %s", len(found), args[0])
	}
	data, err := os.ReadFile(found[0])
	ts.Check(err)
	data[len(data)/2] ^= 0x20
	ts.Check(os.Chmod(found[0], 0o600))
	ts.Check(os.WriteFile(found[0], data, 0o600))
}
