// Advisories is an executor that checks an inventory against a folder of
// vulnerability records in the OSV format. For each component and each record
// about it, it claims that the component is, or is not, affected; a pair it
// cannot decide is reported as undecided and never claimed.
package main

import (
	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/guest-abi/go/guest"
	"github.com/writrun/writ/modules/inventory/sbom"
)

//go:wasmexport writ_execute
func writExecute(ptr, size uint32) uint64 { return guest.Execute(ptr, size, advisories) }

func main() {} // a module is a library; main never runs

type config struct {
	Records   abi.ID `json:"records"`   // the folder dataset of records; default: the step's only dataset
	Inventory abi.ID `json:"inventory"` // the step whose output is the inventory; default: the only needed step
}

func advisories(s *guest.Step) (abi.StepOutput, error) {
	c, err := guest.Config[config](s.Request.Step.Config)
	if err != nil {
		return abi.StepOutput{}, err
	}
	inventory, err := sbom.FromInputs(s.Request.Inputs, c.Inventory)
	if err != nil {
		return abi.StepOutput{}, err
	}
	folder, err := folderOf(s, c.Records)
	if err != nil {
		return abi.StepOutput{}, err
	}
	listing, err := s.Listing(folder)
	if err != nil {
		return abi.StepOutput{}, err
	}
	a := newAssessment(inventory)
	if err := a.readAll(s, folder, listing); err != nil {
		return abi.StepOutput{}, err
	}
	return a.output()
}

// folderOf returns the dataset with the records: the named one, or the only one.
func folderOf(s *guest.Step, id abi.ID) (abi.ID, error) {
	if id == "" {
		if len(s.Request.Datasets) != 1 {
			return "", guest.Fail("invalid_config",
				"the step has %d datasets; name the folder of records in config.records", len(s.Request.Datasets))
		}
		id = s.Request.Datasets[0].ID
	}
	for _, d := range s.Request.Datasets {
		if d.ID != id {
			continue
		}
		if !d.Folder {
			return "", guest.Fail("invalid_config", "dataset %q is a file; records come as a folder", id)
		}
		return id, nil
	}
	return "", guest.Fail("invalid_config", "config.records names dataset %q, which the step does not have", id)
}
