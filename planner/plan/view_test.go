package plan

import (
	"fmt"
	"testing"
)

func TestEffective(t *testing.T) {
	rows := map[string]Row{"a": {Replica: 1}, "b": {Replica: 0}}
	type want struct {
		replica int
		why     Reason
		ok      bool
	}
	for name, test := range map[string]struct {
		plan    Plan
		pins    Pins
		cluster string
		want    want
	}{
		"the row":                            {Plan{Replicas: 2, Clusters: rows}, nil, "a", want{1, InPlan, true}},
		"the pin":                            {Plan{Replicas: 2, Clusters: rows}, Pins{"a": 0}, "a", want{0, Pinned, true}},
		"a pin at the replicas waits":        {Plan{Replicas: 2, Clusters: rows}, Pins{"a": 2}, "a", want{1, InPlan, true}},
		"a pin waits while x0y is under way": {Plan{Replicas: 2, Clusters: rows, Rollout: &Rollout{Mode: ModeX0Y}}, Pins{"a": 0}, "a", want{1, InPlan, true}},
		"a pin waits for its replica to run": {Plan{Replicas: 3, Clusters: rows, Rollout: &Rollout{Mode: "default", Stage: Scaling, From: Count{Replicas: 2}, Replicas: 3}}, Pins{"b": 2}, "b", want{0, InPlan, true}},
		"a pin holds in other rollouts":      {Plan{Replicas: 2, Clusters: rows, Rollout: &Rollout{Mode: "default"}}, Pins{"a": 0}, "a", want{0, Pinned, true}},
		"a cluster nobody knows":             {Plan{Replicas: 2, Clusters: rows}, nil, "c", want{0, InPlan, false}},
		"a pin for a cluster to come":        {Plan{Replicas: 2, Clusters: rows}, Pins{"c": 1}, "c", want{1, Pinned, true}},
	} {
		t.Run(name, func(t *testing.T) {
			replica, why, ok := NewView(test.plan, test.pins).Effective(test.cluster)
			if got := (want{replica, why, ok}); got != test.want {
				t.Errorf("Effective(%q) = %+v, want %+v", test.cluster, got, test.want)
			}
		})
	}
}

func TestReplicasThatComeOrGoDoNotStay(t *testing.T) {
	for name, p := range map[string]Plan{
		"growing":   {Replicas: 5, Rollout: &Rollout{Stage: Scaling, From: Count{Replicas: 2}, Replicas: 5}},
		"shrinking": {Replicas: 5, Rollout: &Rollout{Stage: Assigning, From: Count{Replicas: 5}, Replicas: 2}},
		"drained":   {Replicas: 0, Rollout: &Rollout{Mode: ModeX0Y, From: Count{Replicas: 2}, Replicas: 4}},
	} {
		if v := NewView(p, nil); v.Stable() != 2 || !v.Stays(1) || v.Stays(2) || v.Stays(-1) {
			t.Errorf("%s: %d are stable; replicas 1, 2, -1 stay: %t, %t, %t", name, v.Stable(), v.Stays(1), v.Stays(2), v.Stays(-1))
		}
	}
}

func BenchmarkNewView(b *testing.B) {
	for _, n := range []int{100, 7500} {
		p := Plan{Replicas: 8, Clusters: map[string]Row{}}
		for i := range n {
			name := fmt.Sprintf("cluster-%06d", i)
			p.Clusters[name] = Row{Replica: i % 8, Load: "0.000213", Server: ServerHash(name)}
		}
		b.Run(fmt.Sprintf("clusters=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				NewView(p, nil)
			}
		})
	}
}
