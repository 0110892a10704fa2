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
	"time"

	"github.com/writrun/writ/engine/flow"
	"github.com/writrun/writ/guest-abi/abi"
)

// Limits of an http exchange beside those of its grant.
const (
	RedirectsMax           = 5
	ResponseHeaderBytesMax = 64 << 10
	addressesMax           = 64 // addresses of one name
)

// HTTPConfig is what the http driver is made of. The zero value is the system's
// resolver, dialer and certificate authorities.
type HTTPConfig struct {
	Resolver interface {
		LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
	}
	Dial    func(ctx context.Context, network, address string) (net.Conn, error)
	RootCAs *x509.CertPool
}

// HTTP is the http driver. Each try has a connection of its own, so that what
// one grant may reach is never left open for another. It knows no proxy and
// keeps no cookies.
type HTTP struct{ config HTTPConfig }

// NewHTTP returns an http driver.
func NewHTTP(c HTTPConfig) *HTTP {
	if c.Resolver == nil {
		c.Resolver = net.DefaultResolver
	}
	if c.Dial == nil {
		c.Dial = (&net.Dialer{}).DialContext
	}
	return &HTTP{config: c}
}

// Name returns "http".
func (*HTTP) Name() string { return flow.DriverHTTP }

// Covers returns nil if the request has the driver's form and the grant reaches
// its method and url.
func (*HTTP) Covers(g flow.Effect, request []byte) error {
	_, err := readRequest(g, request)
	return err
}

// Perform sends the request once and follows redirects of GET and HEAD that
// stay inside the grant. A complete response of any status is ok: what it means
// is the guest's matter. Before a connection stands nothing was sent, and the
// outcome is failed; an error after that leaves it unknown.
func (h *HTTP) Perform(ctx context.Context, a Attempt) Outcome {
	req, err := readRequest(a.Grant, a.Request)
	if err != nil {
		return failed(abi.NotGranted, err)
	}
	own := http.Header{"Idempotency-Key": {a.Key}}
	for name, value := range req.Headers {
		own.Set(name, value)
	}
	for _, bound := range a.Grant.Secrets {
		s, ok := a.Secrets[bound.Name]
		if !ok || s.reveal() == "" {
			return failed(abi.NotGranted, fmt.Errorf("secret %s of the grant was not given", bound.Name))
		}
		own.Set(bound.Header, s.reveal())
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(a.Grant.TimeoutMillis)*time.Millisecond)
	defer cancel()
	transport := h.transport(a.Grant)
	defer transport.CloseIdleConnections()
	x := exchange{transport: transport, grant: a.Grant, masker: NewMasker(a.Secrets)}
	return x.run(ctx, req, own)
}

// transport returns what sends the requests of one try.
func (h *HTTP) transport(g flow.Effect) *http.Transport {
	return &http.Transport{
		DisableKeepAlives:      true, // also: nothing is ever sent twice unasked
		MaxResponseHeaderBytes: ResponseHeaderBytesMax,
		TLSClientConfig:        &tls.Config{RootCAs: h.config.RootCAs, MinVersion: tls.VersionTLS12},
		TLSNextProto:           map[string]func(string, *tls.Conn) http.RoundTripper{}, // HTTP/1.1 only
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			return h.dial(ctx, g.Networks, address)
		},
	}
}

// dial resolves a name, refuses it if any of its addresses is out of reach, and
// connects to the first that answers. What was checked is what is dialed: the
// name is not looked up again.
func (h *HTTP) dial(ctx context.Context, networks []string, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	var addrs []netip.Addr
	if literal, err := netip.ParseAddr(host); err == nil {
		addrs = []netip.Addr{literal}
	} else if addrs, err = h.config.Resolver.LookupNetIP(ctx, "ip", host); err != nil {
		return nil, fmt.Errorf("resolve %s: %w", host, err)
	}
	if len(addrs) == 0 || len(addrs) > addressesMax {
		return nil, fmt.Errorf("resolve %s: %d addresses", host, len(addrs))
	}
	for i, addr := range addrs {
		if addrs[i], err = checkAddress(addr, networks); err != nil {
			return nil, fmt.Errorf("reach %s: %w", host, err)
		}
	}
	var failures []error
	for _, addr := range addrs {
		conn, err := h.config.Dial(ctx, "tcp", net.JoinHostPort(addr.String(), port))
		if err == nil {
			return conn, nil
		}
		failures = append(failures, err)
	}
	return nil, errors.Join(failures...)
}

// exchange is one try: a request, and those its redirects lead to.
type exchange struct {
	transport *http.Transport
	grant     flow.Effect
	masker    *Masker
	details   Details
	sent      bool
}

// run sends req with the headers, and follows.
func (x *exchange) run(ctx context.Context, req *request, headers http.Header) Outcome {
	for hop := 0; ; hop++ {
		resp, err := x.send(ctx, req, headers)
		if err != nil {
			return x.broken(err)
		}
		next, err := x.redirect(req, resp, hop)
		if err != nil {
			resp.Body.Close()
			return x.end(StatusFailed, refusalCode(err), err)
		}
		if next == nil {
			return x.receive(req, resp)
		}
		resp.Body.Close()
		if next.origin() != req.origin() {
			headers = http.Header{}
		}
		req = next
	}
}

// send sends one request and reads the head of its response.
func (x *exchange) send(ctx context.Context, req *request, headers http.Header) (*http.Response, error) {
	x.sent, x.details = false, Details{}
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		x.sent = true
		x.details.Peer = info.Conn.RemoteAddr().String()
		if secure, ok := info.Conn.(*tls.Conn); ok {
			x.details.Certificate = string(abi.DigestOf(secure.ConnectionState().PeerCertificates[0].Raw))
		}
	}})
	out, err := http.NewRequestWithContext(ctx, req.Method, req.url.String(), bytes.NewReader(req.body))
	if err != nil {
		return nil, err
	}
	out.Header = headers.Clone()
	out.Header.Set("User-Agent", "writ")
	resp, err := x.transport.RoundTrip(out)
	if err != nil {
		return nil, err
	}
	x.details.HTTPStatus = resp.StatusCode
	if resp.StatusCode == http.StatusSwitchingProtocols {
		resp.Body.Close()
		return nil, errors.New("the far side switched protocols")
	}
	return resp, nil
}

// redirect returns the request a response leads to, nil if it is the last, or
// an error if it leads where the grant does not.
func (x *exchange) redirect(req *request, resp *http.Response, hop int) (*request, error) {
	location := resp.Header.Get("Location")
	if location == "" || req.Method != http.MethodGet && req.Method != http.MethodHead {
		return nil, nil
	}
	switch resp.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return nil, nil
	}
	if hop >= RedirectsMax {
		return nil, fmt.Errorf("more than %d redirects", RedirectsMax)
	}
	to, err := req.url.Parse(location)
	if err != nil {
		return nil, &refusal{"redirect to a url that cannot be read"}
	}
	to.Fragment, to.RawFragment = "", ""
	next := &request{Method: req.Method, URL: to.String()}
	if err := next.reach(x.grant); err != nil {
		return nil, fmt.Errorf("redirect: %w", err)
	}
	return next, nil
}

// broken is the outcome of a try that ended without a response.
func (x *exchange) broken(err error) Outcome {
	if x.sent {
		return x.end(StatusUnknown, abi.Unavailable, err)
	}
	return x.end(StatusFailed, refusalCode(err), err)
}

func (x *exchange) end(status Status, code abi.Code, err error) Outcome {
	out := Outcome{Status: status, Code: code, Details: x.details}
	out.Details.Error = err.Error()
	return x.masker.Outcome(out)
}

// receive reads a response to its end. The limit counts bytes after
// decompression.
func (x *exchange) receive(req *request, resp *http.Response) Outcome {
	defer resp.Body.Close()
	limit := int64(x.grant.ResponseBytesMax)
	body, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	if int64(len(body)) > limit {
		return x.end(StatusOK, abi.TooLarge, fmt.Errorf("response is above response_bytes_max %d", limit))
	}
	if err != nil {
		return x.broken(fmt.Errorf("read response: %w", err))
	}
	// Masked here too: what goes into base64 below must be masked before.
	body, ok := x.masker.Mask(body)
	if !ok {
		out := x.end(StatusOK, abi.Unavailable, errors.New("a secret could not be removed from the response"))
		out.Withheld = true
		return out
	}
	text, err := encodeResponse(resp.StatusCode, resp.Header, body)
	if err != nil {
		return x.broken(err)
	}
	return x.masker.Outcome(Outcome{Status: StatusOK, Response: text, Details: x.details})
}

// refusal is an error that is the grant's doing and not the network's.
type refusal struct{ text string }

func (r *refusal) Error() string { return r.text }

func refusalCode(err error) abi.Code {
	if r := (*refusal)(nil); errors.As(err, &r) {
		return abi.NotGranted
	}
	return abi.Unavailable
}
