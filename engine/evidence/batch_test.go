package evidence

import (
	"bytes"
	"fmt"
	"os"
	"testing"

	"github.com/writrun/writ/guest-abi/abi"
)

func TestBatch(t *testing.T) {
	o := options(t)
	s := initStore(t, o)
	c := tenantOf(t, s).Content()
	there := must[abi.Digest](t)(c.PutBytes([]byte("there")))
	b := c.Batch()
	put := func(text string) abi.Digest {
		t.Helper()
		d, size, err := b.Put(bytes.NewReader([]byte(text)))
		ok(t, err)
		if d != abi.DigestOf([]byte(text)) || size != int64(len(text)) {
			t.Errorf("put %q as %s of %d bytes", text, d, size)
		}
		return d
	}
	var digests []abi.Digest
	for i := range 300 {
		digests = append(digests, put(fmt.Sprint("file ", i%250)))
	}
	put("there")
	if c.Has(digests[0]) || !b.Has(digests[0]) || !b.Has(there) || b.Has(digestA) {
		t.Error("an object is visible too early, or not in the batch")
	}
	syncs := 0
	s.disk.fault = func(op, _ string) error {
		if op == "sync" || op == "syncfs" || op == "syncdir" {
			syncs++
		}
		return nil
	}
	ok(t, b.Commit())
	s.disk.fault = nil
	if syncs != 2 {
		t.Errorf("%d flushes for a batch, want 2", syncs)
	}
	ok(t, b.Close())
	for i := range 250 {
		if got := must[[]byte](t)(c.Get(digests[i], 100)); string(got) != fmt.Sprint("file ", i) {
			t.Errorf("object %d holds %q", i, got)
		}
	}

	b = c.Batch()
	given := put("given up")
	_, _, err := b.Put(&failingReader{})
	if err == nil {
		t.Error("a source that fails is stored")
	}
	ok(t, b.Close())
	ok(t, b.Commit())
	if c.Has(given) || len(b.pending) > 0 {
		t.Error("a batch that was given up is there")
	}
	for _, e := range must[[]os.DirEntry](t)(os.ReadDir(c.dir)) {
		if !e.IsDir() {
			t.Errorf("left behind: %s", e.Name())
		}
	}
}

func TestBatchOnAFullDisk(t *testing.T) {
	s := initStore(t, options(t))
	c := tenantOf(t, s).Content()
	for _, failing := range []string{"create", "write", "mkdir", "rename"} {
		b := c.Batch()
		s.disk.fault = func(op, _ string) error {
			if op == failing {
				return fullDisk
			}
			return nil
		}
		_, _, err := b.Put(bytes.NewReader([]byte(failing)))
		if err == nil {
			err = b.Commit()
		}
		wantCode(t, err, CodeFull)
		s.disk.fault = nil
		ok(t, b.Close())
		b = c.Batch()
		d, _, err := b.Put(bytes.NewReader([]byte(failing)))
		ok(t, err)
		ok(t, b.Commit())
		if !c.Has(d) {
			t.Errorf("after %s failed, the object is not there", failing)
		}
	}
}
