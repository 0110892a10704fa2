package policies

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/writrun/writ/guest-abi/abi"
)

// Reevaluate asks a recorded decision again, from the record alone: its
// entrypoint, input, time and seed. It returns the policy's answer as canonical
// JSON. The error is a *[Refusal] with [CodeNotReproduced] if this set has not
// the recorded policy or if the answer is another one; a decision that was
// refused then must be refused now, and its answer is nil.
func (s *Set) Reevaluate(ctx context.Context, recorded Record) ([]byte, error) {
	p, err := s.at(recorded.Entrypoint)
	if err != nil {
		return nil, err
	}
	if p.digest != recorded.Policy {
		return nil, &Refusal{Code: CodeNotReproduced, Detail: fmt.Sprintf("%s was decided under policy %s; the one at hand is %s", recorded.Entrypoint, recorded.Policy, p.digest)}
	}
	again, err := s.Ask(ctx, recorded)
	if err != nil && (again.Input == nil || ctx.Err() != nil) {
		return nil, err // it was not asked, or not to the end
	}
	if !bytes.Equal(again.Result, recorded.Result) {
		return again.Result, &Refusal{Code: CodeNotReproduced, Detail: fmt.Sprintf("%s came to %s and now to %s", recorded.Entrypoint, orRefused(recorded.Result, nil), orRefused(again.Result, err))}
	}
	return again.Result, nil
}

func orRefused(result []byte, err error) string {
	switch {
	case result != nil:
		return shown(result)
	case err != nil:
		return fmt.Sprintf("a refusal (%v)", err)
	}
	return "a refusal"
}

// Ask asks a recorded decision of this set's policy, whatever policy it was
// decided under, and returns a new record. Nothing is taken from the machine:
// what the record lacks is an error. The answer is the policy's own, before the
// floor; it is not checked against the decision's shape.
func (s *Set) Ask(ctx context.Context, recorded Record) (Record, error) {
	p, err := s.at(recorded.Entrypoint)
	if err != nil {
		return Record{}, err
	}
	if recorded.Input == nil {
		return Record{}, &Refusal{Code: CodeInput, Detail: fmt.Sprintf("the input of %s is not retained", recorded.Entrypoint)}
	}
	if len(recorded.Input) > InputBytesMax {
		return Record{}, &Refusal{Code: CodeInput, Detail: fmt.Sprintf("the input has %d bytes; at most %d are allowed", len(recorded.Input), InputBytesMax)}
	}
	if got := abi.DigestOf(recorded.Input); got != recorded.InputDigest {
		return Record{}, &Refusal{Code: CodeInput, Detail: fmt.Sprintf("the input of %s has digest %s; the record says %s", recorded.Entrypoint, got, recorded.InputDigest)}
	}
	again := Record{Entrypoint: p.entrypoint, Policy: p.digest, Now: recorded.Now, Seed: recorded.Seed}
	if err := checkDocument(recorded.Input); err != nil {
		return again, &Refusal{Code: CodeInput, Detail: fmt.Sprintf("the input of %s: %v", recorded.Entrypoint, err)}
	}
	again.Input, again.InputDigest = recorded.Input, recorded.InputDigest
	again.Result, again.RulesFired, err = p.answer(ctx, &call{now: recorded.Now, seed: recorded.Seed}, recorded.Input)
	return again, err
}

// checkDocument refuses numbers that take long to compute with. Documents made
// here have none; one that is read may.
func checkDocument(doc []byte) error {
	value, err := parseValue(doc)
	if err != nil {
		return err
	}
	left := InputBytesMax
	return measure(value, &left)
}

// at returns the policy of an entrypoint, the operator's or the flow's.
func (s *Set) at(entrypoint string) (*policy, error) {
	all := []*policy{s.authority, s.arbitration, s.replay, s.standing}
	if s.flow != nil {
		all = slices.AppendSeq(all, maps.Values(s.flow.decisions))
	}
	for _, p := range all {
		if p.entrypoint == entrypoint {
			return p, nil
		}
	}
	return nil, &Refusal{Code: CodeInput, Detail: fmt.Sprintf("there is no decision %.200q", entrypoint)}
}
