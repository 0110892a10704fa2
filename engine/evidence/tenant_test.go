package evidence

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/sumdb/note"

	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host/trace"
)

func event(t testing.TB, kind trace.Kind, v any) trace.Event {
	t.Helper()
	return trace.Event{Kind: kind, Cause: trace.CauseRuntime, Attempt: 1, Payload: payload(t, v)}
}

func TestAdmissionRefusals(t *testing.T) {
	s := initStore(t, options(t))
	tenant := tenantOf(t, s)
	first := admission(1)
	first.Datasets = []DatasetSeen{{"sbom", "1", "frozen", digestA}}
	must[*Journal](t)(tenant.Admit(first))
	tests := []struct {
		name   string
		change func(*Admission)
		code   string
	}{
		{"a new run", func(*Admission) {}, ""},
		{"same run id", func(a *Admission) { a.RunID = runID(1) }, CodeRunExists},
		{"same request id", func(a *Admission) { a.RequestID = "request-1" }, CodeRequestExists},
		{"no request id", func(a *Admission) { a.RequestID = "" }, ""},
		{"request id with a space", func(a *Admission) { a.RequestID = "a b" }, CodeRequestInvalid},
		{"longest request id", func(a *Admission) { a.RequestID = strings.Repeat("x", 128) }, ""},
		{"request id too long", func(a *Admission) { a.RequestID = strings.Repeat("x", 129) }, CodeRequestInvalid},
		{"same dataset", func(a *Admission) { a.Datasets = []DatasetSeen{{"sbom", "1", "frozen", digestA}} }, ""},
		{"dataset changed", func(a *Admission) { a.Datasets = []DatasetSeen{{"sbom", "1", "frozen", digestB}} }, CodeDatasetChanged},
		{"changed under a new version", func(a *Admission) { a.Datasets = []DatasetSeen{{"sbom", "2", "frozen", digestB}} }, ""},
		{"dataset in an earlier state", func(a *Admission) { a.Datasets = []DatasetSeen{{"sbom", "1", "experimental", digestA}} }, CodeDatasetState},
		{"dataset in a later state", func(a *Admission) { a.Datasets = []DatasetSeen{{"sbom", "1", "deprecated", digestA}} }, ""},
		{"and not back", func(a *Admission) { a.Datasets = []DatasetSeen{{"sbom", "1", "frozen", digestA}} }, CodeDatasetState},
	}
	for i, test := range tests {
		a := admission(i + 2)
		test.change(&a)
		_, err := tenant.Admit(a)
		if got := CodeOf(err); got != test.code || (err != nil) != (test.code != "") {
			t.Errorf("%s: error %v, want code %q", test.name, err, test.code)
		}
	}
	for name, change := range map[string]func(*Admission){
		"ill-formed run id":     func(a *Admission) { a.RunID = "../x" },
		"another tenant":        func(a *Admission) { a.Tenant = "other" },
		"another store":         func(a *Admission) { a.StoreID = "s" },
		"dataset without state": func(a *Admission) { a.Datasets = []DatasetSeen{{"x", "1", "", digestA}} },
		"not UTF-8":             func(a *Admission) { a.Principal = "\xff" },
	} {
		a := admission(100)
		change(&a)
		if _, err := tenant.Admit(a); err == nil {
			t.Errorf("%s: admitted", name)
		}
	}
}

func TestRequestsAreDurable(t *testing.T) {
	o := options(t)
	s := initStore(t, o)
	sealed := sealedRun(t, tenantOf(t, s), 1)
	must[*Journal](t)(tenantOf(t, s).Admit(admission(2)))
	ok(t, s.Close())
	tenant := tenantOf(t, openStore(t, o))
	for n, state := range map[int]string{1: "succeeded", 2: StateAdmitted} {
		run, found, err := tenant.FindRequest(admission(n).RequestID)
		if err != nil || !found || run.RunID != runID(n) || run.State != state {
			t.Errorf("request of run %d: %+v, %v, %v", n, run, found, err)
		}
	}
	runs := must[[]RunSummary](t)(tenant.Runs())
	if len(runs) != 2 || runs[0].RunID != runID(2) || runs[1].TraceRoot != sealed.TraceRoot {
		t.Errorf("runs %+v, want the newest first", runs)
	}
}

func TestLedgerTellsEverythingButTheExecutionDigest(t *testing.T) {
	o := options(t)
	s := initStore(t, o)
	tenant := tenantOf(t, s)
	ok(t, tenant.Refuse(AdmissionRefused{RequestID: "k", Action: "run", Code: "authority", Reasons: []string{"not on a Sunday"}, FlowID: "gate", Plan: digestA}))
	sealed := sealedRun(t, tenant, 1)
	ok(t, s.Close())
	tenant = tenantOf(t, openStore(t, o))
	var types []RecordType
	ok(t, tenant.Ledger(func(index uint64, r Record) error {
		types = append(types, r.Type)
		if r.AdmissionRefused != nil {
			if diff := cmp.Diff([]string{"not on a Sunday"}, r.Reasons); diff != "" {
				t.Error(diff)
			}
		}
		return nil
	}))
	if diff := cmp.Diff([]RecordType{TypeAdmissionRefused, TypeRunAdmitted, TypeRunSealed}, types); diff != "" {
		t.Error(diff)
	}
	ledger := must[[]byte](t)(os.ReadFile(tenant.ledger.path))
	sum, err := sealed.ExecutionDigest.Sum()
	ok(t, err)
	if bytes.Contains(ledger, []byte("Sunday")) || bytes.Contains(ledger, []byte(sealed.ExecutionDigest)) || bytes.Contains(ledger, sum[:]) {
		t.Error("the ledger holds free text or an execution digest")
	}
}

func TestHeadsAreSignedCheckpoints(t *testing.T) {
	s := initStore(t, options(t))
	tenant := tenantOf(t, s)
	if text, size, _ := tenant.Head(); text != nil || size != 0 {
		t.Errorf("a new tenant has head %q", text)
	}
	sealed := sealedRun(t, tenant, 1)
	text, size, root := tenant.Head()
	if !bytes.Equal(text, sealed.Head) || size != 2 {
		t.Errorf("head of size %d: %s", size, text)
	}
	verifier := must[note.Verifier](t)(note.NewVerifier(tenant.PublicKey()))
	n := must[*note.Note](t)(note.Open(text, note.VerifierList(verifier)))
	lines := strings.Split(n.Text, "\n")
	if lines[0] != "writ/"+s.ID()+"/acme" || lines[1] != "2" || n.Sigs[0].Name != lines[0] {
		t.Errorf("checkpoint %q signed by %q", n.Text, n.Sigs[0].Name)
	}
	if root == "" {
		t.Error("no root")
	}
}

// TestNeverSignsAShorterLedger: with the ledger's end removed, or an older copy
// put back, the tenant takes no more work and signs nothing.
func TestNeverSignsAShorterLedger(t *testing.T) {
	o := options(t)
	s := initStore(t, o)
	tenant := tenantOf(t, s)
	sealedRun(t, tenant, 1)
	older := must[[]byte](t)(os.ReadFile(tenant.ledger.path))
	sealedRun(t, tenant, 2)
	ok(t, s.Close())
	newer := must[[]byte](t)(os.ReadFile(tenant.ledger.path))
	for name, test := range map[string]struct {
		ledger []byte
		code   string
	}{
		"older copy":    {older, CodeLedgerBehindHead},
		"end cut":       {newer[:len(newer)-1], CodeLedgerBehindHead},
		"removed":       {nil, CodeLedgerBehindHead},
		"a byte change": {append(append(bytes.Clone(newer[:40]), newer[40]^1), newer[41:]...), CodeLedgerDamaged},
		"as it is":      {newer, ""},
	} {
		t.Run(name, func(t *testing.T) {
			ok(t, os.Remove(tenant.ledger.path))
			if test.ledger != nil {
				ok(t, os.WriteFile(tenant.ledger.path, test.ledger, fileMode))
			} else {
				defer func() { ok(t, os.WriteFile(tenant.ledger.path, newer, fileMode)) }()
			}
			s := openStore(t, o)
			defer s.Close()
			tenant := tenantOf(t, s)
			if test.code == "" {
				return
			}
			_, err := tenant.Admit(admission(3))
			wantCode(t, err, test.code)
			wantCode(t, tenant.Refuse(AdmissionRefused{Action: "run"}), test.code)
			if got := must[[]os.DirEntry](t)(os.ReadDir(tenant.path("heads"))); len(got) != 2 {
				t.Errorf("%d heads, want 2", len(got))
			}
		})
	}
}

func TestContent(t *testing.T) {
	o := options(t)
	s := initStore(t, o)
	c := tenantOf(t, s).Content()
	big := bytes.Repeat([]byte("0123456789"), 20_000)
	d, size, err := c.Put(bytes.NewReader(big))
	ok(t, err)
	if d != abi.DigestOf(big) || size != int64(len(big)) || !c.Has(d) {
		t.Errorf("put %s of %d bytes", d, size)
	}
	if got := must[[]byte](t)(c.Get(d, 1<<20)); !bytes.Equal(got, big) {
		t.Error("other bytes come back")
	}
	if again := must[abi.Digest](t)(c.PutBytes(big)); again != d {
		t.Errorf("put again: %s", again)
	}
	_, err = c.Get(d, 100)
	wantCode(t, err, CodeContentTooLarge)
	_, err = c.Get(digestA, 100)
	wantCode(t, err, CodeContentMissing)
	if _, err = c.Open("sha256:../../etc/passwd"); err == nil || c.Has("sha256:x") {
		t.Error("an ill-formed digest is looked up")
	}
	empty := must[abi.Digest](t)(c.PutBytes(nil))
	if got := must[[]byte](t)(c.Get(empty, 0)); len(got) != 0 {
		t.Error("the empty object is not empty")
	}
	path := must[string](t)(c.path(d))
	if mode := must[os.FileInfo](t)(os.Stat(path)).Mode().Perm(); mode != 0o600 {
		t.Errorf("content has mode %o", mode)
	}
	ok(t, os.WriteFile(path, append([]byte("X"), big[1:]...), fileMode))
	_, err = c.Get(d, 1<<20)
	wantCode(t, err, CodeContentMismatch)
	if left := must[[]string](t)(filepath.Glob(filepath.Join(c.dir, tempPrefix+"*"))); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestContentSourceFails(t *testing.T) {
	c := tenantOf(t, initStore(t, options(t))).Content()
	_, _, err := c.Put(&failingReader{})
	if err == nil || !strings.Contains(err.Error(), "read source: unplugged") {
		t.Errorf("error %v", err)
	}
	if left := must[[]os.DirEntry](t)(os.ReadDir(c.dir)); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

type failingReader struct{ n int }

func (f *failingReader) Read(b []byte) (int, error) {
	if f.n++; f.n > 3 {
		return 0, unplugged{}
	}
	return len(b), nil
}

type unplugged struct{}

func (unplugged) Error() string { return "unplugged" }
