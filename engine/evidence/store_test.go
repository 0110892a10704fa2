package evidence

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/google/go-cmp/cmp"

	"github.com/writrun/writ/guest-abi/abi"
)

func TestInitMakesAStoreOrOpensIt(t *testing.T) {
	o := options(t)
	s := must[*Store](t)(Init(o))
	id := s.ID()
	ok(t, s.Close())
	s = must[*Store](t)(Init(o))
	if s.ID() != id || !validStoreID(id) {
		t.Errorf("second Init has id %q, first %q", s.ID(), id)
	}
	ok(t, s.Close())
	for _, path := range []string{o.Dir, filepath.Join(o.Dir, "tenants")} {
		if mode := must[os.FileInfo](t)(os.Stat(path)).Mode().Perm(); mode != 0o700 {
			t.Errorf("%s has mode %o, want 700", path, mode)
		}
	}
}

func TestOpenRefusals(t *testing.T) {
	describe := func(change func(map[string]any)) func(testing.TB, Options) {
		return func(t testing.TB, o Options) {
			path := filepath.Join(o.Dir, descriptionName)
			var d map[string]any
			ok(t, json.Unmarshal(must[[]byte](t)(os.ReadFile(path)), &d))
			change(d)
			ok(t, os.WriteFile(path, must[[]byte](t)(json.Marshal(d)), fileMode))
		}
	}
	tests := []struct {
		name   string
		change func(testing.TB, Options)
		code   string
	}{
		{"as it is", func(testing.TB, Options) {}, ""},
		{"no such directory", func(t testing.TB, o Options) { ok(t, os.RemoveAll(o.Dir)) }, CodeNotAStore},
		{"no description", func(t testing.TB, o Options) { ok(t, os.Remove(filepath.Join(o.Dir, descriptionName))) }, CodeNotAStore},
		{"description is no JSON", func(t testing.TB, o Options) {
			ok(t, os.WriteFile(filepath.Join(o.Dir, descriptionName), []byte("writ"), fileMode))
		}, CodeNotAStore},
		{"newer format", describe(func(d map[string]any) { d["format"] = 2; d["shards"] = 4 }), CodeFormatUnknown},
		{"unknown field", describe(func(d map[string]any) { d["shards"] = 4 }), CodeNotAStore},
		{"ill-formed id", describe(func(d map[string]any) { d["id"] = "../../etc" }), CodeNotAStore},
		{"another device", describe(func(d map[string]any) { d["device"] = 1 }), CodeForeignCopy},
		{"another inode", describe(func(d map[string]any) { d["inode"] = 1 }), CodeForeignCopy},
		{"another host", describe(func(d map[string]any) { d["host"] = "there" }), CodeForeignCopy},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			o := options(t)
			ok(t, must[*Store](t)(Init(o)).Close())
			test.change(t, o)
			s, err := Open(o)
			wantCode(t, err, test.code)
			if err == nil {
				ok(t, s.Close())
			}
		})
	}
}

func TestForeignCopyOpensForReading(t *testing.T) {
	o := options(t)
	s := initStore(t, o)
	sealedRun(t, tenantOf(t, s), 1)
	ok(t, s.Close())
	copied := copyTree(t, filepath.Dir(o.Dir))
	o.Dir, o.ReadOnly = filepath.Join(copied, "store"), true
	s = openStore(t, o)
	if s.Foreign() == "" {
		t.Error("a copy is not noticed")
	}
	must[*Trace](t)(tenantOf(t, s).OpenTrace(runID(1))).Close()
	if report := must[Report](t)(s.Verify(context.Background(), nil)); len(report.Problems) > 0 || report.Foreign == "" {
		t.Errorf("verify of a copy: %+v", report)
	}
}

func TestInitRefusals(t *testing.T) {
	o := options(t)
	ok(t, os.MkdirAll(o.Dir, dirMode))
	ok(t, os.WriteFile(filepath.Join(o.Dir, "thesis.tex"), nil, fileMode))
	_, err := Init(o)
	wantCode(t, err, CodeNotAStore)

	o = options(t)
	ok(t, os.MkdirAll(filepath.Join(o.Dir, "tenants", "acme"), dirMode))
	_, err = Init(o)
	wantCode(t, err, CodeNotAStore)

	o = options(t)
	o.KeyDir = filepath.Join(o.Dir, "keys")
	_, err = Init(o)
	wantCode(t, err, CodeKeysInStore)
}

func TestReadOnlyStoreTakesNoWork(t *testing.T) {
	o := options(t)
	ok(t, must[*Store](t)(Init(o)).Close())
	o.ReadOnly = true
	s := openStore(t, o)
	_, err := s.Tenant(acme)
	wantCode(t, err, CodeTenantUnknown)
	wantCode(t, s.Ready(), CodeReadOnly)
	_, err = s.Tenant(abi.TenantID{})
	if err == nil {
		t.Error("the empty tenant is accepted")
	}
}

func TestUnwritableStore(t *testing.T) {
	for _, errno := range []error{unix.EROFS, unix.EACCES} {
		s := initStore(t, options(t))
		tenant := tenantOf(t, s)
		s.disk.fault = func(op, path string) error { return errno }
		_, err := tenant.Admit(admission(1))
		wantCode(t, err, CodeReadOnly)
	}
}

func TestNetworkFilesystemNames(t *testing.T) {
	for magic, want := range map[int64]string{0x6969: "NFS", 0xff534d42: "SMB", -0x00acb2be: "SMB", 0x65735546: "FUSE", 0xef53: "", 0x01021994: "", 0x9123683e: ""} {
		if got := networkFilesystem(magic); got != want {
			t.Errorf("%#x is %q, want %q", magic, got, want)
		}
	}
}

func TestOneWriter(t *testing.T) {
	o := options(t)
	s := initStore(t, o)
	_, err := Open(o)
	wantCode(t, err, CodeLocked)
	if !strings.Contains(err.Error(), fmt.Sprintf("pid %d on host here", os.Getpid())) {
		t.Errorf("the message does not name the holder: %v", err)
	}
	o.ReadOnly = true
	ok(t, openStore(t, o).Close()) // readers need no lock

	o.ReadOnly = false
	o.Wait = 10 * time.Second
	type opened struct {
		s   *Store
		err error
	}
	second := make(chan opened)
	go func() {
		s, err := Open(o)
		second <- opened{s, err}
	}()
	ok(t, s.Close())
	got := <-second
	ok(t, got.err)
	ok(t, got.s.Close())
}

// TestLockTextIsForPeopleOnly: a lock file without a living flock never blocks.
func TestLockTextIsForPeopleOnly(t *testing.T) {
	o := options(t)
	ok(t, must[*Store](t)(Init(o)).Close())
	for _, text := range []string{"", "pid 1 on host here since ever", "pid 999999 on host there", "\x00\x1b[31m"} {
		ok(t, os.WriteFile(filepath.Join(o.Dir, "lock"), []byte(text), fileMode))
		ok(t, must[*Store](t)(Open(o)).Close())
	}
}

const initEnv = "WRIT_TEST_INIT_DIR"

// TestInitHelper is one of the processes of TestEightProcessesInit.
func TestInitHelper(t *testing.T) {
	dir := os.Getenv(initEnv)
	if dir == "" {
		t.Skip("runs only as a process of TestEightProcessesInit")
	}
	o := options(t)
	o.Dir, o.KeyDir, o.Wait = filepath.Join(dir, "store"), filepath.Join(dir, "keys"), 30*time.Second
	s := must[*Store](t)(Init(o))
	fmt.Println("id", s.ID())
	tenantOf(t, s)
	ok(t, s.Close())
}

func TestEightProcessesInit(t *testing.T) {
	dir := t.TempDir()
	var commands []*exec.Cmd
	var outputs []*strings.Builder
	for range 8 {
		c := exec.Command(os.Args[0], "-test.run=^TestInitHelper$", "-test.v")
		c.Env = append(os.Environ(), initEnv+"="+dir)
		out := &strings.Builder{}
		c.Stdout, c.Stderr = out, out
		ok(t, c.Start())
		commands, outputs = append(commands, c), append(outputs, out)
	}
	ids := map[string]int{}
	for i, c := range commands {
		if err := c.Wait(); err != nil {
			t.Fatalf("%v: %s", err, outputs[i])
		}
		_, rest, _ := strings.Cut(outputs[i].String(), "id ")
		ids[strings.Fields(rest)[0]]++
	}
	if len(ids) != 1 {
		t.Errorf("eight processes see stores %v", ids)
	}
}

func TestFsyncErrorEndsAllWork(t *testing.T) {
	o := options(t)
	s := initStore(t, o)
	tenant := tenantOf(t, s)
	running := must[*Journal](t)(tenant.Admit(admission(1)))
	j := must[*Journal](t)(tenant.Admit(admission(2)))
	s.disk.fault = func(op, path string) error {
		if op == "sync" {
			return unix.EIO
		}
		return nil
	}
	appendEvent(t, j, step, 3, stepStart)
	wantCode(t, j.Sync(), CodeBroken)
	s.disk.fault = nil
	wantCode(t, s.Ready(), CodeBroken)
	_, err := tenant.Admit(admission(3))
	wantCode(t, err, CodeBroken)
	wantCode(t, running.Sync(), "") // nothing new: what was said to be durable is
	_, err = running.Append(step, event(t, 3, stepStart))
	wantCode(t, err, CodeBroken)
	wantCode(t, tenant.Refuse(AdmissionRefused{Action: "run", Code: "x"}), CodeBroken)
	_ = s.Close()
	ok(t, openStore(t, o).Ready()) // another process finds out what is there
}

// TestFullDisk uses a real full file system.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=512k,mode=0700"); err != nil {
		t.Skipf("SKIPPED: a small tmpfs cannot be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	o := options(t)
	o.Dir = filepath.Join(dir, "store")
	s := initStore(t, o)
	tenant := tenantOf(t, s)
	sealedRun(t, tenant, 1)
	j := must[*Journal](t)(tenant.Admit(admission(2)))
	filler := filepath.Join(dir, "filler")
	fill(t, filler)

	r := &recorder{j: j}
	for range 100 {
		r.raw(step, event(t, 3, stepStart))
		r.sync()
	}
	wantCode(t, r.err, CodeFull)
	_, err := tenant.Content().PutBytes(make([]byte, 100_000))
	wantCode(t, err, CodeFull)
	_, err = tenant.Admit(admission(3))
	if !errors.Is(err, unix.ENOSPC) {
		t.Errorf("admission on a full disk: %v", err)
	}

	ok(t, os.Remove(filler))
	smallRun(t, j)
	must[Sealed](t)(j.Seal(smallLayout, runEnd))
	sealedRun(t, tenant, 3)
	if report := must[Report](t)(s.Verify(context.Background(), nil)); len(report.Problems) > 0 {
		t.Errorf("verify: %v", report.Problems)
	}
	ok(t, s.Close())
}

func fill(t testing.TB, path string) {
	t.Helper()
	f := must[*os.File](t)(os.Create(path))
	defer f.Close()
	for size := 64 << 10; size > 0; size /= 2 {
		for {
			if _, err := f.Write(make([]byte, size)); err != nil {
				break
			}
		}
	}
}

func TestTenantsAreApart(t *testing.T) {
	s := initStore(t, options(t))
	other := must[abi.TenantID](t)(abi.ParseTenantID("other"))
	sealedRun(t, tenantOf(t, s), 1)
	theirs := must[*Tenant](t)(s.Tenant(other))
	_, err := theirs.Run(runID(1))
	wantCode(t, err, CodeRunUnknown)
	_, err = theirs.OpenTrace(runID(1))
	wantCode(t, err, CodeRunUnknown)
	_, err = theirs.OpenJournal(runID(1))
	wantCode(t, err, CodeRunUnknown)
	if _, found, _ := theirs.FindRequest("request-1"); found {
		t.Error("a request is found in another tenant")
	}
	sealedRun(t, theirs, 1) // the same ids are free
	if diff := cmp.Diff([]string{"acme", "other"}, names(must[[]abi.TenantID](t)(s.Tenants()))); diff != "" {
		t.Error(diff)
	}
}

func names(ids []abi.TenantID) (out []string) {
	for _, id := range ids {
		out = append(out, id.String())
	}
	return out
}

func TestKeys(t *testing.T) {
	tests := []struct {
		name   string
		change func(t testing.TB, path string)
		code   string
	}{
		{"missing", func(t testing.TB, path string) { ok(t, os.Remove(path)) }, CodeKeyMissing},
		{"readable by others", func(t testing.TB, path string) { ok(t, os.Chmod(path, 0o644)) }, CodeKeyExposed},
		{"no key", func(t testing.TB, path string) { ok(t, os.WriteFile(path, []byte("a\nb\n"), fileMode)) }, CodeKeyDamaged},
		{"a link", func(t testing.TB, path string) {
			ok(t, os.Rename(path, path+".moved"))
			ok(t, os.Symlink(path+".moved", path))
		}, CodeKeyExposed},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			o := options(t)
			s := initStore(t, o)
			sealedRun(t, tenantOf(t, s), 1)
			path := s.tenantKeyPath(acme)
			ok(t, s.Close())
			test.change(t, path)
			s = openStore(t, o)
			_, err := s.Tenant(acme)
			wantCode(t, err, test.code)
		})
	}
}

func TestEveryCodeIsExplained(t *testing.T) {
	for code, doc := range Codes() {
		if doc.Cause == "" || doc.Remedy == "" {
			t.Errorf("code %s is not explained", code)
		}
	}
	source := must[[]byte](t)(os.ReadFile("problem.go"))
	for _, m := range regexp.MustCompile(`(?m)^\tCode\w+ += "(\w+)"$`).FindAllSubmatch(source, -1) {
		if _, ok := Codes()[string(m[1])]; !ok {
			t.Errorf("code %s has no explanation", m[1])
		}
	}
}
