package evidence

import (
	"os"
	"path/filepath"
	"testing"
)

func TestEgressIsRecorded(t *testing.T) {
	s := initStore(t, options(t))
	tenant := tenantOf(t, s)
	for _, e := range []Egress{
		{What: "decision inputs", Where: "https://log.example/x", Digest: digestA, Items: 3, Whole: true},
		{What: "decision inputs", Where: "-", Digest: digestB, Items: 1},
	} {
		if err := tenant.RecordEgress(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := tenant.RecordEgress(Egress{What: "decision inputs"}); err == nil {
		t.Error("an egress without digest was recorded")
	}
	var results, places []string
	err := tenant.Ledger(func(_ uint64, r Record) error {
		results, places = append(results, r.Egress.Result), append(places, r.Reasons...)
		return nil
	})
	if err != nil || len(results) != 2 || results[0] != EgressDone || results[1] != EgressPartial || places[0] != "https://log.example/x" {
		t.Errorf("the ledger has %q to %q, %v", results, places, err)
	}
	if report := must[Report](t)(s.Verify(t.Context(), nil)); len(report.Problems) > 0 {
		t.Errorf("problems: %v", report.Problems)
	}
	texts := must[[]os.DirEntry](t)(os.ReadDir(tenant.path("texts")))
	if err := os.Remove(filepath.Join(tenant.path("texts"), texts[0].Name())); err != nil {
		t.Fatal(err)
	}
	if report := must[Report](t)(s.Verify(t.Context(), nil)); len(report.Problems) != 1 {
		t.Errorf("a text that is gone: %v", report.Problems)
	}
}
