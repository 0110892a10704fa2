package flow

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/writrun/writ/guest-abi/abi"
)

var (
	intentSources = []string{"llm", "retrieval", "human", "external"}
	httpMethods   = []string{"DELETE", "GET", "HEAD", "PATCH", "POST", "PUT"}
)

// Reach is a parsed URL prefix of an http grant.
type Reach struct {
	Scheme     string // http or https
	Host       string // lower case; "*.example.org" stands for exactly one label before it
	Port       uint16
	PathPrefix string // begins with "/"; matches whole path segments
}

// ParseReach reads scheme://host[:port][/path]. The host is a name, an address,
// or has one leading wildcard label. A path matches itself and everything below
// it, so /release admits /release/x and not /releases.
func ParseReach(prefix string) (Reach, error) {
	u, err := url.Parse(prefix)
	if err != nil {
		return Reach{}, fmt.Errorf("url_prefix %.200q cannot be read", prefix)
	}
	r := Reach{Scheme: u.Scheme, Host: u.Hostname(), PathPrefix: u.Path}
	switch {
	case r.Scheme != "http" && r.Scheme != "https":
		return Reach{}, errors.New("url_prefix is not an http or https URL")
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.Contains(prefix, "#"):
		return Reach{}, errors.New("url_prefix has user information, a query or a fragment")
	case u.Opaque != "" || r.Host == "":
		return Reach{}, errors.New("url_prefix has no host")
	}
	if err := checkHost(r.Host); err != nil {
		return Reach{}, err
	}
	if r.PathPrefix == "" {
		r.PathPrefix = "/"
	}
	if r.PathPrefix != "/" && path.Clean(r.PathPrefix) != strings.TrimSuffix(r.PathPrefix, "/") || u.RawPath != "" || strings.ContainsAny(r.PathPrefix, "\\%") {
		return Reach{}, fmt.Errorf("url_prefix path %.80q is not in its plain form", r.PathPrefix)
	}
	r.Port = map[string]uint16{"http": 80, "https": 443}[r.Scheme]
	if strings.HasSuffix(u.Host, ":") {
		return Reach{}, errors.New("url_prefix has an empty port")
	}
	if port := u.Port(); port != "" {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 || strconv.FormatUint(n, 10) != port {
			return Reach{}, fmt.Errorf("url_prefix port %.10q is not between 1 and 65535", port)
		}
		r.Port = uint16(n)
	}
	return r, nil
}

// checkHost accepts a plain ASCII name, an address, or a name after "*.".
func checkHost(host string) error {
	if addr, err := netip.ParseAddr(host); err == nil {
		if addr.Zone() != "" || addr.String() != host {
			return fmt.Errorf("address %.80q is not in its plain form %s", host, addr.WithZone(""))
		}
		return nil
	}
	name := strings.TrimPrefix(host, "*.")
	if len(name) > 253 || name != host && !strings.Contains(name, ".") {
		return fmt.Errorf("host %.80q: a wildcard stands for one label before a name of at least two", host)
	}
	last := ""
	for label := range strings.SplitSeq(name, ".") {
		plain := strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
		if label == "" || len(label) > 63 || !plain || label[0] == '-' || label[len(label)-1] == '-' {
			return fmt.Errorf("host %.80q is not a plain lower-case name", host)
		}
		last = label
	}
	if strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x") {
		return fmt.Errorf("host %.80q looks like an address in an odd spelling", host)
	}
	return nil
}

// entropySource returns the source of entropy an effect draws on.
func (e *Effect) entropySource() string {
	if e.Intent == "human" {
		return SourceHumanInput
	}
	// What is retrieved over http is as much an oracle as a model is.
	return SourceExternalOracle
}

// resolved returns the grant with every default filled in.
func (e Effect) resolved() Effect {
	e.Allow = slices.Clone(e.Allow)
	e.Networks, e.Secrets = append([]string{}, e.Networks...), append([]Secret{}, e.Secrets...)
	fill := func(v *uint64, def uint64) {
		if *v == 0 {
			*v = def
		}
	}
	fill(&e.RequestBytesMax, EffectBytesDefault)
	fill(&e.ResponseBytesMax, EffectBytesDefault)
	fill(&e.TimeoutMillis, TimeoutMillisDefault)
	attempts := uint64(1)
	if e.Delivery == DeliveryIdempotent {
		attempts = AttemptsDefault
	}
	fill(&e.AttemptsMax, attempts)
	return e
}

func readEffect(r *reader, n *node, path string) Effect {
	var e Effect
	o := r.object(n, path)
	o.required("driver", "http", func(n *node, path string) { e.Driver = r.choice(n, path, DriverHTTP) })
	o.required("intent", "one of llm, retrieval, human, external", func(n *node, path string) { e.Intent = r.choice(n, path, intentSources...) })
	o.required("allow", "what it may reach", func(n *node, path string) {
		r.list(n, path, 1, ListItemsMax, func(n *node, path string) { e.Allow = append(e.Allow, readAllow(r, n, path)) })
	})
	o.optional("networks", func(n *node, path string) {
		r.list(n, path, 1, ListItemsMax, func(n *node, path string) { e.Networks = append(e.Networks, readNetwork(r, n, path)) })
	})
	o.optional("request_bytes_max", func(n *node, path string) {
		e.RequestBytesMax = r.integer(n, path, CodeBudgetCeiling, 1, EffectBytesMax)
	})
	o.optional("response_bytes_max", func(n *node, path string) {
		e.ResponseBytesMax = r.integer(n, path, CodeBudgetCeiling, 1, EffectBytesMax)
	})
	o.optional("timeout_ms", func(n *node, path string) {
		e.TimeoutMillis = r.integer(n, path, CodeBudgetCeiling, 1, TimeoutMillisMax)
	})
	o.required("delivery", "idempotent or at_most_once", func(n *node, path string) {
		e.Delivery = r.choice(n, path, DeliveryIdempotent, DeliveryAtMostOnce)
	})
	o.optional("attempts_max", func(n *node, path string) {
		e.AttemptsMax = r.integer(n, path, CodeBudgetCeiling, 1, AttemptsMax)
		if e.Delivery == DeliveryAtMostOnce && e.AttemptsMax > 1 {
			r.fail(n.at, path, CodeBadValue, "leave it out, or use delivery: idempotent", "delivery at_most_once has one attempt")
		}
	})
	o.optional("secrets", func(n *node, path string) {
		r.list(n, path, 1, ListItemsMax, func(n *node, path string) { e.Secrets = append(e.Secrets, readSecret(r, n, path)) })
	})
	o.end()
	return e
}

func readAllow(r *reader, n *node, path string) Allow {
	var a Allow
	o := r.object(n, path)
	o.required("methods", "for instance [GET]", func(n *node, path string) { a.Methods = r.words(n, path, httpMethods...) })
	o.required("url_prefix", "for instance https://api.example.org/v1", func(n *node, path string) {
		a.URLPrefix = r.text(n, path, abi.PathBytesMax)
		if _, err := ParseReach(a.URLPrefix); a.URLPrefix != "" && err != nil {
			r.fail(n.at, path, CodeBadValue, "scheme://host[:port][/path], lower case, with at most one leading *. label", "%v", err)
		}
	})
	o.end()
	return a
}

func readNetwork(r *reader, n *node, path string) string {
	text := r.text(n, path, 64)
	if text == "" {
		return ""
	}
	p, err := netip.ParsePrefix(text)
	if err != nil || p.Masked().String() != text || p.Addr().Is4In6() {
		r.fail(n.at, path, CodeBadValue, "for instance 127.0.0.0/8 or fd00::/8", "%.64q is not a network in its plain form", text)
	}
	return text
}

func readSecret(r *reader, n *node, path string) Secret {
	var s Secret
	o := r.object(n, path)
	o.required("name", "as in --secret NAME=env:VAR", func(n *node, path string) { s.Name = readToken(r, n, path, "_-") })
	o.required("header", "for instance Authorization", func(n *node, path string) { s.Header = readToken(r, n, path, "-") })
	o.end()
	return s
}

// readToken reads letters, digits and the extra bytes.
func readToken(r *reader, n *node, path, extra string) string {
	text := r.text(n, path, abi.IDBytesMax)
	if strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"+extra) != "" {
		r.fail(n.at, path, CodeBadValue, "letters, digits and any of "+extra, "%.80q has other characters", text)
	}
	return text
}
