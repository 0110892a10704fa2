package main

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/writrun/writ/engine/evidence"
	"github.com/writrun/writ/guest-abi/abi"
)

// scaffold is a flow that runs as it is: two guests with their source.
//
//go:embed scaffold/flow.yaml scaffold/notes.txt scaffold/*.wat scaffold/*.wasm
var scaffold embed.FS

// scaffoldFiles says where each embedded file goes.
var scaffoldFiles = [][2]string{
	{"scaffold/flow.yaml", "flow.yaml"},
	{"scaffold/notes.txt", "notes.txt"},
	{"scaffold/count.wat", "modules/count.wat"},
	{"scaffold/count.wasm", "modules/count.wasm"},
	{"scaffold/recount.wat", "modules/recount.wat"},
	{"scaffold/recount.wasm", "modules/recount.wasm"},
}

// initDocument is what init prints as JSON.
type initDocument struct {
	Dir       string   `json:"dir"`   // "" with --bare
	Files     []string `json:"files"` // written, relative to dir
	Store     string   `json:"store"`
	StoreID   string   `json:"store_id"`
	Tenant    string   `json:"tenant"`
	PublicKey string   `json:"public_key"` // verifies the tenant's signed heads
}

func (a *app) initCommand() *cobra.Command {
	var bare bool
	cmd := &cobra.Command{
		Use:   "init [DIR]",
		Short: "Make a flow that runs, and a store with its key",
		Long: `init writes a small flow into DIR (default: here), makes a store beside it, and
a key that signs what the store's ledger says. Files that are there already are
left as they are, and a store that is there is used.

The flow counts the lines of a text in one sandboxed guest and has another one
recount them. Start from it, or look at its guests' source to see how little a
guest needs.`,
		Example: `  writ init demo && cd demo && writ run flow.yaml
  writ init --bare            # only a store, for flows you have`,
		Args: cobra.MaximumNArgs(1),
		RunE: a.work(func(_ *cobra.Command, args []string) error {
			dir := "."
			if len(args) == 1 {
				dir = args[0]
			}
			if bare && len(args) == 1 {
				return usagef("--bare makes only a store; name its place with --store, not DIR")
			}
			return a.init(dir, bare)
		}),
	}
	cmd.Flags().BoolVar(&bare, "bare", false, "make only the store and its key")
	return cmd
}

func (a *app) init(dir string, bare bool) error {
	tenant, err := a.tenant()
	if err != nil {
		return err
	}
	doc := initDocument{Files: []string{}, Tenant: tenant.String()}
	if !bare {
		doc.Dir = dir
		if doc.Files, err = a.writeScaffold(dir, tenant); err != nil {
			return err
		}
		if a.storeDir == "" {
			a.storeDir = filepath.Join(dir, defaultStore)
		}
	}
	if err := a.initStore(tenant, &doc); err != nil {
		return err
	}
	if a.json() {
		return a.writeJSON(doc)
	}
	for _, name := range doc.Files {
		fmt.Fprintf(a.stdout, "wrote %s\n", safe(filepath.Join(dir, name)))
	}
	fmt.Fprintf(a.stdout, "store %s (%s), tenant %s\n", safe(doc.Store), doc.StoreID, doc.Tenant)
	if !bare {
		next := "writ run flow.yaml"
		if filepath.Clean(dir) != "." {
			next = "cd " + safe(dir) + " && " + next
		}
		fmt.Fprintf(a.stdout, "\nnext: %s\n", next)
	}
	return nil
}

func (a *app) initStore(id abi.TenantID, doc *initDocument) error {
	options, err := a.storeOptions(false)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(options.Dir), 0o755); err != nil {
		return fmt.Errorf("make store: %w", err)
	}
	store, err := evidence.Init(options)
	if err != nil {
		return err
	}
	tenant, err := store.Tenant(id)
	if err == nil {
		doc.Store, doc.StoreID, doc.PublicKey = options.Dir, store.ID(), tenant.PublicKey()
	}
	return errors.Join(err, store.Close())
}

// writeScaffold writes the files that are not there and returns their names.
func (a *app) writeScaffold(dir string, tenant abi.TenantID) ([]string, error) {
	written := []string{}
	for _, pair := range scaffoldFiles {
		data, err := scaffold.ReadFile(pair[0])
		if err != nil {
			return nil, err
		}
		data = bytes.ReplaceAll(data, []byte("{{tenant}}"), []byte(tenant.String()))
		path := filepath.Join(dir, filepath.FromSlash(pair[1]))
		made, err := writeNew(path, data)
		if err != nil {
			return nil, fmt.Errorf("write %s: %w", path, err)
		}
		if made {
			written = append(written, pair[1])
		}
	}
	return written, nil
}

// writeNew writes a file unless there is one of that name.
func writeNew(path string, data []byte) (made bool, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return false, err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	_, err = f.Write(data)
	return true, errors.Join(err, f.Close())
}

// replaceFile writes a file in one step, so that a reader sees the old or the
// new one, whole.
func replaceFile(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".writ-")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		// The error that is returned matters; a file left behind does not.
		_ = os.Remove(f.Name())
		return fmt.Errorf("write %s: %s", path, strings.TrimPrefix(err.Error(), "write "))
	}
	return nil
}
