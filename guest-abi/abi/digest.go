package abi

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// DigestBytes is the length of a written digest: "sha256:" and 64 hex digits.
const DigestBytes = 71

// Digest is a SHA-256 digest, written "sha256:" and 64 lower-case hex digits.
// The empty Digest means "none".
type Digest string

// DigestOf returns the digest of b.
func DigestOf(b []byte) Digest {
	sum := sha256.Sum256(b)
	return DigestFromSum(sum)
}

// DigestFromSum writes a SHA-256 sum as a Digest.
func DigestFromSum(sum [32]byte) Digest { return Digest("sha256:" + hex.EncodeToString(sum[:])) }

// ParseDigest checks that s is a digest in its one canonical spelling.
func ParseDigest(s string) (Digest, error) {
	digits, ok := strings.CutPrefix(s, "sha256:")
	if _, err := hex.DecodeString(digits); !ok || err != nil || len(s) != DigestBytes || digits != strings.ToLower(digits) {
		return "", fmt.Errorf("digest %.80q is not \"sha256:\" and 64 lower-case hex digits", s)
	}
	return Digest(s), nil
}

// Hex returns the 64 hex digits of d, or "" if d is no digest.
func (d Digest) Hex() string { return strings.TrimPrefix(string(d), "sha256:") }

// Sum returns the 32 bytes of d.
func (d Digest) Sum() (sum [32]byte, err error) {
	if _, err := ParseDigest(string(d)); err != nil {
		return sum, err
	}
	_, err = hex.Decode(sum[:], []byte(d.Hex()))
	return sum, err
}
