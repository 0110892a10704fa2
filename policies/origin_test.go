package policies_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/policies"
)

const (
	layerType    = "application/vnd.oci.image.layer.v1.tar+gzip"
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	indexType    = "application/vnd.oci.image.index.v1+json"
	configType   = "application/vnd.oci.image.config.v1+json"
)

type object = map[string]any

// image holds blobs by digest, as layouts and registries do.
type image struct {
	t     testing.TB
	blobs map[string][]byte
	types map[string]string
}

func newImage(t testing.TB) *image {
	return &image{t: t, blobs: map[string][]byte{}, types: map[string]string{}}
}

// put keeps a blob and returns its descriptor.
func (i *image) put(mediaType string, b []byte) object {
	digest := string(abi.DigestOf(b))
	i.blobs[digest], i.types[digest] = b, mediaType
	return object{"mediaType": mediaType, "digest": digest, "size": len(b)}
}

func (i *image) putJSON(mediaType string, v any) object {
	i.t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		i.t.Fatal(err)
	}
	return i.put(mediaType, b)
}

func (i *image) manifest(layers ...object) object {
	return i.putJSON(manifestType, object{"schemaVersion": 2, "mediaType": manifestType, "config": i.put(configType, []byte("{}")), "layers": layers})
}

func (i *image) index(manifests ...object) object {
	return i.putJSON(indexType, object{"schemaVersion": 2, "mediaType": indexType, "manifests": manifests})
}

// layout writes the blobs as an OCI layout whose tag names the descriptor.
func (i *image) layout(tag string, top object) string {
	i.t.Helper()
	tagged := object{"annotations": map[string]string{"org.opencontainers.image.ref.name": tag}}
	for k, v := range top {
		tagged[k] = v
	}
	index, err := json.Marshal(object{"schemaVersion": 2, "manifests": []object{tagged}})
	if err != nil {
		i.t.Fatal(err)
	}
	files := content{"oci-layout": `{"imageLayoutVersion": "1.0.0"}`, "index.json": string(index)}
	for digest, b := range i.blobs {
		files["blobs/sha256/"+strings.TrimPrefix(digest, "sha256:")] = string(b)
	}
	return folderOf(i.t, files)
}

// layoutOf is a layout with one bundle.
func layoutOf(t testing.TB, tag string, archive []byte) string {
	i := newImage(t)
	return i.layout(tag, i.manifest(i.put(layerType, archive)))
}

// registry serves the blobs as repository demo/policies.
func (i *image) registry(tag string, top object) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, ok := strings.CutPrefix(r.URL.Path, "/v2/demo/policies/")
		_, reference, _ := strings.Cut(name, "/")
		if reference == tag {
			reference = top["digest"].(string)
		}
		b, found := i.blobs[reference]
		if !ok || !found {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", i.types[reference])
		w.Header().Set("Docker-Content-Digest", reference)
		w.Header().Set("Content-Length", fmt.Sprint(len(b)))
		if r.Method == http.MethodGet {
			_, _ = w.Write(b)
		}
	}))
	i.t.Cleanup(s.Close)
	return s
}

func TestBundleFromRegistry(t *testing.T) {
	archive := tarOf(t, content{"a.rego": alwaysFail})
	i := newImage(t)
	one := i.manifest(i.put(layerType, archive))
	server := i.registry("v1", one)
	host := strings.TrimPrefix(server.URL, "http://")
	digest := one["digest"].(string)
	config := forF
	config.Registries = policies.Registries{HTTP: server.Client(), PlainHTTP: []string{host}}
	for _, reference := range []string{"oci://" + host + "/demo/policies:v1", "oci://" + host + "/demo/policies@" + digest, "oci://" + host + "/demo/policies:v1@" + digest} {
		b, err := policies.LoadBundle(t.Context(), reference, config)
		if err != nil {
			t.Errorf("%s: %v", reference, err)
			continue
		}
		if want := "oci://" + host + "/demo/policies@" + digest; b.Origin() != want {
			t.Errorf("origin %s, want %s", b.Origin(), want)
		}
	}
	refused := []struct{ name, reference, says string }{
		{"an unknown tag", "oci://" + host + "/demo/policies:v2", "not found"},
		{"another digest", "oci://" + host + "/demo/policies:v1@" + string(abi.DigestOf(nil)), "not found"},
		{"neither tag nor digest", "oci://" + host + "/demo/policies", "neither a tag nor a digest"},
		{"no repository", "oci://" + host, "missing"},
	}
	for _, c := range refused {
		t.Run(c.name, func(t *testing.T) {
			_, err := policies.LoadBundle(t.Context(), c.reference, config)
			wantRefusal(t, err, policies.CodeUnreadable, c.says)
		})
	}
	_, err := policies.LoadBundle(t.Context(), "oci://"+host+"/demo/policies:v1", forF)
	wantRefusal(t, err, policies.CodeUnreadable, "no registry may be asked")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := policies.LoadBundle(ended, "oci://"+host+"/demo/policies:v1", config); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the caller", err)
	}
	i.blobs[string(abi.DigestOf(archive))] = append([]byte{}, tarOf(t, content{"a.rego": byThreshold})...)
	_, err = policies.LoadBundle(t.Context(), "oci://"+host+"/demo/policies:v1", config)
	wantRefusal(t, err, policies.CodeUnreadable, "read bundle")
}

func TestBundleFromLayout(t *testing.T) {
	archive := tarOf(t, content{"a.rego": alwaysFail})
	cases := []struct {
		name       string
		top        func(i *image) object
		code, says string // "" is accepted
	}{
		{"one layer", func(i *image) object { return i.manifest(i.put(layerType, archive)) }, "", ""},
		{"beside layers of other types", func(i *image) object {
			return i.manifest(i.put("application/vnd.in-toto+json", []byte("{}")), i.put(layerType, archive))
		}, "", ""},
		{"an index with an attestation", func(i *image) object {
			return i.index(i.manifest(i.put(layerType, archive)), i.manifest(i.put("application/vnd.in-toto+json", []byte("{}"))))
		}, "", ""},
		{"an index that names it for two platforms", func(i *image) object {
			m := i.manifest(i.put(layerType, archive))
			return i.index(m, m)
		}, "", ""},
		{"no layer", func(i *image) object { return i.manifest() }, policies.CodeUnreadable, "0 layers"},
		{"two bundles", func(i *image) object {
			return i.manifest(i.put(layerType, archive), i.put(layerType, tarOf(t, content{"a.rego": byThreshold})))
		}, policies.CodeUnreadable, "2 layers"},
		{"a layer that is said to be huge", func(i *image) object {
			l := i.put(layerType, archive)
			l["size"] = int64(1) << 50
			return i.manifest(l)
		}, policies.CodeBundleTooLarge, "at most"},
		{"a layer of another size", func(i *image) object {
			l := i.put(layerType, archive)
			l["size"] = len(archive) - 1
			return i.manifest(l)
		}, policies.CodeUnreadable, "read bundle"},
		{"a layer that is not there", func(i *image) object {
			l := i.put(layerType, archive)
			delete(i.blobs, l["digest"].(string))
			return i.manifest(l)
		}, policies.CodeUnreadable, "read bundle"},
		{"a digest that leads out", func(i *image) object {
			return i.manifest(object{"mediaType": layerType, "digest": "sha256:../../../../etc/passwd", "size": 1})
		}, policies.CodeUnreadable, "digest"},
		{"too many manifests", func(i *image) object {
			m := i.manifest(i.put(layerType, archive))
			var all []object
			for range policies.OCIManifestsMax + 1 {
				all = append(all, m)
			}
			return i.index(all...)
		}, policies.CodeBundleTooLarge, "manifests"},
		{"a manifest that is said to be huge", func(i *image) object {
			m := i.manifest(i.put(layerType, archive))
			m["size"] = int64(1) << 50
			return m
		}, policies.CodeBundleTooLarge, "at most"},
		{"no manifest", func(i *image) object { return i.put(manifestType, []byte("[]")) }, policies.CodeUnreadable, "unmarshal"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			i := newImage(t)
			top := c.top(i)
			dir := i.layout("v1", top)
			for _, name := range []string{":v1", "@" + top["digest"].(string)} {
				_, err := policies.LoadBundle(t.Context(), "oci-layout://"+dir+name, forF)
				if c.code != "" {
					wantRefusal(t, err, c.code, c.says)
				} else if err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
}

func TestReferencesThatNameNothing(t *testing.T) {
	dir := layoutOf(t, "v1", tarOf(t, content{"a.rego": alwaysFail}))
	cases := []struct{ name, reference, says string }{
		{"no such folder", filepath.Join(dir, "none"), "no such file"},
		{"no such layout", "oci-layout://" + filepath.Join(dir, "none") + ":v1", "no such file"},
		{"a layout without a tag", "oci-layout://" + dir, "give the folder and a tag"},
		{"an unknown tag", "oci-layout://" + dir + ":v2", "v2"},
		{"a folder that is no layout", "oci-layout://" + t.TempDir() + ":v1", "index.json"},
		{"another scheme", "https://example.org/bundle.tar.gz", "https"},
		{"a file that is no archive", filepath.Join(dir, "index.json"), "read bundle"},
		{"a device", "/dev/zero", "neither a file nor a folder"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := policies.LoadBundle(t.Context(), c.reference, forF)
			wantRefusal(t, err, policies.CodeUnreadable, c.says)
		})
	}
	if err := os.WriteFile(filepath.Join(dir, "index.json"), make([]byte, policies.OCIManifestBytesMax+1), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := policies.LoadBundle(t.Context(), "oci-layout://"+dir+":v1", forF)
	wantRefusal(t, err, policies.CodeBundleTooLarge, "index")
}

// FuzzLayout finds that whatever the index and the manifest of a layout hold,
// what is read of it is the bundle that lies in it, or a refusal.
func FuzzLayout(f *testing.F) {
	archive := tarOf(f, content{"a.rego": alwaysFail})
	want, err := policies.ReadBundle(archive, forF)
	if err != nil {
		f.Fatal(err)
	}
	i := newImage(f)
	top := i.manifest(i.put(layerType, archive))
	dir := i.layout("v1", top)
	index, err := os.ReadFile(filepath.Join(dir, "index.json"))
	if err != nil {
		f.Fatal(err)
	}
	digest := top["digest"].(string)
	f.Add(string(index), string(i.blobs[digest]))
	f.Add(strings.ReplaceAll(string(index), digest, "sha256:../../index.json"), "{}")
	f.Add(`{"manifests": [{"annotations": {"org.opencontainers.image.ref.name": "v1"}, "digest": "`+digest+`", "size": -1}]}`, `{"layers": null}`)
	blobs := os.DirFS(dir)
	f.Fuzz(func(t *testing.T, index, manifest string) {
		dir := t.TempDir()
		if err := os.CopyFS(dir, blobs); err != nil {
			t.Fatal(err)
		}
		blob := filepath.Join("blobs", "sha256", strings.TrimPrefix(string(abi.DigestOf([]byte(manifest))), "sha256:"))
		index = strings.ReplaceAll(index, digest, string(abi.DigestOf([]byte(manifest))))
		for name, text := range map[string]string{"index.json": index, blob: manifest} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		b, err := policies.LoadBundle(t.Context(), "oci-layout://"+dir+":v1", forF)
		var r *policies.Refusal
		switch {
		case err != nil && !errors.As(err, &r):
			t.Errorf("no refusal: %v", err)
		case err == nil && b.Digest() != want.Digest():
			t.Errorf("another bundle: %s", b.Digest())
		}
	})
}
