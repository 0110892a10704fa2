package policies

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
)

// KeySecretBytesMin is how long the secret of a key has to be.
const KeySecretBytesMin = 32

// algorithms lists those a key can have. "none" is not one of them.
func algorithms() (secret, public []string) {
	return []string{"HS256", "HS384", "HS512"},
		[]string{"ES256", "ES384", "ES512", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "EdDSA"}
}

// checkKeys refuses keys that could verify nothing, or anything.
func checkKeys(keys []Key) error {
	for i, k := range keys {
		err := k.check()
		if err == nil && slices.ContainsFunc(keys[:i], func(other Key) bool { return other.ID == k.ID }) {
			err = errors.New("its id is that of another key")
		}
		if err != nil {
			return &Refusal{Code: CodeBundleKey, Detail: fmt.Sprintf("key %.100q: %v", k.ID, err)}
		}
	}
	return nil
}

func (k Key) check() error {
	secret, public := algorithms()
	switch {
	case k.ID == "":
		return errors.New("it has no id for a signature to name")
	case slices.Contains(secret, k.Algorithm):
		if len(k.Key) < KeySecretBytesMin {
			return fmt.Errorf("its secret has %d bytes; it has to have %d", len(k.Key), KeySecretBytesMin)
		}
		return nil
	case !slices.Contains(public, k.Algorithm):
		return fmt.Errorf("its algorithm %.20q is none of %v and %v", k.Algorithm, public, secret)
	}
	block, _ := pem.Decode([]byte(k.Key))
	if block == nil {
		return errors.New("it is not in PEM")
	}
	var err error
	switch block.Type {
	case "PUBLIC KEY":
		_, err = x509.ParsePKIXPublicKey(block.Bytes)
	case "RSA PUBLIC KEY":
		_, err = x509.ParsePKCS1PublicKey(block.Bytes)
	case "CERTIFICATE":
		_, err = x509.ParseCertificate(block.Bytes)
	default:
		err = fmt.Errorf("a %.40q is not what verifies; give the public key", block.Type)
	}
	return err
}
