// Command calls is a module that makes every host call of the SDK, for the SDK's
// tests in the sandbox.
package main

import (
	"encoding/json"

	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/guest-abi/go/guest"
)

//go:wasmexport writ_execute
func writExecute(ptr, size uint32) uint64 { return guest.Execute(ptr, size, execute) }

//go:wasmexport writ_verify
func writVerify(ptr, size uint32) uint64 { return guest.Verify(ptr, size, verify) }

func main() {} // a module is a library; main never runs

// config says what the step does: call, panic or allocate.
type config struct {
	Do string `json:"do"`
}

// seen is the step's output.
type seen struct {
	Now      []int64           `json:"now"`
	Random   int               `json:"random_bytes_not_zero"`
	Effect   int               `json:"effect_bytes"`
	Big      abi.Digest        `json:"big"`
	Files    []abi.DatasetFile `json:"files"`
	Artifact string            `json:"artifact"`
	Errors   map[string]string `json:"errors"`
}

func execute(s *guest.Step) (abi.StepOutput, error) {
	c, err := guest.Config[config](s.Request.Step.Config)
	if err != nil {
		return abi.StepOutput{}, err
	}
	switch c.Do {
	case "panic":
		var nowhere []int
		nowhere[len(c.Do)] = 1
	case "allocate":
		var kept [][]byte
		for {
			kept = append(kept, make([]byte, 16<<20))
		}
	}
	out, artifact, err := call(s)
	if err != nil {
		return abi.StepOutput{}, err
	}
	raw, err := abi.EncodeMessage(out)
	return abi.StepOutput{Output: json.RawMessage(raw), Artifacts: []abi.Artifact{artifact}}, err
}

func call(s *guest.Step) (out seen, artifact abi.Artifact, err error) {
	for range 2 {
		now, err := s.Now()
		if err != nil {
			return out, artifact, err
		}
		out.Now = append(out.Now, now)
	}
	random := make([]byte, abi.RandomBytesMax+100) // more than one call gives
	if err := s.Fill(random); err != nil {
		return out, artifact, err
	}
	for _, b := range random {
		if b != 0 {
			out.Random++
		}
	}
	response, err := s.Effect("echo", []byte(`{"a":1}`))
	if err != nil {
		return out, artifact, err
	}
	out.Effect = len(response)
	big, err := s.Dataset("big")
	if err != nil {
		return out, artifact, err
	}
	out.Big = abi.DigestOf(big)
	listing, err := s.Listing("folder")
	if err != nil {
		return out, artifact, err
	}
	out.Files = listing.Files
	if artifact, err = s.PutArtifact("note", "text/plain", []byte("kept")); err != nil {
		return out, artifact, err
	}
	back, err := s.Artifact(artifact.ArtifactID)
	if err != nil {
		return out, artifact, err
	}
	out.Artifact = string(back)
	s.Logf(guest.Warn, "line %d", 1)
	out.Errors = failures(s)
	return out, artifact, nil
}

// failures makes calls the host refuses.
func failures(s *guest.Step) map[string]string {
	text := func(err error) string {
		if err == nil {
			return ""
		}
		return err.Error()
	}
	_, noDataset := s.Dataset("none")
	_, noFile := s.Dataset("folder/none")
	_, noArtifact := s.Artifact(abi.DigestOf(nil))
	_, noID := s.Artifact("none")
	_, refused := s.Effect("refuse", nil)
	return map[string]string{
		"dataset": text(noDataset), "file": text(noFile), "artifact": text(noArtifact),
		"id": text(noID), "effect": text(refused), "log": text(s.Log(9, "")),
	}
}

func verify(c *guest.Check) (abi.VerifyResponse, error) {
	f := guest.NewFindings(c)
	for range c.Request.Claims {
		f.Evaluated()
	}
	return f.Response("claims"), nil
}
