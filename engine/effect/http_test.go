package effect

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/x509"
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/writrun/writ/engine/flow"
	"github.com/writrun/writ/guest-abi/abi"
)

type names map[string][]string

func (n names) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	var out []netip.Addr
	for _, text := range n[host] {
		out = append(out, netip.MustParseAddr(text))
	}
	return out, nil
}

func grant(methods, prefix string, networks ...string) flow.Effect {
	return flow.Effect{Driver: flow.DriverHTTP, Allow: []flow.Allow{{Methods: strings.Fields(methods), URLPrefix: prefix}},
		Networks: networks, RequestBytesMax: 4096, ResponseBytesMax: 4096, TimeoutMillis: 5000}
}

func ask(method, url string) []byte {
	b, _ := json.Marshal(map[string]string{"method": method, "url": url})
	return b
}

func TestGrantCoversURL(t *testing.T) {
	tests := []struct {
		prefix, method, url string
		want                bool
	}{
		{"https://a.example/v1", "GET", "https://a.example/v1", true},
		{"https://a.example/v1", "GET", "HTTPS://A.example:443/v1/x?q=1", true},
		{"https://a.example/v1", "POST", "https://a.example/v1", false},
		{"https://a.example/v1", "GET", "http://a.example/v1", false},
		{"https://a.example/v1", "GET", "https://a.example:8443/v1", false},
		{"https://a.example/v1", "GET", "https://a.example/v12", false},
		{"https://a.example/v1", "GET", "https://a.example/v1/../v2", false},
		{"https://a.example/v1", "GET", "https://a.example/v1/%2e%2e/v2", false},
		{"https://a.example/v1", "GET", "https://a.example/v1/..;x/v2", false},
		{"https://a.example/v1", "GET", "https://a.example/v1/a%2fb", false},
		{"https://a.example/v1", "GET", "https://a.example/v1/%252e%252e/v2", false},
		{"https://a.example/v1", "GET", `https://a.example/v1/..\v2`, false},
		{"https://a.example/v1", "GET", "https://u:p@a.example/v1", false},
		{"https://a.example/v1", "GET", "https://a.example@b.example/v1", false},
		{"https://a.example/v1", "GET", "https://a.example./v1", false},
		{"https://a.example/v1", "GET", "https://a.example/v1#f", false},
		{"https://*.a.example/", "GET", "https://b.a.example/", true},
		{"https://*.a.example/", "GET", "https://a.example/", false},
		{"https://*.a.example/", "GET", "https://c.b.a.example/", false},
		{"https://*.a.example/", "GET", "https://*.a.example/", false},
		{"http://127.0.0.1/", "GET", "http://127.0.0.1/", true},
		{"http://127.0.0.1/", "GET", "http://127.1/", false},
		{"http://127.0.0.1/", "GET", "http://2130706433/", false},
		{"http://127.0.0.1/", "GET", "http://0x7f.0.0.1/", false},
	}
	for _, tt := range tests {
		err := NewHTTP(HTTPConfig{}).Covers(grant("GET", tt.prefix), ask(tt.method, tt.url))
		if (err == nil) != tt.want {
			t.Errorf("%s covers %s %s: %v, want %v", tt.prefix, tt.method, tt.url, err, tt.want)
		}
	}
}

func TestRequestForm(t *testing.T) {
	tests := []struct {
		rest string
		want string // "" is accepted
	}{
		{`"method":"POST"`, ""},
		{`"method":"POST","body":"null","headers":{"Content-Type":"text/plain"}`, ""},
		{`"method":"POST","body_base64":"AAE="`, ""},
		{`"method":"POST","body_base64":"AAE"`, "not standard base64"},
		{`"method":"POST","body":"a","body_base64":"AAE="`, "exclude each other"},
		{`"method":"GET","body":""`, "has no body"},
		{`"method":"POST","body":null`, "null"},
		{`"method":"POST","headers":{"accept":null}`, "null"},
		{`"method":"POST","Body":"a"`, "unknown field"},
		{`"method":1`, "wrong type"},
		{`"body":"a"`, "missing"},
		{`"method":"POST","method":"GET"`, "twice"},
		{`"method":"POST","headers":{"Host":"b.example"}`, "not one a guest may set"},
		{`"method":"POST","headers":{"Accept":"a","accept":"b"}`, "twice"},
		{`"method":"POST","headers":{"Accept":"a\r\nHost: b"}`, "printable"},
		{`"method":"POST","headers":{"Range":"bytes=0-1"}`, "bound to a secret"},
		{`"method":"POST","body":"` + strings.Repeat("x", 5000) + `"`, "request_bytes_max"},
	}
	g := grant("GET POST", "https://a.example/")
	g.Secrets = []flow.Secret{{Name: "S", Header: "Range"}}
	for _, tt := range tests {
		err := NewHTTP(HTTPConfig{}).Covers(g, []byte(`{"url":"https://a.example/",`+tt.rest+`}`))
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%.60s: %v, want %q", tt.rest, err, tt.want)
		}
	}
}

func TestAddressesNotGranted(t *testing.T) {
	for _, text := range []string{"127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.0.1", "169.254.169.254", "100.64.0.1", "100.100.100.200",
		"0.0.0.0", "224.0.0.1", "255.255.255.255", "::", "::1", "::ffff:10.0.0.1", "::ffff:8.8.8.8", "::7f00:1", "64:ff9b::a00:1", "2002:a00:1::", "2001:0:1::",
		"fe80::1", "fc00::1", "fd00:ec2::254", "ff02::1", "fe80::1%eth0", "168.63.129.16"} {
		_, err := checkAddress(netip.MustParseAddr(text), nil)
		if want := text != "::ffff:8.8.8.8"; (err != nil) != want {
			t.Errorf("%s: %v", text, err)
		}
	}
	for text, network := range map[string]string{"8.8.8.8": "", "2606:4700::1111": "", "127.0.0.1": "127.0.0.0/8", "::ffff:10.0.0.1": "10.0.0.0/8", "::1": "::1/128"} {
		if _, err := checkAddress(netip.MustParseAddr(text), []string{network}); err != nil {
			t.Errorf("%s with %q: %v", text, network, err)
		}
	}
}

// far is a server that a driver reaches under any name.
func far(t *testing.T, handler http.HandlerFunc, table names) (*HTTP, *httptest.Server) {
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return NewHTTP(HTTPConfig{Resolver: table, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, s.Listener.Addr().String())
	}}), s
}

func TestPerform(t *testing.T) {
	handler := func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "text/plain")
		switch r.URL.Path {
		case "/big":
			_, _ = w.Write(make([]byte, 5000))
		case "/bomb":
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = z.Write(make([]byte, 1<<20))
			_ = z.Close()
		case "/bytes":
			_, _ = w.Write([]byte{0xff, 0xfe})
		case "/reset":
			panic(http.ErrAbortHandler)
		case "/hang":
			<-r.Context().Done()
		case "/echo":
			_, _ = w.Write([]byte(r.Header.Get("Authorization") + " " + string(body)))
		case "/out":
			http.Redirect(w, r, "http://evil.example/", http.StatusFound)
		case "/inside":
			http.Redirect(w, r, "http://inside.example/", http.StatusFound)
		case "/cross":
			http.Redirect(w, r, "http://other.example/headers", http.StatusFound)
		case "/headers":
			_, _ = w.Write([]byte("auth:" + r.Header.Get("Authorization") + " accept:" + r.Header.Get("Accept") + " key:" + r.Header.Get("Idempotency-Key")))
		case "/500":
			w.WriteHeader(500)
		}
	}
	driver, _ := far(t, handler, names{"a.example": {"8.8.8.8"}, "other.example": {"8.8.4.4"}, "inside.example": {"10.0.0.1"}, "mixed.example": {"8.8.8.8", "127.0.0.1"}})
	tests := []struct {
		name, method, url string
		status            Status
		code              abi.Code
		response          string
	}{
		{"complete", "GET", "http://a.example/headers", StatusOK, 0, `"body":"auth:[masked] accept: key:k1"`},
		{"secret echoed", "POST", "http://a.example/echo", StatusOK, 0, `"body":"[masked] "`},
		{"not text", "GET", "http://a.example/bytes", StatusOK, 0, `"body_base64":"//4="`},
		{"an error of the far side is its answer", "POST", "http://a.example/500", StatusOK, 0, `"status":500`},
		{"above the limit", "POST", "http://a.example/big", StatusOK, abi.TooLarge, ""},
		{"above the limit once decompressed", "GET", "http://a.example/bomb", StatusOK, abi.TooLarge, ""},
		{"reset after sending", "POST", "http://a.example/reset", StatusUnknown, abi.Unavailable, ""},
		{"timeout after sending", "POST", "http://a.example/hang", StatusUnknown, abi.Unavailable, ""},
		{"redirect out of the grant", "GET", "http://a.example/out", StatusFailed, abi.NotGranted, ""},
		{"redirect to a private address", "GET", "http://a.example/inside", StatusFailed, abi.NotGranted, ""},
		{"redirect to another origin drops headers", "GET", "http://a.example/cross", StatusOK, 0, `"body":"auth: accept: key:"`},
		{"redirect of a POST is shown", "POST", "http://a.example/out", StatusOK, 0, `"location":"http://evil.example/"`},
		{"one of its addresses is private", "GET", "http://mixed.example/", StatusFailed, abi.NotGranted, ""},
		{"no address", "GET", "http://none.example/", StatusFailed, abi.Unavailable, ""},
	}
	secret, err := newSecret("S", "Bearer correct-horse")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := grant("GET POST", "http://a.example/")
			for _, host := range []string{"other", "inside", "mixed", "none"} {
				g.Allow = append(g.Allow, flow.Allow{Methods: []string{"GET"}, URLPrefix: "http://" + host + ".example/"})
			}
			g.Secrets = []flow.Secret{{Name: "S", Header: "Authorization"}}
			if strings.HasSuffix(tt.url, "/hang") {
				g.TimeoutMillis = 50
			}
			out := driver.Perform(t.Context(), Attempt{Grant: g, Request: ask(tt.method, tt.url), Key: "k1", Secrets: map[string]Secret{"S": secret}, Number: 1})
			if out.Status != tt.status || out.Code != tt.code || !strings.Contains(string(out.Response), tt.response) {
				t.Errorf("got %s %v %s (%s)", out.Status, out.Code, out.Response, out.Details.Error)
			}
			if bytes.Contains(out.Response, []byte("correct-horse")) || out.Status == StatusOK && out.Details.Peer == "" {
				t.Errorf("secret shown or peer missing: %s %+v", out.Response, out.Details)
			}
		})
	}
}

func TestTLSPeer(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	a := Attempt{Grant: grant("POST", s.URL, "127.0.0.0/8"), Request: ask("POST", s.URL+"/"), Key: "k"}
	out := NewHTTP(HTTPConfig{RootCAs: roots}).Perform(t.Context(), a)
	want := Details{Peer: s.Listener.Addr().String(), Certificate: string(abi.DigestOf(s.Certificate().Raw)), HTTPStatus: 200}
	if diff := cmp.Diff(want, out.Details); diff != "" || out.Status != StatusOK {
		t.Errorf("%s %s", out.Status, diff)
	}
	if out := NewHTTP(HTTPConfig{RootCAs: x509.NewCertPool()}).Perform(t.Context(), a); out.Status != StatusFailed || out.Code != abi.Unavailable {
		t.Errorf("a peer without proof: %+v", out)
	}
}

func FuzzReadRequest(f *testing.F) {
	f.Add(ask("GET", "https://a.example/v1"))
	f.Add([]byte(`{"method":"POST","url":"http://[::1]:8/","headers":{"accept":"*/*"},"body_base64":"AAE="}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := readRequest(grant("GET POST", "https://a.example/v1"), data)
		if err == nil && (!strings.HasPrefix(r.url.String(), "https://a.example/v1") || strings.Contains(r.url.Path, "/../")) {
			t.Errorf("%q reaches %s", data, r.url)
		}
	})
}

// rebinding answers each look-up of a name with the next of its addresses.
type rebinding struct{ answers []netip.Addr }

func (r *rebinding) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	a := r.answers[0]
	if len(r.answers) > 1 {
		r.answers = r.answers[1:]
	}
	return []netip.Addr{a}, nil
}

// TestRebinding has a name resolve to another address the second time: what is
// dialled is what was checked, and what is not granted is not dialled.
func TestRebinding(t *testing.T) {
	public, private := netip.MustParseAddr("8.8.8.8"), netip.MustParseAddr("10.0.0.1")
	cases := []struct {
		name    string
		answers []netip.Addr
		dialled []string
		status  Status
		code    abi.Code
	}{
		{"private the second time", []netip.Addr{public, private}, []string{"8.8.8.8:80"}, StatusOK, 0},
		{"private the first time", []netip.Addr{private, public}, nil, StatusFailed, abi.NotGranted},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
			defer s.Close()
			var dialled []string
			driver := NewHTTP(HTTPConfig{Resolver: &rebinding{c.answers}, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
				dialled = append(dialled, address)
				return new(net.Dialer).DialContext(ctx, network, s.Listener.Addr().String())
			}})
			out := driver.Perform(t.Context(), Attempt{Grant: grant("GET", "http://a.example/"), Request: []byte(`{"method":"GET","url":"http://a.example/"}`)})
			if out.Status != c.status || out.Code != c.code || !slices.Equal(dialled, c.dialled) {
				t.Errorf("%s %s (%s) after dialling %q, want %s %s after %q", out.Status, out.Code, out.Details.Error, dialled, c.status, c.code, c.dialled)
			}
		})
	}
}

// TestNothingSent: an attempt that ends before its connection stands is failed,
// however it ends.
func TestNothingSent(t *testing.T) {
	for name, dial := range map[string]func(context.Context, string, string) (net.Conn, error){
		"timeout": func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
		"refused": func(context.Context, string, string) (net.Conn, error) { return nil, syscall.ECONNREFUSED },
	} {
		t.Run(name, func(t *testing.T) {
			g := grant("POST", "http://a.example/")
			g.TimeoutMillis = 20
			driver := NewHTTP(HTTPConfig{Resolver: names{"a.example": {"8.8.8.8"}}, Dial: dial})
			out := driver.Perform(t.Context(), Attempt{Grant: g, Request: []byte(`{"method":"POST","url":"http://a.example/"}`)})
			if out.Status != StatusFailed || out.Code != abi.Unavailable || out.Details.Error == "" {
				t.Errorf("outcome %+v", out)
			}
		})
	}
}
