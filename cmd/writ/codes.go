package main

import (
	"github.com/writrun/writ/engine"
	"github.com/writrun/writ/engine/effect"
	"github.com/writrun/writ/engine/evidence"
	"github.com/writrun/writ/engine/flow"
	"github.com/writrun/writ/host"
	"github.com/writrun/writ/host/prepare"
	"github.com/writrun/writ/policies"
)

// codeDoc explains a code to the person who met it.
type codeDoc struct{ cause, remedy string }

// codeDocs brings together the codes of every package and the tool's own. Where
// two packages use a code, the one nearer to the run says what it means.
func codeDocs() map[string]codeDoc {
	docs := map[string]codeDoc{}
	for code, doc := range prepare.Codes() {
		docs[code] = codeDoc{doc.Cause, doc.Remedy}
	}
	for code, doc := range host.Codes() {
		docs[code] = codeDoc{doc.Cause, doc.Remedy}
	}
	for code, doc := range effect.Codes() {
		docs[code] = codeDoc{doc.Cause, doc.Remedy}
	}
	for code, doc := range flow.CodeDocs() {
		docs[code] = codeDoc{doc.Cause, doc.Remedy}
	}
	for code, doc := range evidence.CodeDocs() {
		docs[code] = codeDoc{doc.Cause, doc.Remedy}
	}
	for code, doc := range policies.Codes() {
		docs[code] = codeDoc{doc.Cause, doc.Remedy}
	}
	for code, doc := range engine.Codes() {
		docs[code] = codeDoc{doc.Cause, doc.Remedy}
	}
	for code, doc := range toolCodeDocs() {
		docs[code] = doc
	}
	return docs
}

// toolCodeDocs are the codes that only the tool gives.
func toolCodeDocs() map[string]codeDoc {
	return map[string]codeDoc{
		"usage":               {"The command line is not of the form the command has.", "See writ COMMAND --help."},
		"unreadable":          {"A file named on the command line cannot be read.", "Check its name and whether this user may read it."},
		"no_key_dir":          {"There is no place for keys, because no environment variable names one.", "Set WRIT_KEYS to a directory that only you can read, outside the store."},
		"plan_digest_differs": {"The file resolves to another plan than --plan-digest asks for: the manifest, a module or the data changed.", "Look at what would run with writ plan, and give its digest if it is what you want."},
		"step_unknown":        {"The run has no step of this id.", "See the run's steps with writ inspect RUN."},
		"engine":              {"The sandbox could not be set up, most often because others may write to the directory that holds compiled modules.", "Give that directory to this user alone (mode 0700), or set XDG_CACHE_HOME to another one."},
		"failed":              {"The tool could not go on, for a reason that has no code of its own.", "The message says what failed. What was acknowledged before is kept."},
	}
}
