package rollout

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/observed"
	"ballast/planner/plan"
	"ballast/planner/rollout/readiness"
)

func TestAFaultStopsWavesButNotItsMend(t *testing.T) {
	orphan := func(name string) func(*observed.State) {
		return func(s *observed.State) { s.Owned[name], s.Orphans = observed.Owned{}, append(s.Orphans, name) }
	}
	double := func(name string) func(*observed.State) {
		return func(s *observed.State) {
			s.Owned[name], s.Doubled = observed.Owned{Owners: []int{0, 1}, Live: []int{0, 1}}, append(s.Doubled, name)
		}
	}
	dead := func(replica int) func(*observed.State) {
		return func(s *observed.State) { s.Pods[replica].Ready = false }
	}
	seen := func(changes ...func(*observed.State)) observed.State {
		s := fit(3, 16, old)
		for _, change := range changes {
			change(&s)
		}
		return s
	}
	const goes = "Advanced: Moving 1/1 3/16 rows [a0 b2 c1] moves [b2] was [b1]; wave 1 of 1 moves 1 of 3 clusters"
	const stays = "Waiting: Moving 3/16 rows [a0 b1 c1]; waiting: "
	unmanaged := func(s *observed.State) { s.Secrets[2].Unmanaged = true }
	for name, c := range map[string]liveCase{
		"another cluster has no owner":                 {seen: seen(orphan("c")), want: stays + `nobody reconciles cluster "c"`},
		"another cluster has two":                      {seen: seen(double("a")), want: stays + `several pods reconcile cluster "a"`},
		"the cluster itself has two":                   {seen: seen(double("b")), want: stays + `several pods reconcile cluster "b"`},
		"one that is not ballast's is people's":        {seen: seen(orphan("c"), unmanaged), want: goes},
		"one that the plan does not know is people's":  {seen: seen(func(s *observed.State) { s.Doubled = []string{"elsewhere"} }), want: goes},
		"a person's word waits for no fault":           {seen: seen(orphan("c")), person: true, want: goes},
		"nobody works for it: its move is the mend":    {seen: seen(orphan("b"), orphan("c"), dead(1)), want: goes},
		"it is unwell, though it is ready now":         {seen: seen(orphan("c")), unwell: map[int]bool{1: true}, want: goes},
		"nobody works for it, but two have it":         {seen: seen(double("b"), dead(1)), want: stays + `several pods reconcile cluster "b"`},
		"nobody works for it, and another one has two": {seen: seen(double("a"), dead(1)), want: goes},
	} {
		c.plan, c.target = growing(plan.Moving, nil), grown
		t.Run(name, c.run)
	}
}

func TestAWaveNeedsTheAnswersOfThoseItConcerns(t *testing.T) {
	answers := func(replicas ...int) func(*observed.State) {
		return func(s *observed.State) {
			s.OwnersKnown = false
			for _, r := range replicas {
				s.Pods[r].Answered = true
			}
		}
	}
	dead := func(s *observed.State) { s.Pods[1].Ready = false }
	unsaid := "waiting: not every pod says which clusters it owns"
	begins, waits := growing(plan.Moving, nil), growing(plan.Moving, moved)
	for name, c := range map[string]liveCase{
		"it begins with those of all": {plan: begins, seen: but(fit(3, 16, old), answers(1, 2)),
			want: "Waiting: Moving 3/16 rows [a0 b1 c1]; " + unsaid},
		"off a replica that does not work it begins with the receiver's": {plan: begins, seen: but(but(fit(3, 16, old), dead), answers(2)),
			want: "Advanced: Moving 1/1 3/16 rows [a0 b2 c1] moves [b2] was [b1]; wave 1 of 1 moves 1 of 3 clusters"},
		"and not without": {plan: begins, seen: but(but(fit(3, 16, old), dead), answers(0)),
			want: "Waiting: Moving 3/16 rows [a0 b1 c1]; " + unsaid},
		"it ends with those of the receiver and the giver": {plan: waits, seen: but(fit(3, 16, grown), answers(1, 2)),
			want: "Advanced: Verifying 1/1 3/16 rows [a0 b2 c1]; wave 1 is done; every cluster has its replica"},
		"and not without the giver's": {plan: waits, seen: but(fit(3, 16, grown), answers(0, 2)),
			want: "Waiting: Moving 1/1 3/16 rows [a0 b2 c1] moves [b2] was [b1]; " + unsaid},
		"one that does not work gives none": {plan: waits, seen: but(but(fit(3, 16, grown), dead), answers(0, 2)),
			want: "Advanced: Verifying 1/1 3/16 rows [a0 b2 c1]; wave 1 is done; every cluster has its replica"},
	} {
		c.target = grown
		t.Run(name, c.run)
	}
}

func TestNoReplicaGoesWhileAClusterHasTwoOwners(t *testing.T) {
	const stays = "GaveUp: 3/16 rows [a0 b1 c0]; the workload stays at 3 replicas after 10m0s: several pods reconcile cluster "
	for name, c := range map[string]liveCase{
		"two replicas own it": {seen: but(fit(3, 16, shrunken), func(s *observed.State) { s.Owned["c"] = observed.Owned{Owners: []int{0, 1}} }), want: stays + `"c"`},
		"two pods of one do":  {seen: but(fit(3, 16, shrunken), func(s *observed.State) { s.Doubled = []string{"a"}; s.Owned["b"] = observed.Owned{} }), want: stays + `"a"`},
		"nobody does: a pod that goes makes that no worse": {seen: but(fit(3, 16, shrunken), func(s *observed.State) { s.Owned["c"] = observed.Owned{} }),
			want: `Advanced: Shrinking 2/16 rows [a0 b1 c0]; going on after 10m0s, though cluster "c" is owned by nobody instead of replica 0`},
		"two pods of one do, whatever else is well": {seen: but(fit(3, 16, shrunken), func(s *observed.State) { s.Doubled = []string{"a"} }), want: stays + `"a"`},
	} {
		c.plan, c.late = shrinking(plan.Verifying, shrunken, nil), true
		t.Run(name, c.run)
	}
}

func TestWhoDoesNotAnswerIsNamedWithTheMend(t *testing.T) {
	pods := []observed.Pod{{Replica: 0, Name: "controller-0", Ready: true, Answered: true}, {Replica: 1, Name: "controller-1", Ready: true}, {Replica: 2, Name: "controller-2"}}
	for want, s := range map[string]observed.State{
		"": {OwnersKnown: true, Pods: pods},
		"nothing is known of what controller-1 owns: let ballast's planner reach the metrics of the application-controller's pods (port 8082; a NetworkPolicy may be in the way), or have Prometheus scrape them": {Pods: pods},
		"no application-controller is ready and says which clusters it owns: look at its pods":                                                                                                                    {Pods: pods[2:]},
	} {
		if diff := cmp.Diff(want, readiness.OwnersUnknown(s)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}
