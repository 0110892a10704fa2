package host

// Flags and rights of path_open.
const (
	openCreate    = 1
	openDirectory = 2
	openExclusive = 4
	openTruncate  = 8

	// What asks to write: fd_write and fd_allocate. fd_filestat_set_size is not
	// among them, as Go's library asks for it also where it only reads.
	rightsWrite = 1<<6 | 1<<8
)

// path_open(fd, dirflags, path_ptr, path_len, oflags, rights i64, inheriting i64, fdflags, fd_ptr)
func pathOpen(c *Calls, stack []uint64) bool {
	if !c.enter(131) {
		return false
	}
	flags, rights, fdFlags := uint16(stack[4]), stack[5], uint16(stack[7])
	out := uint32(stack[8])
	c.requestArray(4)
	n, e, ok := c.path(uint32(stack[0]), uint32(stack[2]), uint32(stack[3]))
	if !ok {
		return false
	}
	c.requestUint(uint64(flags))
	c.requestBool(rights&rightsWrite != 0)
	if _, ok := c.bytesAt(out, 4); !ok {
		return false
	}
	if e = checkOpen(n, e, flags, rights); e != 0 {
		return c.wasiFail(stack, e)
	}
	fd, e := c.files.insert(&descriptor{node: n, flags: fdFlags})
	if e != 0 {
		return c.wasiFail(stack, e)
	}
	return c.putUint32(out, fd) && c.wasiOK(stack, int64(fd))
}

// checkOpen says why n, found with e, cannot be opened, or 0.
func checkOpen(n *node, e errno, flags uint16, rights uint64) errno {
	switch {
	case e == errnoNoent && flags&openCreate != 0:
		return errnoRofs
	case e != 0:
		return e
	case flags&openCreate != 0 && flags&openExclusive != 0:
		return errnoExist
	case flags&openTruncate != 0:
		return errnoRofs
	case n.dir:
		return 0
	case flags&openDirectory != 0:
		return errnoNotdir
	case rights&rightsWrite != 0:
		return errnoRofs
	}
	return 0
}

// path_filestat_get(fd, lookup_flags, path_ptr, path_len, stat_ptr)
func pathFilestatGet(c *Calls, stack []uint64) bool {
	if !c.enter(128) {
		return false
	}
	c.requestArray(2)
	n, e, ok := c.path(uint32(stack[0]), uint32(stack[2]), uint32(stack[3]))
	switch {
	case !ok:
		return false
	case e != 0:
		return c.wasiFail(stack, e)
	}
	return c.putFilestat(uint32(stack[4]), n) && c.wasiOK(stack, 0)
}

// path_readlink(fd, path_ptr, path_len, buf_ptr, buf_len, used_ptr): there are
// no links.
func pathReadlink(c *Calls, stack []uint64) bool {
	if !c.enter(132) {
		return false
	}
	c.requestArray(2)
	_, e, ok := c.path(uint32(stack[0]), uint32(stack[1]), uint32(stack[2]))
	switch {
	case !ok:
		return false
	case e != 0:
		return c.wasiFail(stack, e)
	}
	return c.wasiFail(stack, errnoInval)
}

// refusedPath makes the function of a call that would change what a path names.
// The path is recorded: that a guest tried is worth knowing.
func refusedPath(number uint16, fdAt, pathAt int) func(*Calls, []uint64) bool {
	return func(c *Calls, stack []uint64) bool {
		if !c.enter(number) {
			return false
		}
		c.requestArray(2)
		_, e, ok := c.path(uint32(stack[fdAt]), uint32(stack[pathAt]), uint32(stack[pathAt+1]))
		switch {
		case !ok:
			return false
		case e == errnoBadf || e == errnoNotcapable || e == errnoNametoolong:
			return c.wasiFail(stack, e)
		}
		return c.wasiFail(stack, errnoRofs)
	}
}
