package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/writrun/writ/engine/evidence"
	"github.com/writrun/writ/engine/flow"
	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host/prepare"
)

// versionDocument is what version prints as JSON.
type versionDocument struct {
	Version  string `json:"version"`
	Revision string `json:"revision"` // of the source, "" where the build did not note it
	Modified bool   `json:"modified"` // the source differed from that revision
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Engine   string `json:"engine"`   // sandbox and its version
	Policies string `json:"policies"` // policy evaluator and its version
	Profile  string `json:"profile"`  // how modules are prepared
	ABI      int    `json:"abi"`
	Manifest int    `json:"manifest"` // format version
	Store    int    `json:"store"`    // format version
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
			a.pairs("  ", "revision", revision, "go", v.Go+" "+v.Platform, "engine", v.Engine, "policies", v.Policies,
				"formats", fmt.Sprintf("abi %d, manifest %d, store %d, profile %s", v.ABI, v.Manifest, v.Store, v.Profile))
			return nil
		}),
	}
}

// version reads the versions from what the build noted.
func version() versionDocument {
	v := versionDocument{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Profile: prepare.Profile, ABI: abi.Version, Manifest: flow.Version, Store: evidence.Format}
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
		case "github.com/tetratelabs/wazero":
			v.Engine = "wazero " + d.Version
		case "github.com/open-policy-agent/opa":
			v.Policies = "opa " + d.Version
		}
	}
	return v
}

// provenance is what is noted of this build and machine in every run.
func provenance() map[string]string {
	v := version()
	p := map[string]string{"writ": v.Version, "go": v.Go, "platform": v.Platform, "engine": v.Engine, "policies": v.Policies}
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
