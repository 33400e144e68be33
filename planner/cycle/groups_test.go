package cycle

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	"ballast/planner/config"
	"ballast/planner/cycle/explain"
	"ballast/planner/cycle/input"
	"ballast/planner/discover"
	"ballast/planner/discover/labeltext"
	"ballast/planner/placement"
	"ballast/planner/plan"
)

func apart(name string) config.Group {
	return config.Group{Name: name, Apart: &metav1.LabelSelector{MatchLabels: map[string]string{name: "yes"}}}
}

func together(name string) config.Group {
	return config.Group{Name: name, Together: &metav1.LabelSelector{MatchLabels: map[string]string{name: "yes"}}}
}

// grouped is a fleet in mode Enforce of clusters on replicas, with the labels that each has, under the sticky partition.
func grouped(on map[string]int, labelled map[string][]string, groups ...config.Group) *world {
	w := newWorld()
	w.in.Config.Mode = plan.Enforce
	w.in.Config.Partition = config.Default().Partition
	w.in.Config.Partition.Groups = groups
	w.in.Config.Evaluate = config.Default().Evaluate
	w.in.Config.Change.Moves.Rate = nil
	for _, name := range slices.Sorted(maps.Keys(on)) {
		w.add(name, 1)
		w.place(name, on[name], labelled[name]...)
	}
	return w
}

func (w *world) place(name string, at int, groups ...string) {
	s := w.secret(name)
	s.Shard = discover.ShardValue{State: discover.ShardValid, N: at}
	of := map[string]string{}
	for _, g := range groups {
		of[g] = "yes"
	}
	s.Labels = labeltext.Of(of, groups)
}

func (w *world) rows() map[string]int {
	rows := map[string]int{}
	for name, row := range w.in.InForce.Clusters {
		rows[name] = row.Replica
	}
	return rows
}

func TestGroupsComeAbout(t *testing.T) {
	for name, test := range map[string]struct {
		on       map[string]int
		labelled map[string][]string
		groups   []config.Group
		want     map[string]int
	}{
		"apart: the one that shares a replica leaves it": {
			on:       map[string]int{"a": 0, "b": 0, "c": 1, "d": 1, "e": 2, "f": 2},
			labelled: map[string][]string{"a": {"hubs"}, "b": {"hubs"}, "c": {"hubs"}}, groups: []config.Group{apart("hubs")},
			want: map[string]int{"a": 2, "b": 0, "c": 1, "d": 1, "e": 0, "f": 2}}, // one of the three on 2 takes its place
		"together: the others join where the most is": {
			on:       map[string]int{"a": 0, "b": 1, "c": 1, "d": 0, "e": 2, "f": 2},
			labelled: map[string][]string{"a": {"pay"}, "b": {"pay"}, "c": {"pay"}}, groups: []config.Group{together("pay")},
			want: map[string]int{"a": 1, "b": 1, "c": 1, "d": 0, "e": 2, "f": 2}},
	} {
		t.Run(name, func(t *testing.T) {
			w := grouped(test.on, test.labelled, test.groups...)
			w.cycle()
			if diff := cmp.Diff(test.on, w.rows()); diff != "" {
				t.Fatalf("the first plan (-as it is +got):\n%s", diff)
			}
			w.run(30)
			if diff := cmp.Diff(test.want, w.rows()); diff != "" {
				t.Errorf("(-want +got), %v:\n%s", problems(w.last), diff)
			}
			if writes := w.writes; true {
				if w.run(30); w.writes != writes {
					t.Errorf("at rest the plan was written %d times more", w.writes-writes)
				}
			}
		})
	}
}

func TestRulesThatClashAreNamedAndKeepThePlan(t *testing.T) {
	on := map[string]int{"a": 0, "b": 0, "c": 1, "d": 1, "e": 2, "f": 2}
	all := func(group string, names ...string) map[string][]string {
		of := map[string][]string{}
		for _, n := range names {
			of[n] = append(of[n], group)
		}
		return of
	}
	for name, test := range map[string]struct {
		labelled map[string][]string
		groups   []config.Group
		change   func(*world)
		want     string
	}{
		"pins against apart": {all("hubs", "a", "b", "c"), []config.Group{apart("hubs"), apart("others")},
			func(w *world) { w.in.Pins = plan.Pins{"a": 0, "b": 0, "c": 1} },
			`group "hubs" is kept apart (3 clusters); "a" is pinned to replica 0; "b" is pinned to replica 0`},
		"pins against together": {all("pay", "a", "b", "c"), []config.Group{together("pay")},
			func(w *world) { w.in.Pins = plan.Pins{"a": 0, "c": 1} },
			`group "pay" stays together (3 clusters); "a" is pinned to replica 0; "c" is pinned to replica 1`},
	} {
		t.Run(name, func(t *testing.T) {
			w := grouped(on, test.labelled, test.groups...)
			w.cycle()
			test.change(w)
			w.run(2)
			before := w.rows()
			w.run(20)
			if diff := cmp.Diff(before, w.rows()); diff != "" {
				t.Errorf("the plan changed (-before +after):\n%s", diff)
			}
			var said []string
			for _, p := range w.last.Problems {
				if p.Kind == "RulesClash" {
					said = append(said, p.Message)
				}
			}
			want := []string{"these rules clash, so that the plan in force stays: " + test.want + "; drop or change one of them"}
			if diff := cmp.Diff(want, said); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestThePlanSaysWhereNewClustersGo(t *testing.T) {
	w := grouped(map[string]int{"a": 0, "b": 1, "c": 2}, map[string][]string{"a": {"hubs"}, "b": {"hubs", "pay"}}, apart("hubs"), together("pay"))
	w.cycle()
	w.in.Cordon = "2=" + w.in.Now.Add(time.Hour).UTC().Format(time.RFC3339)
	w.run(1)
	want := map[string]plan.ClusterGroup{"hubs": {Apart: "hubs=yes", At: []int{0, 1}}, "pay": {Together: "pay=yes", At: []int{1}}}
	if diff := cmp.Diff(want, w.in.InForce.Groups) + cmp.Diff([]int{2}, w.in.InForce.Cordoned); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	w.run(90)
	if w.in.InForce.Cordoned != nil {
		t.Errorf("the cordon is over, and the plan has %v", w.in.InForce.Cordoned)
	}
}

// TestWhatTheWebhookAnswersThePlannerTakesOver: by the same plan, whatever its groups, cordons and pins.
func TestWhatTheWebhookAnswersThePlannerTakesOver(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		on, labelled := map[string]int{}, map[string][]string{}
		sets := rapid.SampledFrom([][]string{nil, {"hubs"}, {"pay"}, {"hubs", "pay"}})
		for i := range rapid.IntRange(1, 6).Draw(t, "clusters") {
			name := fmt.Sprintf("c%d", i)
			on[name], labelled[name] = rapid.IntRange(0, 2).Draw(t, "on"), sets.Draw(t, "labels")
		}
		w := grouped(on, labelled, apart("hubs"), together("pay"))
		if replica := rapid.IntRange(-1, 2).Draw(t, "cordoned"); replica >= 0 {
			w.in.Cordon = fmt.Sprintf("%d=%s", replica, w.in.Now.Add(100*time.Hour).UTC().Format(time.RFC3339))
		}
		w.cycle()
		w.run(rapid.IntRange(0, 3).Draw(t, "cycles"))
		v := plan.NewView(w.in.InForce.Clone(), nil)
		arrivals := placement.NewArrivals(v)
		rests := Run(w.in)
		atRest := rests.Next.Rollout == nil && (rests.Candidate == nil || len(rests.Candidate.Moves) == 0)
		w.add("new", 0)
		w.place("new", 0, sets.Draw(t, "labels of the new one")...)
		s := w.secret("new")
		groups := arrivals.Groups(labels.Set(s.Labels.Set()))
		answer := arrivals.Place(s.Server, plan.NoReplica, groups)
		if slices.Contains(w.in.InForce.Cordoned, answer) {
			t.Fatalf("a new cluster goes to replica %d, which is cordoned", answer)
		}
		stamped := rapid.Bool().Draw(t, "the webhook was there")
		if s.Shard = (discover.ShardValue{}); stamped {
			s.Shard = discover.ShardValue{State: discover.ShardValid, N: answer}
		}
		crowds := slices.Contains(groups, "hubs") && slices.Contains(w.in.InForce.Groups["hubs"].At, answer)
		moves := crowds || !atRest // a rule may move it at once
		for _, mode := range []plan.Mode{plan.Hold, plan.Enforce} {
			w.in.Config.Mode = mode
			if row := Run(w.in).Next.Clusters["new"]; row.Replica != answer && (mode == plan.Hold || !moves) {
				t.Fatalf("%s: the webhook answers %d, and the planner has %d", mode, answer, row.Replica)
			}
		}
	})
}

func TestEvacuationsKeepToGroups(t *testing.T) {
	on := map[string]int{"a": 0, "b": 1, "c": 2, "d": 2, "e": 1}
	for name, test := range map[string]struct {
		labelled map[string][]string
		groups   []config.Group
		want     map[string]int
		note     string
	}{
		"apart: not beside its group": {map[string][]string{"a": {"hubs"}, "c": {"hubs"}}, []config.Group{apart("hubs")},
			map[string]int{"a": 0, "b": 1, "c": 1, "d": 0, "e": 1}, ""},
		"apart: it stays where every other replica has one": {map[string][]string{"a": {"hubs"}, "b": {"hubs"}, "c": {"hubs"}}, []config.Group{apart("hubs")},
			map[string]int{"a": 0, "b": 1, "c": 2, "d": 0, "e": 1}, "GroupStays"},
		"together: both go to one": {map[string][]string{"c": {"pay"}, "d": {"pay"}}, []config.Group{together("pay")},
			map[string]int{"a": 0, "b": 1, "c": 0, "d": 0, "e": 1}, ""},
		"together: it joins the others": {map[string][]string{"b": {"pay"}, "d": {"pay"}}, []config.Group{together("pay")},
			map[string]int{"a": 0, "b": 1, "c": 0, "d": 1, "e": 1}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := grouped(on, test.labelled, test.groups...)
			w.cycle()
			w.in.Cordon = "2=" + w.in.Now.Add(100*time.Hour).UTC().Format(time.RFC3339)
			w.run(6)
			if diff := cmp.Diff(test.want, w.rows()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			said := slices.ContainsFunc(problems(w.last), func(p string) bool { return strings.Contains(p, "Group") })
			if want := test.note != ""; said != want {
				t.Errorf("problems %v, want one of groups: %t", problems(w.last), want)
			}
		})
	}
}

func TestExplainNamesTheGroupThatRulesAReplicaOut(t *testing.T) {
	w := grouped(map[string]int{"a": 0, "b": 1, "c": 2, "d": 2}, map[string][]string{"a": {"hubs"}, "c": {"hubs", "pay"}, "d": {"pay"}}, apart("hubs"), together("pay"))
	w.cycle()
	w.run(1)
	e, err := explain.Cluster(w.in, w.last, "d")
	if err != nil {
		t.Fatal(err)
	}
	if len(e.Choices) != 3 || !strings.Contains(e.Choices[0].Against, `group "hubs" keeps it apart from "a", which is there`) {
		t.Errorf("what speaks against replica 0: %+v", e.Choices)
	}
	if diff := cmp.Diff([]string{"c"}, e.Together); diff != "" {
		t.Errorf("what goes with it (-want +got):\n%s", diff)
	}
}

func TestARollbackKeepsAGroupApart(t *testing.T) {
	w := grouped(map[string]int{"a": 0, "b": 1, "c": 2, "d": 2}, map[string][]string{"a": {"hubs"}, "b": {"hubs"}}, apart("hubs"))
	w.cycle()
	then := w.in.InForce.Clone()
	for name, at := range map[string]int{"a": 1, "c": 0} { // of before the group
		row := then.Clusters[name]
		row.Replica = at
		then.Clusters[name] = row
	}
	w.in.Rollback = &input.Rollback{Revision: 1, Plan: &then}
	told := map[string]bool{}
	for range 4 {
		w.run(1)
		for _, p := range w.last.Problems {
			told[p.Message] = told[p.Message] || p.Kind == "RollbackSkips"
		}
	}
	if diff := cmp.Diff(map[string]int{"a": 0, "b": 1, "c": 0, "d": 2}, w.rows()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !told["of what is to go back to revision 1, a stay: a group keeps them apart from what is there"] {
		t.Errorf("people were told %v", told)
	}
}
