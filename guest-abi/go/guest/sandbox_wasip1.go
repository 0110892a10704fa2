package guest

import (
	"unsafe"

	"github.com/writrun/writ/guest-abi/abi"
)

//go:wasmimport writ_v1 clock_now
//go:noescape
func clockNow() int64

//go:wasmimport writ_v1 random_fill
//go:noescape
func randomFill(ptr unsafe.Pointer, size uint32) int32

//go:wasmimport writ_v1 effect
//go:noescape
func effect(driver string, request unsafe.Pointer, requestSize uint32) int64

//go:wasmimport writ_v1 response_read
//go:noescape
func responseRead(offset int64, ptr unsafe.Pointer, size uint32) int64

//go:wasmimport writ_v1 dataset_size
//go:noescape
func datasetSize(path string) int64

//go:wasmimport writ_v1 dataset_read
//go:noescape
func datasetRead(path string, offset int64, ptr unsafe.Pointer, size uint32) int64

//go:wasmimport writ_v1 artifact_put
//go:noescape
func artifactPut(meta unsafe.Pointer, metaSize uint32, ptr unsafe.Pointer, size uint32, idOut unsafe.Pointer) int64

//go:wasmimport writ_v1 artifact_size
//go:noescape
func artifactSize(id string) int64

//go:wasmimport writ_v1 artifact_read
//go:noescape
func artifactRead(id string, offset int64, ptr unsafe.Pointer, size uint32) int64

//go:wasmimport writ_v1 log
//go:noescape
func logLine(level int32, text string) int32

// sandbox is the host this module runs under.
type sandbox struct{}

func door() Host { return sandbox{} }

func address(block []byte) uint32 { return uint32(uintptr(base(block))) }

func base(p []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(p)) }

// result splits a host call's result into value and error.
func result(n int64) (int64, error) {
	if n < 0 {
		return 0, abi.Code(n)
	}
	return n, nil
}

func (sandbox) Now() (int64, error) { return result(clockNow()) }

func (sandbox) Fill(p []byte) error {
	for len(p) > 0 {
		part := p[:min(len(p), abi.RandomBytesMax)]
		if _, err := result(int64(randomFill(base(part), uint32(len(part))))); err != nil {
			return err
		}
		p = p[len(part):]
	}
	return nil
}

func (sandbox) Effect(driver string, request []byte) ([]byte, error) {
	size, err := result(effect(driver, base(request), uint32(len(request))))
	if err != nil {
		return nil, err
	}
	return readAll(size, func(offset int64, p []byte) (int, error) {
		n, err := result(responseRead(offset, base(p), uint32(len(p))))
		return int(n), err
	})
}

func (sandbox) DatasetSize(path string) (int64, error) { return result(datasetSize(path)) }

func (sandbox) DatasetRead(path string, offset int64, p []byte) (int, error) {
	n, err := result(datasetRead(path, offset, base(p), uint32(len(p))))
	return int(n), err
}

func (sandbox) ArtifactPut(meta, content []byte) (abi.Digest, error) {
	var id [abi.DigestBytes]byte
	_, err := result(artifactPut(base(meta), uint32(len(meta)), base(content), uint32(len(content)), unsafe.Pointer(&id)))
	if err != nil {
		return "", err
	}
	return abi.Digest(id[:]), nil
}

func (sandbox) ArtifactSize(id abi.Digest) (int64, error) { return result(artifactSize(string(id))) }

func (sandbox) ArtifactRead(id abi.Digest, offset int64, p []byte) (int, error) {
	n, err := result(artifactRead(string(id), offset, base(p), uint32(len(p))))
	return int(n), err
}

func (sandbox) Log(level Level, text string) error {
	_, err := result(int64(logLine(int32(level), text)))
	return err
}
