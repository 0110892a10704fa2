package host

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/writrun/writ/guest-abi/abi"
)

func TestThereAreNoArgumentsAndNoEnvironment(t *testing.T) {
	w := newWorld(t, nil)
	for _, name := range []string{"args_sizes_get", "environ_sizes_get"} {
		copy(w.memory[out:], "\xff\xff\xff\xff\xff\xff\xff\xff")
		w.want(0, name+" null 0", name, out, out+4)
		w.wantMemory(out, "\x00\x00\x00\x00\x00\x00\x00\x00")
		w.wantStop(StopBadPointer, name, out, outside+1)
	}
	w.want(0, "args_get null 0", "args_get", out, out)
	w.want(0, "environ_get null 0", "environ_get", out, out)
}

func TestClocksOfWASI(t *testing.T) {
	w := newWorld(t, nil)
	w.want(0, "clock_res_get 0 1000", "clock_res_get", 0, out)
	w.want(0, "clock_time_get 0 1000001000", "clock_time_get", 0, int64(0), out)
	w.want(0, "clock_time_get 1 1000002000", "clock_time_get", 1, int64(0), out)
	for _, id := range []int{2, 3, 4, 0xffffffff} {
		w.want(int64(errnoNotsup), fmt.Sprintf("clock_time_get %d -58", id), "clock_time_get", id, int64(0), out)
		w.want(int64(errnoNotsup), fmt.Sprintf("clock_res_get %d -58", id), "clock_res_get", id, out)
	}
	w.wantStop(StopBadPointer, "clock_time_get", 0, int64(0), outside)
	w.wantStop(StopBadPointer, "clock_res_get", 0, outside)
	w.want(1_000_003_000, "clock_now null 1000003000", "clock_now") // a stopped reading moved nothing
}

func TestProcExit(t *testing.T) {
	for code, want := range map[int]string{0: "code 0", 3: "code 3", -1: "code 4294967295"} {
		w := newWorld(t, nil)
		if _, ok := w.do("proc_exit", code); ok || w.calls.stop == nil {
			t.Fatal("the guest lives on")
		}
		s := *w.calls.stop
		if s.Cause != string(StopExit) || s.Function != "proc_exit" || !strings.HasSuffix(s.Detail, want) {
			t.Errorf("stop %+v, want %s", s, want)
		}
		if got := strings.Join(w.record, ""); got != fmt.Sprintf("proc_exit %d 0", uint32(code)) {
			t.Errorf("record %q", got)
		}
	}
}

func TestAGoGuestOutOfMemoryGetsAHint(t *testing.T) {
	w := newWorld(t, nil)
	w.want(0, `fd_write [2,36,false,"fatal error: runtime: out of memory\n"] 36`, "fd_write", 2, w.vector("fatal error: runtime: out of memory\n"), out)
	w.do("proc_exit", 2)
	if s := w.calls.stop; s == nil || s.Cause != string(StopMemory) || s.Limit != "memory_bytes" || s.LimitValue == 0 {
		t.Errorf("stop %+v", s)
	}
}

// vector puts texts into memory and returns an array of buffers as arguments.
func (w *world) vector(texts ...string) []any {
	var array []byte
	for _, s := range texts {
		at := w.text(s)
		array = binary.LittleEndian.AppendUint32(array, at[0].(uint32))
		array = binary.LittleEndian.AppendUint32(array, uint32(len(s)))
	}
	at := w.text(string(array))
	return []any{at[0], len(texts)}
}

// rawVector is an array of one buffer that need not lie in memory.
func (w *world) rawVector(ptr, size uint32) []any {
	var array []byte
	array = binary.LittleEndian.AppendUint32(array, ptr)
	array = binary.LittleEndian.AppendUint32(array, size)
	return []any{w.text(string(array))[0], 1}
}

func TestWritesToStandardStreamsAreLogLines(t *testing.T) {
	w := newWorld(t, func(i *Invocation) { i.Limits.LogBytes = 10 })
	w.want(0, `fd_write [1,5,false,"hello"] 5`, "fd_write", 1, w.vector("he", "", "llo"), out)
	w.wantMemory(out, "\x05\x00\x00\x00")
	w.want(0, `fd_write [2,0,false,""] 0`, "fd_write", 2, w.vector(), out)
	// Five bytes are left: the second euro sign would be cut in two. The guest is
	// told that all was written, now and ever after.
	w.want(0, `fd_write [1,6,true,"€"] 6`, "fd_write", 1, w.vector("€€"), out)
	w.wantMemory(out, "\x06\x00\x00\x00")
	w.want(0, `fd_write [1,1,true,""] 1`, "fd_write", 1, w.vector("x"), out)
	w.want(0, fmt.Sprintf(`fd_write [1,%d,true,""] %[1]d`, testBytes), "fd_write", 1, w.rawVector(0, testBytes), out)

	w.want(int64(errnoBadf), `fd_write 0 -8`, "fd_write", 0, w.vector("x"), out)
	w.want(int64(errnoBadf), `fd_write 9 -8`, "fd_write", 9, w.vector("x"), out)
	w.want(int64(errnoRofs), `fd_write 3 -69`, "fd_write", 3, w.vector("x"), out)
	w.want(int64(errnoInval), `fd_write 1 -28`, "fd_write", 1, out, iovecsMax+1, out)
	w.wantStop(StopBadPointer, "fd_write", 1, w.rawVector(outside, 8), out)
	w.wantStop(StopBadPointer, "fd_write", 1, outside, 1, out)
	w.wantStop(StopBadPointer, "fd_write", 1, w.vector("x"), testBytes)
}

func TestOneWriteTakesABoundedPart(t *testing.T) {
	w := newWorld(t, nil)
	text := strings.Repeat("x", logLineBytesMax-1) + "€ and more"
	w.want(0, fmt.Sprintf(`fd_write [1,%d,false,%q] %[1]d`, logLineBytesMax-1, text[:logLineBytesMax-1]), "fd_write", 1, w.vector(text), out)
	w.want(0, `fd_write [1,12,false,"€ and more"] 12`, "fd_write", 1, w.vector(text[logLineBytesMax-1:]), out)
}

func TestDescriptors(t *testing.T) {
	w := newWorld(t, nil)
	root, docs := w.text("."), w.text("docs")
	w.want(0, "fd_prestat_get 3 0", "fd_prestat_get", 3, out)
	w.wantMemory(out, "\x00\x00\x00\x00\x01\x00\x00\x00")
	w.want(int64(errnoBadf), "fd_prestat_get 4 -8", "fd_prestat_get", 4, out)
	w.want(int64(errnoBadf), "fd_prestat_get 1 -8", "fd_prestat_get", 1, out)
	w.want(0, "fd_prestat_dir_name [3,1] 0", "fd_prestat_dir_name", 3, out, 1)
	w.wantMemory(out, "/")
	w.want(int64(errnoNametoolong), "fd_prestat_dir_name [3,0] -37", "fd_prestat_dir_name", 3, out, 0)
	w.want(int64(errnoBadf), "fd_prestat_dir_name [2,9] -8", "fd_prestat_dir_name", 2, out, 9)

	for fd, kind := range map[int]byte{0: typeCharacter, 1: typeCharacter, 2: typeCharacter, 3: typeDirectory} {
		w.want(0, fmt.Sprintf("fd_fdstat_get %d 0", fd), "fd_fdstat_get", fd, out)
		if w.memory[out] != kind {
			t.Errorf("descriptor %d has type %d", fd, w.memory[out])
		}
	}
	w.want(0, "fd_fdstat_set_flags [1,4] 0", "fd_fdstat_set_flags", 1, 4)
	w.want(0, "fd_fdstat_get 1 0", "fd_fdstat_get", 1, out)
	w.wantMemory(out+2, "\x04\x00")
	w.want(0, `path_open [3,".",0,false] 4`, "path_open", 3, 0, root, 0, int64(0), int64(0), 0, out)
	w.want(0, `path_open [3,"docs",2,false] 5`, "path_open", 3, 0, docs, openDirectory, int64(0), int64(0), 0, out)
	w.wantMemory(out, "\x05\x00\x00\x00")
	w.want(0, "fd_close 4 0", "fd_close", 4)
	w.want(int64(errnoBadf), "fd_close 4 -8", "fd_close", 4)
	w.want(int64(errnoBadf), "fd_renumber [5,4] -8", "fd_renumber", 5, 4)
	w.want(0, `path_open [3,".",0,false] 4`, "path_open", 3, 0, root, 0, int64(0), int64(0), 0, out)
	w.want(0, "fd_renumber [5,4] 0", "fd_renumber", 5, 4)
	w.want(int64(errnoBadf), "fd_sync 5 -8", "fd_sync", 5)
	w.want(0, `path_filestat_get [4,"a.txt"] 0`, "path_filestat_get", 4, 0, w.text("a.txt"), out)

	for name, args := range map[string][]any{"fd_fdstat_get": {3, outside}, "fd_prestat_get": {3, outside}, "fd_prestat_dir_name": {3, testBytes, 1},
		"path_open": {3, 0, root, 0, int64(0), int64(0), 0, outside + 1}} {
		w.wantStop(StopBadPointer, name, args...)
	}
}

func TestDescriptorsAreBounded(t *testing.T) {
	w := newWorld(t, nil)
	root := w.text(".")
	for fd := 4; fd < descriptorsMax; fd++ {
		w.do("path_open", 3, 0, root, 0, int64(0), int64(0), 0, out)
	}
	w.want(int64(errnoMfile), `path_open [3,".",0,false] -33`, "path_open", 3, 0, root, 0, int64(0), int64(0), 0, out)
}

func TestPathOpen(t *testing.T) {
	for _, tt := range []struct {
		path   string
		flags  int
		rights int64
		want   errno
	}{
		{"docs", 0, 0, 0},
		{"docs/", 0, 0, 0},
		{"./docs/../docs/a.txt", 0, 2, 0},
		{"docs/sub/c/d", 0, 2, 0},
		{"list", 0, 2, 0},
		{"list", openCreate, 2, 0},
		{"list", openCreate | openExclusive, 2, errnoExist},
		{"list", openTruncate, 2, errnoRofs},
		{"list", 0, 1 << 6, errnoRofs},
		{"list", 0, 1 << 8, errnoRofs},
		{"list", 0, 1<<22 | 2, 0}, // what Go's library asks for where it only reads
		{"list", openDirectory, 0, errnoNotdir},
		{"list/", 0, 0, errnoNotdir},
		{"list/x", 0, 0, errnoNotdir},
		{"docs/new", openCreate, 2, errnoRofs},
		{"docs/new", 0, 2, errnoNoent},
		{"", 0, 0, errnoNoent},
		{"/docs", 0, 0, errnoNotcapable},
		{"..", 0, 0, errnoNotcapable},
		{"docs/../../etc", 0, 0, errnoNotcapable},
		{"do\x00cs", 0, 0, errnoInval},
		{"\xff", 0, 0, errnoIlseq},
	} {
		w := newWorld(t, nil)
		got, ok := w.do("path_open", 3, 0, w.text(tt.path), tt.flags, tt.rights, int64(0), 0, out)
		if !ok || errno(got) != tt.want {
			t.Errorf("open %q with flags %d, rights %#x: %d, want %d", tt.path, tt.flags, tt.rights, got, tt.want)
		}
	}
	w := newWorld(t, nil)
	w.want(int64(errnoBadf), `path_open [9,"docs",0,false] -8`, "path_open", 9, 0, w.text("docs"), 0, int64(0), int64(0), 0, out)
	w.want(int64(errnoNotdir), `path_open [1,"docs",0,false] -54`, "path_open", 1, 0, w.text("docs"), 0, int64(0), int64(0), 0, out)
	w.want(int64(errnoNametoolong), `path_open [3,4097,0,false] -37`, "path_open", 3, 0, out, abi.PathBytesMax+1, 0, int64(0), int64(0), 0, out)
	w.wantStop(StopBadPointer, "path_open", 3, 0, outside, 8, 0, int64(0), int64(0), 0, out)
}

func TestNothingIsWritten(t *testing.T) {
	w := newWorld(t, nil)
	a, b := w.text("docs/a.txt"), w.text("docs/b")
	path := `[3,"docs/a.txt"]`
	w.want(int64(errnoRofs), "path_create_directory "+path+" -69", "path_create_directory", 3, a)
	w.want(int64(errnoRofs), "path_remove_directory "+path+" -69", "path_remove_directory", 3, a)
	w.want(int64(errnoRofs), "path_unlink_file "+path+" -69", "path_unlink_file", 3, a)
	w.want(int64(errnoRofs), "path_filestat_set_times "+path+" -69", "path_filestat_set_times", 3, 0, a, int64(0), int64(0), 0)
	w.want(int64(errnoRofs), "path_link "+path+" -69", "path_link", 3, 0, b, 3, a)
	w.want(int64(errnoRofs), "path_rename "+path+" -69", "path_rename", 3, a, 3, b)
	w.want(int64(errnoRofs), "path_symlink "+path+" -69", "path_symlink", b, 3, a)
	w.want(int64(errnoBadf), `path_unlink_file [7,"docs/a.txt"] -8`, "path_unlink_file", 7, a)
	w.want(int64(errnoNotcapable), `path_unlink_file [3,"../x"] -76`, "path_unlink_file", 3, w.text("../x"))
	w.wantStop(StopBadPointer, "path_unlink_file", 3, outside, 8)

	w.want(int64(errnoRofs), "fd_allocate 3 -69", "fd_allocate", 3, int64(0), int64(1))
	w.want(int64(errnoRofs), "fd_filestat_set_size 3 -69", "fd_filestat_set_size", 3, int64(0))
	w.want(int64(errnoRofs), "fd_filestat_set_times 3 -69", "fd_filestat_set_times", 3, int64(0), int64(0), 0)
	w.want(int64(errnoRofs), "fd_pwrite 3 -69", "fd_pwrite", 3, out, 0, int64(0), out)
	w.want(int64(errnoNotsup), "fd_fdstat_set_rights 3 -58", "fd_fdstat_set_rights", 3, int64(0), int64(0))
	w.want(int64(errnoBadf), "fd_pwrite 9 -8", "fd_pwrite", 9, out, 0, int64(0), out)
}

func TestWhatChangesNothingIsAccepted(t *testing.T) {
	w := newWorld(t, nil)
	w.want(0, "sched_yield null 0", "sched_yield")
	w.want(0, "fd_sync 3 0", "fd_sync", 3)
	w.want(0, "fd_datasync 3 0", "fd_datasync", 3)
	w.want(0, "fd_advise 3 0", "fd_advise", 3, int64(0), int64(0), 0)
	w.want(int64(errnoBadf), "fd_advise 8 -8", "fd_advise", 8, int64(0), int64(0), 0)
}

func TestThereAreNoSocketsAndNoSignals(t *testing.T) {
	w := newWorld(t, nil)
	w.want(int64(errnoNotsup), "proc_raise null -58", "proc_raise", 9)
	w.want(int64(errnoNotsup), "sock_accept 1 -58", "sock_accept", 1, 0, out)
	w.want(int64(errnoNotsup), "sock_recv 1 -58", "sock_recv", 1, out, 1, 0, out, out)
	w.want(int64(errnoNotsup), "sock_send 1 -58", "sock_send", 1, out, 1, 0, out)
	w.want(int64(errnoNotsup), "sock_shutdown 1 -58", "sock_shutdown", 1, 0)
	w.want(int64(errnoBadf), "sock_shutdown 7 -8", "sock_shutdown", 7, 0)
}

func TestReadingFiles(t *testing.T) {
	w := newWorld(t, nil)
	w.want(0, `path_open [3,"docs/sub/b.txt",0,false] 4`, "path_open", 3, 0, w.text("docs/sub/b.txt"), 0, int64(2), int64(0), 0, out)
	vector := w.vector("....", "..", "")
	first := int(vector[0].(uint32)) - 32 // where the two buffers are
	w.want(0, "fd_read [4,6] 6", "fd_read", 4, vector, out)
	w.wantMemory(out, "\x06\x00\x00\x00")
	w.wantMemory(first, "beta")
	w.want(0, "fd_tell 4 6", "fd_tell", 4, out)
	w.want(0, "fd_read [4,6] 3", "fd_read", 4, vector, out)
	w.wantMemory(first, "eta")
	w.want(0, "fd_read [4,6] 0", "fd_read", 4, vector, out)
	w.want(0, "fd_seek [4,-4,2] 5", "fd_seek", 4, int64(-4), 2, out)
	w.want(0, "fd_seek [4,1,1] 6", "fd_seek", 4, int64(1), 1, out)
	w.want(0, "fd_seek [4,99,0] 99", "fd_seek", 4, int64(99), 0, out)
	w.want(0, "fd_read [4,6] 0", "fd_read", 4, vector, out)
	w.want(int64(errnoInval), "fd_seek [4,-1,0] -28", "fd_seek", 4, int64(-1), 0, out)
	w.want(int64(errnoInval), "fd_seek [4,0,3] -28", "fd_seek", 4, int64(0), 3, out)
	w.want(int64(errnoInval), "fd_seek [4,9223372036854775807,1] -28", "fd_seek", 4, int64(1<<63-1), 1, out)
	w.want(0, "fd_pread [4,5,6] 4", "fd_pread", 4, vector, int64(5), out)
	w.wantMemory(first, "beta")
	w.want(0, "fd_tell 4 99", "fd_tell", 4, out)
	w.want(int64(errnoInval), "fd_pread [4,-1,3] -28", "fd_pread", 4, vector, int64(-1), out)

	w.want(0, "fd_read [0,3] 0", "fd_read", 0, vector, out)
	for fd, e := range map[int]errno{1: errnoBadf, 3: errnoIsdir, 9: errnoBadf} {
		w.want(int64(e), fmt.Sprintf("fd_read [%d,3] %d", fd, -int(e)), "fd_read", fd, vector, out)
	}
	for fd, e := range map[int]errno{0: errnoSpipe, 1: errnoSpipe, 3: errnoIsdir, 9: errnoBadf} {
		w.want(int64(e), fmt.Sprintf("fd_tell %d %d", fd, -int(e)), "fd_tell", fd, out)
	}
	w.want(int64(errnoInval), "fd_read [4,1025] -28", "fd_read", 4, out, iovecsMax+1, out)
	w.wantStop(StopBadPointer, "fd_read", 4, w.rawVector(outside, 8), out)
	w.wantStop(StopBadPointer, "fd_read", 4, outside, 1, out)
	w.wantStop(StopBadPointer, "fd_pread", 4, vector, int64(0), outside+1)
	w.wantStop(StopBadPointer, "fd_seek", 4, int64(0), 0, outside)
	w.wantStop(StopBadPointer, "fd_tell", 4, outside)
}

func TestFilestat(t *testing.T) {
	w := newWorld(t, nil)
	type stat struct {
		Inode uint64
		Type  byte
		Size  uint64
	}
	got := map[string]stat{}
	for _, path := range []string{".", "docs", "docs/a.txt", "docs/sub", "docs/sub-x", "docs/sub/b.txt", "docs/sub/c", "docs/sub/c/d", "docs/sub0", "list"} {
		w.want(0, fmt.Sprintf(`path_filestat_get [3,%q] 0`, path), "path_filestat_get", 3, 0, w.text(path), out)
		got[path] = stat{binary.LittleEndian.Uint64(w.memory[out+8:]), w.memory[out+16], binary.LittleEndian.Uint64(w.memory[out+32:])}
	}
	// Inodes follow the sorted tree, so they are the same on any machine.
	want := map[string]stat{".": {1, 3, 0}, "docs": {2, 3, 0}, "docs/a.txt": {3, 4, 5}, "docs/sub": {4, 3, 0}, "docs/sub/b.txt": {5, 4, 9},
		"docs/sub/c": {6, 3, 0}, "docs/sub/c/d": {7, 4, 4}, "docs/sub-x": {8, 4, 5}, "docs/sub0": {9, 4, 0}, "list": {10, 4, 4}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	w.want(0, "fd_filestat_get 1 0", "fd_filestat_get", 1, out)
	w.want(int64(errnoBadf), "fd_filestat_get 8 -8", "fd_filestat_get", 8, out)
	w.want(int64(errnoNoent), `path_filestat_get [3,"x"] -44`, "path_filestat_get", 3, 0, w.text("x"), out)
	w.want(int64(errnoInval), `path_readlink [3,"list"] -28`, "path_readlink", 3, w.text("list"), out, 9, out)
	w.want(int64(errnoNoent), `path_readlink [3,"x"] -44`, "path_readlink", 3, w.text("x"), out, 9, out)
	w.wantStop(StopBadPointer, "path_filestat_get", 3, 0, w.text("list"), testBytes-63)
	w.wantStop(StopBadPointer, "fd_filestat_get", 3, testBytes-63)
}

func TestReaddir(t *testing.T) {
	w := newWorld(t, nil)
	w.want(0, `path_open [3,"docs",2,false] 4`, "path_open", 3, 0, w.text("docs"), openDirectory, int64(0), int64(0), 0, out)
	names := func(size int, cookie uint64) (list []string, last uint64) {
		w.do("fd_readdir", 4, 8192, size, int64(cookie), out)
		used := int(binary.LittleEndian.Uint32(w.memory[out:]))
		for b := w.memory[8192:][:used]; len(b) >= direntBytes; {
			n := int(binary.LittleEndian.Uint32(b[16:]))
			if len(b) < direntBytes+n {
				break
			}
			list = append(list, string(b[direntBytes:][:n]))
			last = binary.LittleEndian.Uint64(b)
			b = b[direntBytes+n:]
		}
		return list, last
	}
	all, _ := names(4096, 0)
	if diff := cmp.Diff([]string{".", "..", "a.txt", "sub", "sub-x", "sub0"}, all); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
	var pieces []string
	for cookie := uint64(0); ; {
		part, next := names(40, cookie)
		if len(part) == 0 {
			break
		}
		pieces, cookie = append(pieces, part...), next
	}
	if diff := cmp.Diff(all, pieces); diff != "" {
		t.Errorf("entries in small pieces (-want +got):\n%s", diff)
	}
	w.want(int64(errnoInval), "fd_readdir [4,99,7] -28", "fd_readdir", 4, out, 99, int64(7), out)
	w.want(0, "fd_readdir [4,99,6] 0", "fd_readdir", 4, out, 99, int64(6), out)
	w.want(int64(errnoNotdir), "fd_readdir [1,99,0] -54", "fd_readdir", 1, out, 99, int64(0), out)
	w.want(int64(errnoBadf), "fd_readdir [9,99,0] -8", "fd_readdir", 9, out, 99, int64(0), out)
	w.want(int64(errnoInval), "fd_readdir [4,67108864,0] -28", "fd_readdir", 4, out, big, int64(0), out)
	w.wantStop(StopBadPointer, "fd_readdir", 4, outside, 8, int64(0), out)
}

// clockSubscription and fdSubscription are entries of poll_oneoff's input.
func clockSubscription(userdata uint64, id uint32, timeout uint64, flags uint16) string {
	b := make([]byte, subscriptionBytes)
	binary.LittleEndian.PutUint64(b, userdata)
	binary.LittleEndian.PutUint32(b[16:], id)
	binary.LittleEndian.PutUint64(b[24:], timeout)
	binary.LittleEndian.PutUint16(b[40:], flags)
	return string(b)
}

func fdSubscription(userdata uint64, kind byte, fd uint32) string {
	b := make([]byte, subscriptionBytes)
	binary.LittleEndian.PutUint64(b, userdata)
	b[8] = kind
	binary.LittleEndian.PutUint32(b[16:], fd)
	return string(b)
}

func TestPollJumpsTheClock(t *testing.T) {
	type event struct {
		Userdata uint64
		Errno    errno
		Kind     byte
	}
	hour := uint64(3_600_000_000_000)
	for _, tt := range []struct {
		name   string
		subs   string
		events []event
		clock  int64 // after the call
	}{
		{"one sleep", clockSubscription(7, 1, hour, 0), []event{{7, 0, 0}}, testStart + int64(hour)},
		{"the shorter of two", clockSubscription(1, 1, hour, 0) + clockSubscription(2, 0, 5, 0), []event{{2, 0, 0}}, testStart + 5},
		{"two that end together", clockSubscription(1, 1, 5, 0) + clockSubscription(2, 0, 5, 0), []event{{1, 0, 0}, {2, 0, 0}}, testStart + 5},
		{"an absolute time", clockSubscription(1, 0, uint64(testStart)+9, 1), []event{{1, 0, 0}}, testStart + 9},
		{"an absolute time gone by", clockSubscription(1, 0, 9, 1), []event{{1, 0, 0}}, testStart},
		{"for ever", clockSubscription(1, 0, 1<<64-1, 0), []event{{1, 0, 0}}, 1<<63 - 1},
		{"a descriptor and a sleep", clockSubscription(1, 0, hour, 0) + fdSubscription(2, 1, 0), []event{{2, 0, 1}}, testStart},
		{"a closed descriptor", fdSubscription(2, 2, 99), []event{{2, errnoBadf, 2}}, testStart},
		{"a clock there is not", clockSubscription(1, 2, hour, 0), []event{{1, errnoNotsup, 0}}, testStart},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, nil)
			n := len(tt.subs) / subscriptionBytes
			if got, ok := w.do("poll_oneoff", w.text(tt.subs)[0], 16384, n, out); !ok || got != 0 {
				t.Fatalf("poll = %d", got)
			}
			var events []event
			for i := range int(binary.LittleEndian.Uint32(w.memory[out:])) {
				b := w.memory[16384+i*eventBytes:]
				events = append(events, event{binary.LittleEndian.Uint64(b), errno(binary.LittleEndian.Uint16(b[8:])), b[10]})
			}
			if diff := cmp.Diff(tt.events, events); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			if w.calls.clock != tt.clock {
				t.Errorf("clock is %d, want %d", w.calls.clock, tt.clock)
			}
		})
	}
}

func TestPollRefusals(t *testing.T) {
	w := newWorld(t, nil)
	sub := w.text(clockSubscription(1, 0, 5, 0))[0]
	w.want(int64(errnoInval), "poll_oneoff 0 -28", "poll_oneoff", sub, out, 0, out)
	w.want(int64(errnoInval), "poll_oneoff 1025 -28", "poll_oneoff", sub, out, subscriptionsMax+1, out)
	if got, _ := w.do("poll_oneoff", w.text(fdSubscription(1, 3, 0))[0], out, 1, out); got != int64(errnoInval) {
		t.Errorf("a subscription of unknown kind: %d", got)
	}
	w.wantStop(StopBadPointer, "poll_oneoff", outside, out, 1, out)
	w.wantStop(StopBadPointer, "poll_oneoff", sub, outside, 1, out)
	w.wantStop(StopBadPointer, "poll_oneoff", sub, out, 1, outside+1)
	if w.calls.clock != testStart {
		t.Errorf("a refused call moved the clock to %d", w.calls.clock)
	}
}
