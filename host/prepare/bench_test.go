package prepare

import (
	"context"
	"os"
	"testing"
	"time"
)

func TestTmpGo(t *testing.T) {
	b, err := os.ReadFile("/tmp/w/guest.wasm")
	if err != nil {
		t.Skip()
	}
	t0 := time.Now()
	p, err := prepare(b, anything)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("prepare %v: %d -> %d", time.Since(t0), len(b), len(p.Wasm))
	for name, w := range map[string][]byte{"orig": b, "prep": p.Wasm} {
		m := newMachine(t, engines["compiler"](), 1e9, FuelSlice)
		t0 = time.Now()
		_, err := m.rt.CompileModule(context.Background(), w)
		t.Log(name, time.Since(t0), err)
	}
}
