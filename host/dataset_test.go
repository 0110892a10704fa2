package host

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/writrun/writ/guest-abi/abi"
)

func TestDatasetSize(t *testing.T) {
	w := newWorld(t, nil)
	for _, tt := range []struct {
		path string
		want int64
	}{
		{"list", 4},                                // a single file
		{"docs", int64(len(`{"files":[]}`))},       // a folder's listing
		{"docs/a.txt", 5},                          // a file in it
		{"docs/sub/c/d", 4},                        // deeper
		{"docs/sub0", 0},                           // empty
		{"docs/", int64(abi.NotFound)},             // no such file
		{"docs/sub", int64(abi.NotFound)},          // a folder is not a file
		{"docs/sub/../a.txt", int64(abi.NotFound)}, // paths are names, not walked
		{"list/", int64(abi.NotFound)},
		{"list/a", int64(abi.NotFound)},
		{"other", int64(abi.NotFound)},
		{"", int64(abi.NotFound)},
	} {
		w.want(tt.want, fmt.Sprintf("dataset_size %q %d", tt.path, tt.want), "dataset_size", w.text(tt.path))
	}
	w.want(int64(abi.Invalid), `dataset_size {"hex":"646f63732fff"} -5`, "dataset_size", w.text("docs/\xff"))
	w.want(int64(abi.TooLarge), `dataset_size 4097 -3`, "dataset_size", out, abi.PathBytesMax+1)
	w.wantStop(StopBadPointer, "dataset_size", outside, 8)
}

func TestDatasetRead(t *testing.T) {
	w := newWorld(t, nil)
	hex := func(content string) string { return `{"hex":"` + abi.DigestOf([]byte(content)).Hex() + `"}` }
	path := w.text("docs/sub/b.txt")
	record := `dataset_read ["docs/sub/b.txt",%d,%d,` + hex("beta beta") + `] %d`
	for _, tt := range []struct {
		offset, size, want int
		text               string
	}{
		{0, 4, 4, "beta"},
		{5, 100, 4, "beta"},
		{0, 0, 0, ""},
		{9, 100, 0, ""},
		{1000, 100, 0, ""},
		{-1, 4, int(abi.Invalid), ""},
		{0, big, int(abi.TooLarge), ""},
	} {
		w.want(int64(tt.want), fmt.Sprintf(record, tt.offset, tt.size, tt.want), "dataset_read", path, int64(tt.offset), out, tt.size)
		w.wantMemory(out, tt.text)
	}
	w.want(4, `dataset_read ["list",0,9,`+hex("1\n2\n")+`] 4`, "dataset_read", w.text("list"), int64(0), out, 9)
	w.want(3, `dataset_read ["docs",2,3,`+hex(`{"files":[]}`)+`] 3`, "dataset_read", w.text("docs"), int64(2), out, 3)
	w.wantMemory(out, "fil")
	w.want(int64(abi.NotFound), `dataset_read ["other",0,9,null] -4`, "dataset_read", w.text("other"), int64(0), out, 9)
	w.wantStop(StopBadPointer, "dataset_read", path, int64(0), outside, 8)
	w.wantStop(StopBadPointer, "dataset_read", -1, 2, int64(0), out, 8)
}

// closing counts how many readers are open.
type closing struct {
	io.ReaderAt
	open *int
}

func (c closing) Close() error { *c.open--; return nil }

func TestFewDatasetFilesAreOpenAtOnce(t *testing.T) {
	open, most := 0, 0
	var set Dataset
	set.Handle = abi.DatasetHandle{ID: "many", Folder: true}
	set.Open = func(d abi.Digest) (io.ReaderAt, int64, error) {
		open++
		most = max(most, open)
		return closing{strings.NewReader(string(d)), &open}, int64(len(d)), nil
	}
	for i := range 100 {
		set.Listing.Files = append(set.Listing.Files, abi.DatasetFile{Path: fmt.Sprintf("%03d", i), Size: abi.DigestBytes,
			Digest: abi.DigestOf([]byte{byte(i)})})
	}
	w := newWorld(t, func(i *Invocation) { i.Datasets = []Dataset{set} })
	for range 2 {
		for _, f := range set.Listing.Files {
			if n, ok := w.do("dataset_read", w.text("many/"+f.Path), int64(0), out, 100); !ok || n != abi.DigestBytes {
				t.Fatalf("read %s: %d, fault %v", f.Path, n, w.calls.fault)
			}
			w.wantMemory(out, string(f.Digest))
		}
	}
	w.calls.close()
	if most > openReadersMax+1 || open != 0 {
		t.Errorf("%d files were open at once, %d at the end", most, open)
	}
}

func TestDamagedDatasetEndsTheInvocation(t *testing.T) {
	for name, open := range map[string]Opener{
		"content is missing":        func(abi.Digest) (io.ReaderAt, int64, error) { return nil, 0, errors.New("gone") },
		"content has another size":  func(abi.Digest) (io.ReaderAt, int64, error) { return strings.NewReader("1"), 1, nil },
		"content ends before it is": func(abi.Digest) (io.ReaderAt, int64, error) { return strings.NewReader("1"), 4, nil },
	} {
		w := newWorld(t, func(i *Invocation) { i.Datasets[1].Open = open })
		if _, ok := w.do("dataset_read", w.text("list"), int64(0), out, 9); ok || w.calls.fault == nil || len(w.record) > 0 {
			t.Errorf("%s: fault %v, record %q", name, w.calls.fault, w.record)
		}
	}
}

const goodMeta = `{"name":"report","media_type":"text/plain"}`

func TestArtifacts(t *testing.T) {
	w := newWorld(t, func(i *Invocation) { i.Artifacts, i.Limits.Artifacts = artifacts{}, 2 })
	id := abi.DigestOf([]byte("content"))
	hex := func(d abi.Digest) string { return `{"hex":"` + d.Hex() + `"}` }
	meta, content := w.text(goodMeta), w.text("content")
	w.want(int64(abi.NotFound), "artifact_size "+hex(id)+" -4", "artifact_size", w.text(string(id)))
	w.want(0, `artifact_put ["{\"name\":\"report\",\"media_type\":\"text/plain\"}",7,`+hex(id)+`] 0`, "artifact_put", meta, content, out)
	w.wantMemory(out, string(id))
	w.want(7, "artifact_size "+hex(id)+" 7", "artifact_size", w.text(string(id)))
	w.want(4, "artifact_read ["+hex(id)+",3,100] 4", "artifact_read", w.text(string(id)), int64(3), out, 100)
	w.wantMemory(out, "tent")
	w.want(0, "artifact_read ["+hex(id)+",7,100] 0", "artifact_read", w.text(string(id)), int64(7), out, 100)
	w.want(int64(abi.Invalid), "artifact_read ["+hex(id)+",-1,1] -5", "artifact_read", w.text(string(id)), int64(-1), out, 1)
	w.want(int64(abi.TooLarge), "artifact_read ["+hex(id)+",0,67108864] -3", "artifact_read", w.text(string(id)), int64(0), out, big)
	w.want(int64(abi.Invalid), "artifact_size 7 -5", "artifact_size", w.text("sha256:"))
	upper := strings.ToUpper(string(id))
	if n, ok := w.do("artifact_size", w.text(upper)); !ok || n != int64(abi.Invalid) {
		t.Errorf("an id in another spelling: %d", n)
	}
	w.wantStop(StopBadPointer, "artifact_put", meta, content, outside)
	w.wantStop(StopBadPointer, "artifact_put", meta, outside, 8, out)
	w.wantStop(StopBadPointer, "artifact_put", outside, 8, content, out)
	w.wantStop(StopBadPointer, "artifact_size", testBytes-8, abi.DigestBytes)
	w.wantStop(StopBadPointer, "artifact_read", w.text(string(id)), int64(0), outside, 8)

	put := func(want abi.Code, args ...any) {
		t.Helper()
		if n, ok := w.do("artifact_put", args...); !ok || n != int64(want) {
			t.Errorf("artifact_put = %d, want %s", n, want)
		}
	}
	put(abi.TooLarge, meta, out, big, out)
	put(abi.TooLarge, out, abi.MetadataBytesMax+1, content, out)
	put(abi.NotGranted, meta, w.text("forbidden"), out) // the store's own refusal
	put(0, meta, w.text(""), out)
	put(abi.BudgetExhausted, meta, content, out)
}

func TestArtifactMeta(t *testing.T) {
	for meta, ok := range map[string]bool{
		goodMeta:                              true,
		`{"media_type":"x","name":"y"}`:       true,
		``:                                    false,
		`[]`:                                  false,
		`{"name":"y"}`:                        false,
		`{"media_type":"x","name":""}`:        false,
		`{"media_type":"x","name":null}`:      false,
		`{"media_type":"x","name":"y","z":1}`: false,
		`{"media_type":"x","name":"y"} `:      true,
		`{"media_type":"x","name":"y"}x`:      false,
		"{\"media_type\":\"x\",\"name\":\"\xff\"}":                                    false,
		`{"media_type":"x","name":"` + strings.Repeat("n", abi.NameBytesMax) + `"}`:   true,
		`{"media_type":"x","name":"` + strings.Repeat("n", abi.NameBytesMax+1) + `"}`: false,
		`{"media_type":"x","name":"y","name":"z"}`:                                    false,
	} {
		if got := isArtifactMeta([]byte(meta)); got != ok {
			t.Errorf("%.60q: %v, want %v", meta, got, ok)
		}
	}
}

func TestWithoutAnArtifactStoreThereAreNoArtifacts(t *testing.T) {
	w := newWorld(t, nil)
	if n, _ := w.do("artifact_put", w.text(goodMeta), w.text("x"), out); n != int64(abi.NotGranted) {
		t.Errorf("artifact_put = %d", n)
	}
	if n, _ := w.do("artifact_size", w.text(string(abi.DigestOf(nil)))); n != int64(abi.NotFound) {
		t.Errorf("artifact_size = %d", n)
	}
}
