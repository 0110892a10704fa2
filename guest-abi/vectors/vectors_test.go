package vectors_test

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/writrun/writ/guest-abi/vectors"
)

// settle compares a vector file with its content as made by this test, or writes
// it when UPDATE=1 is set.
func settle[T any](t *testing.T, file string, want []T) {
	t.Helper()
	var b bytes.Buffer
	b.WriteString("[\n")
	for i, v := range want {
		line, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(line)
		if i < len(want)-1 {
			b.WriteByte(',')
		}
		b.WriteByte('\n')
	}
	b.WriteString("]\n")
	if os.Getenv("UPDATE") == "1" {
		if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := vectors.Files.ReadFile(file)
	if err != nil {
		t.Fatalf("%v (UPDATE=1 go test writes it)", err)
	}
	if diff := cmp.Diff(b.String(), string(got)); diff != "" {
		t.Errorf("%s is not what package abi does (-abi +file):\n%s", file, diff)
	}
}
