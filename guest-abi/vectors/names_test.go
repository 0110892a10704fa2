package vectors_test

import (
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/hex"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/writrun/writ/guest-abi/abi"
)

type spellingVector struct {
	Text   []byte `json:"text_base64"`
	Accept bool   `json:"accept"`
}

// spellings checks a parser against accepted and refused texts and returns vectors.
func spellings(t *testing.T, parse func(string) error, good, bad []string) []spellingVector {
	t.Helper()
	var out []spellingVector
	for _, s := range good {
		if err := parse(s); err != nil {
			t.Errorf("%q refused: %v", s, err)
		}
		out = append(out, spellingVector{[]byte(s), true})
	}
	for _, s := range bad {
		if parse(s) == nil {
			t.Errorf("%q accepted", s)
		}
		out = append(out, spellingVector{[]byte(s), false})
	}
	return out
}

func TestIDs(t *testing.T) {
	settle(t, "ids.json", spellings(t,
		func(s string) error { _, err := abi.ParseID(s); return err },
		[]string{"a", "0", "release-gate", "a_b", "runs", "a--", strings.Repeat("a", 63)},
		[]string{"", "A", "-a", "_a", "a b", "a.b", "a/b", "a\n", "é", "a\x00", "\xff", "run", "control", "flow", "arbitration", strings.Repeat("a", 64)},
	))
}

func TestDigests(t *testing.T) {
	hex64 := strings.Repeat("0123456789abcdef", 4)
	settle(t, "digests.json", spellings(t,
		func(s string) error { _, err := abi.ParseDigest(s); return err },
		[]string{"sha256:" + hex64, string(abi.DigestOf(nil))},
		[]string{"", hex64, "sha256:", "sha256:" + hex64[1:], "sha256:" + hex64 + "0", "SHA256:" + hex64, "sha256:" + strings.ToUpper(hex64), "sha512:" + hex64, "sha256:g" + hex64[1:], " sha256:" + hex64},
	))
}

type codeVector struct {
	Name   string `json:"name"`
	Number int32  `json:"number"`           // a result below zero, or the number of a host call
	Module string `json:"module,omitempty"` // of a host call
}

func TestCodes(t *testing.T) {
	var want []codeVector
	for code := abi.NotGranted; code >= abi.Unavailable; code-- {
		if code.String() == "" {
			t.Errorf("code %d has no name", code)
		}
		want = append(want, codeVector{code.String(), int32(code), ""})
	}
	for _, c := range abi.HostCalls {
		want = append(want, codeVector{c.Name, int32(c.Number), c.Module})
	}
	settle(t, "codes.json", want)
}

type randomVector struct {
	Seed  string `json:"seed"` // 32 bytes, hex
	Lane  string `json:"lane"`
	Key   string `json:"key"`   // HKDF-SHA-256(seed, no salt, info "writ/random/1/"+lane), hex
	Bytes string `json:"bytes"` // the first 128 bytes of the stream (C2SP chacha8rand), hex
	Hash  string `json:"hash"`  // SHA-256 of the first 100,000 bytes, hex
}

func TestRandom(t *testing.T) {
	seeds := []string{strings.Repeat("00", 32), strings.Repeat("ff", 32), "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"}
	var want []randomVector
	for _, seed := range seeds {
		for _, lane := range []string{"inventory", "notify", "schema@inventory", "contradiction@flow"} {
			raw, err := hex.DecodeString(seed)
			if err != nil {
				t.Fatal(err)
			}
			key, err := hkdf.Key(sha256.New, raw, nil, "writ/random/1/"+lane, 32)
			if err != nil {
				t.Fatal(err)
			}
			stream := make([]byte, 100_000)
			if _, err := rand.NewChaCha8([32]byte(key)).Read(stream); err != nil {
				t.Fatal(err)
			}
			sum := sha256.Sum256(stream)
			want = append(want, randomVector{seed, lane, hex.EncodeToString(key), hex.EncodeToString(stream[:128]), hex.EncodeToString(sum[:])})
		}
	}
	settle(t, "random.json", want)
}
