package cycle

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/config"
	"ballast/planner/discover"
	"ballast/planner/observed"
	"ballast/planner/placement"
	"ballast/planner/plan"
	"ballast/planner/poll"
)

// place is where a rule is to hold: what makes clusters look for a replica.
type place struct {
	name string
	do   func(w *world)
}

// TestEveryRuleHoldsEverywhere: each rule of the partition, at each place where clusters find a replica. Six clusters stand on
// three replicas, two on each, all of load 1. Replica 2 is emptied or dies, or a new cluster comes. A cordon of replica 1 ends
// where that of replica 2 begins.
func TestEveryRuleHoldsEverywhere(t *testing.T) {
	places := []place{
		{"partition", func(*world) {}},
		{"evacuation", func(w *world) { w.in.Cordon = "2=" + w.in.Now.Add(100*time.Hour).UTC().Format(time.RFC3339) }},
		{"failover", func(w *world) {
			w.in.Observed.Known = true
			for replica := range 3 {
				w.in.Observed.Pods = append(w.in.Observed.Pods, observed.Pod{Replica: replica, Name: "pod", Ready: replica != 2, Claimed: true, Answered: true})
			}
		}},
		{"arrival", func(w *world) {
			v := placement.NewArrivals(plan.NewView(w.in.InForce.Clone(), w.in.Pins))
			w.add("new", 1)
			w.place("new", v.Place(server("new"), plan.NoReplica, nil))
		}},
	}
	on := map[string]int{"a": 0, "b": 0, "c": 1, "d": 1, "e": 2, "f": 2}
	three := 3
	for rule, test := range map[string]struct {
		labelled map[string][]string
		groups   []config.Group
		set      func(w *world)
		want     map[string]map[string]int // what differs from on, by place
	}{
		"a pin": {set: func(w *world) { w.in.Pins = plan.Pins{"e": 2} },
			want: map[string]map[string]int{"evacuation": {"f": 0}, "failover": {"f": 0}}},
		"most clusters of a replica": {set: func(w *world) { w.in.Config.Partition.MaxClustersPerReplica = 3 },
			want: map[string]map[string]int{"evacuation": {"e": 0, "f": 1}, "failover": {"e": 0, "f": 1}}},
		"a number of replicas": {set: func(w *world) { w.in.Config.Partition.Replicas = &config.Replicas{Fixed: 3} },
			want: map[string]map[string]int{"evacuation": {"e": 0, "f": 1}, "failover": {"e": 0, "f": 1}}},
		"bounds of it": {set: func(w *world) { w.in.Config.Partition.MinReplicas, w.in.Config.Partition.MaxReplicas = &three, &three },
			want: map[string]map[string]int{"evacuation": {"e": 0, "f": 1}, "failover": {"e": 0, "f": 1}}},
		"one server": {set: func(w *world) { w.shares("f", "e") }, // the new one joins c and d, and the two of one server are one
			want: map[string]map[string]int{"evacuation": {"e": 0, "f": 0}, "failover": {"e": 0, "f": 0}, "arrival": {"c": 2}}},
		"in-cluster, on replica 0 for Argo CD": {set: func(w *world) {
			w.in.Discovered.InClusterEnabled = true
			w.in.Fetched[0].Samples = append(w.in.Fetched[0].Samples, poll.Sample{Key: plan.InClusterServer, Value: 1})
		}, want: map[string]map[string]int{"evacuation": {"e": 1, "f": 0}, "failover": {"e": 1, "f": 0}}},
		"in-cluster, on a cordoned replica": {set: func(w *world) {
			w.in.Discovered.InClusterEnabled = true
			w.in.Cordon = "0=" + w.in.Now.Add(100*time.Hour).UTC().Format(time.RFC3339)
		}, want: map[string]map[string]int{"partition": {"a": 1, "b": 2}, "evacuation": {"a": 1, "e": 0, "f": 0},
			"failover": {"a": 1, "b": 1, "e": 1, "f": 1}, "arrival": {"a": 1, "b": 2}}},
		"together": {labelled: map[string][]string{"e": {"pay"}, "f": {"pay"}}, groups: []config.Group{together("pay")},
			want: map[string]map[string]int{"evacuation": {"e": 0, "f": 0}, "failover": {"e": 0, "f": 0}}},
		"together, and a pin of one": {labelled: map[string][]string{"e": {"pay"}, "f": {"pay"}}, groups: []config.Group{together("pay")},
			set:  func(w *world) { w.in.Pins = plan.Pins{"e": 2} },
			want: map[string]map[string]int{"failover": {"f": 0}}}, // nobody is without an owner for a group's sake
		"apart": {labelled: map[string][]string{"a": {"hubs"}, "e": {"hubs"}}, groups: []config.Group{apart("hubs")},
			want: map[string]map[string]int{"evacuation": {"e": 1, "f": 0}, "failover": {"e": 1, "f": 0}}},
		"apart, with one on each": {labelled: map[string][]string{"a": {"hubs"}, "c": {"hubs"}, "e": {"hubs"}}, groups: []config.Group{apart("hubs")},
			want: map[string]map[string]int{"evacuation": {"f": 0}, "failover": {"e": 0, "f": 1}}},
		"a cordon": {set: func(w *world) { w.in.Cordon = "1=" + w.in.Now.Add(100*time.Hour).UTC().Format(time.RFC3339) },
			want: map[string]map[string]int{"partition": {"c": 0, "d": 2}, "evacuation": {"c": 0, "e": 1, "f": 1}, "failover": {"c": 0, "d": 0, "e": 0, "f": 0}, "arrival": {"c": 0, "d": 2}}},
	} {
		for _, p := range places {
			t.Run(rule+"/"+p.name, func(t *testing.T) {
				w := grouped(on, test.labelled, test.groups...)
				w.in.Config.Failover = config.Default().Failover
				w.cycle()
				if test.set != nil {
					test.set(w)
				}
				w.run(2)
				p.do(w)
				w.run(30)
				got := w.rows()
				if at, came := got["new"]; came {
					if slices.Contains(w.in.InForce.Cordoned, at) {
						t.Errorf("the new one is on replica %d, which is cordoned", at)
					}
					if s := w.secret("new"); s.Shard != (discover.ShardValue{State: discover.ShardValid, N: at}) {
						t.Errorf("the new one is on %d, and the webhook put it on %v", at, s.Shard)
					}
					delete(got, "new")
				}
				want := map[string]int{}
				for name, at := range on {
					want[name] = at
				}
				for name, at := range test.want[p.name] {
					want[name] = at
				}
				for _, c := range w.last.Fleet.Clusters {
					if at := c.FixedAt; c.Implicit && (at == nil || *at != 0) {
						t.Errorf("the in-cluster is on %v", at)
					}
				}
				if diff := cmp.Diff(want, got); diff != "" || w.in.InForce.Replicas != 3 {
					t.Errorf("%d replicas, %v (-want +got):\n%s", w.in.InForce.Replicas, problems(w.last), diff)
				}
			})
		}
	}
}
