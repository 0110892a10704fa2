package evidence

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/sumdb/note"

	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host/trace"
)

// Keys lie in <key directory>/<store id>: <tenant>.key signs the tenant's
// heads, runs/<tenant>/<run>.key protects an unfinished run's journal.

func (s *Store) tenantKeyPath(id abi.TenantID) string {
	return filepath.Join(s.keyDir, s.id, id.String()+".key")
}

func (t *Tenant) runKeyPath(run abi.RunID) string {
	return filepath.Join(t.store.keyDir, t.store.id, "runs", t.id.String(), string(run)+".key")
}

// readKey reads a key file that only its owner may touch.
func (s *Store) readKey(path string) (string, error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", &Problem{Code: CodeKeyMissing, Path: path, Detail: "there is no such key", cause: err}
	}
	if err != nil {
		return "", s.disk.problem("read key", path, err)
	}
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0 {
		return "", &Problem{Code: CodeKeyExposed, Path: path, Detail: fmt.Sprintf("the key has mode %v, not a file of mode 0600", info.Mode())}
	}
	b, err := readSmall(path, StoreFileBytesMax)
	if err != nil {
		return "", s.disk.problem("read key", path, err)
	}
	return string(b), nil
}

// writeKey makes a key file and the directories it lies in.
func (s *Store) writeKey(path, text string) error {
	if err := s.disk.mkdirAll(filepath.Dir(path)); err != nil {
		return err
	}
	return s.disk.writeFile(path, []byte(text))
}

// headKey is a tenant's key pair in the form of signed notes.
type headKey struct {
	signer   note.Signer
	verifier note.Verifier
	public   string
}

// makeHeadKey makes the key pair of a new tenant. Its name is the origin of
// the tenant's heads.
func (s *Store) makeHeadKey(id abi.TenantID) error {
	private, public, err := note.GenerateKey(lockedReader{s.disk}, s.origin(id))
	if err != nil {
		return fmt.Errorf("make key of tenant %s: %w", id, err)
	}
	return s.writeKey(s.tenantKeyPath(id), private+"\n"+public+"\n")
}

func (s *Store) readHeadKey(id abi.TenantID) (*headKey, error) {
	path := s.tenantKeyPath(id)
	text, err := s.readKey(path)
	if err != nil {
		return nil, err
	}
	lines := strings.Split(text, "\n")
	if len(lines) != 3 || lines[2] != "" {
		return nil, &Problem{Code: CodeKeyDamaged, Path: path, Detail: "not two lines: a private and a public key"}
	}
	signer, err := note.NewSigner(lines[0])
	if err != nil {
		return nil, &Problem{Code: CodeKeyDamaged, Path: path, Detail: err.Error(), cause: err}
	}
	verifier, err := note.NewVerifier(lines[1])
	if err != nil {
		return nil, &Problem{Code: CodeKeyDamaged, Path: path, Detail: err.Error(), cause: err}
	}
	probe, err := signer.Sign([]byte("probe\n"))
	if err != nil || signer.Name() != s.origin(id) || !verifier.Verify([]byte("probe\n"), probe) || verifier.KeyHash() != signer.KeyHash() {
		return nil, &Problem{Code: CodeKeyDamaged, Path: path, Detail: "the two keys do not belong together or to this tenant", cause: err}
	}
	return &headKey{signer: signer, verifier: verifier, public: lines[1]}, nil
}

// origin is the name of a tenant's log in its heads.
func (s *Store) origin(id abi.TenantID) string { return "writ/" + s.id + "/" + id.String() }

// runSecret is what an unfinished run's keys are derived from.
type runSecret [32]byte

func (t *Tenant) makeRunSecret(run abi.RunID) (secret runSecret, err error) {
	if err := t.disk.random(secret[:]); err != nil {
		return secret, err
	}
	return secret, t.store.writeKey(t.runKeyPath(run), hex.EncodeToString(secret[:])+"\n")
}

func (t *Tenant) readRunSecret(run abi.RunID) (secret runSecret, err error) {
	path := t.runKeyPath(run)
	text, err := t.store.readKey(path)
	if err != nil {
		return secret, err
	}
	raw, err := hex.DecodeString(strings.TrimSuffix(text, "\n"))
	if err != nil || len(raw) != len(secret) {
		return secret, &Problem{Code: CodeKeyDamaged, Path: path, Detail: "not 64 hex digits", cause: err}
	}
	return runSecret(raw), nil
}

// key derives one of the run's keys.
func (r runSecret) key(use string) ([]byte, error) {
	k, err := hkdf.Key(sha256.New, r[:], nil, use, 32)
	if err != nil {
		return nil, fmt.Errorf("derive %s: %w", use, err)
	}
	return k, nil
}

func (r runSecret) journalKey() ([]byte, error) { return r.key("writ/journal-mac/1") }

// effectKey is HMAC(key of the run's effects, lane ‖ 0 ‖ ordinal) in hex.
func effectKey(key []byte, lane trace.Lane, ordinal uint32) string {
	m := hmac.New(sha256.New, key)
	m.Write(append([]byte(lane), 0))
	m.Write(binary.BigEndian.AppendUint32(nil, ordinal))
	return hex.EncodeToString(m.Sum(nil))
}

// lockedReader is the store's randomness as a reader. Reads are of a seed's
// length; longer ones are not needed.
type lockedReader struct{ d *disk }

func (r lockedReader) Read(b []byte) (int, error) {
	b = b[:min(len(b), ed25519.SeedSize)]
	if err := r.d.random(b); err != nil {
		return 0, err
	}
	return len(b), nil
}

var _ io.Reader = lockedReader{}
