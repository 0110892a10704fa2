package policies

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/bundle"
)

// Key may sign bundles.
type Key struct {
	ID        string `json:"id"`        // the key id a signature names
	Algorithm string `json:"algorithm"` // of JSON Web Signatures, for instance ES256, EdDSA or HS256
	Key       string `json:"key"`       // the public key in PEM, or for HS256, HS384 and HS512 the secret
	Scope     string `json:"scope"`     // what a signature of this key has to be for; "" takes only those without a scope
}

// SignatureState is what is known of who signed a bundle.
type SignatureState struct {
	Signed bool   // a configured key signed exactly these files
	Signer string // the id of that key
	Note   string // why it does not count as signed, where there is something to say
}

// noteUnchecked is the note of a bundle whose signature could not be checked: it
// must not pass for one that was.
const noteUnchecked = "signature not checked: no keys configured"

// opaSigner is how OPA names its own way to sign.
const opaSigner = "_default"

// checkSignature judges the signature of a bundle and returns what OPA's reader
// is to verify once more; nil where there is nothing to verify it against.
func checkSignature(files bundleFiles, keys []Key) (SignatureState, *bundle.VerificationConfig, error) {
	if err := checkKeys(keys); err != nil {
		return SignatureState{}, nil, err
	}
	text, present := files[signatureFile]
	switch {
	case len(keys) == 0 && present:
		return SignatureState{Note: noteUnchecked}, nil, nil
	case len(keys) == 0:
		maps.DeleteFunc(files, func(name string, _ []byte) bool { return !isPolicy(name) })
		return SignatureState{}, nil, nil
	case !present:
		return SignatureState{}, nil, &Refusal{Code: CodeBundleUnsigned, Detail: fmt.Sprintf("the bundle has no %s, and keys to verify it are configured", signatureFile)}
	}
	var s bundle.SignaturesConfig
	if err := json.Unmarshal(text, &s); err != nil {
		return SignatureState{}, nil, badSignature(err.Error())
	}
	if len(s.Signatures) == 0 {
		return SignatureState{}, nil, &Refusal{Code: CodeBundleUnsigned, Detail: fmt.Sprintf("%s holds no signature, and keys to verify it are configured", signatureFile)}
	}
	if len(s.Signatures) > 1 || s.Plugin != "" && s.Plugin != opaSigner {
		return SignatureState{}, nil, badSignature("exactly one signature is read, and none that needs a plugin")
	}
	key, err := signingKey(s.Signatures[0], keys)
	if err != nil {
		return SignatureState{}, nil, err
	}
	verification := verificationOf(key, key.Scope)
	listed, err := bundle.VerifyBundleSignature(s, verification)
	if err != nil {
		return SignatureState{}, nil, refuseSigner(s, key, err)
	}
	if err := checkListed(files, listed); err != nil {
		return SignatureState{}, nil, err
	}
	return SignatureState{Signed: true, Signer: key.ID}, verification, nil
}

// verificationOf names one key and its scope outright, so that nothing of the
// signature chooses what it is verified with.
func verificationOf(key Key, scope string) *bundle.VerificationConfig {
	public := map[string]*bundle.KeyConfig{key.ID: {Key: key.Key, Algorithm: key.Algorithm, Scope: scope}}
	return bundle.NewVerificationConfig(public, key.ID, scope, nil)
}

// signingKey finds the configured key a signature names.
func signingKey(token string, keys []Key) (Key, error) {
	var header struct {
		ID string `json:"kid"`
	}
	if err := decodePart(token, 0, &header); err != nil {
		return Key{}, err
	}
	id := header.ID
	if id == "" {
		claims, err := claimsOf(token)
		if err != nil {
			return Key{}, err
		}
		id = claims.KeyID // the older place
	}
	i := slices.IndexFunc(keys, func(k Key) bool { return k.ID == id })
	if i < 0 || id == "" {
		return Key{}, &Refusal{Code: CodeBundleForeignKey, Detail: fmt.Sprintf("the bundle names the key %.100q, which is not configured", id)}
	}
	return keys[i], nil
}

// refuseSigner tells a signature for something else from one that the key did
// not make: the first is good under the scope it names itself.
func refuseSigner(s bundle.SignaturesConfig, key Key, cause error) error {
	claims, err := claimsOf(s.Signatures[0])
	if err != nil {
		return err
	}
	if claims.Scope != key.Scope {
		if _, err := bundle.VerifyBundleSignature(s, verificationOf(key, claims.Scope)); err == nil {
			return &Refusal{Code: CodeBundleScope, Detail: fmt.Sprintf("key %s signed the bundle for the scope %.100q; it has to be for %q", key.ID, claims.Scope, key.Scope)}
		}
	}
	return &Refusal{Code: CodeBundleForeignKey, Detail: fmt.Sprintf("the signature is not one of key %s: %v", key.ID, cause)}
}

// checkListed compares each file with the signature, both ways, and drops those
// that have no part in a decision and that the signature does not name.
func checkListed(files bundleFiles, listed map[string]bundle.FileInfo) error {
	for _, name := range files.paths() {
		info, named := listed[name]
		switch {
		case name == signatureFile:
			continue
		case !named && !isPolicy(name):
			delete(files, name)
			continue
		case named && !strongHash(info.Algorithm):
			return badSignature(fmt.Sprintf("the digest of %.200q is %.20q; SHA-256, SHA-384, SHA-512 or SHA-512-256 are taken", name, info.Algorithm))
		}
		if err := bundle.VerifyBundleFile(name, *bytes.NewBuffer(files[name]), listed); err != nil {
			return &Refusal{Code: CodeBundleMismatch, Detail: err.Error()}
		}
	}
	if len(listed) > 0 {
		return &Refusal{Code: CodeBundleMismatch, Detail: fmt.Sprintf("the signature names files that are not there: %.500s", strings.Join(slices.Sorted(maps.Keys(listed)), ", "))}
	}
	return nil
}

// strongHash leaves out what OPA also takes: MD5, SHA-1 and SHA-224.
func strongHash(name string) bool {
	return slices.Contains([]string{"SHA-256", "SHA-384", "SHA-512", "SHA-512-256"}, name)
}

func claimsOf(token string) (bundle.DecodedSignature, error) {
	var claims bundle.DecodedSignature
	err := decodePart(token, 1, &claims)
	return claims, err
}

func decodePart(token string, part int, out any) error {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return badSignature("it is not a compact JSON Web Signature of three parts")
	}
	b, err := base64.RawURLEncoding.DecodeString(parts[part])
	if err == nil {
		err = json.Unmarshal(b, out)
	}
	if err != nil {
		return badSignature(err.Error())
	}
	return nil
}

func badSignature(why string) *Refusal {
	return &Refusal{Code: CodeBundleSignature, Detail: fmt.Sprintf("%s cannot be read: %.300s", signatureFile, why)}
}
