package evidence

import (
	"bytes"
	"crypto/rand"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/mod/sumdb/note"

	"github.com/writrun/writ/guest-abi/abi"
)

// someRecords has one record of each type.
func someRecords() []*Record {
	return []*Record{
		{Type: TypeAdmissionRefused, AdmissionRefused: &AdmissionRefusedRecord{Action: "run", Code: "authority", FlowID: "gate", Reasons: digestA}},
		{Type: TypeDatasetSeen, AtNanos: -1, DatasetSeen: &DatasetSeen{DatasetID: "sbom", Version: "1", State: "frozen", Hash: digestA}},
		{Type: TypeRunAdmitted, AtNanos: 1 << 60, RunAdmitted: &RunAdmittedRecord{RunID: runID(1), FlowID: "gate", RequestID: "k", Plan: digestB}},
		{Type: TypeRunSealed, RunSealed: &RunSealedRecord{RunID: runID(1), TraceRoot: digestA, Events: 9, State: "succeeded", Decision: "PASS", Result: "pass"}},
		{Type: TypeQuarantined, Quarantined: &QuarantinedRecord{RunID: runID(2), LastGood: "run/3"}},
		{Type: TypeEgress, Egress: &EgressRecord{What: "decision inputs", Where: digestA, Digest: digestB, Items: 3, Result: EgressPartial}},
		{Type: TypeDecision, Decision: &DecisionRecord{Entrypoint: "data.writ.authority.decision", Policy: digestA, Asked: digestB, Result: "DENY"}},
	}
}

func TestRecordsRoundTrip(t *testing.T) {
	for _, r := range someRecords() {
		b := must[[]byte](t)(encodeRecord(r))
		got := must[*Record](t)(decodeRecord(b))
		if again := must[[]byte](t)(encodeRecord(got)); !bytes.Equal(b, again) || got.Type != r.Type || got.AtNanos != r.AtNanos {
			t.Errorf("%s: %+v comes back as %+v", r.Type, r, got)
		}
		for n := range b {
			if _, err := decodeRecord(b[:n]); err == nil {
				t.Errorf("%s cut at %d: accepted", r.Type, n)
			}
		}
	}
	for name, r := range map[string]*Record{
		"ill-formed run id": {Type: TypeRunAdmitted, RunAdmitted: &RunAdmittedRecord{RunID: "r1"}},
		"no trace root":     {Type: TypeRunSealed, RunSealed: &RunSealedRecord{RunID: runID(1)}},
		"no dataset hash":   {Type: TypeDatasetSeen, DatasetSeen: &DatasetSeen{DatasetID: "sbom"}},
		"no egress digest":  {Type: TypeEgress, Egress: &EgressRecord{What: "decision inputs", Where: digestA, Result: EgressDone}},
		"no egress result":  {Type: TypeEgress, Egress: &EgressRecord{What: "decision inputs", Where: digestA, Digest: digestB}},
		"nothing asked":     {Type: TypeDecision, Decision: &DecisionRecord{Result: "DENY"}},
		"unknown type":      {Type: "annotation", Quarantined: &QuarantinedRecord{RunID: runID(1)}},
		"type of another":   {Type: TypeRunSealed, Quarantined: &QuarantinedRecord{RunID: runID(1)}},
	} {
		b := must[[]byte](t)(encodeRecord(r))
		if got, err := decodeRecord(b); err == nil {
			t.Errorf("%s: accepted as %+v", name, got)
		}
	}
}

func FuzzDecodeRecord(f *testing.F) {
	for _, r := range someRecords() {
		f.Add(must[[]byte](f)(encodeRecord(r)))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := decodeRecord(b)
		if err != nil {
			return
		}
		if again, err := encodeRecord(r); err != nil || !bytes.Equal(again, b) {
			t.Errorf("%x decodes and encodes as %x, %v", b, again, err)
		}
	})
}

func FuzzLedger(f *testing.F) {
	o := options(f)
	s := initStore(f, o)
	tenant := tenantOf(f, s)
	sealedRun(f, tenant, 1)
	b := must[[]byte](f)(os.ReadFile(tenant.ledger.path))
	f.Add(b)
	f.Add(b[:len(b)-3])
	f.Add(append(bytes.Clone(b), make([]byte, 20)...))
	path := filepath.Join(f.TempDir(), "ledger")
	f.Fuzz(func(t *testing.T, b []byte) {
		ok(t, os.WriteFile(path, b, fileMode))
		l := ledger{path: path, disk: s.disk}
		err := l.scan(func(*Record, []byte) error { return nil })
		if code := CodeOf(err); err != nil && code != CodeLedgerDamaged && code != CodeLedgerTorn {
			t.Errorf("error without a code: %v", err)
		}
		if l.end > int64(len(b)) {
			t.Errorf("%d good bytes of %d", l.end, len(b))
		}
	})
}

func FuzzParseHead(f *testing.F) {
	private, public, err := note.GenerateKey(rand.Reader, "writ/s/acme")
	ok(f, err)
	signer, verifier := must[note.Signer](f)(note.NewSigner(private)), must[note.Verifier](f)(note.NewVerifier(public))
	texts := []string{"writ/s/acme\n1\n" + "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n", "writ/s/acme\n01\n\n", "x\n1\nAA==\n", "writ/s/acme\n1\nAA==\nmore\n"}
	for _, text := range texts {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		// Signed, so that what is fuzzed is what a holder of the key could sign.
		signed, err := note.Sign(&note.Note{Text: text}, signer)
		if err != nil {
			return
		}
		if h, err := parseHead(signed, "writ/s/acme", verifier); err == nil && headText("writ/s/acme", h) != text {
			t.Errorf("%q is read as size %d", text, h.size)
		}
	})
}

func FuzzDecodeText(f *testing.F) {
	b, _, err := encodeText([16]byte{1}, []string{"a reason", ""})
	ok(f, err)
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		lines, commitment, err := decodeText(b)
		if err != nil {
			return
		}
		if len(lines) > len(b) || commitment == abi.Digest("") {
			t.Errorf("%x holds %d lines", b, len(lines))
		}
	})
}
