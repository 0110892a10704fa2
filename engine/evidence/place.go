package evidence

import (
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// place is where a store was made. A store found elsewhere may be a copy.
type place struct {
	Device uint64 `json:"device"`
	Inode  uint64 `json:"inode"`
	Host   string `json:"host"`
}

func placeOf(dir, host string) (place, error) {
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return place{}, fmt.Errorf("stat %s: %w", dir, err)
	}
	if host == "" {
		name, err := os.Hostname()
		if err != nil {
			return place{}, fmt.Errorf("find the host's name: %w", err)
		}
		host = name
	}
	return place{Device: uint64(st.Dev), Inode: st.Ino, Host: host}, nil
}

// differs names what of p is not as in q, "" if nothing.
func (p place) differs(q place) string {
	var parts []string
	if p.Device != q.Device {
		parts = append(parts, fmt.Sprintf("device %d, was %d", p.Device, q.Device))
	}
	if p.Inode != q.Inode {
		parts = append(parts, fmt.Sprintf("inode %d, was %d", p.Inode, q.Inode))
	}
	if p.Host != q.Host {
		parts = append(parts, fmt.Sprintf("host %q, was %q", p.Host, q.Host))
	}
	return strings.Join(parts, "; ")
}

// networkFilesystem names the network or FUSE file system with this magic
// number (statfs(2)), "" for any other.
func networkFilesystem(magic int64) string {
	switch uint32(magic) {
	case 0x6969:
		return "NFS"
	case 0x517b, 0xff534d42, 0xfe534d42:
		return "SMB"
	case 0x65735546:
		return "FUSE"
	case 0x5346414f, 0x6b414653:
		return "AFS"
	case 0x00c36400:
		return "Ceph"
	case 0x73757245:
		return "Coda"
	}
	return ""
}

func refuseNetwork(dir string) error {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return fmt.Errorf("find file system of %s: %w", dir, err)
	}
	if name := networkFilesystem(int64(st.Type)); name != "" {
		return &Problem{Code: CodeNetworkFS, Path: dir, Detail: "a store cannot live on a " + name + " file system; choose a local disk"}
	}
	return nil
}

// lockInterval is how often a waiting writer looks again.
const lockInterval = 20 * time.Millisecond

// takeLock takes the store's lock for the life of the returned file. The
// file's text says who holds it, for people; only the flock counts.
func takeLock(path string, wait time.Duration, text string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, fileMode)
	if err != nil {
		return nil, err
	}
	for tries := int64(wait / lockInterval); ; tries-- {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err != unix.EWOULDBLOCK && err != unix.EINTR {
			break
		}
		if tries <= 0 {
			holder, _ := readSmall(path, 4<<10)
			_ = f.Close()
			return nil, &Problem{Code: CodeLocked, Path: path, Detail: "locked by " + printable(holder), cause: err}
		}
		time.Sleep(lockInterval)
	}
	if err == nil {
		err = f.Truncate(0)
	}
	if err == nil {
		_, err = f.WriteAt([]byte(text), 0)
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return f, nil
}

// printable is the lock's text on one line.
func printable(b []byte) string {
	s := strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return ' '
		}
		return r
	}, string(b))), " ")
	if s == "" {
		return "another process"
	}
	return s
}

func lockText(host string, now time.Time) string {
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return fmt.Sprintf("pid %d on host %s since %s, boot %s\n", os.Getpid(), host, now.UTC().Format(time.RFC3339), strings.TrimSpace(string(boot)))
}
