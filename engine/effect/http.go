package effect

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"github.com/writrun/writ/engine/flow"
	"github.com/writrun/writ/guest-abi/abi"
)

// HTTPConfig says how the http driver reaches the network. Its zero value uses
// the system's resolver, dialer and roots.
type HTTPConfig struct {
	Resolver Resolver
	Dial     func(ctx context.Context, network, address string) (net.Conn, error)
	RootCAs  *x509.CertPool
}

// HTTP is the driver "http": one request to an address the grant names, and
// nothing else. It takes no proxy from the environment, keeps no cookie and no
// connection, and dials only addresses it has checked.
type HTTP struct {
	resolver Resolver
	dialer   func(ctx context.Context, network, address string) (net.Conn, error)
	roots    *x509.CertPool
	unmaps   bool // the system's resolver writes IPv4 addresses in their mapped form
}

// NewHTTP returns the driver.
func NewHTTP(c HTTPConfig) *HTTP {
	h := &HTTP{resolver: c.Resolver, dialer: c.Dial, roots: c.RootCAs}
	if h.resolver == nil {
		h.resolver, h.unmaps = net.DefaultResolver, true
	}
	if h.dialer == nil {
		h.dialer = new(net.Dialer).DialContext
	}
	return h
}

// Name is "http".
func (*HTTP) Name() string { return flow.DriverHTTP }

// Covers reports whether a grant covers a request, by its method, URL and size.
// Addresses are checked when the request is performed.
func (*HTTP) Covers(g flow.Effect, request []byte) error {
	if n := uint64(len(request)); n > g.RequestBytesMax {
		return fmt.Errorf("request of %d bytes is above request_bytes_max %d", n, g.RequestBytesMax)
	}
	t, err := readRequest(request)
	if err != nil {
		return err
	}
	return t.covers(g)
}

// Perform sends the request once, follows redirects of GET and HEAD that the
// grant covers as well, and returns the complete response.
func (h *HTTP) Perform(ctx context.Context, a Attempt) Outcome {
	m := NewMasker(a.Secrets)
	return m.Outcome(h.perform(ctx, a, m))
}

func (h *HTTP) perform(ctx context.Context, a Attempt, m *Masker) Outcome {
	t, err := readRequest(a.Request)
	if err != nil {
		return failed(abi.Invalid, err)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(a.Grant.TimeoutMillis)*time.Millisecond)
	defer cancel()
	setHeaders(t, a)
	for hops := 0; ; hops++ {
		if err := t.covers(a.Grant); err != nil {
			return failed(abi.NotGranted, err)
		}
		out, next := h.exchange(ctx, t, a.Grant, m)
		if next == nil {
			return out
		}
		if hops == RedirectsMax {
			return failed(abi.Unavailable, fmt.Errorf("more than %d redirects", RedirectsMax))
		}
		t = next
	}
}

// setHeaders adds what the host knows and the guest must not: the idempotency
// key and the secrets the grant binds.
func setHeaders(t *target, a Attempt) {
	t.headers.Set("User-Agent", "writ")
	if a.Key != "" {
		t.headers.Set("Idempotency-Key", a.Key)
	}
	for _, s := range a.Grant.Secrets {
		t.headers.Set(s.Header, a.Secrets[s.Name].value)
	}
}

// exchange sends t and reads the answer. next is where a redirect leads.
func (h *HTTP) exchange(ctx context.Context, t *target, g flow.Effect, m *Masker) (out Outcome, next *target) {
	addrs, err := h.resolve(ctx, t.url.Hostname(), g)
	switch {
	case errors.Is(err, errAddress):
		return failed(abi.NotGranted, err), nil
	case err != nil:
		return failed(abi.Unavailable, plainError(err)), nil
	}
	var sent atomic.Bool
	var details Details
	client := h.transport(addrs, t.port)
	defer client.CloseIdleConnections()
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(c httptrace.GotConnInfo) {
		// From here on bytes may be on their way.
		sent.Store(true)
		details.Peer = c.Conn.RemoteAddr().String()
	}})
	req, err := http.NewRequestWithContext(traced, t.method, t.url.String(), bytes.NewReader(t.body))
	if err != nil {
		return failed(abi.Invalid, err), nil
	}
	req.Header = t.headers.Clone()
	res, err := client.RoundTrip(req)
	if err != nil {
		return h.broken(sent.Load(), details, err), nil
	}
	defer res.Body.Close()
	details.HTTPStatus = res.StatusCode
	if res.TLS != nil && len(res.TLS.PeerCertificates) > 0 {
		details.Certificate = string(abi.DigestOf(res.TLS.PeerCertificates[0].Raw))
	}
	if next, err := redirect(t, res); next != nil || err != nil {
		if err != nil {
			out = failed(abi.Unavailable, err)
		}
		return out, next
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, int64(g.ResponseBytesMax)+1))
	switch {
	case err != nil:
		return h.broken(true, details, err), nil
	case uint64(len(body)) > g.ResponseBytesMax:
		// The far side has answered: the effect happened, only its answer is lost.
		details.Error = fmt.Sprintf("the response is above response_bytes_max %d", g.ResponseBytesMax)
		return Outcome{Status: StatusOK, Code: abi.TooLarge, Details: details}, nil
	}
	if out, err = showResponse(res, body, m); err != nil {
		details.Error = err.Error()
		out = Outcome{Status: StatusOK, Code: abi.Unavailable, Withheld: true}
	}
	out.Details = details
	return out, nil
}

// transport makes a client of one exchange that dials the checked addresses.
func (h *HTTP) transport(addrs []netip.Addr, port uint16) *http.Transport {
	return &http.Transport{
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return h.dial(ctx, network, addrs, port)
		},
		TLSClientConfig:        &tls.Config{RootCAs: h.roots, MinVersion: tls.VersionTLS12},
		DisableKeepAlives:      true,
		MaxResponseHeaderBytes: ResponseHeaderBytesMax,
	}
}

// broken is an exchange without a complete answer: unknown if any byte may have
// reached the far side.
func (h *HTTP) broken(sent bool, details Details, err error) Outcome {
	details.Error = plainError(err).Error()
	if !sent {
		return Outcome{Status: StatusFailed, Code: abi.Unavailable, Details: details}
	}
	return Outcome{Status: StatusUnknown, Code: abi.Unavailable, Details: details}
}

// plainError puts the usual ends of an exchange in words that do not change.
func plainError(err error) error {
	var cert *tls.CertificateVerificationError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return errors.New("no answer within timeout_ms")
	case errors.Is(err, context.Canceled):
		return errors.New("the run was cancelled")
	case errors.As(err, &cert):
		return fmt.Errorf("the peer's certificate is not valid: %w", cert.Err)
	}
	return err
}

// redirect returns where a response sends a GET or HEAD. On the way to another
// scheme, host or port every header of guest and secrets stays behind.
func redirect(t *target, res *http.Response) (*target, error) {
	location := res.Header.Get("Location")
	if location == "" || t.method != http.MethodGet && t.method != http.MethodHead || !slices.Contains([]int{301, 302, 303, 307, 308}, res.StatusCode) {
		return nil, nil
	}
	where, err := t.url.Parse(location)
	if err != nil {
		return nil, fmt.Errorf("redirect to %.200q: it cannot be read", location)
	}
	where.Fragment, where.RawFragment = "", ""
	u, port, err := normalURL(where.String())
	if err != nil {
		return nil, fmt.Errorf("redirect: %w", err)
	}
	next := &target{method: t.method, url: u, port: port, headers: t.headers}
	if u.Scheme != t.url.Scheme || u.Hostname() != t.url.Hostname() || port != t.port {
		next.headers = http.Header{"User-Agent": {"writ"}}
	}
	return next, nil
}
