package cycle

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ballast/planner/config"
	"ballast/planner/plan"
)

// told are the messages of a kind.
func (w *world) told(kind string) (messages []string) {
	for _, p := range w.last.Problems {
		if p.Kind == kind {
			messages = append(messages, p.Message)
		}
	}
	return messages
}

// TestNobodysSecretBindsOrClashesGroups: who writes Secrets sets labels and annotations of his own, and moves and holds nobody else's.
func TestNobodysSecretBindsOrClashesGroups(t *testing.T) {
	on := map[string]int{"a": 0, "b": 0, "c": 1, "d": 1, "e": 2, "f": 2}
	own := ": a Secret with a pin of its own, opted out or immutable binds no others: to have a pin bind the group, write it into data.pins of the plan"
	both := ": to take them in would bring together what pins or other groups keep apart: change their labels"
	three := 3
	for name, test := range map[string]struct {
		labelled map[string][]string
		groups   []config.Group
		change   func(*world)
		moves    map[string]int // beside that nothing does
		want     []string
	}{
		"a pin of its own moves itself alone": {map[string][]string{"a": {"pay"}, "b": {"pay"}, "e": {"pay"}}, []config.Group{together("pay")},
			func(w *world) { w.secret("e").Pin = "2" }, nil, []string{`group "pay" leaves out 1 cluster (e)` + own}},
		"two pins of their own that clash": {map[string][]string{"a": {"pay"}, "b": {"pay"}, "c": {"pay"}, "e": {"pay"}}, []config.Group{together("pay")},
			func(w *world) { w.secret("c").Pin, w.secret("e").Pin = "1", "2" }, nil, []string{`group "pay" leaves out 2 clusters (c, e)` + own}},
		"a pin of its own beside one that is kept apart": {map[string][]string{"a": {"hubs"}, "b": {"hubs"}, "c": {"hubs"}}, []config.Group{apart("hubs")},
			func(w *world) { w.secret("b").Pin = "0" }, nil, []string{`group "hubs" leaves out 1 cluster (b)` + own}},
		"opted out, and immutable": {map[string][]string{"a": {"pay"}, "b": {"pay"}, "c": {"pay"}, "e": {"pay"}}, []config.Group{together("pay")},
			func(w *world) { w.secret("c").Unmanaged, w.secret("e").Immutable = true, true }, nil, []string{`group "pay" leaves out 2 clusters (c, e)` + own}},
		"more than there may be replicas": {map[string][]string{"a": {"hubs"}, "c": {"hubs"}, "e": {"hubs"}, "f": {"hubs"}}, []config.Group{apart("hubs")},
			func(w *world) { w.in.Config.Partition.MaxReplicas = &three }, nil,
			[]string{`group "hubs" leaves out 1 cluster (f): 3 replicas at most have no room for more: raise their number, or have the group select fewer`}},
		"more than a replica may have": {map[string][]string{"a": {"pay"}, "b": {"pay"}, "c": {"pay"}}, []config.Group{together("pay")},
			func(w *world) { w.in.Config.Partition.MaxClustersPerReplica = 2 }, nil,
			[]string{`group "pay" leaves out 1 cluster (c): a replica has at most 2 clusters (partition.maxClustersPerReplica): raise that, or have the group select fewer`}},
		"together and apart": {map[string][]string{"a": {"pay", "hubs"}, "b": {"pay", "hubs"}}, []config.Group{together("pay"), apart("hubs")},
			func(*world) {}, nil, []string{`group "hubs" leaves out 1 cluster (b)` + both}},
		"labels of two groups, one of each pinned": {map[string][]string{"a": {"pay"}, "b": {"pay"}, "c": {"hr"}, "d": {"hr"}, "e": {"pay", "hr"}}, []config.Group{together("hr"), together("pay")},
			func(w *world) { w.in.Pins = plan.Pins{"a": 0, "c": 1} }, map[string]int{"e": 1}, []string{`group "pay" leaves out 1 cluster (e)` + both}},
		"what a group binds to a pin is not beside another": {map[string][]string{"a": {"pay", "hubs"}, "b": {"pay"}, "c": {"hubs"}}, []config.Group{together("pay"), apart("hubs")},
			func(w *world) { w.in.Pins = plan.Pins{"b": 0, "c": 0} }, map[string]int{"c": 0, "d": 1, "e": 2}, []string{`group "hubs" leaves out 1 cluster (a)` + both}},
	} {
		t.Run(name, func(t *testing.T) {
			w := grouped(on, test.labelled, test.groups...)
			test.change(w)
			w.cycle()
			w.run(30)
			want := map[string]int{}
			for cluster, at := range on {
				want[cluster] = at
				if to, moves := test.moves[cluster]; moves {
					want[cluster] = to
				}
			}
			for _, s := range w.in.Discovered.Secrets {
				if s.Unmanaged {
					delete(want, s.Name)
				}
			}
			if diff := cmp.Diff(want, w.rows()) + cmp.Diff(test.want, w.told("GroupLeaves")) + cmp.Diff([]string(nil), w.told("RulesClash")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhatIsNewBindsNoGroup: who makes Secrets and deletes them again moves nobody by their labels.
func TestWhatIsNewBindsNoGroup(t *testing.T) {
	w := grouped(map[string]int{"a": 0, "b": 1, "c": 2, "d": 0, "e": 1, "f": 2}, map[string][]string{"a": {"hubs"}, "b": {"hubs"}, "c": {"pay"}}, apart("hubs"), together("pay"))
	w.cycle()
	w.run(5)
	before := w.rows()
	w.add("0", 1) // before all others by its name
	w.place("0", 0, "hubs", "pay")
	w.secret("0").Created = w.in.Now
	w.run(50)
	after := w.rows()
	delete(after, "0")
	if diff := cmp.Diff(before, after) + cmp.Diff([]string(nil), w.told("GroupLeaves")); diff != "" {
		t.Errorf("within its first hour (-before +after):\n%s", diff)
	}
	w.run(60)
	on := map[int][]string{}
	for name, at := range w.rows() {
		on[at] = append(on[at], name)
	}
	if at := w.rows(); at["0"] == at["a"] || at["0"] == at["b"] || at["0"] != at["c"] {
		t.Errorf("after it, the group has it beside others or not with its own: %v", on)
	}
}

// TestNoLabelsAndAnnotationsLeaveNoPlan: whatever Secrets say of themselves, in groups that overlap as they like.
func TestNoLabelsAndAnnotationsLeaveNoPlan(t *testing.T) {
	names := []string{"hubs", "big", "far", "pay", "hr"}
	rapid.Check(t, func(t *rapid.T) {
		on, labelled := map[string]int{}, map[string][]string{}
		for i := range rapid.IntRange(1, 14).Draw(t, "clusters") {
			name := fmt.Sprintf("c%02d", i)
			on[name], labelled[name] = rapid.IntRange(0, 2).Draw(t, "on"), rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, 3, rapid.ID).Draw(t, "labels")
		}
		w := grouped(on, labelled, apart("hubs"), apart("big"), apart("far"), together("pay"), together("hr"))
		most := rapid.IntRange(3, 5).Draw(t, "most")
		w.in.Config.Partition.MaxReplicas = &most
		w.in.Config.Partition.MaxClustersPerReplica = rapid.SampledFrom([]int{0, 3}).Draw(t, "cap")
		w.in.Pins = plan.Pins{}
		if rapid.Bool().Draw(t, "one is pinned") { // one pin clashes with nothing
			w.in.Pins["c00"] = rapid.IntRange(0, 2).Draw(t, "pinned to")
		}
		for i := range w.in.Discovered.Secrets {
			s := &w.in.Discovered.Secrets[i]
			s.Created = epoch.Add(-time.Duration(rapid.IntRange(0, 3).Draw(t, "age")) * time.Hour)
			switch rapid.IntRange(0, 6).Draw(t, "says") {
			case 0:
				s.Pin = fmt.Sprint(rapid.IntRange(0, most-1).Draw(t, "pin"))
			case 1:
				s.Unmanaged = true
			case 2:
				s.Immutable = true
			}
		}
		w.cycle()
		for range 3 {
			w.run(1)
			if said := append(w.told("RulesClash"), w.told("Refused")...); len(said) > 0 {
				t.Fatalf("no plan: %q", said)
			}
		}
	})
}

// TestNewSecretsSizeNoReplica: by a rule of the number of clusters, in their first hour.
func TestNewSecretsSizeNoReplica(t *testing.T) {
	w := sizedWorld(1, 1, 1)
	w.in.Config.Size.Policies[0].Rules = []config.SizeRule{{List: config.Requests, Resource: "memory", Base: "1Gi", Slope: "1Gi", Input: "clusters", Scope: config.ScopeTotal}}
	w.run(3)
	want := [][2]string{{"4Gi", "8Gi"}, {"4Gi", "8Gi"}, {"4Gi", "8Gi"}}
	if diff := cmp.Diff(want, w.memories()); diff != "" {
		t.Fatalf("of three clusters (-want +got):\n%s", diff)
	}
	for i := range 5 {
		w.add(fmt.Sprintf("n%d", i), 0)
		w.secret(fmt.Sprintf("n%d", i)).Created = w.in.Now
	}
	w.run(50)
	if diff := cmp.Diff(want, w.memories()); diff != "" {
		t.Errorf("within the hour (-want +got):\n%s", diff)
	}
	w.run(30)
	if got := w.memories()[0][0]; got != "9Gi" {
		t.Errorf("after it each requests %s, want 9Gi of eight clusters", got)
	}
}
