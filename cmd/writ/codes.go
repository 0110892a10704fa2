package main

import (
	"maps"

	"github.com/writrun/writ/engine"
	"github.com/writrun/writ/engine/effect"
	"github.com/writrun/writ/engine/evidence"
	"github.com/writrun/writ/engine/flow"
	"github.com/writrun/writ/guest-abi/abi"
	"github.com/writrun/writ/host"
	"github.com/writrun/writ/host/prepare"
	"github.com/writrun/writ/policies"
)

// codeDocs brings together the codes of every package and the tool's own. Where
// two packages use a code, the one nearer to the run says what it means, so the
// packages stand farthest first.
func codeDocs() map[string]abi.CodeDoc {
	docs := map[string]abi.CodeDoc{}
	for _, codes := range []func() map[string]abi.CodeDoc{
		prepare.Codes, host.Codes, effect.Codes, flow.Codes, evidence.Codes, policies.Codes, engine.Codes, toolCodes,
	} {
		maps.Copy(docs, codes())
	}
	return docs
}

// toolCodes are the codes that only the tool gives.
func toolCodes() map[string]abi.CodeDoc {
	return map[string]abi.CodeDoc{
		"usage":               {Cause: "The command line is not of the form the command has.", Remedy: "See writ COMMAND --help."},
		"unreadable":          {Cause: "A file named on the command line cannot be read.", Remedy: "Check its name and whether this user may read it."},
		"no_key_dir":          {Cause: "There is no place for keys, because no environment variable names one.", Remedy: "Set WRIT_KEYS to a directory that only you can read, outside the store."},
		"plan_digest_differs": {Cause: "The file resolves to another plan than --plan-digest asks for: the manifest, a module or the data changed.", Remedy: "Look at what would run with writ plan, and give its digest if it is what you want."},
		"decision_gone":       {Cause: "A recorded decision cannot be asked again, because what was asked is not retained.", Remedy: "Look at writ store verify; what was redacted or pruned does not come back."},
		"decision_unaskable":  {Cause: "A recorded decision cannot be asked of this policy: its input is of another version, or the flow brought policies that are not at hand.", Remedy: "Ask it with the version of writ that recorded it, or with the flow's policies."},
		"step_unknown":        {Cause: "The run has no step of this id.", Remedy: "See the run's steps with writ inspect RUN."},
		"engine":              {Cause: "The sandbox could not be set up, most often because others may write to the directory that holds compiled modules.", Remedy: "Give that directory to this user alone (mode 0700), or set XDG_CACHE_HOME to another one."},
		"failed":              {Cause: "The tool could not go on, for a reason that has no code of its own.", Remedy: "The message says what failed. What was acknowledged before is kept."},
	}
}
