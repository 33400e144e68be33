package resize

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ballast/planner/change"
	"ballast/planner/config"
	"ballast/planner/cycle/problem"
	"ballast/planner/cycle/resize/question"
	"ballast/planner/diff"
	"ballast/planner/observed"
	"ballast/planner/plan"
	"ballast/planner/plan/podspec"
)

func templateOf(size [2]string) *plan.Resources {
	return &plan.Resources{Requests: map[string]string{"memory": size[0]}, Limits: map[string]string{"memory": size[1]}}
}

// limited is what package answer makes of a LimitRange's refusal.
const limited = "Forbidden by a LimitRange; what else the API server said is left out, since it may quote the object"

// podsOf are ready pods of those replicas, each with that size.
func podsOf(size plan.Resources, replicas ...int) (all []observed.Pod) {
	for _, r := range replicas {
		all = append(all, observed.Pod{Replica: r, Name: "c-" + string(rune('0'+r)), Ready: true,
			Size: &observed.Size{Has: size, Asks: podspec.Size{Controller: size}}})
	}
	return all
}

// grownFleet is a fleet of three of which the second one is to have 5024Mi, and whose pods are there. Since then
// nothing shrinks, and nothing grows for a day.
func grownFleet(t *testing.T) (f *fleet, small plan.Resources) {
	t.Helper()
	f = newFleet(3)
	f.runs(3, 10, 10, 10)
	small, _ = f.Plan.SizeOf(1)
	f.Pods, f.Due = podsOf(small, 0, 1, 2), 3
	f.run(10, 40, 10)
	wants(t, f, "as it is to be", [2]string{"2024Mi", "4048Mi"}, [2]string{"5024Mi", "10048Mi"}, [2]string{"2024Mi", "4048Mi"})
	f.Change.Down.Mode, f.Change.Up.Cooldown = change.Off, config.Duration(24*time.Hour)
	return f, small
}

// A replica for which no pod is made comes with the template's size after five minutes, whatever the rules of change, and has its own again
// once its pod is there.
func TestAReplicaWithoutAPodComesWithItsTemplatesSize(t *testing.T) {
	f, small := grownFleet(t)
	rest, own := [2]string{"2024Mi", "4048Mi"}, [2]string{"5024Mi", "10048Mi"}
	f.Pods = podsOf(small, 0, 2)
	f.runs(5, 10, 40, 10)
	wants(t, f, "within five minutes", rest, own, rest)
	f.Shut = question.Shut{Up: "a rollout is under way", Down: "a rollout is under way"}
	f.run(10, 40, 10)
	wants(t, f, "after them", rest, [2]string{}, rest)
	if want := "gives up sizes that pods are refused with: replica 1's"; f.last.Note != want {
		t.Errorf("note %q, want %q", f.last.Note, want)
	}
	f.Shut = question.Shut{}
	f.runs(90, 10, 40, 10)
	wants(t, f, "as long as there is none", rest, [2]string{}, rest)
	if diff := cmp.Diff([]string{"1 up UpdatePolicy 1Gi->5Gi"}, f.blocks()); diff != "" {
		t.Errorf("blocked (-want +got):\n%s", diff)
	}
	if len(f.last.Problems) != 1 || f.last.Problems[0].Kind != "PodRefused" || f.last.Problems[0].Subject != "replica 1" {
		t.Errorf("problems %v", f.last.Problems)
	}
	if at, full := f.Memory.NoRoom[1]; !full || !at.Equal(f.Now) {
		t.Errorf("nothing keeps what levels away from it: %v", f.Memory.NoRoom)
	}
	f.Pods = podsOf(small, 0, 1, 2)
	f.run(10, 40, 10)
	wants(t, f, "once it is there", rest, own, rest)
	if f.Memory.GivenUp != nil {
		t.Errorf("it is still given up: %v", f.Memory.GivenUp)
	}
}

// Who is above a replica without a pod comes with its template's size, too, or each would wait for five minutes; what lower replicas, or
// nobody knows what, may keep away waits.
func TestWhichReplicasComeWithTheirTemplatesSize(t *testing.T) {
	rest, own := [2]string{"2024Mi", "4048Mi"}, [2]string{"5024Mi", "10048Mi"}
	ownTemplate := func(f *fleet) { f.Template = templateOf(own) }
	for name, test := range map[string]struct {
		pods []int
		then func(f *fleet)
		want [][2]string
	}{
		"it alone":                   {pods: []int{0, 2}, want: [][2]string{rest, {}, rest}},
		"all above it":               {pods: []int{0}, want: [][2]string{rest, {}, {}}},
		"all":                        {want: [][2]string{{}, {}, {}}},
		"a lower one is not ready":   {pods: []int{0}, then: func(f *fleet) { f.Pods[0].Ready = false }, want: [][2]string{rest, own, rest}},
		"nobody can tell":            {then: func(f *fleet) { f.Due = 0 }, want: [][2]string{rest, own, rest}},
		"the workload has fewer":     {pods: []int{0, 1}, then: func(f *fleet) { f.Due = 2 }, want: [][2]string{rest, own, rest}},
		"one that is being deleted":  {pods: []int{0, 1, 2}, then: func(f *fleet) { f.Pods[1].Size = nil }, want: [][2]string{rest, own, rest}},
		"one of its template's size": {pods: []int{0, 2}, then: ownTemplate, want: [][2]string{rest, own, rest}},
	} {
		t.Run(name, func(t *testing.T) {
			f, small := grownFleet(t)
			f.Pods = podsOf(small, test.pods...)
			if test.then != nil {
				test.then(f)
			}
			f.runs(8, 10, 40, 10)
			wants(t, f, "eight minutes later", test.want...)
		})
	}
}

// A size that a LimitRange refuses to a pod that runs is given up after five minutes, for the pod would be refused when it is made anew: it
// stays as large as its pod asks for, and is tried again an hour later.
func TestASizeThatIsRefusedToAPodIsGivenUp(t *testing.T) {
	rest, own := [2]string{"2024Mi", "4048Mi"}, [2]string{"5024Mi", "10048Mi"}
	for name, test := range map[string]struct {
		words string
		state diff.PodState
		asks  [2]string
		want  [2]string
	}{
		"a LimitRange":       {limited, diff.PodRefused, rest, rest},
		"a quota":            {"Forbidden by ResourceQuota small; what else", diff.PodRefused, rest, rest},
		"to shrink":          {limited, diff.PodRefused, [2]string{"8Gi", "16Gi"}, [2]string{"8Gi", "16Gi"}},
		"missing rights":     {"Forbidden by missing rights; what else", diff.PodRefused, rest, own},
		"its node's refusal": {limited, diff.PodInfeasible, rest, own},
	} {
		t.Run(name, func(t *testing.T) {
			f, _ := grownFleet(t)
			f.Pods[1].Size.Asks.Controller = *templateOf(test.asks)
			f.Unmet = []diff.Unmet{{Replica: 1, Pod: "c-1", State: test.state, Short: true, Words: test.words}}
			f.runs(5, 10, 40, 10)
			wants(t, f, "within five minutes", rest, own, rest)
			f.run(10, 40, 10)
			wants(t, f, "after them", rest, test.want, rest)
			if test.want == own {
				return
			}
			f.Unmet = nil // it is not asked any more
			f.Pods = podsOf(plan.Resources{}, 0, 2)
			f.runs(4, 10, 40, 10)
			wants(t, f, "while another pod is made", rest, test.want, rest)
			f.Pods = podsOf(*templateOf(test.asks), 0, 1, 2)
			f.runs(55, 10, 40, 10)
			wants(t, f, "within an hour", rest, test.want, rest)
			if len(f.last.Problems) != 1 || f.last.Problems[0].Kind != "PodRefused" {
				t.Errorf("problems %v", f.last.Problems)
			}
			f.run(10, 40, 10)
			wants(t, f, "an hour later", rest, own, rest)
		})
	}
}

// Of a Deployment nobody knows which pod is which: where one is not made, the next ones come with the template's size.
func TestADeploymentsPodsComeWithTheirTemplatesSize(t *testing.T) {
	f := newFleet(2)
	f.Plan.Target.Kind = plan.Deployment
	f.runs(3, 10, 10)
	own := [2]string{"2024Mi", "4048Mi"}
	f.Pods, f.Due = podsOf(*templateOf(own), 0), 2
	f.runs(5, 10, 10)
	wants(t, f, "within five minutes", own, own)
	f.run(10, 10)
	wants(t, f, "after them", [2]string{}, [2]string{})
	f.runs(90, 10, 10)
	wants(t, f, "as long as one is missing", [2]string{}, [2]string{})
	f.Pods = podsOf(*templateOf(own), 0, 1)
	f.run(10, 10)
	wants(t, f, "once it is there", own, own)
}

// Whatever is refused, and however long: what is decided beside it is what would be decided without, and what is given up comes back.
func TestWhatIsGivenUpChangesNoDecision(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, free := newFleet(3), newFleet(3)
		f.Due = 3
		whole := podsOf(*templateOf([2]string{"2Gi", "4Gi"}), 0, 1, 2)
		for range rapid.IntRange(1, 6).Draw(t, "stretches") {
			apps := rapid.SliceOfN(rapid.Float64Range(0, 60), 3, 3).Draw(t, "apps")
			there, refused := rapid.SliceOfN(rapid.Bool(), 3, 3).Draw(t, "there"), rapid.SliceOfN(rapid.Bool(), 3, 3).Draw(t, "refused")
			f.Pods, f.Unmet = nil, nil
			for r, pod := range whole {
				if there[r] {
					f.Pods = append(f.Pods, pod)
				}
				if there[r] && refused[r] {
					f.Unmet = append(f.Unmet, diff.Unmet{Replica: r, Pod: pod.Name, State: diff.PodRefused, Words: limited})
				}
			}
			for range rapid.IntRange(1, 9).Draw(t, "minutes") {
				f.run(apps...)
				free.run(apps...)
				if err := fault(f.Plan); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(free.memory(), withGivenUp(f)); diff != "" {
					t.Fatalf("decided (-without refusals +with):\n%s", diff)
				}
			}
		}
		f.Pods, f.Unmet = whole, nil
		apps := []float64{10, 20, 30}
		f.Now, free.Now = f.Now.Add(refusedFor), free.Now.Add(refusedFor)
		f.run(apps...)
		free.run(apps...)
		if diff := cmp.Diff(free.memory(), f.memory()); diff != "" {
			t.Fatalf("once nothing is refused (-want +got):\n%s", diff)
		}
	})
}

// withGivenUp is what each replica would be held at were nothing given up.
func withGivenUp(f *fleet) (all [][2]string) {
	f.Shape = question.ShapeOf(f.Question)
	whole := fleet{Question: refusals{f.Question}.restored()}
	return whole.memory()
}

// With size.apply: template nothing is given up, for that would restart all pods; that a pod is missing for five minutes is told.
func TestAPodThatTheTemplatesSizeKeepsAwayIsTold(t *testing.T) {
	for name, test := range map[string]struct {
		pods []int
		then func(f *fleet)
		want bool
	}{
		"none is made for one":           {pods: []int{0, 2}, want: true},
		"nor for any":                    {want: true},
		"all are there":                  {pods: []int{0, 1, 2}},
		"a lower one is not ready":       {pods: []int{0}, then: func(f *fleet) { f.Pods[0].Ready = false }},
		"nobody can tell":                {then: func(f *fleet) { f.Due = 0 }},
		"the workload has fewer":         {pods: []int{0, 1}, then: func(f *fleet) { f.Due = 2 }},
		"one of a Deployment's":          {pods: []int{0, 1}, then: func(f *fleet) { f.Plan.Target.Kind = plan.Deployment }, want: true},
		"the size is the template's own": {then: func(f *fleet) { f.Size.Policies = nil; f.Plan.Resources = nil }},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(3)
			f.Size.Apply = config.Template
			f.runs(3, 10, 40, 10)
			f.Due, f.Pods = 3, podsOf(plan.Resources{}, test.pods...)
			f.Change.Up.Mode, f.Change.Down.Mode = change.Off, change.Off
			if test.then != nil {
				test.then(f)
			}
			held := f.Plan.Resources
			told := func() bool {
				return slices.ContainsFunc(f.last.Problems, func(p problem.Problem) bool { return p.Kind == "PodRefused" && p.Subject == "every replica" })
			}
			for minute := range 8 {
				f.run(10, 40, 10)
				if want := test.want && minute >= 5; told() != want {
					t.Errorf("after %d minutes it is told: %t, want %t: %v", minute, told(), want, f.last.Problems)
				}
			}
			if diff := cmp.Diff(held, f.Plan.Resources); diff != "" {
				t.Errorf("another size is held (-before +after):\n%s", diff)
			}
			f.Pods = podsOf(plan.Resources{}, 0, 1, 2)
			if f.run(10, 40, 10); told() || f.Memory.GivenUp != nil {
				t.Errorf("once all are there: %v, %v", f.last.Problems, f.Memory.GivenUp)
			}
		})
	}
}
