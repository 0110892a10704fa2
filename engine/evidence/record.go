package evidence

import (
	"errors"
	"fmt"

	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host/trace"
)

// RecordType says what a ledger record is.
type RecordType string

// The record types this version writes. An unknown one is damage.
const (
	TypeAdmissionRefused RecordType = "admission_refused"
	TypeRunAdmitted      RecordType = "run_admitted"
	TypeRunSealed        RecordType = "run_sealed"
	TypeQuarantined      RecordType = "quarantined"
	TypeDatasetSeen      RecordType = "dataset_seen"
	TypeEgress           RecordType = "egress"
	TypeDecision         RecordType = "decision"
	TypeReplayDone       RecordType = "replay_done"
)

// Record is one record of a tenant's ledger. Exactly one of the pointers is set.
type Record struct {
	Index   uint64     `json:"index"`
	AtNanos int64      `json:"at_ns"` // since 1970, the local clock's claim
	Type    RecordType `json:"type"`

	AdmissionRefused *AdmissionRefusedRecord `json:"admission_refused,omitempty"`
	RunAdmitted      *RunAdmittedRecord      `json:"run_admitted,omitempty"`
	RunSealed        *RunSealedRecord        `json:"run_sealed,omitempty"`
	Quarantined      *QuarantinedRecord      `json:"quarantined,omitempty"`
	DatasetSeen      *DatasetSeen            `json:"dataset_seen,omitempty"`
	Egress           *EgressRecord           `json:"egress,omitempty"`
	Decision         *DecisionRecord         `json:"decision,omitempty"`
	ReplayDone       *ReplayDone             `json:"replay_done,omitempty"`

	Reasons []string `json:"reasons,omitempty"` // the text kept beside an admission_refused, egress or decision record
}

// AdmissionRefusedRecord says that a request was refused and no run exists.
type AdmissionRefusedRecord struct {
	RequestID string         `json:"request_id"`
	Action    string         `json:"action"`
	Code      string         `json:"code"`
	FlowID    abi.ID         `json:"flow_id"`
	Plan      abi.Digest     `json:"plan"`
	Identity  trace.Identity `json:"identity"`
	Reasons   abi.Digest     `json:"reasons"` // salted commitment to the text beside the record
}

// RunAdmittedRecord says that a run exists.
type RunAdmittedRecord struct {
	RunID     abi.RunID  `json:"run_id"`
	FlowID    abi.ID     `json:"flow_id"`
	RequestID string     `json:"request_id"`
	Plan      abi.Digest `json:"plan"`
}

// RunSealedRecord says that a run ended and what its trace is.
type RunSealedRecord struct {
	RunID      abi.RunID  `json:"run_id"`
	TraceRoot  abi.Digest `json:"trace_root"`
	Events     uint64     `json:"events"`
	State      string     `json:"state"`
	Decision   string     `json:"decision"`
	Result     string     `json:"result"`
	Permissive bool       `json:"permissive"`
}

// QuarantinedRecord says that a run's journal is damaged.
type QuarantinedRecord struct {
	RunID    abi.RunID `json:"run_id"`
	LastGood string    `json:"last_good"` // address of the last event that can be trusted
}

// DatasetSeen is a dataset as a run used it.
type DatasetSeen struct {
	DatasetID abi.ID     `json:"dataset_id"`
	Version   string     `json:"version"`
	State     string     `json:"state"` // experimental, frozen or deprecated
	Hash      abi.Digest `json:"hash"`
}

// envelope is a record's form in the ledger: an array of type, time and body.
type envelope struct {
	_       struct{} `cbor:",toarray"`
	Type    RecordType
	AtNanos int64
	Body    trace.Item
}

func (r *Record) body() any {
	switch {
	case r.AdmissionRefused != nil:
		return r.AdmissionRefused
	case r.RunAdmitted != nil:
		return r.RunAdmitted
	case r.RunSealed != nil:
		return r.RunSealed
	case r.Quarantined != nil:
		return r.Quarantined
	case r.DatasetSeen != nil:
		return r.DatasetSeen
	case r.Egress != nil:
		return r.Egress
	case r.Decision != nil:
		return r.Decision
	case r.ReplayDone != nil:
		return r.ReplayDone
	}
	return nil
}

// text is the commitment to the text kept beside r, "" where there is none.
func (r *Record) text() abi.Digest {
	switch {
	case r.AdmissionRefused != nil:
		return r.AdmissionRefused.Reasons
	case r.Egress != nil:
		return r.Egress.Where
	case r.Decision != nil:
		return r.Decision.Asked
	}
	return ""
}

// setBody sets the pointer that belongs to r's type and returns it.
func (r *Record) setBody() (any, error) {
	switch r.Type {
	case TypeAdmissionRefused:
		r.AdmissionRefused = new(AdmissionRefusedRecord)
	case TypeRunAdmitted:
		r.RunAdmitted = new(RunAdmittedRecord)
	case TypeRunSealed:
		r.RunSealed = new(RunSealedRecord)
	case TypeQuarantined:
		r.Quarantined = new(QuarantinedRecord)
	case TypeDatasetSeen:
		r.DatasetSeen = new(DatasetSeen)
	case TypeEgress:
		r.Egress = new(EgressRecord)
	case TypeDecision:
		r.Decision = new(DecisionRecord)
	case TypeReplayDone:
		r.ReplayDone = new(ReplayDone)
	default:
		return nil, fmt.Errorf("record type %.60q is unknown", r.Type)
	}
	return r.body(), nil
}

// encodeRecord returns the bytes that are kept and are a leaf of the log.
func encodeRecord(r *Record) ([]byte, error) {
	body, err := trace.EncodePayload(r.body())
	if err != nil {
		return nil, err
	}
	b, err := trace.EncodePayload(envelope{Type: r.Type, AtNanos: r.AtNanos, Body: body})
	if err == nil && len(b) > LedgerRecordBytesMax {
		err = fmt.Errorf("record of %d bytes is larger than %d", len(b), LedgerRecordBytesMax)
	}
	if err != nil {
		return nil, fmt.Errorf("encode %s record: %w", r.Type, err)
	}
	return b, nil
}

// decodeRecord reads what encodeRecord wrote and refuses every other form.
func decodeRecord(b []byte) (*Record, error) {
	if len(b) > LedgerRecordBytesMax {
		return nil, fmt.Errorf("decode record: %d bytes are more than %d", len(b), LedgerRecordBytesMax)
	}
	var e envelope
	if err := trace.DecodePayload(b, &e); err != nil {
		return nil, fmt.Errorf("decode record: %w", err)
	}
	r := &Record{Type: e.Type, AtNanos: e.AtNanos}
	body, err := r.setBody()
	if err != nil {
		return nil, fmt.Errorf("decode record: %w", err)
	}
	if err := trace.DecodePayload(e.Body, body); err != nil {
		return nil, fmt.Errorf("decode %s record: %w", e.Type, err)
	}
	if err := r.check(); err != nil {
		return nil, fmt.Errorf("decode %s record: %w", e.Type, err)
	}
	return r, nil
}

// check refuses what no writer of this version puts into a record.
func (r *Record) check() error {
	run, digest := abi.RunID(""), abi.Digest("")
	switch {
	case r.RunAdmitted != nil:
		run = r.RunAdmitted.RunID
	case r.RunSealed != nil:
		run, digest = r.RunSealed.RunID, r.RunSealed.TraceRoot
	case r.Quarantined != nil:
		run = r.Quarantined.RunID
	case r.ReplayDone != nil:
		run, digest = r.ReplayDone.RunID, r.ReplayDone.ExecutionDigest
	case r.AdmissionRefused != nil:
		return nil
	case r.DatasetSeen != nil:
		_, err := abi.ParseDigest(string(r.DatasetSeen.Hash))
		return err
	case r.Egress != nil:
		return r.Egress.check()
	case r.Decision != nil:
		_, err := abi.ParseDigest(string(r.Decision.Asked))
		return err
	}
	if _, err := abi.ParseRunID(string(run)); err != nil {
		return err
	}
	if r.RunSealed != nil {
		_, err := abi.ParseDigest(string(digest))
		return err
	}
	return nil
}

// checkRequestID accepts 1 to RequestIDBytesMax of A-Z a-z 0-9 . _ : -
func checkRequestID(id string) error {
	ok := len(id) > 0 && len(id) <= RequestIDBytesMax
	for i := range len(id) {
		c := id[i]
		ok = ok && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == ':' || c == '-')
	}
	if !ok {
		return &Problem{Code: CodeRequestInvalid, Detail: fmt.Sprintf("request id %.140q is not 1 to %d of A-Z a-z 0-9 . _ : -", id, RequestIDBytesMax)}
	}
	return nil
}

// text is free text kept beside a record that commits to it.
type text struct {
	_    struct{} `cbor:",toarray"`
	Salt []byte
	Text []string
}

func encodeText(salt [trace.SaltBytes]byte, lines []string) ([]byte, abi.Digest, error) {
	b, err := trace.EncodePayload(lines)
	if err != nil {
		return nil, "", err
	}
	commitment := abi.DigestFromSum(trace.Commit(salt, b))
	b, err = trace.EncodePayload(text{Salt: salt[:], Text: lines})
	if err == nil && len(b) > TextBytesMax {
		err = fmt.Errorf("text of %d bytes is larger than %d", len(b), TextBytesMax)
	}
	return b, commitment, err
}

// decodeText returns the lines of a text and the commitment they match.
func decodeText(b []byte) ([]string, abi.Digest, error) {
	var t text
	if err := trace.DecodePayload(b, &t); err != nil {
		return nil, "", err
	}
	if len(t.Salt) != trace.SaltBytes {
		return nil, "", errors.New("salt has a wrong length")
	}
	lines, err := trace.EncodePayload(t.Text)
	if err != nil {
		return nil, "", err
	}
	return t.Text, abi.DigestFromSum(trace.Commit([trace.SaltBytes]byte(t.Salt), lines)), nil
}
