// Package author is for people who write policies: it checks, formats, tests,
// measures and times a folder of Rego before a run ever asks it.
//
// It is thin over OPA's own packages and shows their messages. A policy that
// passes here is compiled and asked the way a run does it: the same builtins,
// the same limits, the same strictness about results. Nothing here reads a clock
// or draws randomness; tests and cases have a fixed time and seed.
package author

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/util"

	"github.com/writrun/writ/policies"
)

// Limits of a policy folder beside those of [policies].
const (
	DataBytesMax     = 16 << 20 // one data.json or data.yaml
	CaseFileBytesMax = 1 << 20  // one file of cases
	CaseFilesMax     = 1000     // of one policy
)

// casesFolder is the name of the folders that hold cases.
const casesFolder = "cases"

// Folder is a policy as its author keeps it.
type Folder struct {
	Dir     string
	Sources []Source       // every .rego file, tests too, by name
	Data    map[string]any // of data.json and data.yaml files, at their folders' paths
	Cases   []Source       // the .yaml, .yml and .json files of folders named cases
}

// Source is one file of a folder.
type Source struct {
	Name string // with the folder's, as messages show it
	Text []byte
}

// IsTest reports whether the file holds tests, which no run compiles.
func (s Source) IsTest() bool { return strings.HasSuffix(s.Name, "_test.rego") }

// Open reads a policy folder. Files that are no part of a policy are left alone.
func Open(dir string) (*Folder, error) {
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		err = errors.New("it is not a directory")
	}
	if err != nil {
		return nil, unreadable(dir, err)
	}
	f := &Folder{Dir: dir, Data: map[string]any{}}
	fsys := os.DirFS(dir)
	err = fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		return f.add(fsys, name)
	})
	if err != nil {
		return nil, unreadable(dir, err)
	}
	if !slices.ContainsFunc(f.Sources, func(s Source) bool { return !s.IsTest() }) {
		return nil, unreadable(dir, errors.New("there is no .rego file that is not a test"))
	}
	return f, nil
}

func unreadable(dir string, err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
		if p.Path != "." && p.Path != dir {
			err = fmt.Errorf("%s: %w", p.Path, p.Err)
		}
	}
	return Findings{{Code: policies.CodeUnreadable, File: dir, Message: fmt.Sprintf("read the policy: %v", err),
		Hint: "name a folder with .rego files, or make one with: writ policy new NAME"}}
}

// add reads a file that belongs to the policy.
func (f *Folder) add(fsys fs.FS, name string) error {
	switch base := path.Base(name); {
	case path.Base(path.Dir(name)) == casesFolder && slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(base)):
		return f.addSource(&f.Cases, fsys, name, CaseFileBytesMax, CaseFilesMax)
	case path.Ext(base) == ".rego":
		return f.addSource(&f.Sources, fsys, name, policies.SourceBytesMax, policies.SourceFilesMax)
	case slices.Contains([]string{"data.json", "data.yaml", "data.yml"}, base):
		return f.addData(fsys, name)
	}
	return nil
}

func (f *Folder) addSource(to *[]Source, fsys fs.FS, name string, bytesMax int64, filesMax int) error {
	if len(*to) == filesMax {
		return fmt.Errorf("more than %d files", filesMax)
	}
	text, err := readFile(fsys, name, bytesMax)
	*to = append(*to, Source{filepath.Join(f.Dir, filepath.FromSlash(name)), text})
	return err
}

// addData puts a document at the path of the folder it lies in, as OPA does.
func (f *Folder) addData(fsys fs.FS, name string) error {
	text, err := readFile(fsys, name, DataBytesMax)
	if err != nil {
		return err
	}
	var doc map[string]any
	if err := util.Unmarshal(text, &doc); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	at := f.Data
	if dir := path.Dir(name); dir != "." {
		for part := range strings.SplitSeq(dir, "/") {
			next, ok := at[part].(map[string]any)
			if at[part] != nil && !ok {
				return fmt.Errorf("%s: the data has another value at %s", name, part)
			}
			if next == nil {
				next = map[string]any{}
				at[part] = next
			}
			at = next
		}
	}
	for key, value := range doc {
		if _, twice := at[key]; twice {
			return fmt.Errorf("%s: the data has %q twice", name, key)
		}
		at[key] = value
	}
	return nil
}

func readFile(fsys fs.FS, name string, bytesMax int64) ([]byte, error) {
	info, err := fs.Stat(fsys, name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: it is no regular file", name)
	}
	if info.Size() > bytesMax {
		return nil, fmt.Errorf("%s: it has %d bytes; at most %d are allowed", name, info.Size(), bytesMax)
	}
	return fs.ReadFile(fsys, name)
}

// Lines are the lines of one of the folder's .rego files.
func (f *Folder) Lines(name string) []string {
	i := slices.IndexFunc(f.Sources, func(s Source) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	return strings.Split(string(f.Sources[i].Text), "\n")
}
