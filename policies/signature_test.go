package policies_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/bundle"

	"github.com/writrun/writ/policies"
)

// signer signs bundles as opa sign does.
type signer struct {
	id, algorithm, private, public string
}

// ecSigner draws a key pair of ES256.
func ecSigner(t testing.TB, id string) signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	return signer{id, "ES256", string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private})), string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}))}
}

func secretSigner(id, secret string) signer { return signer{id, "HS256", secret, secret} }

func (s signer) key(scope string) policies.Key {
	return policies.Key{ID: s.id, Algorithm: s.algorithm, Key: s.public, Scope: scope}
}

// sign returns the files with a signature over those that listed names.
func (s signer) sign(t testing.TB, c content, scope, hash string, listed ...string) content {
	t.Helper()
	var files []bundle.FileInfo
	for _, name := range listed {
		files = append(files, bundle.NewFile(name, digestAs(t, name, c[name], hash), hash))
	}
	claims := map[string]any{}
	if scope != "" {
		claims["scope"] = scope
	}
	token, err := bundle.GenerateSignedToken(files, bundle.NewSigningConfig(s.private, s.algorithm, claimsFile(t, claims)), s.id)
	if err != nil {
		t.Fatal(err)
	}
	return c.with(content{".signatures.json": signatures(t, token)})
}

func (s signer) signAll(t testing.TB, c content, scope string) content {
	return s.sign(t, c, scope, "SHA-256", slices.Sorted(maps.Keys(c))...)
}

func claimsFile(t testing.TB, claims map[string]any) string {
	t.Helper()
	b, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	return fileOf(t, b)
}

func signatures(t testing.TB, tokens ...string) string {
	t.Helper()
	b, err := json.Marshal(map[string]any{"signatures": tokens})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// digestAs hashes what OPA hashes: bytes, or of a document its canonical form.
func digestAs(t testing.TB, name, text, algorithm string) string {
	t.Helper()
	h, err := bundle.NewSignatureHasher(bundle.HashingAlgorithm(algorithm))
	if err != nil {
		t.Fatal(err)
	}
	var value any = []byte(text)
	if bundle.IsStructuredDoc(name) {
		if err := json.Unmarshal([]byte(text), &value); err != nil {
			t.Fatal(err)
		}
	}
	sum, err := h.HashFile(value)
	if err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(sum)
}

func TestSignatures(t *testing.T) {
	files := content{"a.rego": byThreshold, "a_test.rego": "package flow.f.arbitration_test\n\ntest_a if true\n",
		"flow/f/limits/data.json": `{"passes": 2}`, ".manifest": `{"roots": ["flow/f"]}`}
	alice, bob, carol := ecSigner(t, "alice"), ecSigner(t, "bob"), secretSigner("carol", strings.Repeat("k", 64))
	mallory := ecSigner(t, "alice") // another key under alice's name
	signed := alice.signAll(t, files, "writ")
	all := slices.Sorted(maps.Keys(files))
	hmacWithPublic := signer{"alice", "HS256", alice.public, ""} // the public key taken for a secret
	keys := []policies.Key{bob.key(""), alice.key("writ"), carol.key("")}
	cases := []struct {
		name       string
		files      content
		keys       []policies.Key
		want       policies.SignatureState
		code, says string // "" is accepted
	}{
		{"signed by one of the keys", signed, keys, policies.SignatureState{Signed: true, Signer: "alice"}, "", ""},
		{"signed with a secret", carol.signAll(t, files, ""), keys, policies.SignatureState{Signed: true, Signer: "carol"}, "", ""},
		{"signed beside files that decide nothing", signed.with(content{"README.md": "words"}), keys, policies.SignatureState{Signed: true, Signer: "alice"}, "", ""},
		{"signed with files that decide nothing", alice.signAll(t, files.with(content{"README.md": "words"}), "writ"), keys, policies.SignatureState{Signed: true, Signer: "alice"}, "", ""},
		{"signed with SHA-512", alice.sign(t, files, "writ", "SHA-512", all...), keys, policies.SignatureState{Signed: true, Signer: "alice"}, "", ""},
		{"the same document in other words", signed.with(content{"flow/f/limits/data.json": `{ "passes" : 2 }`}), keys, policies.SignatureState{Signed: true, Signer: "alice"}, "", ""},
		{"no keys and no signature", files, nil, policies.SignatureState{}, "", ""},
		{"no keys and a signature", signed, nil, policies.SignatureState{Note: "signature not checked: no keys configured"}, "", ""},
		{"no keys and a signature of nothing", files.with(content{".signatures.json": "x"}), nil, policies.SignatureState{Note: "signature not checked: no keys configured"}, "", ""},

		{"unsigned", files, keys, policies.SignatureState{}, policies.CodeBundleUnsigned, "no .signatures.json"},
		{"an empty signature", files.with(content{".signatures.json": signatures(t)}), keys, policies.SignatureState{}, policies.CodeBundleUnsigned, "no signature"},
		{"a key that is not configured", ecSigner(t, "dave").signAll(t, files, ""), keys, policies.SignatureState{}, policies.CodeBundleForeignKey, `"dave"`},
		{"a key without a name", ecSigner(t, "").signAll(t, files, ""), keys, policies.SignatureState{}, policies.CodeBundleForeignKey, "not configured"},
		{"another key under a known name", mallory.signAll(t, files, "writ"), keys, policies.SignatureState{}, policies.CodeBundleForeignKey, "alice"},
		{"another key under a known name for another scope", mallory.signAll(t, files, "other"), keys, policies.SignatureState{}, policies.CodeBundleForeignKey, "alice"},
		{"another algorithm", hmacWithPublic.signAll(t, files, "writ"), keys, policies.SignatureState{}, policies.CodeBundleForeignKey, "alice"},
		{"another scope", alice.signAll(t, files, "other"), keys, policies.SignatureState{}, policies.CodeBundleScope, `"other"`},
		{"no scope where one is wanted", alice.signAll(t, files, ""), keys, policies.SignatureState{}, policies.CodeBundleScope, `"writ"`},
		{"a scope where none is wanted", bob.signAll(t, files, "writ"), keys, policies.SignatureState{}, policies.CodeBundleScope, `"writ"`},
		{"a changed rule", signed.with(content{"a.rego": alwaysFail}), keys, policies.SignatureState{}, policies.CodeBundleMismatch, "a.rego"},
		{"a changed test", signed.with(content{"a_test.rego": "package flow.f.arbitration_test\n"}), keys, policies.SignatureState{}, policies.CodeBundleMismatch, "a_test.rego"},
		{"changed data", signed.with(content{"flow/f/limits/data.json": `{"passes": 0}`}), keys, policies.SignatureState{}, policies.CodeBundleMismatch, "data.json"},
		{"a changed manifest", signed.with(content{".manifest": `{}`}), keys, policies.SignatureState{}, policies.CodeBundleMismatch, ".manifest"},
		{"a rule that was not signed", signed.with(content{"b.rego": "package flow.f.lib\n"}), keys, policies.SignatureState{}, policies.CodeBundleMismatch, "b.rego"},
		{"a signed file that is missing", alice.signAll(t, files.with(content{"b.rego": "package flow.f.lib\n"}), "writ").without("b.rego"), keys, policies.SignatureState{}, policies.CodeBundleMismatch, "b.rego"},
		{"two signatures", signed.with(content{".signatures.json": signatures(t, "a.b.c", "a.b.c")}), keys, policies.SignatureState{}, policies.CodeBundleSignature, "exactly one"},
		{"no token", signed.with(content{".signatures.json": signatures(t, "x")}), keys, policies.SignatureState{}, policies.CodeBundleSignature, "three parts"},
		{"no JSON", signed.with(content{".signatures.json": "x"}), keys, policies.SignatureState{}, policies.CodeBundleSignature, ".signatures.json"},
		{"a plugin", signed.with(content{".signatures.json": `{"signatures": ["a.b.c"], "plugin": "other"}`}), keys, policies.SignatureState{}, policies.CodeBundleSignature, "plugin"},
		{"a weak digest", alice.sign(t, files, "writ", "MD5", all...), keys, policies.SignatureState{}, policies.CodeBundleSignature, "MD5"},
		{"a signature elsewhere", files.with(content{"flow/.signatures.json": signed[".signatures.json"]}), keys, policies.SignatureState{}, policies.CodeBundleStraySignature, "flow/.signatures.json"},
		{"a second signature", signed.with(content{"old.signatures.json": signed[".signatures.json"]}), keys, policies.SignatureState{}, policies.CodeBundleStraySignature, "old.signatures.json"},
		{"a signature elsewhere without keys", files.with(content{"x/signatures.json": "{}"}), nil, policies.SignatureState{}, policies.CodeBundleStraySignature, "x/signatures.json"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			config := policies.BundleConfig{FlowID: "f", Keys: c.keys}
			for _, reference := range []string{fileOf(t, tarOf(t, c.files)), folderOf(t, c.files)} {
				b, err := policies.LoadBundle(t.Context(), reference, config)
				switch {
				case c.code != "":
					wantRefusal(t, err, c.code, c.says)
				case err != nil:
					t.Error(err)
				case b.Signature() != c.want:
					t.Errorf("signature %+v, want %+v", b.Signature(), c.want)
				default:
					again, err := policies.ReadBundle(b.Archive(), config)
					if err != nil || again.Signature() != c.want || again.Digest() != b.Digest() {
						t.Errorf("what was retained: %v", err)
					}
				}
			}
		})
	}
}

func (c content) without(name string) content {
	less := maps.Clone(c)
	delete(less, name)
	return less
}

// TestASignatureOfOPA reads what OPA's own writer signed.
func TestASignatureOfOPA(t *testing.T) {
	alice := ecSigner(t, "alice")
	b, err := bundle.NewReader(strings.NewReader(string(tarOf(t, content{"a.rego": alwaysFail, "flow/f/limits/data.json": `{"passes": 2}`})))).Read()
	if err != nil {
		t.Fatal(err)
	}
	if err := b.GenerateSignature(bundle.NewSigningConfig(alice.private, "ES256", claimsFile(t, map[string]any{"scope": "writ"})), "alice", false); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := bundle.NewWriter(&out).Write(b); err != nil {
		t.Fatal(err)
	}
	got, err := policies.ReadBundle([]byte(out.String()), policies.BundleConfig{FlowID: "f", Keys: []policies.Key{alice.key("writ")}})
	if err != nil || got.Signature() != (policies.SignatureState{Signed: true, Signer: "alice"}) {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestTokensThatSayNothing signs with no algorithm at all.
func TestTokensThatSayNothing(t *testing.T) {
	alice := ecSigner(t, "alice")
	files := content{"a.rego": alwaysFail}
	sum := sha256.Sum256([]byte(alwaysFail))
	part := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	payload := part(`{"files": [{"name": "a.rego", "hash": "` + hex.EncodeToString(sum[:]) + `", "algorithm": "SHA-256"}]}`)
	for _, header := range []string{`{"alg": "none", "kid": "alice"}`, `{"alg": "HS256", "kid": "alice"}`, `{"kid": "alice"}`} {
		for _, signature := range []string{"", part("x")} {
			text := signatures(t, part(header)+"."+payload+"."+signature)
			_, err := policies.ReadBundle(tarOf(t, files.with(content{".signatures.json": text})), policies.BundleConfig{FlowID: "f", Keys: []policies.Key{alice.key("")}})
			wantRefusal(t, err, policies.CodeBundleForeignKey, "alice")
		}
	}
}

func TestKeys(t *testing.T) {
	alice := ecSigner(t, "alice")
	good := alice.key("writ")
	with := func(change func(*policies.Key)) []policies.Key {
		k := good
		change(&k)
		return []policies.Key{k}
	}
	cases := []struct {
		name string
		keys []policies.Key
		says string // "" is accepted
	}{
		{"a public key", []policies.Key{good}, ""},
		{"a secret", []policies.Key{good, secretSigner("carol", strings.Repeat("k", 32)).key("")}, ""},
		{"no id", with(func(k *policies.Key) { k.ID = "" }), "no id"},
		{"one id twice", []policies.Key{good, good}, "another key"},
		{"no algorithm", with(func(k *policies.Key) { k.Algorithm = "" }), "algorithm"},
		{"the algorithm none", with(func(k *policies.Key) { k.Algorithm = "none" }), `"none"`},
		{"an algorithm in small letters", with(func(k *policies.Key) { k.Algorithm = "es256" }), `"es256"`},
		{"a short secret", []policies.Key{secretSigner("carol", strings.Repeat("k", 31)).key("")}, "31 bytes"},
		{"a private key", with(func(k *policies.Key) { k.Key = alice.private }), "EC PRIVATE KEY"},
		{"no PEM", with(func(k *policies.Key) { k.Key = "alice.pem" }), "PEM"},
		{"damaged PEM", with(func(k *policies.Key) {
			k.Key = string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: []byte("x")}))
		}), "asn1"},
	}
	signed := tarOf(t, alice.signAll(t, content{"a.rego": alwaysFail}, "writ"))
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := policies.ReadBundle(signed, policies.BundleConfig{FlowID: "f", Keys: c.keys})
			if c.says != "" {
				wantRefusal(t, err, policies.CodeBundleKey, c.says)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

// FuzzSignatureFile finds that a bundle counts as signed under no other claims
// than those that were signed.
func FuzzSignatureFile(f *testing.F) {
	alice, carol := ecSigner(f, "alice"), secretSigner("carol", strings.Repeat("k", 64))
	files := content{"a.rego": alwaysFail}
	good := map[string]bool{}
	for _, s := range []signer{alice, carol, ecSigner(f, "alice"), ecSigner(f, "dave")} {
		for _, scope := range []string{"", "writ"} {
			text := s.signAll(f, files, scope)[".signatures.json"]
			f.Add(text)
			if scope == "writ" && len(good) < 2 {
				good[strings.Split(tokenOf(text), ".")[1]] = true
			}
		}
	}
	f.Add(`{"signatures": ["e30.e30."]}`)
	keys := []policies.Key{alice.key("writ"), carol.key("writ")}
	f.Fuzz(func(t *testing.T, text string) {
		b, err := policies.ReadBundle(tarOf(t, files.with(content{".signatures.json": text})), policies.BundleConfig{FlowID: "f", Keys: keys})
		if err != nil {
			return
		}
		parts := strings.Split(tokenOf(text), ".")
		if !b.Signature().Signed || len(parts) != 3 || !good[parts[1]] {
			t.Errorf("accepted as %+v: %s", b.Signature(), text)
		}
	})
}

func tokenOf(text string) string {
	var s struct {
		Signatures []string `json:"signatures"`
	}
	if err := json.Unmarshal([]byte(text), &s); err != nil || len(s.Signatures) != 1 {
		return ""
	}
	return s.Signatures[0]
}
