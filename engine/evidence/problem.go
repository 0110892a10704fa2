package evidence

import (
	"errors"
	"fmt"

	"github.com/writrun/writ/guest-abi/abi"
)

// Problem is a failure with a stable code that [Codes] explains. Open and
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

// Codes explains every code of this package.
func Codes() map[string]abi.CodeDoc {
	docs := storeCodes()
	for code, doc := range recordCodes() {
		docs[code] = doc
	}
	return docs
}

func storeCodes() map[string]abi.CodeDoc {
	return map[string]abi.CodeDoc{
		CodeLocked:         {Cause: "Another process is writing to this store; a store has one writer at a time.", Remedy: "Wait for it to end, or ask to wait. The lock goes away with the process that holds it; its text names that process for people and is not the lock."},
		CodeForeignCopy:    {Cause: "The store's directory is not where it was made: its device, inode or host name differs, so it may be a copy and the original may still be written to.", Remedy: "Open it for reading, or put it back where it was made. In a container, give the container a fixed host name."},
		CodeFormatUnknown:  {Cause: "The store was written by a version whose layout this version does not know.", Remedy: "Use the version that wrote it, or a newer one."},
		CodeReadOnly:       {Cause: "The store's directory or file system does not allow writing.", Remedy: "Make it writable for this user, or open it for reading only."},
		CodeNetworkFS:      {Cause: "The store is on a network or FUSE file system, where locks and durable writes cannot be relied on.", Remedy: "Put the store on a local disk."},
		CodeNotAStore:      {Cause: "The directory holds no store, or holds other files where a new store should be made.", Remedy: "Check the path, or make a store in an empty directory."},
		CodeFull:           {Cause: "The disk or quota is full. Nothing that was acknowledged is lost.", Remedy: "Free some room and try again."},
		CodeBroken:         {Cause: "The disk failed to make a write durable, so what it holds is unknown. This process takes no more work on the store.", Remedy: "Check the disk, then start again; opening the store finds out what is there."},
		CodeKeyMissing:     {Cause: "The key that signed this tenant's heads, or protects an unfinished run's journal, is not in the key directory.", Remedy: "Point to the key directory that was used before."},
		CodeKeyDamaged:     {Cause: "A key file cannot be read as a key.", Remedy: "Restore the key file from a copy."},
		CodeKeyExposed:     {Cause: "A key file can be read or written by other users.", Remedy: "Set its mode to 0600, and consider who has read it."},
		CodeKeysInStore:    {Cause: "The key directory lies inside the store, so a copy of the store would carry its keys.", Remedy: "Choose a key directory outside the store."},
		CodeTenantUnknown:  {Cause: "The store holds nothing of this tenant.", Remedy: "Check the tenant's name."},
		CodeUnexpectedFile: {Cause: "A file lies in the store that nothing accounts for.", Remedy: "Find out where it comes from and move it away."},
		CodeContentMissing: {Cause: "A content object that a record names is not there.", Remedy: "Restore it from a copy of the store; its name is its digest."},
		CodeContentMismatch: {Cause: "A content object does not have the digest it is named by.",
			Remedy: "Restore it from a copy of the store; its name is its digest."},
		CodeContentTooLarge: {Cause: "The content is larger than what was asked for or than the store takes.", Remedy: "Use a smaller file, or raise the budget that was reached."},
	}
}

func recordCodes() map[string]abi.CodeDoc {
	const restore = "Compare with a copy of the store. What is sealed is never rewritten, so an older copy of the file is the same file."
	return map[string]abi.CodeDoc{
		CodeRunUnknown:       {Cause: "The ledger of this tenant has no such run.", Remedy: "List the tenant's runs; check the run id and the tenant."},
		CodeRunExists:        {Cause: "A run with this id was admitted before.", Remedy: "Choose another run id, or none."},
		CodeRunNotSealed:     {Cause: "The run has not ended: it has a journal and no trace.", Remedy: "Inspect it as it is, or wait for its end."},
		CodeRunMissing:       {Cause: "The ledger says the run was admitted, and neither its journal nor its trace is there.", Remedy: restore},
		CodeRequestExists:    {Cause: "A run was admitted with this request id before.", Remedy: "That run is the answer to the request. Use another request id for another run."},
		CodeRequestInvalid:   {Cause: "A request id is 1 to 128 of the characters A-Z a-z 0-9 . _ : -", Remedy: "Choose another request id."},
		CodeDatasetChanged:   {Cause: "The same dataset id and version was used before with another hash.", Remedy: "Give changed data a new version."},
		CodeDatasetState:     {Cause: "The dataset was used before in a later state; states go experimental, frozen, deprecated.", Remedy: "Use the dataset in the state it has reached, or give it a new version."},
		CodeLedgerDamaged:    {Cause: "The ledger cannot be read to its end: a record is changed or not of a known form.", Remedy: restore},
		CodeLedgerTorn:       {Cause: "The last record of the ledger is unfinished, as after a crash while writing. It was never acknowledged.", Remedy: "Open the store for writing once; the unfinished record is cut off."},
		CodeLedgerBehindHead: {Cause: "The ledger has fewer records than a signed head says: its end was removed, or an older copy was put back.", Remedy: restore},
		CodeHeadDamaged:      {Cause: "A head is not a checkpoint signed with this tenant's key.", Remedy: restore},
		CodeHeadMismatch:     {Cause: "The ledger's records do not give the root that a signed head has for them: history was rewritten.", Remedy: restore},
		CodeHeadMissing:      {Cause: "Runs were sealed and no signed head covers them.", Remedy: "Heads were removed. " + restore},
		CodeTraceDamaged:     {Cause: "A trace file is missing or cannot be read to its end.", Remedy: restore},
		CodeTraceMismatch:    {Cause: "A trace file does not have the root that the ledger recorded when it was sealed.", Remedy: restore},
		CodeTraceUnlisted:    {Cause: "A trace file is there that the ledger does not know.", Remedy: "Compare with a copy of the store: the ledger may have lost its end."},
		CodePayloadsDamaged:  {Cause: "A payloads file is missing or cannot be read to its end.", Remedy: restore},
		CodePayloadMissing:   {Cause: "An event's payload is not in the run's payloads file.", Remedy: restore},
		CodePayloadMismatch:  {Cause: "A payload does not match the commitment in its event's header.", Remedy: restore},
		CodeDigestMismatch:   {Cause: "The execution digest recomputed from the payloads is not the one in RUN_END.", Remedy: restore},
		CodeJournalDamaged:   {Cause: "The journal of an unfinished run is changed: what follows the last good address cannot be trusted.", Remedy: "The run cannot go on; start a new one. What was recorded up to that address can still be read."},
		CodeJournalClosed:    {Cause: "The run's journal is closed: the run was sealed or interrupted.", Remedy: "Start a new run."},
		CodeTextMismatch:     {Cause: "The text kept beside a ledger record is missing or not the one the record commits to.", Remedy: restore},
		CodeEventUnknown:     {Cause: "The run has no event at this address.", Remedy: "List the run's events; an address is lane/number."},
	}
}
