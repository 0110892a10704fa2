package policies

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strings"

	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/content/oci"
	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"

	"github.com/writrun/writ/guest-abi/abi"
)

// Origins of bundles that come from no registry.
const (
	originFolder  = "folder"
	originArchive = "archive"
)

const (
	layoutScheme   = "oci-layout://"
	registryScheme = "oci://"
)

// Limits of what a registry answers.
const (
	OCIManifestBytesMax = 1 << 20 // a manifest or an index
	OCIManifestsMax     = 16      // manifests in an index
)

// layerMediaType is what OPA pushes and pulls a bundle as.
const layerMediaType = "application/vnd.oci.image.layer.v1.tar+gzip"

// Registries is how registries are reached. The zero value reaches none.
type Registries struct {
	// HTTP sends the requests, with whatever credentials it adds; nil refuses
	// oci:// references.
	HTTP interface {
		Do(*http.Request) (*http.Response, error)
	}
	PlainHTTP []string // hosts, with their port, that are asked without TLS
}

// fetch reads the files a reference names, and says where they came from.
func fetch(ctx context.Context, reference string, r Registries) (bundleFiles, string, error) {
	if layout, ok := strings.CutPrefix(reference, layoutScheme); ok {
		return fromLayout(ctx, layout)
	}
	if image, ok := strings.CutPrefix(reference, registryScheme); ok {
		return fromRegistry(ctx, image, r)
	}
	if before, _, ok := strings.Cut(reference, "://"); ok {
		return nil, "", &Refusal{Code: CodeUnreadable, Detail: fmt.Sprintf("bundle %.300q: %.20q is none of folder, archive, %s and %s", reference, before, layoutScheme, registryScheme)}
	}
	info, err := os.Stat(reference)
	if err != nil {
		return nil, "", unreadable(err)
	}
	if info.IsDir() {
		files, err := openFolder(reference)
		return files, originFolder, err
	}
	archive, err := readFile(reference)
	if err != nil {
		return nil, "", err
	}
	files, err := readArchive(archive)
	return files, originArchive, err
}

func openFolder(name string) (files bundleFiles, err error) {
	root, err := os.OpenRoot(name)
	if err != nil {
		return nil, unreadable(err)
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	return readFolder(root.FS())
}

func readFile(name string) (b []byte, err error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, unreadable(err)
	}
	if !info.Mode().IsRegular() {
		return nil, &Refusal{Code: CodeUnreadable, Detail: fmt.Sprintf("bundle %q is neither a file nor a folder", name)}
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, unreadable(err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	b, err = io.ReadAll(io.LimitReader(f, BundleBytesMax+1))
	return b, unreadable(err)
}

// fromLayout reads folder:tag or folder@digest.
func fromLayout(ctx context.Context, reference string) (files bundleFiles, origin string, err error) {
	folder, name, ok := cutLast(reference, "@")
	if !ok {
		folder, name, ok = cutLast(reference, ":")
	}
	if !ok || folder == "" || name == "" {
		return nil, "", &Refusal{Code: CodeUnreadable, Detail: fmt.Sprintf("bundle %s%.300s: give the folder and a tag, %sfolder:tag", layoutScheme, reference, layoutScheme)}
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, "", unreadable(err)
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	image, err := findInLayout(root.FS(), name)
	if err != nil {
		return nil, "", err
	}
	return pull(ctx, oci.NewStorageFromFS(root.FS()), "oci-layout", image)
}

// refNameAnnotation holds the tag of a manifest in the index of a layout.
const refNameAnnotation = "org.opencontainers.image.ref.name"

// findInLayout looks up a tag or a digest in the index of a layout.
func findInLayout(layout fs.FS, name string) (descriptor, error) {
	info, err := fs.Stat(layout, "index.json")
	if err != nil {
		return descriptor{}, unreadable(err)
	}
	if info.Size() > OCIManifestBytesMax {
		return descriptor{}, tooLarge("an OCI index of more than %d bytes", OCIManifestBytesMax)
	}
	text, err := fs.ReadFile(layout, "index.json")
	if err != nil {
		return descriptor{}, unreadable(err)
	}
	var index manifest
	if err := json.Unmarshal(text, &index); err != nil {
		return descriptor{}, unreadable(err)
	}
	for _, d := range index.Manifests {
		if d.Digest == name || d.Annotations[refNameAnnotation] == name {
			return d, nil
		}
	}
	return descriptor{}, &Refusal{Code: CodeUnreadable, Detail: fmt.Sprintf("read bundle: the OCI layout has no %.200q", name)}
}

// cutLast cuts at a separator in the last part of a path.
func cutLast(s, separator string) (before, after string, found bool) {
	i := strings.LastIndex(s, separator)
	if i < 0 || strings.Contains(s[i:], "/") {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}

// fromRegistry reads host/repository:tag, with a digest that counts before it.
func fromRegistry(ctx context.Context, reference string, r Registries) (bundleFiles, string, error) {
	if r.HTTP == nil {
		return nil, "", &Refusal{Code: CodeUnreadable, Detail: fmt.Sprintf("bundle %s%.300s: no registry may be asked here", registryScheme, reference)}
	}
	ref, err := registry.ParseReference(reference)
	if err == nil && ref.Reference == "" {
		err = errors.New("it names neither a tag nor a digest")
	}
	if err != nil {
		return nil, "", &Refusal{Code: CodeUnreadable, Detail: fmt.Sprintf("bundle %s%.300s: %v", registryScheme, reference, err)}
	}
	repository := &remote.Repository{Client: r.HTTP, Reference: ref, PlainHTTP: slices.Contains(r.PlainHTTP, ref.Registry), MaxMetadataBytes: OCIManifestBytesMax}
	found, err := repository.Resolve(ctx, ref.Reference)
	if err != nil {
		return nil, "", unreachable(ctx, err)
	}
	image := descriptor{MediaType: found.MediaType, Digest: found.Digest.String(), Size: found.Size}
	return pull(ctx, repository, registryScheme+ref.Registry+"/"+ref.Repository, image)
}

// descriptor names a blob, as manifests and indexes do.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// manifest is what is read of an image manifest, which has layers, and of an
// index, which has manifests.
type manifest struct {
	Layers    []descriptor `json:"layers"`
	Manifests []descriptor `json:"manifests"`
}

// pull reads the one layer of an image that holds a bundle. Each blob is
// compared with its digest as it is read.
func pull(ctx context.Context, from content.Fetcher, origin string, image descriptor) (bundleFiles, string, error) {
	origin += "@" + image.Digest
	top, err := image.manifest(ctx, from)
	if err != nil {
		return nil, "", err
	}
	if len(top.Manifests) > OCIManifestsMax {
		return nil, "", tooLarge("an index of more than %d manifests", OCIManifestsMax)
	}
	layers := top.Layers
	for _, d := range top.Manifests {
		m, err := d.manifest(ctx, from)
		if err != nil {
			return nil, "", err
		}
		layers = append(layers, m.Layers...)
	}
	layers = slices.DeleteFunc(layers, func(d descriptor) bool { return d.MediaType != layerMediaType })
	slices.SortFunc(layers, func(a, b descriptor) int { return strings.Compare(a.Digest, b.Digest) })
	layers = slices.CompactFunc(layers, func(a, b descriptor) bool { return a.Digest == b.Digest })
	if len(layers) != 1 {
		return nil, "", &Refusal{Code: CodeUnreadable, Detail: fmt.Sprintf("read bundle %s: %d layers of type %s; exactly one holds a bundle", origin, len(layers), layerMediaType)}
	}
	archive, err := layers[0].read(ctx, from, BundleArchiveBytesMax)
	if err != nil {
		return nil, "", err
	}
	files, err := readArchive(archive)
	return files, origin, err
}

func (d descriptor) manifest(ctx context.Context, from content.Fetcher) (m manifest, err error) {
	text, err := d.read(ctx, from, OCIManifestBytesMax)
	if err != nil {
		return m, err
	}
	return m, unreadable(json.Unmarshal(text, &m))
}

// read fetches a blob of at most bytesMax.
func (d descriptor) read(ctx context.Context, from content.Fetcher, bytesMax int64) ([]byte, error) {
	if _, err := abi.ParseDigest(d.Digest); err != nil {
		return nil, unreadable(err)
	}
	if d.Size < 0 || d.Size > bytesMax {
		return nil, tooLarge("%s is said to have %d bytes; at most %d are read", d.Digest, d.Size, bytesMax)
	}
	text, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	target := content.NewDescriptorFromBytes(d.MediaType, nil)
	if err := json.Unmarshal(text, &target); err != nil {
		return nil, unreadable(err)
	}
	b, err := content.FetchAll(ctx, from, target)
	if err != nil {
		return nil, unreachable(ctx, err)
	}
	return b, nil
}

// unreachable tells the end of the caller's patience from a failure to read.
func unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return unreadable(err)
}
