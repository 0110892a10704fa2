package flow

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/writrun/writ/guest-abi/abi"
)

// module reads and prepares the module of a step or rule. It returns the limits
// of the budget, and nil if something was reported.
func (s *resolution) module(ctx context.Context, path, file string, want abi.Digest, budget abi.Limits) (abi.Limits, *PreparedModule) {
	limits, err := budget.Resolve()
	if err != nil {
		s.failAt(path+".budget", CodeBudgetCeiling, "", "%v", err)
		return limits, nil
	}
	key := preparedKey{file, limits.MemoryBytes}
	m, done := s.prepared[key]
	if !done && ctx.Err() == nil {
		m = s.prepareModule(path+".module", key)
		s.prepared[key] = m
	}
	if m == nil {
		return limits, nil
	}
	if want != "" && want != m.Original {
		s.failAt(path+".module_digest", CodeModuleDigest, "restore the file, or state the new digest after looking at what changed",
			"module %q is %s, not %s", file, m.Original, want)
		return limits, nil
	}
	s.materials.Modules[m.Prepared] = *m
	return limits, m
}

func (s *resolution) prepareModule(path string, key preparedKey) *PreparedModule {
	refuse := func(code, hint string, err error) *PreparedModule {
		s.failAt(path, code, hint, "module %q: %v", key.path, plain(err))
		s.faults[len(s.faults)-1].Cause = err
		return nil
	}
	f, info, err := openRegular(s.root, key.path)
	if err != nil {
		return refuse(CodeModuleMissing, "build it, or mend the path; it starts at the manifest's folder", err)
	}
	defer f.Close()
	if info.Size() > abi.ModuleBytesMax {
		return refuse(CodeModuleTooLarge, "strip it", fmt.Errorf("%d bytes are more than %d", info.Size(), abi.ModuleBytesMax))
	}
	wasm, err := io.ReadAll(io.LimitReader(f, abi.ModuleBytesMax+1))
	switch {
	case err != nil:
		return refuse(CodeModuleMissing, "", err)
	case len(wasm) > abi.ModuleBytesMax:
		return refuse(CodeModuleTooLarge, "strip it", fmt.Errorf("more than %d bytes", abi.ModuleBytesMax))
	}
	m, err := s.resolver.Prepare(wasm, key.memory)
	if err != nil {
		return refuse(CodeModuleRefused, "every reason is listed", err)
	}
	return &m
}

var errNotRegular = errors.New("not a regular file")

// openRegular opens a regular file below root. It does not wait for a FIFO's
// other end and does not open devices.
func openRegular(root *os.Root, name string) (*os.File, os.FileInfo, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errNotRegular
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, info, nil
}

// checkConfig validates a config against the module's schema. A module without
// one takes any.
func (s *resolution) checkConfig(path string, config []byte, m *PreparedModule) {
	if len(m.Metadata.ConfigSchema) == 0 {
		return
	}
	place := path + ".config"
	schema, err := compileSchema(m.Metadata.ConfigSchema)
	if err != nil {
		s.failAt(path+".module", CodeModuleRefused, "mend config_schema in the module's metadata", "config_schema of module %s: %v", m.Metadata.Name, err)
		return
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(config))
	if err != nil {
		s.failAt(place, CodeConfigInvalid, "", "%v", err)
		return
	}
	var bad *jsonschema.ValidationError
	if err := schema.Validate(value); errors.As(err, &bad) {
		s.schemaFaults(place, bad, m)
	} else if err != nil {
		s.failAt(place, CodeConfigInvalid, "", "%v", err)
	}
}

// schemaFaults reports the innermost faults of a validation.
func (s *resolution) schemaFaults(place string, e *jsonschema.ValidationError, m *PreparedModule) {
	if len(e.Causes) > 0 {
		for _, cause := range e.Causes {
			s.schemaFaults(place, cause, m)
		}
		return
	}
	at, n := place, s.manifest.tree.find(place)
	for _, key := range e.InstanceLocation {
		if n = n.child(key); n == nil {
			break
		}
		at = join(at, key)
		s.places[at] = n.at
	}
	s.failAt(at, CodeConfigInvalid, fmt.Sprintf("config_schema of module %s %s", m.Metadata.Name, m.Metadata.Version),
		"does not fit the module: %s", e.ErrorKind.LocalizedString(message.NewPrinter(language.English)))
}

// compileSchema compiles a schema that may refer to nothing but itself.
func compileSchema(text []byte) (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(noLoader{})
	const at = "config_schema"
	if err := c.AddResource(at, doc); err != nil {
		return nil, err
	}
	return c.Compile(at)
}

// noLoader refuses every reference that leads out of a schema.
type noLoader struct{}

// Load refuses.
func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("schema refers to %q; it may refer to itself only", url)
}
