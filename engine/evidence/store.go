package evidence

import (
	"bytes"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/writrun/writ/guest-abi/abi"
)

// Store is an open store directory.
type Store struct {
	dir      string
	keyDir   string
	id       string
	readOnly bool
	foreign  string // how the store's place differs from where it was made
	now      func() time.Time
	disk     *disk
	lock     *os.File

	mu      sync.Mutex
	tenants map[abi.TenantID]*Tenant
}

// description is store.json.
type description struct {
	ID     string `json:"id"`
	Format int    `json:"format"`
	place
}

const descriptionName = "store.json"

func newStore(o Options) (*Store, error) {
	switch {
	case o.Dir == "" || o.KeyDir == "":
		return nil, errors.New("open store: directory and key directory are required")
	case o.Now == nil || o.Rand == nil:
		return nil, errors.New("open store: clock and randomness are required")
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	keys, err := filepath.Abs(o.KeyDir)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	if rel, err := filepath.Rel(dir, keys); err == nil && rel != ".." && !strings.HasPrefix(rel, "../") {
		return nil, &Problem{Code: CodeKeysInStore, Path: keys, Detail: "the key directory lies inside the store " + dir}
	}
	return &Store{dir: dir, keyDir: keys, readOnly: o.ReadOnly, now: o.Now,
		disk: &disk{root: dir, rand: o.Rand}, tenants: map[abi.TenantID]*Tenant{}}, nil
}

// Init opens the store in o.Dir and makes it first if the directory is empty
// or absent. Of several processes doing so at once, one makes it.
func Init(o Options) (*Store, error) {
	s, err := newStore(o)
	if err != nil {
		return nil, err
	}
	if err := s.disk.mkdirAll(s.dir); err != nil {
		return nil, err
	}
	if err := s.begin(o, true); err != nil {
		return nil, err
	}
	return s, nil
}

// Open opens an existing store. Unless o.ReadOnly is set it becomes the
// store's writer and finishes what an earlier writer left half done.
func Open(o Options) (*Store, error) {
	s, err := newStore(o)
	if err != nil {
		return nil, err
	}
	if err := s.begin(o, false); err != nil {
		return nil, err
	}
	return s, nil
}

// begin opens the store, as its writer unless it is opened for reading.
func (s *Store) begin(o Options, create bool) error {
	if _, err := os.Stat(s.dir); err != nil {
		return &Problem{Code: CodeNotAStore, Path: s.dir, Detail: "there is no such directory", cause: err}
	}
	if err := refuseNetwork(s.dir); err != nil {
		return err
	}
	here, err := placeOf(s.dir, o.Host)
	if err != nil {
		return err
	}
	if s.readOnly {
		return s.describe(here)
	}
	if err := s.lookBeforeLocking(create); err != nil {
		return err
	}
	lock, err := takeLock(filepath.Join(s.dir, "lock"), o.Wait, lockText(here.Host, s.now()))
	if err != nil {
		return s.disk.problem("lock", s.dir, err)
	}
	s.lock = lock
	if err := s.write(here, create); err != nil {
		return errors.Join(err, s.Close())
	}
	return nil
}

// lookBeforeLocking refuses a directory that is no store before a lock file is
// left in it.
func (s *Store) lookBeforeLocking(create bool) error {
	if _, err := os.Stat(filepath.Join(s.dir, descriptionName)); err == nil {
		return nil
	}
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return s.disk.problem("read directory", s.dir, err)
	}
	if !create {
		return &Problem{Code: CodeNotAStore, Path: s.dir, Detail: "the directory has no " + descriptionName}
	}
	for _, e := range entries {
		// Left by another process that is making, or did not finish making, this store.
		ours := e.Name() == "lock" || e.Name() == descriptionName || e.Name() == "tenants" || strings.HasPrefix(e.Name(), tempPrefix)
		if !ours {
			return &Problem{Code: CodeNotAStore, Path: s.dir, Detail: fmt.Sprintf("the directory is not empty (%q) and has no %s", e.Name(), descriptionName)}
		}
	}
	return nil
}

// write makes this process the store's writer; the lock is held.
func (s *Store) write(here place, create bool) error {
	path := filepath.Join(s.dir, descriptionName)
	if _, err := os.Stat(path); create && errors.Is(err, fs.ErrNotExist) {
		if err := s.create(path, here); err != nil {
			return err
		}
	}
	if err := s.describe(here); err != nil {
		return err
	}
	if s.foreign != "" {
		return &Problem{Code: CodeForeignCopy, Path: s.dir, Detail: "the store was not made here (" + s.foreign + "); it opens for reading only"}
	}
	if err := s.disk.removeTemps(s.dir); err != nil {
		return err
	}
	return s.recoverTenants()
}

var storeIDEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

func (s *Store) create(path string, here place) error {
	tenants := filepath.Join(s.dir, "tenants")
	if err := s.disk.mkdir(tenants); err != nil {
		return err
	}
	if entries, err := os.ReadDir(tenants); err != nil || len(entries) > 0 {
		return &Problem{Code: CodeNotAStore, Path: s.dir, Detail: "the directory has tenants and no " + descriptionName, cause: err}
	}
	var id [16]byte
	if err := s.disk.random(id[:]); err != nil {
		return err
	}
	d := description{ID: "s" + storeIDEncoding.EncodeToString(id[:]), Format: Format, place: here}
	b, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return err
	}
	return s.disk.writeFile(path, append(b, '\n'))
}

// describe reads store.json and compares the store's place with it.
func (s *Store) describe(here place) error {
	path := filepath.Join(s.dir, descriptionName)
	b, err := readSmall(path, StoreFileBytesMax)
	if errors.Is(err, fs.ErrNotExist) {
		return &Problem{Code: CodeNotAStore, Path: s.dir, Detail: "the directory has no " + descriptionName, cause: err}
	}
	if err != nil {
		return s.disk.problem("read", path, err)
	}
	var version struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(b, &version); err != nil {
		return &Problem{Code: CodeNotAStore, Path: path, Detail: "not a store's description: " + err.Error(), cause: err}
	}
	if version.Format != Format {
		return &Problem{Code: CodeFormatUnknown, Path: path, Detail: fmt.Sprintf("the store has format %d and this version knows format %d", version.Format, Format)}
	}
	var d description
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&d); err != nil {
		return &Problem{Code: CodeNotAStore, Path: path, Detail: "not a store's description: " + err.Error(), cause: err}
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) || !validStoreID(d.ID) {
		return &Problem{Code: CodeNotAStore, Path: path, Detail: "not a store's description"}
	}
	s.id, s.foreign = d.ID, here.differs(d.place)
	return nil
}

func validStoreID(id string) bool {
	rest, ok := strings.CutPrefix(id, "s")
	raw, err := storeIDEncoding.DecodeString(rest)
	return ok && err == nil && len(raw) == 16 && storeIDEncoding.EncodeToString(raw) == rest
}

// ID returns the store's id: "s" and 26 base32 characters.
func (s *Store) ID() string { return s.id }

// Dir returns the store's directory.
func (s *Store) Dir() string { return s.dir }

// ReadOnly reports whether the store was opened for reading.
func (s *Store) ReadOnly() bool { return s.readOnly }

// Foreign says how the store's place differs from where it was made, "" if it
// does not.
func (s *Store) Foreign() string { return s.foreign }

// Ready reports why the store takes no more work: it was opened for reading,
// or an fsync failed.
func (s *Store) Ready() error {
	if s.readOnly {
		return &Problem{Code: CodeReadOnly, Path: s.dir, Detail: "the store was opened for reading"}
	}
	if p := s.disk.broken.Load(); p != nil {
		return p
	}
	return nil
}

// Close closes the journals of unfinished runs, which stay resumable, and
// gives up the lock.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, t := range s.tenants {
		errs = append(errs, t.close())
	}
	s.tenants = map[abi.TenantID]*Tenant{}
	if s.lock != nil {
		errs = append(errs, s.lock.Close())
		s.lock = nil
	}
	return errors.Join(errs...)
}

// Tenants returns the tenants the store holds something of, in order.
func (s *Store) Tenants() ([]abi.TenantID, error) {
	dir := filepath.Join(s.dir, "tenants")
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, s.disk.problem("read directory", dir, err)
	}
	if len(entries) > TenantsMax {
		return nil, fmt.Errorf("list tenants of %s: more than %d", s.dir, TenantsMax)
	}
	var ids []abi.TenantID
	for _, e := range entries {
		if id, err := abi.ParseTenantID(e.Name()); err == nil && e.IsDir() {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b abi.TenantID) int { return strings.Compare(a.String(), b.String()) })
	return ids, nil
}

// Tenant returns a tenant of the store. A store opened for writing makes an
// absent one; one opened for reading answers tenant_unknown.
func (s *Store) Tenant(id abi.TenantID) (*Tenant, error) {
	if id.IsZero() {
		return nil, errors.New("open tenant: the tenant is empty")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if t, ok := s.tenants[id]; ok {
		return t, nil
	}
	t, err := s.openTenant(id)
	if err != nil {
		return nil, err
	}
	if !s.readOnly {
		// A reader looks anew each time: another process may be writing.
		s.tenants[id] = t
	}
	return t, nil
}

// recoverTenants opens each tenant that has unfinished runs, which finishes
// what can be finished.
func (s *Store) recoverTenants() error {
	ids, err := s.Tenants()
	if err != nil {
		return err
	}
	for _, id := range ids {
		entries, err := os.ReadDir(filepath.Join(s.dir, "tenants", id.String(), "journal"))
		if err != nil || len(entries) == 0 {
			continue
		}
		if _, err := s.Tenant(id); err != nil {
			return fmt.Errorf("recover tenant %s: %w", id, err)
		}
	}
	return nil
}
