package abi

import (
	"strings"
	"testing"
)

func TestRunID(t *testing.T) {
	id := NewRunID([16]byte{0: 0xff, 15: 1})
	if got, err := ParseRunID(string(id)); err != nil || got != id {
		t.Errorf("%q reads back as %q, %v", id, got, err)
	}
	for _, s := range []string{"", "r", string(id[1:]), string(id) + "a", strings.ToUpper(string(id)), "r" + strings.Repeat("1", 26), string(id[:26]) + "b"} {
		if _, err := ParseRunID(s); err == nil {
			t.Errorf("%q accepted", s)
		}
	}
}

func TestTenantID(t *testing.T) {
	var zero TenantID
	if _, err := zero.MarshalText(); err == nil || !zero.IsZero() {
		t.Error("the zero tenant names one")
	}
	for _, s := range []string{"", "run", "A"} {
		if _, err := ParseTenantID(s); err == nil {
			t.Errorf("%q accepted", s)
		}
	}
	var got TenantID
	if err := got.UnmarshalText([]byte("acme")); err != nil || got.String() != "acme" {
		t.Errorf("read as %q, %v", got, err)
	}
}

func TestDigestSum(t *testing.T) {
	sum, err := DigestOf([]byte("abc")).Sum()
	if err != nil || DigestFromSum(sum) != DigestOf([]byte("abc")) {
		t.Errorf("sum %x, %v", sum, err)
	}
	if _, err := Digest("").Sum(); err == nil {
		t.Error("no digest has a sum")
	}
}

func TestLimitsResolve(t *testing.T) {
	defaults, err := Limits{}.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range defaults.fields() {
		if l := LimitTable[i]; *f != l.Default || l.Default > l.Ceiling {
			t.Errorf("%s resolves to %d; default %d, ceiling %d", l.Name, *f, l.Default, l.Ceiling)
		}
	}
	for i, l := range LimitTable {
		var at, above Limits
		*at.fields()[i], *above.fields()[i] = l.Ceiling, l.Ceiling+1
		if _, err := at.Resolve(); err != nil {
			t.Errorf("%s at its ceiling: %v", l.Name, err)
		}
		if _, err := above.Resolve(); err == nil || !strings.Contains(err.Error(), l.Name) {
			t.Errorf("%s above its ceiling: %v", l.Name, err)
		}
	}
	if l, err := (Limits{MemoryBytes: 3*PageBytes - 1}).Resolve(); err != nil || l.MemoryBytes != 2*PageBytes {
		t.Errorf("memory of 3 pages less a byte resolves to %d, %v", l.MemoryBytes, err)
	}
	if _, err := (Limits{MemoryBytes: PageBytes - 1}).Resolve(); err == nil {
		t.Error("memory below a page accepted")
	}
}

func TestHostCallsAreNumberedOnce(t *testing.T) {
	numbers, names := map[uint16]bool{}, map[string]bool{}
	for _, c := range HostCalls {
		if name := c.Module + "." + c.Name; numbers[c.Number] || names[name] || c.Number == CallRefill || c.Number == 0 {
			t.Errorf("number %d of %s is taken", c.Number, name)
		} else {
			numbers[c.Number], names[name] = true, true
		}
		if inWrit := c.Module == ModuleWrit; inWrit != (c.Number < 100) || len(c.Results) > 1 {
			t.Errorf("%s.%s has number %d and %d results", c.Module, c.Name, c.Number, len(c.Results))
		}
	}
}
