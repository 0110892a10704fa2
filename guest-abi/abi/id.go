package abi

import (
	"encoding/base32"
	"errors"
	"fmt"
	"strings"
)

// IDBytesMax is the longest an ID may be, in bytes.
const IDBytesMax = 63

// ID names a flow, step, rule or dataset: [a-z0-9][a-z0-9_-]{0,62}, and none of
// the reserved words run, control, flow and arbitration.
type ID string

// ParseID checks s and returns it as an ID. The error says what is wrong with s.
func ParseID(s string) (ID, error) {
	if err := checkID(s); err != nil {
		return "", err
	}
	switch s {
	case "run", "control", "flow", "arbitration":
		return "", fmt.Errorf("id %q is reserved", s)
	}
	return ID(s), nil
}

func checkID(s string) error {
	switch {
	case s == "":
		return errors.New("id is empty")
	case len(s) > IDBytesMax:
		return fmt.Errorf("id of %d bytes is longer than %d", len(s), IDBytesMax)
	}
	for i := range len(s) {
		c := s[i]
		alnum := c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
		if !alnum && (i == 0 || c != '_' && c != '-') {
			return fmt.Errorf("id %q has %q at byte %d; allowed is [a-z0-9][a-z0-9_-]{0,62}", s, c, i)
		}
	}
	return nil
}

// TenantID names a tenant. Its zero value names none and is refused by every
// function that takes one; only [ParseTenantID] makes a usable value.
type TenantID struct{ name string }

// ParseTenantID checks s, which has the form of an [ID], and returns the tenant.
func ParseTenantID(s string) (TenantID, error) {
	id, err := ParseID(s)
	if err != nil {
		return TenantID{}, fmt.Errorf("tenant: %w", err)
	}
	return TenantID{string(id)}, nil
}

// String returns the tenant's name.
func (t TenantID) String() string { return t.name }

// IsZero reports whether t names no tenant.
func (t TenantID) IsZero() bool { return t.name == "" }

// MarshalText returns the name.
func (t TenantID) MarshalText() ([]byte, error) {
	if t.IsZero() {
		return nil, errors.New("tenant is empty")
	}
	return []byte(t.name), nil
}

// UnmarshalText is [ParseTenantID].
func (t *TenantID) UnmarshalText(b []byte) error {
	v, err := ParseTenantID(string(b))
	if err == nil {
		*t = v
	}
	return err
}

// RunID names a run: "r" and 26 lower-case base32 characters (RFC 4648, no padding).
type RunID string

var runIDEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// NewRunID makes a run id of 16 random bytes.
func NewRunID(random [16]byte) RunID { return RunID("r" + runIDEncoding.EncodeToString(random[:])) }

// ParseRunID checks that s is a run id in its one canonical spelling.
func ParseRunID(s string) (RunID, error) {
	rest, ok := strings.CutPrefix(s, "r")
	raw, err := runIDEncoding.DecodeString(rest)
	if !ok || err != nil || len(raw) != 16 || runIDEncoding.EncodeToString(raw) != rest {
		return "", fmt.Errorf("run id %q is not \"r\" and 26 base32 characters", s)
	}
	return RunID(s), nil
}
