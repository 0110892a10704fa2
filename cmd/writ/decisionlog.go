package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/writrun/writ/engine"
	"github.com/writrun/writ/engine/effect"
	"github.com/writrun/writ/engine/evidence"
	"github.com/writrun/writ/policies/decisionlog"
)

// Times of a decision log.
const (
	logLinger  = 500 * time.Millisecond // that a chunk for a service waits for more
	logEndTime = 5 * time.Second        // at a run's end, to deliver what is waiting
)

// erasedByDefault does not leave with inputs: who asks is a person.
const erasedByDefault = "/input/principal/name"

// decisionLogFlags say where decisions are written beside the record.
type decisionLogFlags struct {
	to           string
	includeInput bool
	erase        []string
}

func (f *decisionLogFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.to, "decision-log", "", "write each policy decision as OPA's decision log `to` a file, - for stdout, or an http(s) URL")
	flags.BoolVar(&f.includeInput, "decision-log-include-input", false, "write what was asked too, masked; the ledger notes it")
	flags.StringArrayVar(&f.erase, "decision-log-erase", nil, "leave out what is at this `PATH`, for instance /input/datasets; repeatable ("+erasedByDefault+" always is)")
}

// runLog is the decision log of one run; the zero value logs nothing.
type runLog struct {
	app    *app
	log    *decisionlog.Log
	tenant *evidence.Tenant
	masker *effect.Masker
	where  string // without what a URL may hold of keys
	file   io.Closer
}

// openDecisionLog opens the log that the flags ask for.
func (a *app) openDecisionLog(f decisionLogFlags, store *evidence.Store, tenant *evidence.Tenant, secrets []effect.Secret) (*runLog, error) {
	r := &runLog{app: a, tenant: tenant, where: f.to}
	if f.to == "" {
		if f.includeInput || len(f.erase) > 0 {
			return nil, usagef("--decision-log-include-input and --decision-log-erase need --decision-log")
		}
		return r, nil
	}
	named := map[string]effect.Secret{}
	for _, s := range secrets {
		named[s.Name] = s
	}
	r.masker = effect.NewMasker(named)
	c := decisionlog.Config{IncludeInput: f.includeInput, Erase: append([]string{erasedByDefault}, f.erase...),
		Labels: map[string]string{"app": "writ", "id": store.ID(), "tenant": a.tenantName, "version": provenance()["writ"]}}
	var err error
	if c.Sink, c.Linger, err = r.sink(f.to); err != nil {
		return nil, err
	}
	if r.log, err = decisionlog.New(c); err != nil {
		return nil, errors.Join(usagef("--decision-log-erase: %v", err), r.closeFile())
	}
	return r, nil
}

// sink opens what the log is written to.
func (r *runLog) sink(to string) (decisionlog.Sink, time.Duration, error) {
	switch {
	case to == "-" && r.app.json():
		return nil, 0, usagef("--decision-log - and --output json would both write to stdout; name a file")
	case to == "-":
		return decisionlog.Lines{W: r.app.stdout}, 0, nil
	case strings.HasPrefix(to, "http://"), strings.HasPrefix(to, "https://"):
		if u, err := url.Parse(to); err == nil {
			u.User, u.RawQuery, u.Fragment = nil, "", "" // where keys are often put
			r.where = u.String()
		}
		client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		sink, err := decisionlog.NewHTTP(to, client)
		if err != nil {
			return nil, 0, usagef("--decision-log: %q is no URL to post to", r.where)
		}
		return sink, logLinger, nil
	}
	file, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, 0, inputError(to, err)
	}
	r.file = file
	return decisionlog.Lines{W: file}, 0, nil
}

// decided logs one decision.
func (r *runLog) decided(d engine.PolicyDecision) {
	if r.log == nil {
		return
	}
	id := string(d.RunID) + "/" + d.Address
	if d.RunID == "" {
		id = fmt.Sprintf("refused/%s/%d", d.InputDigest.Hex(), d.At.UnixNano())
	}
	// Masks keep JSON whole or say that they could not; then the input stays here.
	input, ok := r.masker.Mask(d.Input)
	if !ok {
		input = nil
	}
	r.log.Add(decisionlog.Decision{ID: id, Entrypoint: d.Entrypoint, Policy: d.Policy, RunID: d.RunID, Address: d.Address, FlowID: d.FlowID,
		InputDigest: d.InputDigest, Input: input, Result: loggedResult(d), Error: d.Error, At: d.At})
}

// loggedResult is what a decision came to, as the policies' results have it.
func loggedResult(d engine.PolicyDecision) any {
	answer, err := recordedAnswer(d.Name(), d.Result)
	if err != nil {
		return nil
	}
	return answer
}

// close delivers what is waiting, says what was not delivered, and has the
// ledger note the inputs that left. Whatever happens, the run is what it is.
func (r *runLog) close(ctx context.Context) {
	if r.log == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), logEndTime)
	defer cancel()
	report := r.log.Close(ctx)
	err := errors.Join(report.Err, r.closeFile())
	if report.Dropped > 0 || err != nil {
		text := fmt.Sprintf("%d of %s not delivered to the decision log %s", report.Dropped, plural(int(report.Added), "decision"), r.where)
		if err != nil {
			text += ": " + err.Error()
		}
		fmt.Fprintf(r.app.stderr, "writ: warning: %s; the record has them all\n", safe(text))
	}
	if report.Inputs == 0 {
		return
	}
	err = r.tenant.RecordEgress(evidence.Egress{What: "decision inputs", Where: r.where, Digest: report.Digest, Items: report.Inputs, Whole: report.Dropped == 0})
	if err != nil {
		fmt.Fprintf(r.app.stderr, "writ: warning: %s\n", safe(fmt.Sprintf("the ledger does not note that %s left for %s: %v", plural(int(report.Inputs), "input"), r.where, err)))
	}
}

func (r *runLog) closeFile() error {
	if r.file == nil {
		return nil
	}
	return r.file.Close()
}
