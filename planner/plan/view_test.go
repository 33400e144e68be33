package plan

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
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
