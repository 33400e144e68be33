package cycle

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/cycle/input"
	"ballast/planner/observed"
	"ballast/planner/plan"
)

// A replica whose pod nobody makes is to come with the pod template's size, and is named; not where a person holds ballast, or where nobody
// knows what stands.
func TestAReplicaThatNoPodIsMadeForIsGivenItsTemplatesSize(t *testing.T) {
	rest, own := [2]string{"1280Mi", "2560Mi"}, [2]string{"2Gi", "4Gi"}
	for name, test := range map[string]struct {
		then func(*input.Inputs)
		want [][2]string
	}{
		"in Enforce":              {func(*input.Inputs) {}, [][2]string{rest, {}, rest}},
		"frozen":                  {func(in *input.Inputs) { in.Paused = true }, [][2]string{rest, own, rest}},
		"under break-glass":       {func(in *input.Inputs) { in.BreakGlass = true }, [][2]string{rest, own, rest}},
		"in Hold":                 {func(in *input.Inputs) { in.Config.Mode = plan.Hold }, [][2]string{rest, own, rest}},
		"where pods are not seen": {func(in *input.Inputs) { in.Observed.Known = false }, [][2]string{rest, own, rest}},
		"where the workload just changed": {func(in *input.Inputs) {
			in.Workload.Generation, in.Workload.ObservedGeneration = 5, 4
		}, [][2]string{rest, own, rest}},
		"where it is to have no such pods": {func(in *input.Inputs) { in.Workload.Replicas = 1 }, [][2]string{rest, own, rest}},
	} {
		t.Run(name, func(t *testing.T) {
			w := sizedWorld(2, 10, 2)
			w.in.Pins = plan.Pins{"c000": 0, "c001": 1, "c002": 2}
			w.run(5)
			w.in.Observed.Known = true
			for _, r := range []int{0, 2} {
				w.in.Observed.Pods = append(w.in.Observed.Pods, observed.Pod{Replica: r, Name: "p", Ready: true, Claimed: true, Answered: true})
			}
			for range 8 {
				test.then(&w.in)
				w.run(1)
			}
			if diff := cmp.Diff(test.want, w.memories()); diff != "" {
				t.Errorf("(-want +got):\n%s\n%v", diff, problems(w.last))
			}
			if told, given := slices.Contains(problems(w.last), "size/PodRefused/replica 1"), test.want[1] != own; told != given {
				t.Errorf("told %v", problems(w.last))
			}
		})
	}
}
