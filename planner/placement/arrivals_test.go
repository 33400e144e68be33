package placement

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"ballast/planner/plan"
)

func TestAnArrivalGoesWhereItIsKnown(t *testing.T) {
	v := NewArrivals(plan.NewView(plan.Plan{Replicas: 3, Clusters: map[string]plan.Row{"a": {Replica: 2, Server: plan.ServerHash("https://a")}}}, nil))
	if got := v.Place("https://a/", 1, nil); got != 2 {
		t.Errorf("a renamed Secret of a known server went to replica %d, want its row's 2", got)
	}
	if got := v.Place("https://b", 1, nil); got != 1 {
		t.Errorf("a cluster with a valid shard went to replica %d, want its 1", got)
	}
	if got := v.Place("https://b", 3, nil); got < 0 || got > 2 {
		t.Errorf("a shard beyond the replicas became replica %d", got)
	}
}

func TestNewClustersKeepOffReplicasThatComeOrGo(t *testing.T) {
	for name, p := range map[string]plan.Plan{
		"growing":   {Replicas: 5, Rollout: &plan.Rollout{Stage: plan.Scaling, From: plan.Count{Replicas: 2}, Replicas: 5}},
		"shrinking": {Replicas: 5, Rollout: &plan.Rollout{Stage: plan.Assigning, From: plan.Count{Replicas: 5}, Replicas: 2}},
		"drained":   {Replicas: 0, Rollout: &plan.Rollout{Mode: plan.ModeX0Y, From: plan.Count{Replicas: 2}, Replicas: 4}},
	} {
		t.Run(name, func(t *testing.T) {
			v := NewArrivals(plan.NewView(p, nil))
			if got := v.Place("https://a", 4, nil); got > 1 {
				t.Errorf("a new cluster that asks for replica 4 went to %d, want one of the two that stay", got)
			}
			for i := range 100 {
				if got := v.Place(fmt.Sprint("https://", i), -1, nil); got > 1 {
					t.Fatalf("a new cluster went to replica %d, want one of the two that stay", got)
				}
			}
		})
	}
}

// Fifty creations at once must leave no replica above twice the mean, whatever stood before: the design's bound.
func TestABurstOfCreationsStaysLevel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 8).Draw(t, "replicas")
		each := rapid.IntRange(25, 60).Draw(t, "clusters a replica")
		p := plan.Plan{Replicas: n, Clusters: map[string]plan.Row{}}
		for i := range n * each {
			name := fmt.Sprint("c", i)
			p.Clusters[name] = plan.Row{Replica: i % n, Load: "1", Server: plan.ServerHash(name)}
		}
		v := NewArrivals(plan.NewView(p, nil))
		count := make([]int, n)
		seed := rapid.Uint32().Draw(t, "seed")
		for i := range 50 {
			count[v.Place(fmt.Sprintf("https://new-%d-%d.example", seed, i), -1, nil)]++
		}
		mean := float64(n*each+50) / float64(n)
		for r, c := range count {
			if float64(each+c) > 2*mean {
				t.Fatalf("replica %d has %d of %d, above twice the mean", r, each+c, n*each+50)
			}
		}
	})
}

func TestArrivalsGoToFreeReplicas(t *testing.T) {
	p := plan.Plan{Replicas: 2, Clusters: map[string]plan.Row{}}
	for i := range 20 {
		p.Clusters[fmt.Sprint("c", i)] = plan.Row{Replica: 0, Load: "1"}
	}
	v := NewArrivals(plan.NewView(p, nil))
	count := [2]int{}
	for i := range 50 {
		count[v.Place(fmt.Sprintf("https://new-%d", i), -1, nil)]++
	}
	if count[1] < 45 {
		t.Errorf("the empty replica got %d of 50 new clusters, want nearly all", count[1])
	}
}

func TestTheSameAnswerFromEveryWebhookReplica(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := plan.Plan{Replicas: rapid.IntRange(0, 8).Draw(t, "replicas"), Clusters: map[string]plan.Row{}}
		for i := range rapid.IntRange(0, 30).Draw(t, "clusters") {
			p.Clusters[fmt.Sprint("c", i)] = plan.Row{Replica: rapid.IntRange(0, 9).Draw(t, "replica"), Load: rapid.SampledFrom([]string{"", "1", "0.25", "much"}).Draw(t, "load"),
				Server: rapid.SampledFrom([]string{"", "aaaaaaa", "bbbbbbb", plan.ServerHash("https://s")}).Draw(t, "of")}
		}
		server := rapid.OneOf(rapid.String(), rapid.Just("https://s")).Draw(t, "server")
		if a, b := NewArrivals(plan.NewView(p, nil)).Place(server, -1, nil), NewArrivals(plan.NewView(p.Clone(), nil)).Place(server, -1, nil); a != b {
			t.Fatalf("two views of one plan answered %d and %d", a, b)
		}
	})
}
