package host

import (
	"encoding/binary"

	"github.com/writrun/writ/guest-abi/abi"
)

// Layouts of WASI structures, in bytes.
const (
	fdstatBytes   = 24
	filestatBytes = 64
	prestatBytes  = 8
	direntBytes   = 24
	rootName      = "/"
)

// File types of WASI.
const (
	typeCharacter = 2
	typeDirectory = 3
	typeRegular   = 4
)

// Rights a descriptor shows. They are not enforced one by one: nothing in the
// view can be changed, whatever the rights.
const (
	rightsFile      = 1<<1 | 1<<2 | 1<<3 | 1<<5 | 1<<7 | 1<<21 | 1<<27     // read, seek, flags, tell, advise, filestat, poll
	rightsDirectory = 1<<3 | 1<<13 | 1<<14 | 1<<15 | 1<<18 | 1<<21 | 1<<27 // flags, open, readdir, readlink, filestats
	rightsStdin     = 1<<1 | 1<<3 | 1<<21 | 1<<27                          // read, flags, filestat, poll
	rightsOutput    = 1<<3 | 1<<6 | 1<<21 | 1<<27                          // flags, write, filestat, poll
)

func (n *node) fileType() byte {
	switch {
	case n == nil:
		return typeCharacter
	case n.dir:
		return typeDirectory
	}
	return typeRegular
}

// fd_close(fd)
func fdClose(c *Calls, stack []uint64) bool {
	if !c.enter(108) {
		return false
	}
	fd := uint32(stack[0])
	c.requestUint(uint64(fd))
	if c.descriptor(fd) == nil {
		return c.wasiFail(stack, errnoBadf)
	}
	c.files.open[fd] = nil
	return c.wasiOK(stack, 0)
}

// fd_renumber(from, to)
func fdRenumber(c *Calls, stack []uint64) bool {
	if !c.enter(122) {
		return false
	}
	from, to := uint32(stack[0]), uint32(stack[1])
	c.requestArray(2)
	c.requestUint(uint64(from))
	c.requestUint(uint64(to))
	d := c.descriptor(from)
	if d == nil || c.descriptor(to) == nil {
		return c.wasiFail(stack, errnoBadf)
	}
	c.files.open[from] = nil
	c.files.open[to] = d
	return c.wasiOK(stack, 0)
}

// fd_fdstat_get(fd, stat_ptr)
func fdFdstatGet(c *Calls, stack []uint64) bool {
	if !c.enter(110) {
		return false
	}
	fd := uint32(stack[0])
	c.requestUint(uint64(fd))
	d := c.descriptor(fd)
	if d == nil {
		return c.wasiFail(stack, errnoBadf)
	}
	to, ok := c.bytesAt(uint32(stack[1]), fdstatBytes)
	if !ok {
		return false
	}
	clear(to)
	to[0] = d.node.fileType()
	binary.LittleEndian.PutUint16(to[2:], d.flags)
	rights, inheriting := uint64(rightsOutput), uint64(0)
	switch {
	case d.node == nil && fd == stdin:
		rights = rightsStdin
	case d.node != nil && d.node.dir:
		rights, inheriting = rightsDirectory, rightsDirectory|rightsFile
	case d.node != nil:
		rights = rightsFile
	}
	binary.LittleEndian.PutUint64(to[8:], rights)
	binary.LittleEndian.PutUint64(to[16:], inheriting)
	return c.wasiOK(stack, 0)
}

// fd_fdstat_set_flags(fd, flags): they are kept and change nothing, as no call
// here blocks or writes to a file.
func fdFdstatSetFlags(c *Calls, stack []uint64) bool {
	if !c.enter(111) {
		return false
	}
	fd, flags := uint32(stack[0]), uint16(stack[1])
	c.requestArray(2)
	c.requestUint(uint64(fd))
	c.requestUint(uint64(flags))
	d := c.descriptor(fd)
	if d == nil {
		return c.wasiFail(stack, errnoBadf)
	}
	d.flags = flags
	return c.wasiOK(stack, 0)
}

// fd_filestat_get(fd, stat_ptr)
func fdFilestatGet(c *Calls, stack []uint64) bool {
	if !c.enter(113) {
		return false
	}
	fd := uint32(stack[0])
	c.requestUint(uint64(fd))
	d := c.descriptor(fd)
	if d == nil {
		return c.wasiFail(stack, errnoBadf)
	}
	return c.putFilestat(uint32(stack[1]), d.node) && c.wasiOK(stack, 0)
}

// putFilestat writes what is known of n, or of a standard stream. Times are 0.
func (c *Calls) putFilestat(ptr uint32, n *node) bool {
	to, ok := c.bytesAt(ptr, filestatBytes)
	if !ok {
		return false
	}
	clear(to)
	binary.LittleEndian.PutUint64(to, 1) // device
	to[16] = n.fileType()
	binary.LittleEndian.PutUint64(to[24:], 1) // links
	if n != nil {
		binary.LittleEndian.PutUint64(to[8:], n.inode)
		binary.LittleEndian.PutUint64(to[32:], uint64(n.file.size))
	}
	return true
}

// fd_prestat_get(fd, prestat_ptr)
func fdPrestatGet(c *Calls, stack []uint64) bool {
	if !c.enter(117) {
		return false
	}
	fd := uint32(stack[0])
	c.requestUint(uint64(fd))
	if !c.isPreopened(fd) {
		return c.wasiFail(stack, errnoBadf)
	}
	to, ok := c.bytesAt(uint32(stack[1]), prestatBytes)
	if !ok {
		return false
	}
	clear(to)
	to[4] = byte(len(rootName))
	return c.wasiOK(stack, 0)
}

// fd_prestat_dir_name(fd, path_ptr, path_len)
func fdPrestatDirName(c *Calls, stack []uint64) bool {
	if !c.enter(118) {
		return false
	}
	fd, size := uint32(stack[0]), uint32(stack[2])
	c.requestArray(2)
	c.requestUint(uint64(fd))
	c.requestUint(uint64(size))
	switch {
	case !c.isPreopened(fd):
		return c.wasiFail(stack, errnoBadf)
	case size < uint32(len(rootName)):
		return c.wasiFail(stack, errnoNametoolong)
	}
	to, ok := c.bytesAt(uint32(stack[1]), uint32(len(rootName)))
	if !ok {
		return false
	}
	copy(to, rootName)
	return c.wasiOK(stack, 0)
}

func (c *Calls) isPreopened(fd uint32) bool {
	d := c.descriptor(fd)
	return fd == preopened && d != nil && d.node != nil && d.node.parent == d.node
}

// fd_seek(fd, offset i64, whence, position_ptr)
func fdSeek(c *Calls, stack []uint64) bool {
	if !c.enter(123) {
		return false
	}
	fd, offset, whence := uint32(stack[0]), int64(stack[1]), byte(stack[2])
	c.requestArray(3)
	c.requestUint(uint64(fd))
	c.requestInt(offset)
	c.requestUint(uint64(whence))
	d, e := c.seekable(fd)
	if e != 0 {
		return c.wasiFail(stack, e)
	}
	base := int64(0)
	switch whence {
	case 0:
	case 1:
		base = d.position
	case 2:
		base = d.node.file.size
	default:
		return c.wasiFail(stack, errnoInval)
	}
	position := base + offset
	if position < 0 || offset > 0 && position < base {
		return c.wasiFail(stack, errnoInval)
	}
	if !c.putUint64(uint32(stack[3]), uint64(position)) {
		return false
	}
	d.position = position
	return c.wasiOK(stack, position)
}

// fd_tell(fd, position_ptr)
func fdTell(c *Calls, stack []uint64) bool {
	if !c.enter(125) {
		return false
	}
	fd := uint32(stack[0])
	c.requestUint(uint64(fd))
	d, e := c.seekable(fd)
	if e != 0 {
		return c.wasiFail(stack, e)
	}
	return c.putUint64(uint32(stack[1]), uint64(d.position)) && c.wasiOK(stack, d.position)
}

// seekable returns the descriptor of a file.
func (c *Calls) seekable(fd uint32) (*descriptor, errno) {
	d := c.descriptor(fd)
	switch {
	case d == nil:
		return nil, errnoBadf
	case d.node == nil:
		return nil, errnoSpipe
	case d.node.dir:
		return nil, errnoIsdir
	}
	return d, 0
}

// fd_readdir(fd, buf_ptr, buf_len, cookie i64, used_ptr)
func fdReaddir(c *Calls, stack []uint64) bool {
	if !c.enter(121) {
		return false
	}
	fd, size, cookie := uint32(stack[0]), uint32(stack[2]), stack[3]
	c.requestArray(3)
	c.requestUint(uint64(fd))
	c.requestUint(uint64(size))
	c.requestUint(cookie)
	d := c.descriptor(fd)
	switch {
	case d == nil:
		return c.wasiFail(stack, errnoBadf)
	case d.node == nil || !d.node.dir:
		return c.wasiFail(stack, errnoNotdir)
	case size > abi.ArgumentBytesMax || cookie > uint64(len(d.node.children)+2):
		return c.wasiFail(stack, errnoInval)
	}
	to, ok := c.bytesAt(uint32(stack[1]), size)
	if !ok || !c.chargeBytes(uint64(size)) {
		return false
	}
	used := d.node.readdir(to, cookie)
	return c.putUint32(uint32(stack[4]), used) && c.wasiOK(stack, int64(used))
}

// readdir fills to with entries from number cookie on, "." and ".." first. The
// last one may be cut off.
func (n *node) readdir(to []byte, cookie uint64) uint32 {
	used := 0
	for ; used < len(to) && cookie < uint64(len(n.children)+2); cookie++ {
		entry, name := n, "."
		switch cookie {
		case 0:
		case 1:
			entry, name = n.parent, ".."
		default:
			entry = n.children[cookie-2]
			name = entry.name
		}
		var head [direntBytes]byte
		binary.LittleEndian.PutUint64(head[:], cookie+1)
		binary.LittleEndian.PutUint64(head[8:], entry.inode)
		binary.LittleEndian.PutUint32(head[16:], uint32(len(name)))
		head[20] = entry.fileType()
		used += copy(to[used:], head[:])
		used += copy(to[used:], name)
	}
	return uint32(used)
}
