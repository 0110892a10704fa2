package engine

import "testing"

func TestResultWord(t *testing.T) {
	cases := []struct {
		failed     bool
		decision   string
		permissive bool
		want       string
		exit       int
	}{
		{false, DecisionPass, false, "pass", 0},
		{false, DecisionPass, true, "pass_permissive", 0},
		{false, DecisionFail, false, "fail", 1},
		{false, DecisionEscalate, false, "escalate", 7},
		{false, DecisionNone, false, "escalate", 7},
		{false, "", false, "escalate", 7},
		{true, DecisionPass, false, "failed", 1},
		{true, DecisionPass, true, "failed", 1},
		{true, DecisionEscalate, false, "failed", 1},
	}
	for _, c := range cases {
		r := Result{Result: resultWord(c.failed, c.decision, c.permissive)}
		if r.Result != c.want || r.Exit() != c.exit {
			t.Errorf("failed %v, decision %q, permissive %v: %q exit %d, want %q exit %d", c.failed, c.decision, c.permissive, r.Result, r.Exit(), c.want, c.exit)
		}
	}
}

func TestExitOfWhatDidNotEnd(t *testing.T) {
	for _, c := range []struct {
		result Result
		want   int
	}{
		{Result{State: StateInterrupted}, ExitInterrupted},
		{Result{State: StateInDoubt}, ExitUndecided},
		{Result{State: StateAdmitted}, ExitUndecided},
		{Result{Result: ResultEscalate, Reasons: []string{ReasonNothingEvaluated}}, ExitNothingEvaluated},
	} {
		if got := c.result.Exit(); got != c.want {
			t.Errorf("%+v exits %d, want %d", c.result, got, c.want)
		}
	}
}

func TestWorse(t *testing.T) {
	order := []string{DecisionPass, DecisionEscalate, DecisionFail}
	for i, a := range order {
		for j, b := range order {
			if got, want := worse(a, b), order[max(i, j)]; got != want {
				t.Errorf("worse(%s, %s) = %s, want %s", a, b, got, want)
			}
		}
	}
}
