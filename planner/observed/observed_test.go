package observed

import (
	"testing"
	"time"

	"ballast/planner/plan"
)

func TestWhatKeepsAReplicaFromTakingAClusterIsSaid(t *testing.T) {
	ready, claimed := Pod{Replica: 1, Ready: true}, Pod{Replica: 1, Ready: true, Claimed: true}
	for name, test := range map[string]struct {
		pods []Pod
		want string
	}{
		"no pod":         {[]Pod{{Replica: 0, Ready: true, Claimed: true}}, "replica 1 has no pod that is seen"},
		"not ready":      {[]Pod{{Replica: 1, Claimed: true}}, "replica 1 is not ready"},
		"no claim":       {[]Pod{ready}, "no pod has claimed replica 1"},
		"ready":          {[]Pod{claimed}, ""},
		"one of two is":  {[]Pod{{Replica: 1}, claimed}, ""},
		"not the same's": {[]Pod{{Replica: 1, Claimed: true}, ready}, "no pod has claimed replica 1"},
	} {
		if got := (State{Pods: test.pods}).Asleep(1); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestTheFirstFaultIsNamed(t *testing.T) {
	p := plan.Plan{Clusters: map[string]plan.Row{"a": {}, "b": {}, "peoples": {}, "disputed": {}}}
	secrets := []Secret{{Name: "a"}, {Name: "b"}, {Name: "peoples", Unmanaged: true}, {Name: "disputed", Disputed: true}, {Name: "unplanned"}}
	for name, test := range map[string]struct {
		doubled, orphans []string
		want             string
	}{
		"none":                     {nil, nil, ""},
		"several":                  {[]string{"a"}, []string{"b"}, `several pods reconcile cluster "a"`},
		"nobody":                   {nil, []string{"b"}, `nobody reconciles cluster "b"`},
		"of people's":              {[]string{"peoples"}, []string{"peoples"}, ""},
		"of what is not planned":   {[]string{"unplanned"}, []string{"unplanned"}, ""},
		"several of a disputed":    {[]string{"disputed"}, nil, ""},
		"nobody has the disputed":  {nil, []string{"disputed"}, `nobody reconciles cluster "disputed"`},
		"a Secret that went since": {[]string{"gone"}, []string{"gone"}, ""},
	} {
		if got := (State{Secrets: secrets, Doubled: test.doubled, Orphans: test.orphans}).Fault(p); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestAFleetThatIsMostlyUnseenIsBlind(t *testing.T) {
	p := plan.Plan{Clusters: map[string]plan.Row{"a": {}, "b": {}, "c": {}, "d": {}}}
	of := func(names ...string) (s State) {
		for _, name := range names {
			s.Secrets = append(s.Secrets, Secret{Name: name})
		}
		return s
	}
	accepted, passing := of("a"), of("a")
	one := 1
	accepted.Accepted, passing.Passing = &one, []string{"b", "c", "d"}
	for name, test := range map[string]struct {
		seen State
		plan plan.Plan
		want bool
	}{
		"all":                        {of("a", "b", "c", "d"), p, false},
		"half":                       {of("a", "b"), p, false},
		"fewer":                      {of("a"), p, true},
		"others":                     {of("x", "y", "z", "a"), p, true},
		"a person says they are all": {accepted, p, false},
		"rows that go are no loss":   {passing, p, false},
		"a plan of three":            {of(), plan.Plan{Clusters: map[string]plan.Row{"a": {}, "b": {}, "c": {}}}, false},
	} {
		if got := test.seen.Blind(test.plan); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

func TestAWorkloadIsSettledAsThePlanHoldsIt(t *testing.T) {
	env := 4
	p := plan.Plan{Target: plan.Target{Kind: plan.StatefulSet}, Replicas: 2, ControllerReplicas: 4}
	well := Workload{Replicas: 2, Ready: 2, Updated: 2, Current: 2, ObservedCurrent: true, ControllerReplicas: &env, RestartedAt: "2026-11-23T07:00:00Z"}
	for name, change := range map[string]func(*Workload){
		"another number":   func(w *Workload) { w.Replicas = 3 },
		"another env":      func(w *Workload) { w.ControllerReplicas = new(int) },
		"no env":           func(w *Workload) { w.ControllerReplicas = nil },
		"one not ready":    func(w *Workload) { w.Ready = 1 },
		"one not updated":  func(w *Workload) { w.Updated = 1 },
		"one more":         func(w *Workload) { w.Current = 3 },
		"an older status":  func(w *Workload) { w.ObservedCurrent = false },
		"nothing is wrong": func(*Workload) {},
	} {
		w := well
		change(&w)
		if got, want := w.Settled(p), name == "nothing is wrong"; got != want {
			t.Errorf("%s: settled is %v, want %v", name, got, want)
		}
	}
	at := time.Date(2026, 11, 23, 7, 0, 0, 0, time.UTC)
	if !well.RestartedSince(at, at) || well.RestartedSince(at.Add(time.Second), at.Add(time.Second)) {
		t.Error("a restart counts from its own second on, and no later")
	}
	if well.RestartedSince(at, at.Add(-time.Second)) || !well.RestartedSince(at, time.Time{}) {
		t.Error("one that lies ahead counts, or one does not where nobody knows the time")
	}
}
