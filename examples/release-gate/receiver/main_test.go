package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestReceiver(t *testing.T) {
	lines, out := io.Pipe()
	printed := bufio.NewReader(lines)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		err := serve(ctx, 0, out)
		out.Close()
		done <- err
	}()
	first, err := printed.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	base, ok := strings.CutPrefix(strings.TrimSpace(first), "listening on ")
	if !ok {
		t.Fatalf("first line %q", first)
	}
	rest := make(chan string, 1)
	go func() {
		text, _ := io.ReadAll(printed)
		rest <- string(text)
	}()

	for _, tc := range []struct {
		method, key, body string
		status            int
		answer            string
	}{
		{"POST", "k1", `{"a":1}`, 202, `{"result":"taken"}`},
		{"POST", "k1", `{"a":1}`, 200, `{"result":"duplicate"}`},
		{"POST", "k2", `{"a":2}`, 202, `{"result":"taken"}`},
		{"POST", "", "\x1b[2J", 202, `{"result":"taken"}`},
		{"POST", strings.Repeat("k", keyBytesMax+1), ``, 400, "Idempotency-Key is too long"},
		{"GET", "", "", 405, "post a message here"},
	} {
		request, err := http.NewRequestWithContext(ctx, tc.method, base+"/release-gate", strings.NewReader(tc.body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Idempotency-Key", tc.key)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode != tc.status || strings.TrimSpace(string(body)) != tc.answer {
			t.Errorf("%s %.10q: got %d %q, %v", tc.method, tc.key, response.StatusCode, body, err)
		}
	}
	http.DefaultClient.CloseIdleConnections()
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	const want = `POST "/release-gate" key "k1": 7 bytes
{"a":1}
POST "/release-gate" key "k1": seen before, not taken again
POST "/release-gate" key "k2": 7 bytes
{"a":2}
POST "/release-gate" key "": 4 bytes
"\x1b[2J"
`
	if got := <-rest; got != want {
		t.Errorf("printed:\n%s\nwant:\n%s", got, want)
	}
}
