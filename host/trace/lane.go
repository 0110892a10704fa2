package trace

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/writrun/writ/guest-abi/abi"
)

// Lane is one ordered record within a run: "run", "control", a step's id,
// "rule@target" or "arbitration@target", where a target is a step's id or "flow".
type Lane string

// The lanes every run has.
const (
	LaneRun     Lane = "run"
	LaneControl Lane = "control"
)

// TargetFlow is the target of rules and arbitration over the whole flow.
const TargetFlow = "flow"

const arbitrationPrefix = "arbitration@"

// StepLane returns the lane of a step.
func StepLane(id abi.ID) Lane { return Lane(id) }

// RuleLane returns the lane of a rule over target.
func RuleLane(rule abi.ID, target string) Lane { return Lane(string(rule) + "@" + target) }

// ArbitrationLane returns the lane of the arbitration over target.
func ArbitrationLane(target string) Lane { return Lane(arbitrationPrefix + target) }

// ParseLane checks that s names a lane.
func ParseLane(s string) (Lane, error) {
	if s == string(LaneRun) || s == string(LaneControl) {
		return Lane(s), nil
	}
	name, target, pair := strings.Cut(s, "@")
	if pair && target != TargetFlow {
		if _, err := abi.ParseID(target); err != nil {
			return "", fmt.Errorf("lane %.200q: target: %w", s, err)
		}
	}
	if pair && name+"@" == arbitrationPrefix {
		return Lane(s), nil
	}
	if _, err := abi.ParseID(name); err != nil {
		return "", fmt.Errorf("lane %.200q: %w", s, err)
	}
	return Lane(s), nil
}

// Address is a place in a lane.
type Address struct {
	Lane Lane
	Seq  uint64
}

// String returns "lane/seq".
func (a Address) String() string { return string(a.Lane) + "/" + strconv.FormatUint(a.Seq, 10) }

// MarshalText is [Address.String].
func (a Address) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// ParseAddress reads "lane/seq" in its one canonical spelling.
func ParseAddress(s string) (Address, error) {
	name, number, ok := strings.Cut(s, "/")
	if !ok {
		return Address{}, fmt.Errorf("address %.200q has no \"/\"; an address is lane/number, for instance run/0", s)
	}
	lane, err := ParseLane(name)
	if err != nil {
		return Address{}, fmt.Errorf("address %.200q: %w", s, err)
	}
	seq, err := strconv.ParseUint(number, 10, 64)
	if err != nil || seq >= LaneEventsMax || strconv.FormatUint(seq, 10) != number {
		return Address{}, fmt.Errorf("address %.200q: %.40q is not a number of an event", s, number)
	}
	return Address{Lane: lane, Seq: seq}, nil
}
