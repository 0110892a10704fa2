package author

import (
	"context"
	"testing"

	"github.com/writrun/writ/policies"
)

// Timing is what one evaluation of a decision costs, as testing.Benchmark
// measures it: the time from the input's bytes to the answer's.
type Timing struct {
	Evaluations int     `json:"evaluations"`
	NsPerOp     float64 `json:"ns_per_op"`
	BytesPerOp  int64   `json:"bytes_per_op"`
	AllocsPerOp int64   `json:"allocs_per_op"`
	Text        string  `json:"-"` // as "go test -bench" writes it
}

// Bench times a decision over one input. The answer has to be a valid one: how
// fast a policy fails is not what is asked.
func (p *Policy) Bench(ctx context.Context, d *Decision, input []byte) (*Timing, error) {
	doc, err := policies.Canonical(input)
	if err != nil {
		return nil, &policies.Refusal{Code: policies.CodeInput, Detail: err.Error()}
	}
	entry, err := p.prepare(d)
	if err != nil {
		return nil, findingsOf(err, p.Folder.Dir)
	}
	c := Case{Input: doc}
	ask := func() error {
		got, _, err := entry.Ask(ctx, c.time(), c.Seed, doc)
		if err == nil {
			err = d.CheckResult(got)
		}
		return err
	}
	if err := ask(); err != nil {
		return nil, err
	}
	var failed error
	r := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if failed = ask(); failed != nil {
				b.FailNow()
			}
		}
	})
	if failed != nil {
		return nil, failed
	}
	return &Timing{r.N, float64(r.T.Nanoseconds()) / float64(r.N), r.AllocedBytesPerOp(), r.AllocsPerOp(), r.String() + "\t" + r.MemString()}, nil
}
