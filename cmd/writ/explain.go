package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/writrun/writ/engine"
	"github.com/writrun/writ/engine/evidence"
	"github.com/writrun/writ/guest-abi/abi"
)

// codeDocument is what explain CODE prints as JSON.
type codeDocument struct {
	Code   string `json:"code"`
	Cause  string `json:"cause"`
	Remedy string `json:"remedy"`
}

func (a *app) explainCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "explain RUN | CODE",
		Short: "Say why a run came to what it did, or what an error code means",
		Long: `explain says in plain sentences why a run passed, failed, escalated or stopped,
each with the address of the event it rests on.

Given the code of an error, a refusal or a problem, it says what causes it and
what to do. "writ explain codes" lists them.`,
		Example: `  writ explain latest
  writ explain store_locked
  writ explain codes`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeExplain,
		RunE: a.work(func(_ *cobra.Command, args []string) error {
			docs := codeDocs()
			if args[0] == "codes" {
				return a.listCodes(docs)
			}
			if doc, ok := docs[args[0]]; ok {
				return a.explainCode(codeDocument{args[0], doc.Cause, doc.Remedy})
			}
			return a.explainRun(args[0])
		}),
	}
}

func (a *app) completeExplain(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	out, directive := a.completeRuns(cmd, args, begun)
	if len(args) == 0 {
		for _, code := range slices.Sorted(maps.Keys(codeDocs())) {
			if strings.HasPrefix(code, begun) {
				out = append(out, code)
			}
		}
	}
	return out, directive
}

func (a *app) explainCode(doc codeDocument) error {
	if a.json() {
		return a.writeJSON(doc)
	}
	fmt.Fprintf(a.stdout, "%s\n\n%s\n\n%s %s\n", a.paint(bold, doc.Code), doc.Cause, a.paint(bold, "What to do:"), doc.Remedy)
	return nil
}

func (a *app) listCodes(docs map[string]abi.CodeDoc) error {
	list := []codeDocument{}
	for _, code := range slices.Sorted(maps.Keys(docs)) {
		list = append(list, codeDocument{code, docs[code].Cause, docs[code].Remedy})
	}
	if a.json() {
		return a.writeJSON(struct {
			Codes []codeDocument `json:"codes"`
		}{list})
	}
	rows := make([][]string, 0, len(list))
	for _, doc := range list {
		rows = append(rows, []string{doc.Code, doc.Cause})
	}
	a.table([]string{"CODE", "MEANS"}, rows)
	return nil
}

func (a *app) explainRun(name string) error {
	store, tenant, err := a.openStore(true)
	if err != nil {
		return err
	}
	defer store.Close()
	id, err := findRun(tenant, name)
	if err != nil {
		f := faultOf(err)
		if evidence.CodeOf(err) == "" && f.Exit == exitUsage && name != "latest" {
			f.Hints = append(f.Hints, "it is no code either; writ explain codes lists those")
		}
		return f
	}
	explanation, err := engine.Explain(tenant, id)
	if err != nil {
		return err
	}
	if a.json() {
		explanation.Sentences = orEmpty(explanation.Sentences)
		return a.writeJSON(explanation)
	}
	fmt.Fprintf(a.stdout, "%s  %s\n\n", id, a.word(cmpOr(explanation.Result, explanation.State)))
	for _, sentence := range explanation.Sentences {
		address := ""
		if sentence.Address != "" {
			address = "  " + a.paint(dim, "["+safe(sentence.Address)+"]")
		}
		fmt.Fprintf(a.stdout, "- %s%s\n", safe(sentence.Text), address)
	}
	fmt.Fprintf(a.stdout, "\nnext: writ inspect %s --results\n", id)
	return nil
}
