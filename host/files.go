package host

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/writrun/writ/guest-abi/abi"
)

// node is a directory or file of the read-only view of an invocation's
// datasets: "/" holds a directory or file per dataset, named by its id.
type node struct {
	name     string
	inode    uint64
	parent   *node // of the root: itself
	children []*node
	dir      bool
	file     file
}

// newTree builds the view. Children are in bytewise order and inode numbers
// follow that order depth first, so both are functions of the datasets alone.
func newTree(list []Dataset) *node {
	root := &node{name: "/", dir: true}
	root.parent = root
	for i := range list {
		set := &list[i]
		if !set.Handle.Folder {
			if len(set.Listing.Files) == 1 {
				root.add(string(set.Handle.ID), set.file(&set.Listing.Files[0]))
			}
			continue
		}
		top := root.directory(string(set.Handle.ID))
		for j := range set.Listing.Files {
			top.add(set.Listing.Files[j].Path, set.file(&set.Listing.Files[j]))
		}
	}
	next := uint64(1)
	root.number(&next)
	return root
}

// add puts a file at a path below n.
func (n *node) add(path string, f file) {
	for {
		name, rest, more := strings.Cut(path, "/")
		if !more {
			n.children = append(n.children, &node{name: name, parent: n, file: f})
			return
		}
		n, path = n.directory(name), rest
	}
}

// directory returns the directory of a name in n, making it if need be.
// Listings are sorted, so it is the last child or new.
func (n *node) directory(name string) *node {
	if last := len(n.children) - 1; last >= 0 && n.children[last].dir && n.children[last].name == name {
		return n.children[last]
	}
	child := &node{name: name, parent: n, dir: true}
	n.children = append(n.children, child)
	return child
}

// number sorts the children of n and gives inode numbers. Depth is bounded by
// the length of a dataset path.
func (n *node) number(next *uint64) {
	slices.SortFunc(n.children, func(a, b *node) int { return cmp.Compare(a.name, b.name) })
	n.inode = *next
	*next++
	for _, child := range n.children {
		child.number(next)
	}
}

// walk follows a path from n. It leaves neither the view nor the directory it
// starts in.
func (n *node) walk(path string) (*node, errno) {
	switch {
	case path == "":
		return nil, errnoNoent
	case !utf8.ValidString(path):
		return nil, errnoIlseq
	case strings.IndexByte(path, 0) >= 0:
		return nil, errnoInval
	case path[0] == '/':
		return nil, errnoNotcapable
	}
	depth := 0
	for part := range strings.SplitSeq(path, "/") {
		if !n.dir {
			return nil, errnoNotdir
		}
		switch part {
		case "", ".":
			continue
		case "..":
			if depth == 0 {
				return nil, errnoNotcapable
			}
			depth--
			n = n.parent
			continue
		}
		i, ok := slices.BinarySearchFunc(n.children, part, func(c *node, name string) int { return cmp.Compare(c.name, name) })
		if !ok {
			return nil, errnoNoent
		}
		depth++
		n = n.children[i]
	}
	return n, 0
}

// Descriptors.
const (
	stdin, stdout, stderr = 0, 1, 2
	preopened             = 3
	descriptorsMax        = 1024
)

// descriptor is an open descriptor: a standard stream, or a node of the view.
type descriptor struct {
	node     *node // nil for a standard stream
	position int64
	flags    uint16
}

// fileTable is an invocation's open descriptors by number, nil where closed.
// Its first use opens the standard streams and "/".
type fileTable struct {
	open []*descriptor
}

// descriptor returns an open descriptor or nil.
func (c *Calls) descriptor(fd uint32) *descriptor {
	t := &c.files
	if t.open == nil {
		t.open = []*descriptor{{}, {}, {}, {node: newTree(c.datasets.list)}}
	}
	if uint64(fd) >= uint64(len(t.open)) {
		return nil
	}
	return t.open[fd]
}

// insert opens d under the lowest free number.
func (t *fileTable) insert(d *descriptor) (uint32, errno) {
	for fd, other := range t.open {
		if other == nil {
			t.open[fd] = d
			return uint32(fd), 0
		}
	}
	if len(t.open) >= descriptorsMax {
		return 0, errnoMfile
	}
	t.open = append(t.open, d)
	return uint32(len(t.open) - 1), 0
}

// path reads a path argument relative to a directory descriptor. It appends
// both to the request, as two items, and returns the node or an error number.
func (c *Calls) path(fd, ptr, size uint32) (n *node, e errno, ok bool) {
	c.requestUint(uint64(fd))
	if size > abi.PathBytesMax {
		c.requestUint(uint64(size))
		return nil, errnoNametoolong, true
	}
	text, ok := c.bytesAt(ptr, size)
	if !ok || !c.chargeBytes(uint64(size)) {
		return nil, 0, false
	}
	c.requestText(text)
	d := c.descriptor(fd)
	switch {
	case d == nil:
		return nil, errnoBadf, true
	case d.node == nil || !d.node.dir:
		return nil, errnoNotdir, true
	}
	n, e = d.node.walk(string(text))
	return n, e, true
}
