package sbom

import (
	"encoding/json"
	"fmt"

	"github.com/writrun/writ/guest-abi/abi"
)

// FromInputs returns the inventory that a step got from the named step, or from
// the only step it needs if step is empty. An inventory with a component that is
// no evidence is refused, because a claim about it would rest on nothing. The
// error is an [*abi.GuestError].
func FromInputs(inputs map[abi.ID]abi.StepOutput, step abi.ID) (Inventory, error) {
	if step == "" && len(inputs) != 1 {
		return Inventory{}, fail("invalid_config", "the step needs %d steps; name the one with the inventory in config.inventory", len(inputs))
	}
	for id, input := range inputs {
		if step != "" && step != id {
			continue
		}
		var inv Inventory
		if err := json.Unmarshal(input.Output, &inv); err != nil {
			return Inventory{}, fail("bad_inventory", "the output of step %q is no inventory: %v", id, err)
		}
		return inv, checkKnown(id, inv, input.Evidence)
	}
	return Inventory{}, fail("invalid_config", "config.inventory names step %q, which this step does not need", step)
}

func checkKnown(step abi.ID, inv Inventory, evidence []abi.Evidence) error {
	known := make(map[string]bool, len(evidence))
	for _, e := range evidence {
		known[e.EvidenceID] = true
	}
	components := inv.Components
	if inv.Main != nil {
		components = append([]Component{*inv.Main}, components...)
	}
	for _, c := range components {
		if !known[EvidenceID(c.PURL)] {
			return fail("bad_inventory", "step %q lists %s and has no evidence of it", step, c.PURL)
		}
	}
	return nil
}

func fail(code, format string, args ...any) error {
	return &abi.GuestError{Code: code, Message: fmt.Sprintf(format, args...)}
}
