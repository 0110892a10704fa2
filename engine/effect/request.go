package effect

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/writrun/writ/engine/flow"
	"github.com/writrun/writ/guest-abi/abi"
)

// Limits of a request's parts; the whole is limited by its grant.
const (
	URLBytesMax    = 8 << 10
	HeaderBytesMax = 8 << 10 // one value
	requestDepth   = 2       // JSON: the request and its headers
)

// guestHeaders are the headers a guest may set.
func guestHeaders() []string {
	return []string{"accept", "accept-language", "content-language", "content-type", "if-match", "if-modified-since",
		"if-none-match", "if-unmodified-since", "prefer", "range"}
}

// guardedHeaders steer the exchange itself; no secret may stand in them.
func guardedHeaders() []string {
	return []string{"accept-encoding", "connection", "content-length", "expect", "host", "idempotency-key", "keep-alive",
		"proxy-connection", "te", "trailer", "transfer-encoding", "upgrade", "user-agent"}
}

// request is what a guest hands the http driver.
type request struct {
	Method  string
	URL     string
	Headers map[string]string

	body []byte
	url  *url.URL // normalised
}

// readRequest reads a request and checks it against a grant.
func readRequest(g flow.Effect, data []byte) (*request, error) {
	if uint64(len(data)) > g.RequestBytesMax {
		return nil, &coded{abi.TooLarge, fmt.Errorf("request of %d bytes is above request_bytes_max %d", len(data), g.RequestBytesMax)}
	}
	r, err := decodeRequest(data)
	if err != nil {
		return nil, &coded{abi.Invalid, fmt.Errorf("read http request: %w", err)}
	}
	if err := r.checkHeaders(g.Secrets); err != nil {
		return nil, err
	}
	return r, r.reach(g)
}

// decodeRequest reads {method, url, headers, body | body_base64}. Names are
// exact, and method and url must be there.
func decodeRequest(data []byte) (*request, error) {
	if err := abi.CheckJSON(data, requestDepth); err != nil {
		return nil, err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil || fields == nil {
		return nil, fmt.Errorf("it is not an object")
	}
	r := &request{}
	var body, encoded *string
	into := map[string]any{"method": &r.Method, "url": &r.URL, "headers": &r.Headers, "body": &body, "body_base64": &encoded}
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		target, known := into[name]
		if !known {
			return nil, fmt.Errorf("unknown field %.80q", name)
		}
		if bytes.Contains(fields[name], []byte("null")) && !json.Valid(bytes.ReplaceAll(fields[name], []byte("null"), []byte(" "))) {
			return nil, fmt.Errorf("field %s is or has null", name)
		}
		if err := json.Unmarshal(fields[name], target); err != nil {
			return nil, fmt.Errorf("field %s has the wrong type", name)
		}
	}
	switch {
	case r.Method == "" || r.URL == "":
		return nil, fmt.Errorf("method or url is missing")
	case body != nil && encoded != nil:
		return nil, fmt.Errorf("body and body_base64 exclude each other")
	case (body != nil || encoded != nil) && (r.Method == http.MethodGet || r.Method == http.MethodHead):
		return nil, fmt.Errorf("%s has no body", r.Method)
	case body != nil:
		r.body = []byte(*body)
	case encoded != nil:
		b, err := base64.StdEncoding.Strict().DecodeString(*encoded)
		if err != nil {
			return nil, fmt.Errorf("body_base64 is not standard base64 with padding")
		}
		r.body = b
	}
	return r, nil
}

// checkHeaders checks the guest's headers and those secrets are bound to.
func (r *request) checkHeaders(secrets []flow.Secret) error {
	bound := map[string]bool{}
	for _, s := range secrets {
		name := strings.ToLower(s.Header)
		if slices.Contains(guardedHeaders(), name) {
			return fmt.Errorf("secret %s is bound to header %s, which the driver sets itself", s.Name, name)
		}
		bound[name] = true
	}
	names := make([]string, 0, len(r.Headers))
	for name := range r.Headers {
		names = append(names, name)
	}
	slices.Sort(names)
	seen := map[string]bool{}
	for _, name := range names {
		lower, value := strings.ToLower(name), r.Headers[name]
		switch {
		case !slices.Contains(guestHeaders(), lower):
			return fmt.Errorf("header %.80q is not one a guest may set: %s", name, strings.Join(guestHeaders(), ", "))
		case seen[lower]:
			return fmt.Errorf("header %s is given twice", lower)
		case bound[lower]:
			return fmt.Errorf("header %s is bound to a secret", lower)
		case len(value) > HeaderBytesMax:
			return fmt.Errorf("header %s is longer than %d bytes", lower, HeaderBytesMax)
		case strings.ContainsFunc(value, func(c rune) bool { return c < ' ' || c > '~' }):
			return fmt.Errorf("header %s has bytes that are not printable ASCII", lower)
		}
		seen[lower] = true
	}
	return nil
}

// reach normalises the url and checks that an entry of the grant allows it.
func (r *request) reach(g flow.Effect) error {
	u, to, err := normalize(r.URL)
	if err != nil {
		return err
	}
	r.url = u
	for _, allow := range g.Allow {
		from, err := flow.ParseReach(allow.URLPrefix)
		if err == nil && slices.Contains(allow.Methods, r.Method) && covers(from, to) {
			return nil
		}
	}
	return &refusal{fmt.Sprintf("no grant allows %.16s %s://%s:%d%.200s", r.Method, to.Scheme, to.Host, to.Port, to.PathPrefix)}
}

// origin is what must stay equal for headers to travel along a redirect.
func (r *request) origin() string { return r.url.Scheme + "://" + r.url.Host }

// normalize reads a url, brings it to one form, and refuses what a server may
// read as another place than this driver does.
func normalize(text string) (*url.URL, flow.Reach, error) {
	refuse := func(why string) (*url.URL, flow.Reach, error) {
		return nil, flow.Reach{}, &refusal{fmt.Sprintf("url %.200q %s", text, why)}
	}
	if len(text) > URLBytesMax {
		return refuse(fmt.Sprintf("is longer than %d bytes", URLBytesMax))
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return refuse("cannot be read")
	case u.User != nil || strings.Contains(u.Host, "@"):
		return refuse("has user information")
	case u.Fragment != "" || strings.Contains(text, "#"):
		return refuse("has a fragment")
	case u.Opaque != "" || u.Host == "" || strings.Contains(u.Host, "*"):
		return refuse("has no host")
	case strings.ContainsFunc(u.RawQuery, func(c rune) bool { return c <= ' ' || c > '~' }):
		return refuse("has a query with bytes that must be percent-encoded")
	case u.Path != "" && !plainPath(u):
		return refuse("has a path with dot segments, backslashes, or encoded slashes or percent signs")
	}
	to, err := flow.ParseReach(u.Scheme + "://" + strings.ToLower(u.Host))
	if err != nil {
		return refuse("has a scheme, host or port that is not in its plain form")
	}
	to.PathPrefix = "/" + strings.TrimPrefix(u.Path, "/")
	plain := &url.URL{Scheme: to.Scheme, Host: to.Host, Path: to.PathPrefix, RawQuery: u.RawQuery}
	if strings.Contains(to.Host, ":") {
		plain.Host = "[" + to.Host + "]"
	}
	if to.Port != map[string]uint16{"http": 80, "https": 443}[to.Scheme] {
		plain.Host += fmt.Sprintf(":%d", to.Port)
	}
	return plain, to, nil
}

// plainPath reports whether a path means the same to every server. What stands
// after a semicolon is a parameter to some, so a segment ends there too.
func plainPath(u *url.URL) bool {
	raw := strings.ToLower(u.EscapedPath())
	if strings.Contains(raw, "%2f") || strings.ContainsAny(u.Path, "\\%") || !utf8.ValidString(u.Path) ||
		strings.ContainsFunc(u.Path, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		return false
	}
	for segment := range strings.SplitSeq(u.Path, "/") {
		segment, _, _ = strings.Cut(segment, ";")
		if segment == "." || segment == ".." {
			return false
		}
	}
	return true
}

// covers reports whether a place is inside a grant's reach.
func covers(from, to flow.Reach) bool {
	if from.Scheme != to.Scheme || from.Port != to.Port {
		return false
	}
	if suffix, wild := strings.CutPrefix(from.Host, "*."); wild {
		label, rest, _ := strings.Cut(to.Host, ".")
		if label == "" || rest != suffix {
			return false
		}
	} else if from.Host != to.Host {
		return false
	}
	prefix := strings.TrimSuffix(from.PathPrefix, "/")
	rest, under := strings.CutPrefix(to.PathPrefix, prefix)
	return under && (rest == "" || rest[0] == '/')
}
