package trace

import (
	"crypto/sha256"
	"hash"

	"github.com/transparency-dev/merkle/compact"
	"github.com/transparency-dev/merkle/rfc6962"

	"github.com/writrun/writ/guest-abi/abi"
)

// RootBuilder computes the RFC 6962 root over a sequence of leaves, for the
// trace root over event headers and for a ledger over its records. Its zero
// value is an empty tree. It keeps a logarithmic number of hashes.
type RootBuilder struct {
	tree *compact.Range
}

// Append adds a leaf.
func (r *RootBuilder) Append(leaf []byte) {
	if r.tree == nil {
		f := compact.RangeFactory{Hash: rfc6962.DefaultHasher.HashChildren}
		r.tree = f.NewEmptyRange(0)
	}
	// Appending a leaf to a range that starts at 0 cannot fail.
	_ = r.tree.Append(rfc6962.DefaultHasher.HashLeaf(leaf), nil)
}

// Size returns the number of leaves.
func (r *RootBuilder) Size() uint64 {
	if r.tree == nil {
		return 0
	}
	return r.tree.End()
}

// Sum returns the root's 32 bytes.
func (r *RootBuilder) Sum() (sum [32]byte) {
	root := rfc6962.DefaultHasher.EmptyRoot()
	if r.Size() > 0 {
		// A range from 0 always has a root.
		root, _ = r.tree.GetRootHash(nil)
	}
	copy(sum[:], root)
	return sum
}

// Root returns the root as a digest.
func (r *RootBuilder) Root() abi.Digest { return abi.DigestFromSum(r.Sum()) }

// ExecutionHasher computes the execution digest:
// SHA-256("writ/execution/1" ‖ items), with one CBOR array [lane, seq, kind,
// SHA-256 of payload] per core event, lanes in the run's layout order and
// events in theirs.
type ExecutionHasher struct {
	h   hash.Hash
	buf []byte
}

// Add adds a core event; the caller leaves out the others.
func (e *ExecutionHasher) Add(lane Lane, seq uint64, kind Kind, payload [32]byte) {
	e.begin()
	e.buf = AppendArrayHead(e.buf[:0], 4)
	e.buf = AppendText(e.buf, string(lane))
	e.buf = AppendUint(e.buf, seq)
	e.buf = AppendUint(e.buf, uint64(kind))
	e.buf = AppendBytes(e.buf, payload[:])
	e.h.Write(e.buf)
}

// Digest returns the digest of what was added so far.
func (e *ExecutionHasher) Digest() abi.Digest {
	e.begin()
	var sum [32]byte
	e.h.Sum(sum[:0])
	return abi.DigestFromSum(sum)
}

func (e *ExecutionHasher) begin() {
	if e.h == nil {
		e.h = sha256.New()
		e.h.Write([]byte("writ/execution/1"))
	}
}
