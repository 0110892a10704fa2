package effect

import (
	"fmt"
	"net/netip"
)

// notPublic returns the networks that no name on the public internet should
// lead to (IANA special-purpose registries), and the one public address that a
// cloud answers its own machines on.
func notPublic() []netip.Prefix {
	texts := [...]string{
		"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
		"192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15",
		"198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4", "168.63.129.16/32",
		// Inside 2000::/3: protocol assignments with Teredo, documentation, 6to4.
		"2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
	}
	out := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		out[i] = netip.MustParsePrefix(text)
	}
	return out
}

// checkAddress returns the address in its plain form if it is public or in one
// of the networks. Of IPv6 only 2000::/3 is public, which leaves out loopback,
// link-local, unique local, multicast, and the forms that carry an IPv4 address;
// a mapped IPv4 address is judged as what it is.
func checkAddress(addr netip.Addr, networks []string) (netip.Addr, error) {
	if addr.Zone() != "" {
		return addr, &refusal{fmt.Sprintf("address %s has a zone", addr)}
	}
	addr = addr.Unmap()
	for _, text := range networks {
		if p, err := netip.ParsePrefix(text); err == nil && p.Contains(addr) {
			return addr, nil
		}
	}
	public := addr.Is4() || addr.Is6() && addr.As16()[0]>>5 == 1
	for _, p := range notPublic() {
		public = public && !p.Contains(addr)
	}
	if !public {
		return addr, &refusal{fmt.Sprintf("address %s is not public, and no network of the grant holds it", addr)}
	}
	return addr, nil
}
