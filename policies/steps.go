package policies

import (
	"fmt"
	"maps"
	"runtime/metrics"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// Limits of an evaluation beside its time. The first two give the same answer
// on every machine; the third is there for what they do not see.
const (
	StepsMax        = 1_000_000 // expressions and rules entered, left or tried again
	BuiltinBytesMax = 128 << 20 // that builtins make
	HeapBytesMax    = 1 << 30   // that the process's heap may be beyond twice what it was
	stepsPerReading = 16        // of the process's heap
)

const heapBytes = "/memory/classes/heap/objects:bytes"

// stepCounter follows an evaluation: it notes the rules that were true and
// stops an evaluation that does too much.
type stepCounter struct {
	stop  topdown.Cancel
	steps int
	start uint64 // bytes
	heap  []metrics.Sample
	over  error // the limit that was run into
	rules map[*ast.Rule]bool
}

func newStepCounter(stop topdown.Cancel) *stepCounter {
	s := &stepCounter{stop: stop, heap: []metrics.Sample{{Name: heapBytes}}, rules: map[*ast.Rule]bool{}}
	s.start = s.heapSize()
	return s
}

func (s *stepCounter) heapSize() uint64 {
	metrics.Read(s.heap)
	if s.heap[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return s.heap[0].Value.Uint64()
}

// Enabled reports that events are wanted.
func (*stepCounter) Enabled() bool { return true }

// Config asks for no variables.
func (*stepCounter) Config() topdown.TraceConfig { return topdown.TraceConfig{} }

// TraceEvent counts the step, and notes the exit of a rule, which OPA reports
// if it was true.
func (s *stepCounter) TraceEvent(e topdown.Event) {
	if s.steps++; s.steps > StepsMax {
		s.exceed(fmt.Errorf("the evaluation took more than %d steps", StepsMax))
	}
	if s.steps%stepsPerReading == 0 && s.heapSize() > 2*s.start+HeapBytesMax {
		s.exceed(fmt.Errorf("the evaluation used more than %d bytes of memory", HeapBytesMax))
	}
	rule, ok := e.Node.(*ast.Rule)
	if ok && e.Op == topdown.ExitOp && rule.Location != nil && len(s.rules) < RulesFiredMax {
		s.rules[rule] = true
	}
}

func (s *stepCounter) exceed(limit error) {
	if s.over == nil {
		s.over = limit
	}
	s.stop.Cancel()
}

// fired names the rules that were true as "file:row name", sorted.
func (s *stepCounter) fired() []string {
	names := map[string]bool{}
	for rule := range s.rules {
		names[fmt.Sprintf("%s:%d %s", rule.Location.File, rule.Location.Row, rule.Head.Ref())] = true
	}
	return slices.Sorted(maps.Keys(names))
}
