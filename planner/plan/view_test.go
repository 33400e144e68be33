package plan

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
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

func TestAssignPrefersWhatIsKnown(t *testing.T) {
	v := NewView(Plan{Replicas: 3, Clusters: map[string]Row{"a": {Replica: 2, Server: ServerHash("https://a")}}}, nil)
	if got := v.Assign("https://a/", 1); got != 2 {
		t.Errorf("a renamed Secret of a known server went to replica %d, want its row's 2", got)
	}
	if got := v.Assign("https://b", 1); got != 1 {
		t.Errorf("a cluster with a valid shard went to replica %d, want its 1", got)
	}
	if got := v.Assign("https://b", 3); got < 0 || got > 2 {
		t.Errorf("a shard beyond the replicas became replica %d", got)
	}
}

func TestNewClustersKeepOffReplicasThatComeOrGo(t *testing.T) {
	for name, p := range map[string]Plan{
		"growing":   {Replicas: 5, Rollout: &Rollout{Stage: Scaling, From: Count{Replicas: 2}, Replicas: 5}},
		"shrinking": {Replicas: 5, Rollout: &Rollout{Stage: Assigning, From: Count{Replicas: 5}, Replicas: 2}},
		"drained":   {Replicas: 0, Rollout: &Rollout{Mode: ModeX0Y, From: Count{Replicas: 2}, Replicas: 4}},
	} {
		t.Run(name, func(t *testing.T) {
			v := NewView(p, nil)
			if !v.Stays(1) || v.Stays(2) || v.Stays(-1) {
				t.Errorf("replicas 1, 2, -1 stay: %t, %t, %t", v.Stays(1), v.Stays(2), v.Stays(-1))
			}
			if got := v.Assign("https://a", 4); got > 1 {
				t.Errorf("a new cluster that asks for replica 4 went to %d, want one of the two that stay", got)
			}
			for i := range 100 {
				if got := v.Assign(fmt.Sprint("https://", i), -1); got > 1 {
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
		p := Plan{Replicas: n, Clusters: map[string]Row{}}
		for i := range n * each {
			name := fmt.Sprint("c", i)
			p.Clusters[name] = Row{Replica: i % n, Load: "1", Server: ServerHash(name)}
		}
		v := NewView(p, nil)
		count := make([]int, n)
		seed := rapid.Uint32().Draw(t, "seed")
		for i := range 50 {
			count[v.Assign(fmt.Sprintf("https://new-%d-%d.example", seed, i), -1)]++
		}
		mean := float64(n*each+50) / float64(n)
		for r, c := range count {
			if float64(each+c) > 2*mean {
				t.Fatalf("replica %d has %d of %d, above twice the mean", r, each+c, n*each+50)
			}
		}
	})
}

func TestAssignPrefersFreeReplicas(t *testing.T) {
	p := Plan{Replicas: 2, Clusters: map[string]Row{}}
	for i := range 20 {
		p.Clusters[fmt.Sprint("c", i)] = Row{Replica: 0, Load: "1"}
	}
	v := NewView(p, nil)
	count := [2]int{}
	for i := range 50 {
		count[v.Assign(fmt.Sprintf("https://new-%d", i), -1)]++
	}
	if count[1] < 45 {
		t.Errorf("the empty replica got %d of 50 new clusters, want nearly all", count[1])
	}
}

func TestTheSameAnswerFromEveryReplica(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPlan(t)
		server := rapid.String().Draw(t, "server")
		if a, b := NewView(p, nil).Assign(server, -1), NewView(p.Clone(), nil).Assign(server, -1); a != b {
			t.Fatalf("two views of one plan answered %d and %d", a, b)
		}
	})
}

func TestParseDocument(t *testing.T) {
	text, err := Encode(example())
	if err != nil {
		t.Fatal(err)
	}
	data := map[string]string{KeyPlan: text, KeyPins: "prod-eu: 3\nprod-us: 16\n"}
	d := ParseDocument(data, map[string]string{AnnotationDigest: Digest(text), AnnotationPaused: "true", AnnotationAcceptDiscovery: "3"})
	if d.Plan == nil || d.PlanErr != nil || d.Plan.Revision != 17 {
		t.Fatalf("plan %+v, %v", d.Plan, d.PlanErr)
	}
	if !d.Paused || d.BreakGlass || d.AcceptDiscovery == nil || *d.AcceptDiscovery != 3 {
		t.Errorf("annotations read as %+v", d)
	}
	if d.Pins["prod-eu"] != 3 || len(d.PinProblems) != 1 || d.PinProblems[0].Name != "prod-us" {
		t.Errorf("pins %v, problems %v", d.Pins, d.PinProblems)
	}
	data[KeyPlan] += "#\n"
	if d := ParseDocument(data, map[string]string{AnnotationDigest: Digest(text), AnnotationEnforcement: "off"}); d.Plan != nil || !errors.Is(d.PlanErr, ErrDigest) || !d.BreakGlass {
		t.Errorf("an edited plan was read as %+v, want ErrDigest and break-glass", d)
	}
}

func TestParseDocumentReadsWhatPeopleAndTheLeaderAskOfEachOther(t *testing.T) {
	for name, test := range map[string]struct {
		annotations map[string]string
		want        Document
	}{
		"nothing": {nil, Document{}},
		"each as it is written, with a plan or without": {
			map[string]string{"ballast.argoproj.io/cordon": "3=2026-11-20T17:00:00Z", "ballast.argoproj.io/rollback-to": "12", "ballast.argoproj.io/tripped": "prod-eu was orphaned"},
			Document{Cordon: "3=2026-11-20T17:00:00Z", Rollback: "12", Tripped: "prod-eu was orphaned"},
		},
		"why and by whom it was paused does not pause": {
			map[string]string{"ballast.argoproj.io/paused-reason": "an upgrade", "ballast.argoproj.io/paused-by": "alice"}, Document{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, ParseDocument(nil, test.annotations), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
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
