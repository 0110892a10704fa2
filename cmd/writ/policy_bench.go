package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/writrun/writ/policies"
	"github.com/writrun/writ/policies/author"
)

// benchCountMax bounds --count; each measurement takes about a second.
const benchCountMax = 1000

// policyBenchDocument is what policy bench prints as JSON.
type policyBenchDocument struct {
	Dir        string          `json:"dir"`
	Entrypoint string          `json:"entrypoint"` // data.<package>.<rule>
	InputBytes int             `json:"input_bytes"`
	Timings    []author.Timing `json:"timings"` // one for each --count
}

func (a *app) policyBenchCommand() *cobra.Command {
	var file, decision string
	var count int
	cmd := &cobra.Command{
		Use:   "bench DIR",
		Short: "Time one decision of a policy",
		Long: `bench asks one decision over the same input for about a second, and prints what
one evaluation costs, from the bytes of the input to those of the answer: time,
bytes and allocations. Compiling the policy is not in it. The answer must be
valid, or there is nothing to time.

The text is the form of "go test -bench", so benchstat can compare two of them.`,
		Example: `  writ policy bench lenient --input input.json
  writ policy bench lenient --input input.json --count 6 > new.txt && benchstat old.txt new.txt`,
		Args: cobra.ExactArgs(1),
		RunE: a.work(func(cmd *cobra.Command, args []string) error {
			return a.policyBench(cmd.Context(), args[0], file, decision, count)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&file, "input", "", "`FILE` with the input document as JSON, or - for stdin")
	flags.StringVar(&decision, "decision", "", "`decision` to time, where the policy answers several")
	flags.IntVar(&count, "count", 1, "how `often` to measure")
	_ = cmd.MarkFlagRequired("input")
	_ = cmd.RegisterFlagCompletionFunc("decision", cobra.FixedCompletions(author.Names(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (a *app) policyBench(ctx context.Context, dir, file, decision string, count int) error {
	if count < 1 || count > benchCountMax {
		return usagef("--count is %d; it is 1 to %d", count, benchCountMax)
	}
	input, err := a.readDocument(file)
	if err != nil {
		return err
	}
	p, err := author.Load(ctx, dir)
	if err != nil {
		return policyFault(err)
	}
	d, err := p.Decision(decision)
	if err != nil {
		return usagef("%v", err)
	}
	doc := policyBenchDocument{Dir: dir, Entrypoint: d.Entrypoint, InputBytes: len(input), Timings: []author.Timing{}}
	for range count {
		t, err := p.Bench(ctx, d, input)
		if err != nil {
			return refusalFault(err)
		}
		doc.Timings = append(doc.Timings, *t)
		if !a.json() {
			fmt.Fprintf(a.stdout, "%s\t%s\n", benchName(d.Entrypoint), t.Text)
		}
	}
	if a.json() {
		return a.writeJSON(doc)
	}
	return nil
}

// benchName is an entrypoint as Go names benchmarks.
func benchName(entrypoint string) string {
	name := "Benchmark"
	for part := range strings.FieldsFuncSeq(entrypoint, func(r rune) bool { return strings.ContainsRune(`._-[]"`, r) }) {
		name += strings.ToUpper(part[:1]) + part[1:]
	}
	return safe(name)
}

// readDocument reads a document a decision is asked over; "-" is stdin.
func (a *app) readDocument(file string) ([]byte, error) {
	from := a.stdin
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, inputError(file, err)
		}
		defer f.Close()
		from = f
	}
	data, err := io.ReadAll(io.LimitReader(from, policies.InputBytesMax+1))
	if err != nil {
		return nil, inputError(file, err)
	}
	if len(data) > policies.InputBytesMax {
		return nil, inputError(file, fmt.Errorf("it is longer than the %d bytes an input may have", policies.InputBytesMax))
	}
	return data, nil
}

// refusalFault tells a policy's refusal as wrong input: the policy, or what it
// was asked over.
func refusalFault(err error) error {
	var r *policies.Refusal
	if !errors.As(err, &r) {
		return policyFault(err)
	}
	return &fault{Code: r.Code, Message: err.Error(), Hints: explainHint(r.Code), Exit: exitUsage, cause: err}
}
