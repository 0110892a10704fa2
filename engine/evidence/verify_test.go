package evidence

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/writrun/writ/guest-abi/abi"
)

func verified(t testing.TB, o Options) Report {
	t.Helper()
	o.ReadOnly = true
	s := must[*Store](t)(Open(o))
	defer s.Close()
	return must[Report](t)(s.Verify(context.Background(), nil))
}

func codes(r Report) (out []string) {
	for _, p := range r.Problems {
		out = append(out, p.Code)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func TestVerifyCountsWhatItChecked(t *testing.T) {
	o := options(t)
	s := initStore(t, o)
	tenant := tenantOf(t, s)
	sealedRun(t, tenant, 1)
	sealedRun(t, tenant, 2)
	must[*Journal](t)(tenant.Admit(admission(3)))
	ok(t, tenant.Refuse(AdmissionRefused{Action: "run", Code: "authority", Reasons: []string{"no"}}))
	var last, total int
	report := must[Report](t)(s.Verify(context.Background(), func(d, n int) { last, total = d, n }))
	if len(report.Problems) > 0 {
		t.Errorf("problems %v", report.Problems)
	}
	// Both runs end with the same 10,000-byte output: one content object.
	if report.Runs != 3 || report.Events != 18 || report.Payloads != 18 || report.ContentObjects != 1 || last != 4 || total != 4 {
		t.Errorf("report %+v, progress %d of %d", report, last, total)
	}
	got := report.Tenants[0]
	got.HeadRoot = ""
	if want := (TenantReport{Tenant: "acme", Records: 6, Heads: 3, HeadSize: 6, Runs: 3, Sealed: 2, Unfinished: 1}); got != want {
		t.Errorf("tenant %+v, want %+v", got, want)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.Verify(ctx, nil); err == nil {
		t.Error("verify goes on after it is cancelled")
	}
}

// fileChange is one change to a file, and what verify must say.
type fileChange struct {
	name   string
	path   string // under the tenant; of a directory, the one file in it
	change func([]byte) []byte
	codes  []string
}

// aLink asks for a link to the file where the file was.
const aLink = "a link"

func fileChanges() []fileChange {
	run := string(runID(1))
	flip := func(at int) func([]byte) []byte {
		return func(b []byte) []byte {
			b = bytes.Clone(b)
			if at < 0 {
				at += len(b)
			}
			b[at] ^= 0x10
			return b
		}
	}
	cut := func(b []byte) []byte { return b[:len(b)-5] }
	grow := func(b []byte) []byte { return append(bytes.Clone(b), "more"...) }
	gone := func([]byte) []byte { return nil }
	link := func([]byte) []byte { return []byte(aLink) }
	return []fileChange{
		{"trace, a header", "trace/" + run + ".trace", flip(120), []string{CodeTraceDamaged}},
		{"trace, first line", "trace/" + run + ".trace", flip(0), []string{CodeTraceDamaged}},
		{"trace cut", "trace/" + run + ".trace", cut, []string{CodeTraceDamaged}},
		{"trace longer", "trace/" + run + ".trace", grow, []string{CodeTraceDamaged}},
		{"trace removed", "trace/" + run + ".trace", gone, []string{CodeTraceDamaged}},
		{"payloads, a byte", "trace/" + run + ".payloads", flip(200), []string{CodePayloadsDamaged}},
		{"payloads cut", "trace/" + run + ".payloads", cut, []string{CodePayloadsDamaged}},
		{"payloads removed", "trace/" + run + ".payloads", gone, []string{CodePayloadsDamaged}},
		{"ledger, a record", "ledger", flip(60), []string{CodeLedgerBehindHead, CodeLedgerDamaged, CodeTraceUnlisted}},
		{"ledger, last byte", "ledger", flip(-1), []string{CodeLedgerBehindHead, CodeLedgerDamaged}},
		{"ledger cut", "ledger", cut, []string{CodeLedgerBehindHead}},
		{"ledger removed", "ledger", gone, []string{CodeLedgerBehindHead, CodeTraceUnlisted}},
		{"head, signature", "heads/00000000000000000002", flip(-5), []string{CodeHeadDamaged}},
		{"head, size", "heads/00000000000000000002", flip(40), []string{CodeHeadDamaged}},
		{"head renamed", "heads/00000000000000000099", func([]byte) []byte { return []byte("x\n") }, []string{CodeHeadDamaged, CodeLedgerBehindHead}},
		{"heads, a stray file", "heads/notes.txt", func([]byte) []byte { return []byte("x") }, []string{CodeUnexpectedFile}},
		{"a stray trace", "trace/" + string(runID(9)) + ".trace", func([]byte) []byte { return []byte("x") }, []string{CodeTraceUnlisted}},
		{"a stray file", "trace/x", func([]byte) []byte { return []byte("x") }, []string{CodeUnexpectedFile}},
		{"content, a byte", "content", flip(100), []string{CodeContentMismatch}},
		{"content removed", "content", gone, []string{CodeContentMissing}},
		{"content, a stray file", "content/sha256/zz", func([]byte) []byte { return []byte("x") }, []string{CodeUnexpectedFile}},
		{"journal removed", "journal/" + string(runID(2)) + ".journal", gone, []string{CodeRunMissing}},
		{"text removed", "texts", gone, []string{CodeTextMismatch}},
		{"text changed", "texts", flip(-1), []string{CodeTextMismatch}},
		{"trace, a link", "trace/" + run + ".trace", link, []string{CodeTraceDamaged}},
		{"payloads, a link", "trace/" + run + ".payloads", link, []string{CodePayloadsDamaged}},
		{"content, a link", "content", link, []string{CodeContentMissing}},
		{"head, a link", "heads/00000000000000000002", link, []string{CodeHeadDamaged}},
		{"ledger, a link", "ledger", link, []string{CodeLedgerBehindHead, CodeTraceUnlisted}},
		{"nothing", "ledger", func(b []byte) []byte { return b }, nil},
	}
}

// TestVerifyFindsChangedFiles changes one file at a time and names the codes
// that verify must report.
func TestVerifyFindsChangedFiles(t *testing.T) {
	o := options(t)
	s := initStore(t, o)
	tenant := tenantOf(t, s)
	sealedRun(t, tenant, 1)
	must[*Journal](t)(tenant.Admit(admission(2)))
	ok(t, tenant.Refuse(AdmissionRefused{Action: "run", Code: "authority", Reasons: []string{"no"}}))
	ok(t, s.Close())
	for _, test := range fileChanges() {
		t.Run(test.name, func(t *testing.T) {
			dir := copyTree(t, filepath.Dir(o.Dir))
			o := o
			o.Dir, o.KeyDir = filepath.Join(dir, "store"), filepath.Join(dir, "keys")
			adoptCopy(t, o.Dir)
			path := onlyFile(t, filepath.Join(o.Dir, "tenants", "acme", test.path))
			before, err := os.ReadFile(path)
			if err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			if after := test.change(before); after == nil {
				ok(t, os.Remove(path))
			} else if string(after) == aLink {
				ok(t, os.Rename(path, filepath.Join(dir, "moved")))
				ok(t, os.Symlink(filepath.Join(dir, "moved"), path))
			} else {
				ok(t, os.WriteFile(path, after, fileMode))
			}
			report := verified(t, o)
			if got := codes(report); !slices.Equal(got, test.codes) {
				t.Errorf("codes %v, want %v\n%v", got, test.codes, report.Problems)
			}
		})
	}
}

// onlyFile descends from a directory to the one file in it.
func onlyFile(t testing.TB, path string) string {
	t.Helper()
	for {
		info, err := os.Stat(path)
		if err != nil || !info.IsDir() {
			return path
		}
		entries := must[[]os.DirEntry](t)(os.ReadDir(path))
		path = filepath.Join(path, entries[0].Name())
	}
}

// TestVerifyFindsRemovedHeads: a sealed run without a head over it.
func TestVerifyFindsRemovedHeads(t *testing.T) {
	o := options(t)
	s := initStore(t, o)
	tenant := tenantOf(t, s)
	sealedRun(t, tenant, 1)
	ok(t, s.Close())
	ok(t, os.Remove(filepath.Join(tenant.path("heads"), headName(2))))
	if got := codes(verified(t, o)); !slices.Equal(got, []string{CodeHeadMissing}) {
		t.Errorf("codes %v", got)
	}
}

// TestVerifyFindsRewrittenHistory puts the files of a run with other results in
// the place of a sealed one, ledger record and all: an old signed head tells.
func TestVerifyFindsRewrittenHistory(t *testing.T) {
	o := options(t)
	s := initStore(t, o)
	tenant := tenantOf(t, s)
	sealedRun(t, tenant, 1)
	ok(t, s.Close())
	heads := copyTree(t, tenant.path("heads"))
	key := must[[]byte](t)(os.ReadFile(s.tenantKeyPath(acme)))

	// The forger has the key and makes the same run again, from nothing.
	ok(t, os.RemoveAll(tenant.dir))
	ok(t, os.Remove(s.tenantKeyPath(acme)))
	s = openStore(t, o)
	tenant = tenantOf(t, s)
	sealedRun(t, tenant, 1)
	ok(t, s.Close())
	ok(t, os.WriteFile(s.tenantKeyPath(acme), key, fileMode))
	ok(t, os.RemoveAll(tenant.path("heads")))
	ok(t, os.CopyFS(tenant.path("heads"), os.DirFS(heads)))
	if got := codes(verified(t, o)); !slices.Equal(got, []string{CodeHeadMismatch}) {
		t.Errorf("codes %v", got)
	}
	s = openStore(t, o)
	_, err := tenantOf(t, s).Admit(admission(2))
	wantCode(t, err, CodeHeadMismatch)
}

// TestOlderCopyIsSeenOnlyFromOutside states the limit: a consistent older copy
// of the whole store verifies, and only a head kept elsewhere tells.
func TestOlderCopyIsSeenOnlyFromOutside(t *testing.T) {
	o := options(t)
	s := initStore(t, o)
	tenant := tenantOf(t, s)
	sealedRun(t, tenant, 1)
	older := copyTree(t, filepath.Dir(o.Dir))
	external := sealedRun(t, tenant, 2).Head
	ok(t, s.Close())

	o.Dir, o.KeyDir = filepath.Join(older, "store"), filepath.Join(older, "keys")
	adoptCopy(t, o.Dir)
	report := verified(t, o)
	if len(report.Problems) > 0 {
		t.Errorf("problems %v", report.Problems)
	}
	h, err := parseHead(external, tenant.store.origin(acme), tenant.key.verifier)
	ok(t, err)
	if h.size <= report.Tenants[0].Records {
		t.Errorf("the head kept elsewhere is of size %d, the ledger has %d", h.size, report.Tenants[0].Records)
	}
}

func TestParseHeadRefusals(t *testing.T) {
	s := initStore(t, options(t))
	tenant := tenantOf(t, s)
	head := sealedRun(t, tenant, 1).Head
	origin := s.origin(acme)
	if _, err := parseHead(head, origin, tenant.key.verifier); err != nil {
		t.Fatal(err)
	}
	other := must[*Tenant](t)(s.Tenant(must[abi.TenantID](t)(abi.ParseTenantID("other"))))
	if _, err := parseHead(head, origin, other.key.verifier); err == nil {
		t.Error("accepted under another tenant's key")
	}
	if _, err := parseHead(head, "writ/elsewhere/acme", tenant.key.verifier); err == nil {
		t.Error("accepted for another origin")
	}
	for i := range head {
		b := bytes.Clone(head)
		b[i] ^= 1
		if h, err := parseHead(b, origin, tenant.key.verifier); err == nil {
			t.Errorf("byte %d changed: accepted as %+v", i, h)
		}
	}
}
