package effect

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"unicode/utf8"
)

// response is what a guest gets from the http driver. A body that is not UTF-8
// is in base64.
type response struct {
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"` // lower-case names, sorted
	Body    *string           `json:"body,omitempty"`
	Base64  []byte            `json:"body_base64,omitempty"`
}

// shownHeaders are the response headers a guest is shown.
func shownHeaders() []string {
	return []string{"content-encoding", "content-language", "content-range", "content-type", "etag", "last-modified",
		"link", "location", "request-id", "retry-after", "x-request-id"}
}

// encodeResponse writes a response; equal ones have equal bytes.
func encodeResponse(status int, header http.Header, body []byte) ([]byte, error) {
	r := response{Status: status, Headers: map[string]string{}}
	for _, name := range shownHeaders() {
		if values := header.Values(name); len(values) > 0 {
			r.Headers[name] = strings.ToValidUTF8(strings.Join(values, ", "), "\ufffd")
		}
	}
	if utf8.Valid(body) {
		text := string(body)
		r.Body = &text
	} else {
		r.Base64 = body
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	err := enc.Encode(r)
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), err
}
