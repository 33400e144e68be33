package cycle

import (
	"slices"
	"testing"

	"ballast/planner/discover"
	"ballast/planner/plan"
)

// TestWhatSomebodyMadeOfTheWorkloadIsTold, and nothing begins that needs a container which is not there; pins of clusters go on.
func TestWhatSomebodyMadeOfTheWorkloadIsTold(t *testing.T) {
	name := newWorld(3, 2, 1).in.Workload.Name
	for kind, change := range map[string]func(*discover.Workload){
		"ContainerGone": func(w *discover.Workload) { w.ContainerGone = true },
		"NoText":        func(w *discover.Workload) { w.NoText = true },
	} {
		w := newWorld(3, 2, 1)
		w.in.Config.Mode = plan.Enforce
		w.run(2)
		if told := problems(Run(w.in)); slices.Contains(told, "discover/"+kind+"/"+name) {
			t.Errorf("%s is told of a workload as it should be", kind)
		}
		change(&w.in.Workload)
		if told := problems(Run(w.in)); !slices.Contains(told, "discover/"+kind+"/"+name) {
			t.Errorf("%s is not told: %q", kind, told)
		}
	}
	for gone, want := range map[bool]int{false: 5, true: 3} {
		w := newWorld(3, 2, 1)
		w.in.Config.Mode = plan.Enforce
		w.run(2)
		w.in.Workload.ContainerGone = gone
		w.in.Pins = plan.Pins{"c000": 4}
		out := Run(w.in)
		if refused := slices.Contains(problems(out), "rollout/ContainerGone/"); gone != refused {
			t.Errorf("container gone %t: refused %t: %q", gone, refused, problems(out))
		}
		to := out.Next.Replicas
		if out.Next.Rollout != nil {
			to = out.Next.Rollout.Replicas
		}
		if to != want {
			t.Errorf("container gone %t: %d replicas, want %d", gone, to, want)
		}
	}
}
