package cycle

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/config"
)

// The first dimension is there whether it is named or not: a fleet whose configuration names it goes the same way, cycle by cycle.
func TestWorkIsTheSameNamedOrNot(t *testing.T) {
	plain, named := lopsided(), lopsided()
	named.in.Config.Index.Dimensions = &config.Dimensions{Work: &config.Work{}}
	for minute := range 90 {
		for _, w := range []*world{plain, named} {
			if minute == 30 {
				w.setLoad("g", 9)
			}
			w.run(1)
		}
		if diff := cmp.Diff([]any{plain.last.Next, plain.last.Candidate, plain.last.Reason, plain.last.Problems},
			[]any{named.last.Next, named.last.Candidate, named.last.Reason, named.last.Problems}); diff != "" {
			t.Fatalf("minute %d (-unnamed +named):\n%s", minute, diff)
		}
	}
	if plain.writes < 2 {
		t.Errorf("the plan was written %d times: nothing was decided", plain.writes)
	}
}
