package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/writrun/writ/engine/evidence"
	"github.com/writrun/writ/engine/flow"
	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host/prepare"
	"github.com/writrun/writ/host/wasmtime"
	"github.com/writrun/writ/host/wazero"
)

// versionDocument is what version prints as JSON.
type versionDocument struct {
	Version  string          `json:"version"`
	Revision string          `json:"revision"` // of the source, "" where the build did not note it
	Modified bool            `json:"modified"` // the source differed from that revision
	Go       string          `json:"go"`
	Platform string          `json:"platform"`
	Engines  []engineVersion `json:"engines"`  // sandboxes, the default first
	Policies string          `json:"policies"` // policy evaluator and its version
	Profile  string          `json:"profile"`  // how modules are prepared
	ABI      int             `json:"abi"`
	Manifest int             `json:"manifest"` // format version
	Store    int             `json:"store"`    // format version
}

// engineVersion is an engine guests can run on.
type engineVersion struct {
	Name      string `json:"name"`
	Version   string `json:"version"`
	Available bool   `json:"available"` // in this build
}

func enginesText(engines []engineVersion) string {
	var out []string
	for _, e := range engines {
		text := e.Name + " " + e.Version
		if !e.Available {
			text += " (not in this build, which is without cgo)"
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the versions of the tool and of the formats it reads",
		Args:  cobra.NoArgs,
		RunE: a.work(func(*cobra.Command, []string) error {
			v := version()
			if a.json() {
				return a.writeJSON(v)
			}
			revision := v.Revision
			if v.Modified {
				revision += " (modified)"
			}
			fmt.Fprintf(a.stdout, "writ %s\n", v.Version)
			a.pairs("  ", "revision", revision, "go", v.Go+" "+v.Platform, "engines", enginesText(v.Engines), "policies", v.Policies,
				"formats", fmt.Sprintf("abi %d, manifest %d, store %d, profile %s", v.ABI, v.Manifest, v.Store, v.Profile))
			return nil
		}),
	}
}

// version reads the versions from what the build noted.
func version() versionDocument {
	v := versionDocument{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Profile: prepare.Profile, ABI: abi.Version, Manifest: flow.Version, Store: evidence.Format,
		Engines: []engineVersion{{"wazero", wazero.Version, true}, {"wasmtime", wasmtime.Version, wasmtime.Available}}}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	for _, d := range info.Deps {
		switch d.Path {
		case "github.com/open-policy-agent/opa":
			v.Policies = "opa " + d.Version
		}
	}
	return v
}

// provenance is what is noted of this build and machine in every run.
func provenance() map[string]string {
	v := version()
	p := map[string]string{"writ": v.Version, "go": v.Go, "platform": v.Platform, "policies": v.Policies}
	if v.Revision != "" {
		p["revision"] = v.Revision
	}
	for key, value := range p {
		if value == "" {
			p[key] = "unknown"
		}
	}
	return p
}
