package host

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/writrun/writ/guest-abi/abi"
)

// openArtifact is the artifact read last. Guests read one artifact in parts.
type openArtifact struct {
	id      abi.Digest
	content []byte
}

// artifact_put(meta_ptr, meta_len, ptr, len, id_out_ptr) -> i64
func artifactPut(c *Calls, stack []uint64) bool {
	if !c.enter(7) {
		return false
	}
	metaSize, size := uint32(stack[1]), uint32(stack[3])
	if metaSize > abi.MetadataBytesMax || size > abi.ArtifactBytesMax {
		c.requestArray(2)
		c.requestUint(uint64(metaSize))
		c.requestUint(uint64(size))
		return c.refuse(stack, abi.TooLarge)
	}
	meta, ok := c.bytesAt(uint32(stack[0]), metaSize)
	if !ok {
		return false
	}
	content, ok := c.bytesAt(uint32(stack[2]), size)
	if !ok {
		return false
	}
	out, ok := c.bytesAt(uint32(stack[4]), abi.DigestBytes)
	if !ok || !c.chargeBytes(uint64(metaSize)+uint64(size)) {
		return false
	}
	id := abi.DigestOf(content)
	c.requestArray(3)
	c.requestMemory(meta)
	c.requestUint(uint64(size))
	c.requestDigest(id)
	code, err := c.put(meta, content, id)
	switch {
	case err != nil:
		return c.failed(err)
	case code != 0:
		return c.refuse(stack, code)
	}
	copy(out, id)
	return c.answer(stack, 0)
}

// put stores an artifact, or says why not.
func (c *Calls) put(meta, content []byte, id abi.Digest) (abi.Code, error) {
	switch {
	case !isArtifactMeta(meta):
		return abi.Invalid, nil
	case c.artifacts == nil:
		return abi.NotGranted, nil
	case c.artifactsLeft == 0:
		return abi.BudgetExhausted, nil
	}
	stored, err := c.artifacts.Put(content)
	var code abi.Code
	switch {
	case errors.As(err, &code) && code < 0:
		return code, nil
	case err != nil:
		return 0, fmt.Errorf("store artifact: %w", err)
	case stored != id:
		return 0, fmt.Errorf("store artifact %s: the store calls it %s", id, stored)
	}
	c.artifactsLeft--
	return 0, nil
}

// isArtifactMeta reports whether meta is {"name": TEXT, "media_type": TEXT}.
func isArtifactMeta(meta []byte) bool {
	if abi.CheckJSON(meta, abi.MetadataDepthMax) != nil {
		return false
	}
	fields := map[string]any{}
	if json.Unmarshal(meta, &fields) != nil || len(fields) != 2 {
		return false
	}
	for _, name := range []string{"name", "media_type"} {
		text, ok := fields[name].(string)
		if !ok || text == "" || len(text) > abi.NameBytesMax {
			return false
		}
	}
	return true
}

// artifactAt reads an id argument and finds the artifact. It appends the id to
// the request.
func (c *Calls) artifactAt(ptr, size uint32) (code abi.Code, ok bool) {
	if size != abi.DigestBytes {
		c.requestUint(uint64(size))
		return abi.Invalid, true
	}
	text, ok := c.bytesAt(ptr, size)
	if !ok || !c.chargeBytes(uint64(size)) {
		return 0, false
	}
	id, err := abi.ParseDigest(string(text))
	if err != nil {
		c.requestText(text)
		return abi.Invalid, true
	}
	c.requestDigest(id)
	if c.artifacts == nil {
		return abi.NotFound, true
	}
	if c.artifact.id == id {
		return 0, true
	}
	content, found, err := c.artifacts.Get(id)
	switch {
	case err != nil:
		return 0, c.failed(fmt.Errorf("read artifact %s: %w", id, err))
	case !found:
		return abi.NotFound, true
	}
	c.artifact = openArtifact{id, content}
	return 0, true
}

// artifact_size(id_ptr, id_len) -> i64
func artifactSize(c *Calls, stack []uint64) bool {
	if !c.enter(8) {
		return false
	}
	code, ok := c.artifactAt(uint32(stack[0]), uint32(stack[1]))
	switch {
	case !ok:
		return false
	case code != 0:
		return c.refuse(stack, code)
	}
	return c.answer(stack, int64(len(c.artifact.content)))
}

// artifact_read(id_ptr, id_len, offset i64, ptr, len) -> i64
func artifactRead(c *Calls, stack []uint64) bool {
	if !c.enter(9) {
		return false
	}
	offset, ptr, size := int64(stack[2]), uint32(stack[3]), uint32(stack[4])
	c.requestArray(3)
	code, ok := c.artifactAt(uint32(stack[0]), uint32(stack[1]))
	if !ok {
		return false
	}
	c.requestInt(offset)
	c.requestUint(uint64(size))
	if code = readCode(code, offset, size); code != 0 {
		return c.refuse(stack, code)
	}
	to, ok := c.bytesAt(ptr, size)
	if !ok || !c.chargeBytes(uint64(size)) {
		return false
	}
	n := 0
	if offset < int64(len(c.artifact.content)) {
		n = copy(to, c.artifact.content[offset:])
	}
	return c.answer(stack, int64(n))
}
