package cycle

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ballast/planner/cycle/input"
	"ballast/planner/ownership"
)

// TestASkippedClusterCountsAsLongAsPodsWorkOnIt: Argo CD before 3.4 passes the annotation over on a Secret, later ones do not.
func TestASkippedClusterCountsAsLongAsPodsWorkOnIt(t *testing.T) {
	for name, test := range map[string]struct {
		holders []int
		asked   bool
		last    map[string]int
		want    []string // that are left out
		told    bool
	}{
		"a pod works on it":              {[]int{0}, true, nil, nil, true},
		"none does":                      {nil, true, nil, []string{"c001"}, false},
		"none does any more":             {nil, true, map[string]int{"c001": 1}, []string{"c001"}, false},
		"one did, and one does not say":  {nil, false, map[string]int{"c001": 1}, nil, true},
		"nobody ever did, nor says":      {nil, false, nil, []string{"c001"}, false},
		"another one's, of another name": {nil, false, map[string]int{"c000": 1}, []string{"c001"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(3, 2, 1)
			w.secret("c001").SkipReconcile = true
			w.in.Memory.Changes.Ownership.Last = test.last
			w.in.Observed = input.Observed{Known: true, Reported: ownership.Observation{Asked: test.asked, Clusters: map[string]ownership.ClusterObservation{
				"c001": {Server: server("c001"), Skip: true, Holders: test.holders}}}}
			out := Run(w.in)
			var skipped []string
			for _, c := range out.Fleet.Clusters {
				if c.Skip {
					skipped = append(skipped, c.Shard.ID)
				}
			}
			if diff := cmp.Diff(test.want, skipped); diff != "" {
				t.Errorf("left out (-want +got):\n%s", diff)
			}
			if told := slices.Contains(problems(out), "discover/SkipIgnored/"); told != test.told {
				t.Errorf("people are told: %t, want %t", told, test.told)
			}
			if !w.in.Discovered.Secrets[1].SkipReconcile {
				t.Error("the Secret that was read is changed")
			}
		})
	}
}

// TestAnEmptyDestServerSaysUpgrade, where more Applications have one than come and go between two looks, and two looks in a row say so.
func TestAnEmptyDestServerSaysUpgrade(t *testing.T) {
	for unplaced, want := range map[int]bool{0: false, 4: false, 5: true, 300: true} {
		w := newWorld(3, 2, 1)
		looks := func(unplaced int) bool {
			w.in.Observed = input.Observed{Known: true, Reported: ownership.Observation{Asked: true, Pods: []ownership.PodObservation{
				{Replica: 0, Ready: true, Answered: true, Unplaced: 2 + unplaced}, {Replica: 1, Ready: true, Answered: true, Unplaced: 2}}}}
			w.cycle()
			return slices.Contains(problems(w.last), "ownership/DestServerEmpty/")
		}
		if looks(unplaced) {
			t.Errorf("%d Applications: one look told people", unplaced)
		}
		if told := looks(unplaced); told != want {
			t.Errorf("%d Applications: people are told: %t, want %t", unplaced, told, want)
		}
		if looks(0) || looks(unplaced) {
			t.Errorf("%d Applications: people are told of one look after another that showed none", unplaced)
		}
	}
}

// TestThePlanSaysWhichSecretsAreClusters to the webhook, where it is not Argo CD's label alone that does.
func TestThePlanSaysWhichSecretsAreClusters(t *testing.T) {
	w := newWorld(3, 2, 1)
	if w.cycle(); w.in.InForce.Selector != "" {
		t.Errorf("the shipped selector is %q in the plan", w.in.InForce.Selector)
	}
	w.in.Config.Discover.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "team", Operator: metav1.LabelSelectorOpIn, Values: []string{"b", "a"}}}
	const want = "argocd.argoproj.io/secret-type=cluster,team in (a,b)"
	if w.cycle(); w.in.InForce.Selector != want || w.in.InForce.Revision != 2 {
		t.Errorf("revision %d has %q, want %q in 2", w.in.InForce.Revision, w.in.InForce.Selector, want)
	}
	w.run(5)
	if w.in.InForce.Revision != 2 {
		t.Errorf("it is written again and again: revision %d", w.in.InForce.Revision)
	}
}
