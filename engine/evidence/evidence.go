// Package evidence keeps what runs leave behind: the journal of an unfinished
// run, the sealed trace, the payloads, the content they name, the tenant's
// ledger and its signed heads. It is files only, laid out as one store
// directory with one writer at a time and any number of readers.
//
// It acknowledges nothing that is not durable, never rewrites what is sealed,
// and never signs a ledger that is shorter than, or inconsistent with, a head
// it signed before. After one failed fsync it takes no more work, because what
// the disk then holds is unknown. It interprets no payload but those it needs
// to file a run (ADMISSION, EXECUTION_END).
package evidence

import (
	"io"
	"time"
)

// Format is the version of the store's layout that this package reads and writes.
const Format = 1

// Options says which store to open and how.
type Options struct {
	Dir      string           // the store directory
	KeyDir   string           // where keys live; never inside Dir
	ReadOnly bool             // take no lock and write nothing
	Wait     time.Duration    // how long to wait for another writer; 0 means not at all
	Host     string           // name of this machine; "" means the system's
	Now      func() time.Time // the clock records are dated with; required
	Rand     io.Reader        // cryptographic randomness for ids, salts and keys; required
}

// Limits of a store.
const (
	StoreFileBytesMax    = 64 << 10 // store.json, a key file, a head
	LedgerRecordBytesMax = 64 << 10 // one record of a ledger
	TextBytesMax         = 1 << 20  // the free text beside a record
	RequestIDBytesMax    = 128      // a caller's request id
	ContentBytesMax      = 1 << 40  // one content object
	TenantsMax           = 1 << 16  // tenants of a store
)

const (
	dirMode  = 0o700
	fileMode = 0o600
)
