package evidence

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host/trace"
)

// Report is what [Store.Verify] found.
type Report struct {
	StoreID        string         `json:"store_id"`
	Foreign        string         `json:"foreign,omitempty"` // how the place differs, for a copied store
	Tenants        []TenantReport `json:"tenants"`
	Problems       []*Problem     `json:"problems"`
	Runs           int            `json:"runs"`            // in the ledgers
	Events         int            `json:"events"`          // headers read
	Payloads       int            `json:"payloads"`        // matched against their commitments
	ContentObjects int            `json:"content_objects"` // re-hashed
}

// TenantReport is what was found of one tenant.
type TenantReport struct {
	Tenant      string     `json:"tenant"`
	Records     uint64     `json:"records"`
	Heads       int        `json:"heads"`
	HeadSize    uint64     `json:"head_size"` // of the newest head
	HeadRoot    abi.Digest `json:"head_root"`
	Runs        int        `json:"runs"`
	Sealed      int        `json:"sealed"`
	Unfinished  int        `json:"unfinished"`
	Quarantined int        `json:"quarantined"`
	Unanchored  uint64     `json:"unanchored"` // records after the newest head
	TornRecord  bool       `json:"torn_record"`
	TornRuns    int        `json:"torn_runs"` // journals that end in an unfinished write
}

// Verify recomputes everything from the files: each ledger's records and their
// root against each signed head, each trace's root against the ledger, each
// payload against its commitment, each execution digest, each content object
// against its name, each journal's authentication codes. It writes nothing.
// What it finds is in the report; an error is a failure to look. progress, if
// not nil, is called as items (runs and content objects) are done.
func (s *Store) Verify(ctx context.Context, progress func(done, total int)) (Report, error) {
	ids, err := s.Tenants()
	if err != nil {
		return Report{}, err
	}
	v := &verification{ctx: ctx, progress: progress, report: Report{StoreID: s.id, Foreign: s.foreign, Tenants: []TenantReport{}, Problems: []*Problem{}}}
	var tenants []*tenantCheck
	for _, id := range ids {
		c, err := v.begin(s, id)
		if err != nil {
			return v.report, err
		}
		tenants = append(tenants, c)
		v.total += len(c.tenant.order) + len(c.objects)
	}
	for _, c := range tenants {
		if err := v.check(c); err != nil {
			return v.report, err
		}
	}
	return v.report, nil
}

// verification is one run over a store.
type verification struct {
	ctx         context.Context
	progress    func(done, total int)
	done, total int
	report      Report
}

// tenantCheck is a tenant as read for verification, apart from the one in use.
type tenantCheck struct {
	tenant  *Tenant
	traces  []string // files in trace/, listed before the ledger was read
	sizes   []uint64 // of heads
	objects []string
	report  TenantReport
}

// add takes a problem into the report and passes on any other error.
func (v *verification) add(err error) error {
	var p *Problem
	if !errors.As(err, &p) {
		return err
	}
	v.report.Problems = append(v.report.Problems, p)
	return nil
}

func (v *verification) step() error {
	v.done++
	if v.progress != nil {
		v.progress(v.done, v.total)
	}
	return v.ctx.Err()
}

// begin lists a tenant's files, then reads its ledger: what is in a list must
// be in the ledger read after it.
func (v *verification) begin(s *Store, id abi.TenantID) (*tenantCheck, error) {
	t := s.bareTenant(id)
	c := &tenantCheck{tenant: t, report: TenantReport{Tenant: id.String()}}
	err := t.loadKey()
	if err == nil && t.key == nil {
		err = &Problem{Code: CodeKeyMissing, Path: t.store.tenantKeyPath(id), Detail: "heads cannot be verified without the tenant's key"}
	}
	if err := v.add(err); err != nil {
		return nil, err
	}
	var strange []*Problem
	if c.sizes, strange, err = t.headSizes(); err != nil {
		return nil, err
	}
	v.report.Problems = append(v.report.Problems, strange...)
	if c.traces, err = listFiles(t.path("trace")); err != nil {
		return nil, err
	}
	if c.objects, err = listFiles(t.contentDir()); err != nil {
		return nil, err
	}
	return c, v.ledger(c)
}

// bareTenant is a tenant of which nothing is read yet, for reading only.
func (s *Store) bareTenant(id abi.TenantID) *Tenant {
	reader := &Store{dir: s.dir, keyDir: s.keyDir, id: s.id, readOnly: true, disk: s.disk}
	t := &Tenant{store: reader, id: id, dir: filepath.Join(s.dir, "tenants", id.String()), disk: s.disk}
	t.ledger = ledger{path: t.path("ledger"), disk: s.disk}
	t.content = &Content{dir: t.contentDir(), disk: s.disk, readOnly: true}
	t.reset()
	return t
}

// endedMeanwhile reports whether a run was sealed or quarantined, and covered
// by a head, since the ledger was read: a writer may be at work.
func (c *tenantCheck) endedMeanwhile(run abi.RunID) bool {
	now := c.tenant.store.bareTenant(c.tenant.id)
	err := now.ledger.scan(func(r *Record, _ []byte) error { return now.apply(r) })
	if code := CodeOf(err); err != nil && code != CodeLedgerTorn {
		return false
	}
	sizes, _, err := now.headSizes()
	summary := now.runs[run]
	return err == nil && summary != nil && summary.State != StateAdmitted && len(sizes) > 0 && summary.endIndex < sizes[len(sizes)-1]
}

// ledger reads a tenant's ledger and compares it with every head.
func (v *verification) ledger(c *tenantCheck) error {
	t := c.tenant
	heads := map[uint64]*head{}
	for _, size := range c.sizes {
		if t.key == nil {
			break
		}
		h, err := t.readHead(size)
		if err := v.add(err); err != nil {
			return err
		}
		heads[size] = h
	}
	err := t.ledger.scan(func(r *Record, _ []byte) error {
		if h := heads[t.ledger.tree.Size()]; h != nil && h.root != t.ledger.tree.Sum() {
			v.report.Problems = append(v.report.Problems, t.rewritten(h.size))
		}
		if commitment := r.text(); commitment != "" {
			if err := v.add(t.checkText(commitment)); err != nil {
				return err
			}
		}
		return t.apply(r)
	})
	if CodeOf(err) == CodeLedgerTorn {
		c.report.TornRecord, err = true, nil
	}
	if err := v.add(err); err != nil {
		return err
	}
	v.heads(c)
	return nil
}

// heads compares how far heads and ledger go.
func (v *verification) heads(c *tenantCheck) {
	t := c.tenant
	size := t.ledger.tree.Size()
	c.report.Records, c.report.Heads, c.report.Unanchored = size, len(c.sizes), size
	if n := len(c.sizes); n > 0 {
		c.report.HeadSize = c.sizes[n-1]
		if c.report.HeadSize > size {
			v.report.Problems = append(v.report.Problems, t.behind(size, c.report.HeadSize))
			c.report.Unanchored = 0
			return
		}
		c.report.Unanchored = size - c.report.HeadSize
		if t.key != nil {
			if h, err := t.readHead(c.report.HeadSize); err == nil {
				c.report.HeadRoot = abi.DigestFromSum(h.root)
			}
		}
	}
	for _, id := range t.order {
		if run := t.runs[id]; run.Sealed() && run.endIndex >= c.report.HeadSize {
			if _, err := os.Stat(t.journalPath(id)); err == nil || c.endedMeanwhile(id) {
				continue // the seal is not finished: the writer, or the next open, signs
			}
			v.report.Problems = append(v.report.Problems, &Problem{Code: CodeHeadMissing, Path: t.disk.rel(t.path("heads")), Detail: fmt.Sprintf("run %s was sealed and no signed head covers it", id)})
		}
	}
}

// check goes through a tenant's runs and content.
func (v *verification) check(c *tenantCheck) error {
	for _, id := range c.tenant.order {
		if err := v.run(c, c.tenant.runs[id]); err != nil {
			return err
		}
		if err := v.step(); err != nil {
			return err
		}
	}
	v.unlisted(c)
	for _, path := range c.objects {
		if err := v.add(v.object(c.tenant, path)); err != nil {
			return err
		}
		if err := v.step(); err != nil {
			return err
		}
	}
	v.report.Runs += len(c.tenant.order)
	c.report.Runs = len(c.tenant.order)
	v.report.Tenants = append(v.report.Tenants, c.report)
	return nil
}

func (v *verification) run(c *tenantCheck, run *RunSummary) error {
	switch {
	case run.State == StateQuarantined:
		c.report.Quarantined++
		return nil
	case run.Sealed():
		c.report.Sealed++
		return v.sealed(c.tenant, run)
	}
	c.report.Unfinished++
	f, s, err := c.tenant.openJournal(run.RunID)
	if err != nil && c.endedMeanwhile(run.RunID) {
		return nil
	}
	if err != nil {
		return v.add(err)
	}
	if s.tail != nil && s.tail.Torn {
		c.report.TornRuns++
	}
	if p := c.tenant.journalDamage(run.RunID, s); p != nil {
		v.report.Problems = append(v.report.Problems, p)
	}
	return f.Close()
}

// sealed checks every byte of a sealed run.
func (v *verification) sealed(t *Tenant, run *RunSummary) error {
	tr, err := t.OpenTrace(run.RunID)
	if err != nil {
		return v.add(err)
	}
	defer tr.Close()
	var digest trace.ExecutionHasher
	var end trace.RunEnd
	whole := true
	for _, lane := range tr.lanes {
		for _, h := range tr.headers[lane] {
			v.report.Events++
			payload, err := tr.payloadOf(h)
			if err == nil {
				err = checkPayload(h, payload, &end)
			}
			if err != nil {
				whole = false
				if err := v.add(err); err != nil {
					return err
				}
				if tr.lost != nil {
					return nil // said once
				}
				continue
			}
			v.report.Payloads++
			if h.Kind.Core() {
				digest.Add(lane, h.Seq, h.Kind, sha256.Sum256(payload))
			}
		}
	}
	if whole && end.ExecutionDigest != digest.Digest() {
		return v.add(&Problem{Code: CodeDigestMismatch, Path: t.disk.rel(t.tracePath(run.RunID, traceSuffix)),
			Detail: fmt.Sprintf("RUN_END says %s and the payloads give %s", end.ExecutionDigest, digest.Digest())})
	}
	return v.add(tr.extraPayloads())
}

// checkPayload decodes a payload strictly and keeps RUN_END's.
func checkPayload(h trace.Header, payload []byte, end *trace.RunEnd) error {
	into := trace.NewPayload(h.Kind)
	if h.Kind == trace.KindRunEnd {
		into = end
	}
	if err := trace.DecodePayload(payload, into); err != nil {
		return &Problem{Code: CodePayloadMismatch, Address: h.Address().String(), Detail: err.Error(), cause: err}
	}
	return nil
}

// extraPayloads refuses payloads of events the trace does not have.
func (tr *Trace) extraPayloads() error {
	for lane, bodies := range tr.bodies {
		if len(bodies) > len(tr.headers[lane]) {
			return &Problem{Code: CodePayloadsDamaged, Path: tr.tenant.disk.rel(tr.f.Name()), Detail: fmt.Sprintf("lane %s has %d payloads for %d events", lane, len(bodies), len(tr.headers[lane]))}
		}
	}
	return nil
}

// unlisted finds trace files the ledger does not know.
func (v *verification) unlisted(c *tenantCheck) {
	t := c.tenant
	for _, path := range c.traces {
		name := filepath.Base(path)
		if strings.HasPrefix(name, tempPrefix) {
			continue
		}
		base := strings.TrimSuffix(strings.TrimSuffix(name, traceSuffix), payloadsSuffix)
		id, err := abi.ParseRunID(base)
		if err != nil || base == name {
			v.report.Problems = append(v.report.Problems, &Problem{Code: CodeUnexpectedFile, Path: t.disk.rel(path), Detail: "not the name of a trace or its payloads"})
			continue
		}
		run := t.runs[id]
		if run != nil && run.Sealed() {
			continue
		}
		if _, err := os.Stat(t.journalPath(id)); run != nil && err == nil || c.endedMeanwhile(id) {
			continue // the seal is not finished, or was when this was looked at
		}
		v.report.Problems = append(v.report.Problems, &Problem{Code: CodeTraceUnlisted, Path: t.disk.rel(path), Detail: "the ledger has no such sealed run"})
	}
}

// object re-hashes a content object.
func (v *verification) object(t *Tenant, path string) error {
	name := filepath.Base(path)
	if strings.HasPrefix(name, tempPrefix) {
		return nil
	}
	digest, err := abi.ParseDigest("sha256:" + name)
	if want, _ := t.content.path(digest); err != nil || want != path {
		return &Problem{Code: CodeUnexpectedFile, Path: t.disk.rel(path), Detail: "not the name of a content object"}
	}
	f, err := t.content.Open(digest)
	if err != nil {
		return err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return t.disk.problem("read content", path, err)
	}
	v.report.ContentObjects++
	if sum, err := digest.Sum(); err != nil || !bytes.Equal(h.Sum(nil), sum[:]) {
		return t.content.mismatch(path)
	}
	return nil
}

// listFiles lists the files under dir, in order.
func listFiles(dir string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // removed meanwhile, or never there
		}
		if err == nil && !e.IsDir() {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", dir, err)
	}
	return files, nil
}
