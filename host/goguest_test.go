package host_test

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host"
	"github.com/writrun/writ/host/hosttest"
	"github.com/writrun/writ/host/prepare"
)

const bill = `{"bomFormat":"CycloneDX","specVersion":"1.5","components":[` +
	`{"type":"library","name":"b","version":"v1.0.0","purl":"pkg:golang/b@v1.0.0"}]}`

// billOf is a dataset "sbom" of one file.
func billOf(text string) host.Dataset {
	d := abi.DigestOf([]byte(text))
	size := int64(len(text))
	return host.Dataset{
		Handle:  abi.DatasetHandle{ID: "sbom", Size: size, Digest: d},
		Listing: abi.DatasetListing{Files: []abi.DatasetFile{{Size: size, Digest: d}}},
		Open:    func(abi.Digest) (io.ReaderAt, int64, error) { return strings.NewReader(text), size, nil },
	}
}

func inventoryOf(set host.Dataset) func(*host.Invocation) {
	return func(i *host.Invocation) {
		i.Lane, i.Datasets = "inventory", []host.Dataset{set}
		i.Limits = abi.Limits{}
		i.Input = fmt.Appendf(nil, `{"abi":1,"flow_id":"f","step":{"id":"inventory","role":"retrieval","config":{}},`+
			`"inputs":{},"datasets":[{"id":"sbom","size":%d,"digest":%q,"folder":false}]}`, set.Handle.Size, set.Handle.Digest)
	}
}

func TestAGoGuest(t *testing.T) {
	wasm := hosttest.Guest(t, "inventory")
	info, err := prepare.Inspect(wasm)
	if err != nil {
		t.Fatal(err)
	}
	// Enough for a small bill of materials and not for a large one.
	budget := uint64(info.MemoryPagesMin)*abi.PageBytes + 6<<20
	p, err := prepare.Prepare(wasm, prepare.Options{MemoryBytesMax: budget})
	if err != nil {
		t.Fatal(err)
	}
	compiled := map[string]host.Compiled{}
	for name, e := range engines(t) {
		compiled[name] = hosttest.Compile(t, e, p)
	}
	t.Run("leaves the same record on both engines", func(t *testing.T) { sameRecord(t, compiled) })
	t.Run("gets a hint where memory is short", func(t *testing.T) {
		large := strings.Replace(bill, `"b"`, `"`+strings.Repeat("b", 8<<20)+`"`, 1)
		got := run(t, compiled["wazero"], func(i *host.Invocation) {
			inventoryOf(billOf(large))(i)
			i.Limits.MemoryBytes = budget
		})
		s := got.Outcome.Stop
		if s == nil || s.Cause != string(host.StopMemory) || s.Limit != "memory_bytes" || !strings.Contains(s.Detail, "memory_bytes") {
			t.Errorf("stop %+v %s; output %.300s", s, got.Err, got.Outcome.Output)
		}
	})
}

func sameRecord(t *testing.T, compiled map[string]host.Compiled) {
	var first *ended
	for name, m := range compiled {
		got := run(t, m, inventoryOf(billOf(bill)))
		if got.Err != "" || got.Outcome.Stop != nil {
			t.Fatalf("%s: %+v %s", name, got.Outcome.Stop, got.Err)
		}
		out, err := abi.DecodeExecuteResponse(got.Outcome.Output)
		if err != nil || out.Error != nil || len(out.Evidence) != 2 {
			t.Fatalf("%s: %v %s", name, err, got.Outcome.Output)
		}
		if first == nil {
			first = &got
		} else if diff := cmp.Diff(*first, got); diff != "" {
			t.Errorf("records differ:\n%s", diff)
		}
	}
	// What the language runtime does before the first line of the guest's own is
	// in the record too.
	names := map[uint16]int{}
	for _, c := range (&hosttest.Sink{Events: first.Events}).Calls(t) {
		names[c.Fn]++
	}
	for _, fn := range []uint16{101, 103, 105, 141, 5, 6} { // args, environment, clock, random; dataset_size, dataset_read
		if names[fn] == 0 {
			t.Errorf("host call %d is not in the record: %v", fn, names)
		}
	}
}
