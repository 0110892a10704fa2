// Inventory is an executor that reads a bill of materials in CycloneDX JSON and
// makes each of its components evidence, for later steps to build claims on. It
// makes no claims of its own.
package main

import (
	"encoding/json"
	"strings"

	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/guest-abi/go/guest"
	"github.com/writrun/writ/modules/inventory/sbom"
)

//go:wasmexport writ_execute
func writExecute(ptr, size uint32) uint64 { return guest.Execute(ptr, size, inventory) }

func main() {} // a module is a library; main never runs

type config struct {
	SBOM string `json:"sbom"` // "id" or "id/file"; default: the step's only dataset
}

// fileEvidenceID is the evidence id of the bill of materials itself.
const fileEvidenceID = "sbom"

func inventory(s *guest.Step) (abi.StepOutput, error) {
	c, err := guest.Config[config](s.Request.Step.Config)
	if err != nil {
		return abi.StepOutput{}, err
	}
	file, err := locate(s, c.SBOM)
	if err != nil {
		return abi.StepOutput{}, err
	}
	data, err := s.Dataset(file.Path)
	if err != nil {
		return abi.StepOutput{}, err
	}
	inv, err := sbom.Read(data)
	if err != nil {
		return abi.StepOutput{}, guest.Fail("bad_sbom", "read %s: %v", file.Path, err)
	}
	out := abi.StepOutput{Evidence: []abi.Evidence{file}}
	if inv.Main != nil {
		if err := appendEvidence(&out, *inv.Main); err != nil {
			return abi.StepOutput{}, err
		}
	}
	for _, component := range inv.Components {
		if err := appendEvidence(&out, component); err != nil {
			return abi.StepOutput{}, err
		}
	}
	out.Output, err = abi.EncodeMessage(inv)
	return out, err
}

// locate returns the bill of materials as evidence: its path and digest.
func locate(s *guest.Step, path string) (abi.Evidence, error) {
	if path == "" {
		if len(s.Request.Datasets) != 1 || s.Request.Datasets[0].Folder {
			return abi.Evidence{}, guest.Fail("invalid_config",
				"the step has %d datasets; name the bill of materials in config.sbom as \"id\" or \"id/file\"", len(s.Request.Datasets))
		}
		path = string(s.Request.Datasets[0].ID)
	}
	id, name, inFolder := strings.Cut(path, "/")
	for _, d := range s.Request.Datasets {
		if string(d.ID) != id {
			continue
		}
		if d.Folder != inFolder {
			return abi.Evidence{}, guest.Fail("invalid_config", "config.sbom %q does not name a file: dataset %q is a folder: %t", path, id, d.Folder)
		}
		if !inFolder {
			return abi.Evidence{EvidenceID: fileEvidenceID, Kind: "dataset", Path: path, Digest: d.Digest}, nil
		}
		return locateInFolder(s, d.ID, name)
	}
	return abi.Evidence{}, guest.Fail("invalid_config", "config.sbom names dataset %q, which the step does not have", id)
}

func locateInFolder(s *guest.Step, id abi.ID, name string) (abi.Evidence, error) {
	listing, err := s.Listing(id)
	if err != nil {
		return abi.Evidence{}, err
	}
	for _, f := range listing.Files {
		if f.Path == name {
			return abi.Evidence{EvidenceID: fileEvidenceID, Kind: "dataset", Path: string(id) + "/" + name, Digest: f.Digest}, nil
		}
	}
	return abi.Evidence{}, guest.Fail("invalid_config", "config.sbom: dataset %q has no file %q", id, name)
}

func appendEvidence(out *abi.StepOutput, c sbom.Component) error {
	text, err := abi.EncodeMessage(c)
	if err != nil {
		return err
	}
	out.Evidence = append(out.Evidence, abi.Evidence{
		EvidenceID: sbom.EvidenceID(c.PURL), Kind: "inline", Content: string(text), Digest: abi.DigestOf(text), Note: json.RawMessage(`{"from":"` + fileEvidenceID + `"}`),
	})
	return nil
}
