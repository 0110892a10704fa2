package effect

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/writrun/writ/guest-abi/abi"
)

const value = `p@ss "w0rd"/+é!`

func secretOf(t testing.TB, v string) map[string]Secret {
	s, err := newSecret("S", v)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]Secret{"S": s}
}

func TestMask(t *testing.T) {
	quoted, _ := json.Marshal(value)
	b64 := base64.StdEncoding.EncodeToString([]byte(value))
	tests := map[string]string{
		"plain":           "x" + value + "y",
		"JSON":            string(quoted),
		"JSON in JSON":    fmt.Sprintf("%q", quoted),
		"unicode escapes": strings.ReplaceAll(string(quoted), "@", `\u0040`),
		"hex":             hex.EncodeToString([]byte(value)),
		"path":            url.PathEscape(value),
		"query":           url.QueryEscape(value),
		"base64":          b64,
		"base64 shifted":  base64.StdEncoding.EncodeToString([]byte("a" + value + "b")),
		"base64 shifted2": base64.RawURLEncoding.EncodeToString([]byte("ab" + value)),
		"base64 wrapped":  b64[:5] + "\r\n" + b64[5:9] + `\n` + b64[9:],
	}
	for name, text := range tests {
		got, ok := NewMasker(secretOf(t, value)).Mask([]byte(text))
		if !ok || !bytes.Contains(got, []byte(Mask)) {
			t.Errorf("%s: %s, %v", name, got, ok)
		}
	}
	if got, ok := NewMasker(secretOf(t, value)).Mask([]byte("nothing here")); !ok || string(got) != "nothing here" {
		t.Errorf("ordinary text: %q, %v", got, ok)
	}
	if got, ok := NewMasker(nil).Mask([]byte(value)); !ok || string(got) != value {
		t.Errorf("without secrets: %q, %v", got, ok)
	}
}

func TestWithheld(t *testing.T) {
	// Masking puts the secret back each time, so it cannot be done.
	out := NewMasker(secretOf(t, Mask)).Outcome(Outcome{Status: StatusOK, Response: []byte(`"` + Mask + `"`)})
	if out.Response != nil || !out.Withheld || out.Code != abi.Unavailable || out.Status != StatusOK {
		t.Errorf("%+v", out)
	}
}

func TestSecretIsNeverShown(t *testing.T) {
	s := secretOf(t, "correct-horse")["S"]
	text, _ := json.Marshal(map[string]any{"s": s, "p": &s})
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		text = append(text, fmt.Sprintf(verb+verb+verb, s, &s, struct{ s Secret }{s})...)
	}
	if bytes.Contains(text, []byte("correct")) || bytes.Contains(text, []byte(hex.EncodeToString([]byte("correct")))) {
		t.Errorf("shown: %s", text)
	}
}

func TestParseSecret(t *testing.T) {
	env := func(name string) (string, bool) {
		v, ok := map[string]string{"GOOD": "correct-horse", "SHORT": "short12", "LINES": "correct\nhorse"}[name]
		return v, ok
	}
	file := func(string) ([]byte, error) { return []byte("correct-horse\n"), nil }
	for spec, good := range map[string]bool{"S=env:GOOD": true, "S=file:x": true, "S=env:SHORT": false, "S=env:LINES": false,
		"S=env:UNSET": false, "S=GOOD": false, "=env:GOOD": false, "S=vault:GOOD": false, "S": false} {
		s, err := ParseSecret(spec, env, file)
		if (err == nil) != good || good && s.reveal() != "correct-horse" {
			t.Errorf("%s: %v", spec, err)
		}
		if err != nil && strings.Contains(err.Error(), "short12") {
			t.Errorf("%s: the error shows the value", spec)
		}
	}
}

func FuzzMask(f *testing.F) {
	f.Add([]byte("a"), []byte("b"), uint8(1))
	f.Fuzz(func(t *testing.T, before, after []byte, how uint8) {
		encode := []func(string) string{func(s string) string { return s }, url.QueryEscape,
			func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
			func(s string) string { return hex.EncodeToString([]byte(s)) }}
		e := encode[int(how)%len(encode)]
		m := NewMasker(secretOf(t, value))
		got, ok := m.Mask([]byte(e(string(before) + value + string(after))))
		if ok && m.find(got) != nil || ok && bytes.Contains(got, []byte(e(value))) {
			t.Errorf("left in %q", got)
		}
	})
}

// TestMaskAcrossPieces has a secret at, before and after the place where a large
// body is divided.
func TestMaskAcrossPieces(t *testing.T) {
	const value = "correct-horse-battery"
	secret, err := newSecret("TOKEN", value)
	if err != nil {
		t.Fatal(err)
	}
	m := NewMasker(map[string]Secret{"TOKEN": secret})
	encoded := base64.StdEncoding.EncodeToString([]byte("x" + value))
	for _, written := range []string{value, encoded, url.QueryEscape(encoded)} {
		for _, shift := range []int{-len(written), -len(written) / 2, -1, 0, 1} {
			body := bytes.Repeat([]byte("a"), 1<<20+4096)
			copy(body[1<<20+shift:], written)
			masked, ok := m.Mask(body)
			if !ok || bytes.Contains(masked, []byte(written)) || !bytes.Contains(masked, []byte(Mask)) {
				t.Errorf("%q at %d bytes past the division: masked %v, kept %v", written, shift, ok, bytes.Contains(masked, []byte(written)))
			}
		}
	}
}
