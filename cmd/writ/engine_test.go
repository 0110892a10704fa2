package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/writrun/writ/host/wasmtime"
)

// TestEnginesWithoutACacheLeaveNothing: where no code can be kept between
// processes, engines that compile keep it in a folder of their own, and an
// interpreter needs none.
func TestEnginesWithoutACacheLeaveNothing(t *testing.T) {
	a := &app{getenv: func(string) string { return "" }}
	for _, c := range engineChoices() {
		if c.name == "wasmtime" && !wasmtime.Available {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			temp := t.TempDir()
			t.Setenv("TMPDIR", temp)
			e, err := a.newEngine(t.Context(), c.name)
			if err != nil {
				t.Fatal(err)
			}
			if err := e.Close(context.Background()); err != nil {
				t.Error(err)
			}
			left, err := os.ReadDir(temp)
			if err != nil || len(left) != 0 {
				t.Errorf("left behind: %v %v", left, err)
			}

			t.Setenv("TMPDIR", filepath.Join(temp, "absent"))
			e, err = a.newEngine(t.Context(), c.name)
			var f *fault
			switch {
			case !c.compiles && err != nil:
				t.Errorf("without any folder: %v", err)
			case !c.compiles:
				if err := e.Close(context.Background()); err != nil {
					t.Error(err)
				}
			case !errors.As(err, &f) || len(f.Hints) != 2:
				t.Errorf("without any folder: %+v, want a fault that says what to set", err)
			}
		})
	}
}
