package evidence

import (
	"errors"
	"fmt"
)

// Problem is a failure with a stable code that [CodeDocs] explains. Open and
// the writing methods return one as an error; [Store.Verify] lists them.
type Problem struct {
	Code    string `json:"code"`
	Path    string `json:"path,omitempty"`    // relative to the store where it is in it
	Address string `json:"address,omitempty"` // of the event concerned
	Detail  string `json:"detail"`
	cause   error
}

// Error says what is wrong, with what, and the code to look up.
func (p *Problem) Error() string {
	s := p.Detail
	if p.Address != "" {
		s = "event " + p.Address + ": " + s
	}
	if p.Path != "" {
		s = p.Path + ": " + s
	}
	return fmt.Sprintf("%s (%s)", s, p.Code)
}

// Unwrap returns the system's error, if there is one.
func (p *Problem) Unwrap() error { return p.cause }

// CodeOf returns the code of the Problem in err, or "".
func CodeOf(err error) string {
	var p *Problem
	if errors.As(err, &p) {
		return p.Code
	}
	return ""
}

// Codes of problems.
const (
	CodeLocked           = "store_locked"
	CodeForeignCopy      = "store_foreign_copy"
	CodeFormatUnknown    = "store_format_unknown"
	CodeReadOnly         = "store_read_only"
	CodeNetworkFS        = "store_network_fs"
	CodeNotAStore        = "not_a_store"
	CodeFull             = "store_full"
	CodeBroken           = "store_fsync_failed"
	CodeKeyMissing       = "key_missing"
	CodeKeyDamaged       = "key_damaged"
	CodeKeyExposed       = "key_exposed"
	CodeKeysInStore      = "keys_inside_store"
	CodeTenantUnknown    = "tenant_unknown"
	CodeRunUnknown       = "run_unknown"
	CodeRunExists        = "run_exists"
	CodeRunNotSealed     = "run_not_sealed"
	CodeRunMissing       = "run_missing"
	CodeRequestExists    = "request_exists"
	CodeRequestInvalid   = "request_id_invalid"
	CodeDatasetChanged   = "dataset_changed"
	CodeDatasetState     = "dataset_state_reversed"
	CodeLedgerDamaged    = "ledger_damaged"
	CodeLedgerTorn       = "ledger_torn"
	CodeLedgerBehindHead = "ledger_behind_head"
	CodeHeadDamaged      = "head_damaged"
	CodeHeadMismatch     = "head_mismatch"
	CodeHeadMissing      = "head_missing"
	CodeTraceDamaged     = "trace_damaged"
	CodeTraceMismatch    = "trace_root_mismatch"
	CodeTraceUnlisted    = "trace_without_record"
	CodePayloadsDamaged  = "payloads_damaged"
	CodePayloadMissing   = "payload_missing"
	CodePayloadMismatch  = "payload_mismatch"
	CodeContentMissing   = "content_missing"
	CodeContentMismatch  = "content_mismatch"
	CodeContentTooLarge  = "content_too_large"
	CodeDigestMismatch   = "execution_digest_mismatch"
	CodeJournalDamaged   = "journal_damaged"
	CodeJournalClosed    = "journal_closed"
	CodeTextMismatch     = "text_mismatch"
	CodeEventUnknown     = "event_unknown"
	CodeUnexpectedFile   = "unexpected_file"
)

// CodeDoc explains a code to the person who met it.
type CodeDoc struct {
	Cause  string
	Remedy string
}

// CodeDocs explains every code of this package.
func CodeDocs() map[string]CodeDoc {
	docs := storeCodeDocs()
	for code, doc := range recordCodeDocs() {
		docs[code] = doc
	}
	return docs
}

func storeCodeDocs() map[string]CodeDoc {
	return map[string]CodeDoc{
		CodeLocked:         {"Another process is writing to this store; a store has one writer at a time.", "Wait for it to end, or ask to wait. The lock goes away with the process that holds it; its text names that process for people and is not the lock."},
		CodeForeignCopy:    {"The store's directory is not where it was made: its device, inode or host name differs, so it may be a copy and the original may still be written to.", "Open it for reading, or put it back where it was made. In a container, give the container a fixed host name."},
		CodeFormatUnknown:  {"The store was written by a version whose layout this version does not know.", "Use the version that wrote it, or a newer one."},
		CodeReadOnly:       {"The store's directory or file system does not allow writing.", "Make it writable for this user, or open it for reading only."},
		CodeNetworkFS:      {"The store is on a network or FUSE file system, where locks and durable writes cannot be relied on.", "Put the store on a local disk."},
		CodeNotAStore:      {"The directory holds no store, or holds other files where a new store should be made.", "Check the path, or make a store in an empty directory."},
		CodeFull:           {"The disk or quota is full. Nothing that was acknowledged is lost.", "Free some room and try again."},
		CodeBroken:         {"The disk failed to make a write durable, so what it holds is unknown. This process takes no more work on the store.", "Check the disk, then start again; opening the store finds out what is there."},
		CodeKeyMissing:     {"The key that signed this tenant's heads, or protects an unfinished run's journal, is not in the key directory.", "Point to the key directory that was used before."},
		CodeKeyDamaged:     {"A key file cannot be read as a key.", "Restore the key file from a copy."},
		CodeKeyExposed:     {"A key file can be read or written by other users.", "Set its mode to 0600, and consider who has read it."},
		CodeKeysInStore:    {"The key directory lies inside the store, so a copy of the store would carry its keys.", "Choose a key directory outside the store."},
		CodeTenantUnknown:  {"The store holds nothing of this tenant.", "Check the tenant's name."},
		CodeUnexpectedFile: {"A file lies in the store that nothing accounts for.", "Find out where it comes from and move it away."},
		CodeContentMissing: {"A content object that a record names is not there.", "Restore it from a copy of the store; its name is its digest."},
		CodeContentMismatch: {"A content object does not have the digest it is named by.",
			"Restore it from a copy of the store; its name is its digest."},
		CodeContentTooLarge: {"The content is larger than what was asked for or than the store takes.", "Use a smaller file, or raise the budget that was reached."},
	}
}

func recordCodeDocs() map[string]CodeDoc {
	const restore = "Compare with a copy of the store. What is sealed is never rewritten, so an older copy of the file is the same file."
	return map[string]CodeDoc{
		CodeRunUnknown:       {"The ledger of this tenant has no such run.", "List the tenant's runs; check the run id and the tenant."},
		CodeRunExists:        {"A run with this id was admitted before.", "Choose another run id, or none."},
		CodeRunNotSealed:     {"The run has not ended: it has a journal and no trace.", "Inspect it as it is, or wait for its end."},
		CodeRunMissing:       {"The ledger says the run was admitted, and neither its journal nor its trace is there.", restore},
		CodeRequestExists:    {"A run was admitted with this request id before.", "That run is the answer to the request. Use another request id for another run."},
		CodeRequestInvalid:   {"A request id is 1 to 128 of the characters A-Z a-z 0-9 . _ : -", "Choose another request id."},
		CodeDatasetChanged:   {"The same dataset id and version was used before with another hash.", "Give changed data a new version."},
		CodeDatasetState:     {"The dataset was used before in a later state; states go experimental, frozen, deprecated.", "Use the dataset in the state it has reached, or give it a new version."},
		CodeLedgerDamaged:    {"The ledger cannot be read to its end: a record is changed or not of a known form.", restore},
		CodeLedgerTorn:       {"The last record of the ledger is unfinished, as after a crash while writing. It was never acknowledged.", "Open the store for writing once; the unfinished record is cut off."},
		CodeLedgerBehindHead: {"The ledger has fewer records than a signed head says: its end was removed, or an older copy was put back.", restore},
		CodeHeadDamaged:      {"A head is not a checkpoint signed with this tenant's key.", restore},
		CodeHeadMismatch:     {"The ledger's records do not give the root that a signed head has for them: history was rewritten.", restore},
		CodeHeadMissing:      {"Runs were sealed and no signed head covers them.", "Heads were removed. " + restore},
		CodeTraceDamaged:     {"A trace file is missing or cannot be read to its end.", restore},
		CodeTraceMismatch:    {"A trace file does not have the root that the ledger recorded when it was sealed.", restore},
		CodeTraceUnlisted:    {"A trace file is there that the ledger does not know.", "Compare with a copy of the store: the ledger may have lost its end."},
		CodePayloadsDamaged:  {"A payloads file is missing or cannot be read to its end.", restore},
		CodePayloadMissing:   {"An event's payload is not in the run's payloads file.", restore},
		CodePayloadMismatch:  {"A payload does not match the commitment in its event's header.", restore},
		CodeDigestMismatch:   {"The execution digest recomputed from the payloads is not the one in RUN_END.", restore},
		CodeJournalDamaged:   {"The journal of an unfinished run is changed: what follows the last good address cannot be trusted.", "The run cannot go on; start a new one. What was recorded up to that address can still be read."},
		CodeJournalClosed:    {"The run's journal is closed: the run was sealed or interrupted.", "Start a new run."},
		CodeTextMismatch:     {"The text kept beside a ledger record is missing or not the one the record commits to.", restore},
		CodeEventUnknown:     {"The run has no event at this address.", "List the run's events; an address is lane/number."},
	}
}
