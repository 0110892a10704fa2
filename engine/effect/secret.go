package effect

import (
	"errors"
	"fmt"
	"strings"

	"github.com/writrun/writ/guest-abi/abi"
)

// Limits of secrets. A shorter one could not be masked without masking ordinary
// text with it.
const (
	SecretBytesMin = 8
	SecretBytesMax = 8 << 10
)

// Secret is a named value that no text form of it shows.
type Secret struct {
	Name string
	// value is behind a pointer because fmt, which asks no method of a field
	// that is not exported, does not follow one.
	value *string
}

const hidden = "[secret]"

// String hides the value.
func (s Secret) String() string { return s.Name + "=" + hidden }

// GoString hides the value.
func (s Secret) GoString() string { return s.String() }

// Format hides the value from every verb.
func (s Secret) Format(f fmt.State, _ rune) { fmt.Fprint(f, s.String()) }

// MarshalText hides the value.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// reveal returns the value, "" of the zero Secret.
func (s Secret) reveal() string {
	if s.value == nil {
		return ""
	}
	return *s.value
}

// ParseSecret reads NAME=env:VAR or NAME=file:PATH and fetches the value. One
// newline at the end of a file is not part of it. No error holds the value.
func ParseSecret(spec string, lookupEnv func(string) (string, bool), readFile func(string) ([]byte, error)) (Secret, error) {
	name, source, ok := strings.Cut(spec, "=")
	kind, where, named := strings.Cut(source, ":")
	if !ok || !named || name == "" || where == "" || len(name) > abi.IDBytesMax {
		return Secret{}, errors.New("a secret is given as NAME=env:VAR or NAME=file:PATH")
	}
	var value string
	switch kind {
	case "env":
		v, set := lookupEnv(where)
		if !set {
			return Secret{}, fmt.Errorf("secret %s: environment variable %s is not set", name, where)
		}
		value = v
	case "file":
		b, err := readFile(where)
		if err != nil {
			return Secret{}, fmt.Errorf("secret %s: %w", name, err)
		}
		value = strings.TrimSuffix(strings.TrimSuffix(string(b), "\n"), "\r")
	default:
		return Secret{}, fmt.Errorf("secret %s: source %q is neither env nor file", name, kind)
	}
	return newSecret(name, value)
}

func newSecret(name, value string) (Secret, error) {
	switch {
	case len(value) < SecretBytesMin:
		return Secret{}, fmt.Errorf("secret %s: a value of %d bytes is shorter than %d and could not be masked", name, len(value), SecretBytesMin)
	case len(value) > SecretBytesMax:
		return Secret{}, fmt.Errorf("secret %s: a value of %d bytes is longer than %d", name, len(value), SecretBytesMax)
	case strings.ContainsFunc(value, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }):
		return Secret{}, fmt.Errorf("secret %s: the value has control characters and cannot be a header", name)
	case strings.TrimSpace(value) != value:
		return Secret{}, fmt.Errorf("secret %s: the value begins or ends with a space", name)
	}
	return Secret{Name: name, value: &value}, nil
}
