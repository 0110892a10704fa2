package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/writrun/writ/engine"
	"github.com/writrun/writ/engine/flow"
	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/policies"
)

// Bounds of what policies are read from.
const (
	policyKeysBytesMax = 1 << 20
	registryTimeMax    = 2 * time.Minute // one request
)

// policyFlags say which policies decide.
type policyFlags struct {
	operator string   // folder of the operator's policies
	keys     string   // file of the keys that may sign a flow's bundle
	plain    []string // registries without TLS
}

// registryFlag adds the flag that every command which resolves a flow has.
func (p *policyFlags) registryFlag(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&p.plain, "registry-plain-http", nil, "`HOST:PORT` of an OCI registry that is asked without TLS; repeatable")
}

func (p *policyFlags) decidingFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.operator, "policies", "", "`DIR` of the operator's policies: authority, arbitration, replay, standing; what it lacks is the default")
	cmd.Flags().StringVar(&p.keys, "policy-keys", "", "JSON `FILE` of keys: a flow's own bundle has to be signed by one of them")
}

// operatorPolicies reads the operator's policies, or returns the defaults.
func operatorPolicies(dir string) (*policies.Set, error) {
	if dir == "" {
		return policies.Default()
	}
	var c policies.Config
	found := false
	for name, folder := range map[string]*fs.FS{
		policies.DecisionAuthority: &c.Authority, policies.DecisionArbitration: &c.Arbitration,
		policies.DecisionReplay: &c.Replay, policies.DecisionStanding: &c.Standing,
	} {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.IsDir() {
			*folder, found = os.DirFS(filepath.Join(dir, name)), true
		}
	}
	if !found {
		return nil, usagef("read policies: %s has none of the folders authority, arbitration, replay and standing", dir)
	}
	return policies.Load(c)
}

// signingKeys reads the keys that may sign a flow's bundle.
func signingKeys(name string) ([]policies.Key, error) {
	if name == "" {
		return nil, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, usagef("read policy keys: %v", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, policyKeysBytesMax+1))
	if err != nil {
		return nil, usagef("read policy keys: %v", err)
	}
	var doc struct {
		Keys []policies.Key `json:"keys"`
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	switch err := d.Decode(&doc); {
	case len(text) > policyKeysBytesMax:
		return nil, usagef("read policy keys: %s has more than %d bytes", name, policyKeysBytesMax)
	case err != nil || len(doc.Keys) == 0:
		if err == nil {
			err = errors.New("it lists no key")
		}
		bad := usagef("read policy keys: %s: %v", name, err)
		bad.Hints = []string{"it is {\"keys\": [{\"id\", \"algorithm\", \"key\", \"scope\"}]}, the key in PEM"}
		return nil, bad
	}
	return doc.Keys, nil
}

// readBundle reads the bundle a flow brings, for its plan.
func (p policyFlags) readBundle(ctx context.Context, root *os.Root, reference, flowID string) (flow.PinnedPolicies, error) {
	if filepath.IsLocal(reference) {
		if _, err := root.Stat(reference); err != nil { // a link must not lead out
			return flow.PinnedPolicies{}, err
		}
		reference = filepath.Join(root.Name(), reference)
	}
	b, err := policies.LoadBundle(ctx, reference, policies.BundleConfig{FlowID: flowID,
		Registries: policies.Registries{HTTP: &http.Client{Timeout: registryTimeMax}, PlainHTTP: p.plain}})
	if err != nil {
		return flow.PinnedPolicies{}, err
	}
	return flow.PinnedPolicies{Origin: b.Origin(), Digest: b.Digest(), Decisions: b.Decisions(), Archive: b.Archive()}, nil
}

// withFlow makes policies of the operator's and those a flow brings.
func withFlow(set *policies.Set, keys []policies.Key) func(flow.PinnedPolicies, abi.ID) (engine.Decider, error) {
	return func(p flow.PinnedPolicies, flowID abi.ID) (engine.Decider, error) {
		b, err := policies.ReadBundle(p.Archive, policies.BundleConfig{FlowID: string(flowID), Keys: keys})
		if err != nil {
			return nil, err
		}
		if b.Digest() != p.Digest {
			return nil, fmt.Errorf("the bundle is %s and the plan pins %s", b.Digest(), p.Digest)
		}
		return set.WithFlow(b)
	}
}
