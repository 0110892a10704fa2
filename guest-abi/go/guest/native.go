//go:build !wasip1

package guest

import "github.com/writrun/writ/guest-abi/abi"

// door returns the host of a program that runs outside a sandbox: none. Tests
// call [RunExecute] and [RunVerify] with a host of their own.
func door() Host { return noHost{} }

// address gives blocks numbers in place of addresses, which do not fit 32 bits here.
func address([]byte) uint32 {
	n := uint32(len(pins) + 1)
	for pins[n] != nil {
		n++
	}
	return n
}

// noHost answers every call with [abi.Unavailable].
type noHost struct{}

func (noHost) Now() (int64, error)                            { return 0, abi.Unavailable }
func (noHost) Fill([]byte) error                              { return abi.Unavailable }
func (noHost) Effect(string, []byte) ([]byte, error)          { return nil, abi.Unavailable }
func (noHost) DatasetSize(string) (int64, error)              { return 0, abi.Unavailable }
func (noHost) DatasetRead(string, int64, []byte) (int, error) { return 0, abi.Unavailable }
func (noHost) ArtifactPut([]byte, []byte) (abi.Digest, error) { return "", abi.Unavailable }
func (noHost) ArtifactSize(abi.Digest) (int64, error)         { return 0, abi.Unavailable }
func (noHost) ArtifactRead(abi.Digest, int64, []byte) (int, error) {
	return 0, abi.Unavailable
}
func (noHost) Log(Level, string) error { return abi.Unavailable }
