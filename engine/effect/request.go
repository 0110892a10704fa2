package effect

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/writrun/writ/engine/flow"
	"github.com/writrun/writ/guest-abi/abi"
)

// Limits of the http driver that no grant changes.
const (
	RedirectsMax           = 5
	ResponseHeaderBytesMax = 64 << 10
	HeaderValueBytesMax    = 4 << 10 // a header a guest sets
	requestDepthMax        = 8       // nesting of a request's JSON
)

// Headers a guest may set, and those of a response it may see, in lower case.
var (
	requestHeaders  = []string{"accept", "accept-language", "content-type", "if-match", "if-modified-since", "if-none-match", "if-unmodified-since"}
	responseHeaders = []string{"cache-control", "content-language", "content-type", "etag", "last-modified", "location", "retry-after"}
)

// HTTPRequest is the message a guest gives the http driver.
type HTTPRequest struct {
	Method     string            `json:"method"`
	URL        string            `json:"url"`
	Headers    map[string]string `json:"headers,omitempty"` // accept, accept-language, content-type and if-*
	Body       string            `json:"body,omitempty"`
	BodyBase64 string            `json:"body_base64,omitempty"` // instead of body, for bytes that are not text
}

// HTTPResponse is the message the guest is shown.
type HTTPResponse struct {
	Status     int               `json:"status"`
	Headers    map[string]string `json:"headers"` // the few of responseHeaders, names in lower case
	Body       string            `json:"body,omitempty"`
	BodyBase64 string            `json:"body_base64,omitempty"` // instead of body, where that is not UTF-8
}

// target is a request that was read and checked.
type target struct {
	method  string
	url     *url.URL
	port    uint16
	headers http.Header
	body    []byte
}

// readRequest reads a guest's request; grants are not yet looked at.
func readRequest(b []byte) (*target, error) {
	if err := abi.CheckJSON(b, requestDepthMax); err != nil {
		return nil, fmt.Errorf("request: %w", err)
	}
	var r HTTPRequest
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return nil, fmt.Errorf("request: %w", err)
	}
	t := &target{method: r.Method, headers: http.Header{}, body: []byte(r.Body)}
	var err error
	if t.url, t.port, err = normalURL(r.URL); err != nil {
		return nil, err
	}
	if r.BodyBase64 != "" {
		if t.body, err = base64.StdEncoding.Strict().DecodeString(r.BodyBase64); err != nil || r.Body != "" {
			return nil, errors.New("request: body_base64 is not base64, or stands beside body")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Headers)) {
		value := r.Headers[name]
		switch {
		case !slices.Contains(requestHeaders, strings.ToLower(name)):
			return nil, fmt.Errorf("request: header %.60q is none a guest may set (%s)", name, strings.Join(requestHeaders, ", "))
		case t.headers.Get(name) != "":
			return nil, fmt.Errorf("request: header %q is given twice", name)
		case len(value) > HeaderValueBytesMax || strings.ContainsFunc(value, func(c rune) bool { return c < ' ' || c > '~' }):
			return nil, fmt.Errorf("request: header %q is longer than %d bytes or not plain ASCII", name, HeaderValueBytesMax)
		}
		t.headers.Set(name, value)
	}
	return t, nil
}

// normalURL reads a URL that has one reading only.
func normalURL(text string) (*url.URL, uint16, error) {
	refuse := func(why string) (*url.URL, uint16, error) { return nil, 0, fmt.Errorf("url %.200q %s", text, why) }
	if strings.ContainsFunc(text, func(c rune) bool { return c <= ' ' || c > '~' || c == '\\' }) {
		return refuse("has characters that must be percent-encoded")
	}
	u, err := url.Parse(text)
	if err != nil {
		return refuse("cannot be read")
	}
	u.Scheme, u.Host = strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return refuse("is neither http nor https")
	case u.User != nil:
		return refuse("has user information; bind a secret to a header")
	case u.Opaque != "" || u.Hostname() == "" || strings.HasSuffix(u.Hostname(), ".") || strings.HasSuffix(u.Host, ":"):
		return refuse("has no plain host")
	case u.Fragment != "" || strings.Contains(text, "#"):
		return refuse("has a fragment")
	}
	if u.Path == "" {
		u.Path = "/"
	}
	clean := path.Clean(u.Path)
	if clean != "/" && strings.HasSuffix(u.Path, "/") {
		clean += "/"
	}
	if clean != u.Path || u.RawPath != "" {
		return refuse("has a path that is not in its plain form")
	}
	port := uint64(80)
	if u.Scheme == "https" {
		port = 443
	}
	if p := u.Port(); p != "" {
		if port, err = strconv.ParseUint(p, 10, 16); err != nil || port == 0 || strconv.FormatUint(port, 10) != p {
			return refuse("has no plain port")
		}
	}
	return u, uint16(port), nil
}

// covers checks a target against one grant.
func (t *target) covers(g flow.Effect) error {
	for _, a := range g.Allow {
		reach, err := flow.ParseReach(a.URLPrefix)
		if err != nil {
			return err
		}
		if slices.Contains(a.Methods, t.method) && reaches(reach, t) {
			return nil
		}
	}
	return fmt.Errorf("%.20s %s is covered by no allow of the grant", t.method, t.url)
}

func reaches(r flow.Reach, t *target) bool {
	if r.Scheme != t.url.Scheme || r.Port != t.port || !hostMatches(r.Host, t.url.Hostname()) {
		return false
	}
	prefix := strings.TrimSuffix(r.PathPrefix, "/")
	rest, ok := strings.CutPrefix(t.url.Path, prefix)
	return ok && (rest == "" && !strings.HasSuffix(r.PathPrefix, "/") || strings.HasPrefix(rest, "/"))
}

// hostMatches compares hosts; "*.name" stands for exactly one label before name.
func hostMatches(want, host string) bool {
	name, wild := strings.CutPrefix(want, "*.")
	if !wild {
		return want == host
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return false
	}
	label, rest, ok := strings.Cut(host, ".")
	return ok && label != "" && rest == name
}

// showResponse makes the message for the guest. The body is masked before it is
// encoded, so that base64 hides nothing.
func showResponse(res *http.Response, body []byte, m *Masker) (Outcome, error) {
	masked, ok := m.Mask(body)
	if !ok {
		return Outcome{Status: StatusOK, Withheld: true, Code: abi.Unavailable}, nil
	}
	shown := HTTPResponse{Status: res.StatusCode, Headers: map[string]string{}}
	for _, name := range responseHeaders {
		if v := res.Header.Get(name); v != "" {
			shown.Headers[name] = strings.ToValidUTF8(v, "�")
		}
	}
	if utf8.Valid(masked) {
		shown.Body = string(masked)
	} else {
		shown.BodyBase64 = base64.StdEncoding.EncodeToString(masked)
	}
	b, err := abi.EncodeMessage(shown)
	return Outcome{Status: StatusOK, Response: b}, err
}
