package effect

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/writrun/writ/engine/flow"
)

// Resolver finds the addresses of a name; net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// errAddress is a host that resolves to an address the grant does not reach.
var errAddress = errors.New("address is not granted")

// special lists the networks that are not the public internet, beside those
// netip has words for: RFC 6890 and its registry.
var special = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("192.88.99.0/24"), netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("::/96"), netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48"),
	netip.MustParsePrefix("100::/64"), netip.MustParsePrefix("2001::/23"), netip.MustParsePrefix("2001:db8::/32"),
	netip.MustParsePrefix("2002::/16"), netip.MustParsePrefix("3fff::/20"), netip.MustParsePrefix("5f00::/16"), netip.MustParsePrefix("fec0::/10"),
}

// public reports whether an address is one of the public internet. A form that
// carries another address inside (mapped, NAT64, 6to4, Teredo) is not.
func public(a netip.Addr) bool {
	if a.Is4In6() || a.Zone() != "" || !a.IsGlobalUnicast() || a.IsPrivate() {
		return false
	}
	for _, p := range special {
		if p.Contains(a) {
			return false
		}
	}
	return true
}

// reachable checks one address against a grant.
func reachable(a netip.Addr, g flow.Effect) error {
	if public(a) {
		return nil
	}
	for _, text := range g.Networks {
		// The manifest's reader has checked the form.
		if p, err := netip.ParsePrefix(text); err == nil && p.Contains(a) {
			return nil
		}
	}
	return fmt.Errorf("%w: %s is not public and no network of the grant holds it", errAddress, a)
}

// resolve returns the addresses of a host. One that is not granted refuses them
// all: which of them would be dialled is not for chance to decide.
func (h *HTTP) resolve(ctx context.Context, host string, g flow.Effect) ([]netip.Addr, error) {
	var addrs []netip.Addr
	if a, err := netip.ParseAddr(host); err == nil {
		addrs = []netip.Addr{a}
	} else if addrs, err = h.resolver.LookupNetIP(ctx, "ip", host); err != nil {
		return nil, fmt.Errorf("resolve %s: %w", host, err)
	}
	for i, a := range addrs {
		if h.unmaps && a.Is4In6() {
			a = a.Unmap()
			addrs[i] = a
		}
		if err := reachable(a, g); err != nil {
			return nil, fmt.Errorf("%s: %w", host, err)
		}
	}
	if len(addrs) == 0 {
		return nil, fmt.Errorf("resolve %s: no address", host)
	}
	return addrs, nil
}

// dial connects to the first of the checked addresses that answers.
func (h *HTTP) dial(ctx context.Context, network string, addrs []netip.Addr, port uint16) (net.Conn, error) {
	var errs []error
	for _, a := range addrs {
		c, err := h.dialer(ctx, network, netip.AddrPortFrom(a, port).String())
		if err == nil {
			return c, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}
