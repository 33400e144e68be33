package diff

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/observed"
	"ballast/planner/observed/fixture"
	"ballast/planner/plan"
)

// TestADeploymentsSleepersAreWoken: replica 1 owns cluster b by its own account and does nothing for it.
func TestADeploymentsSleepersAreWoken(t *testing.T) {
	const slow, quick = 36 * time.Second, 34 * time.Second
	asleep := fixture.But(fixture.Fit(3, 0, fixture.Old), func(s *observed.State) {
		s.Workload.ControllerReplicas, s.Looked = nil, fixture.Start
		for i := range s.Pods {
			s.Pods[i].Started = fixture.Start.Add(-slow)
		}
		s.Owned["b"] = observed.Owned{Owners: []int{1}}
	})
	holder := func(change func(*observed.Pod)) observed.State {
		return fixture.But(asleep, func(s *observed.State) { s.Pods = append([]observed.Pod(nil), s.Pods...); change(&s.Pods[1]) })
	}
	owned := func(o observed.Owned) observed.State {
		return fixture.But(asleep, func(s *observed.State) { s.Owned = map[string]observed.Owned{"b": o} })
	}
	woken := []Step{Nudge{Cluster: "b", Server: "https://b", Shard: 1, Since: fixture.Start.Add(-slow)}}
	for name, test := range map[string]struct {
		seen     observed.State
		stateful bool
		moves    bool
		off      bool
		want     []Step
	}{
		"one that owns and shows no gauges":     {seen: asleep, want: woken},
		"not one that started a short time ago": {seen: holder(func(p *observed.Pod) { p.Started = fixture.Start.Add(-quick) })},
		"not one whose start nobody knows":      {seen: holder(func(p *observed.Pod) { p.Started = time.Time{} })},
		"not one that is not ready":             {seen: holder(func(p *observed.Pod) { p.Ready = false })},
		"not one whose slot is anyone's":        {seen: holder(func(p *observed.Pod) { p.Claimed = false })},
		"not one that works":                    {seen: owned(observed.Owned{Owners: []int{1}, Live: []int{1}})},
		"not one that does not own it":          {seen: owned(observed.Owned{Owners: []int{0}})},
		"not one of two that own it":            {seen: owned(observed.Owned{Owners: []int{0, 1}})},
		"not for a cluster without work":        {seen: owned(observed.Owned{Owners: []int{1}, Idle: true})},
		"not where nudging is off":              {seen: asleep, off: true},
		"a StatefulSet's, too":                  {seen: asleep, stateful: true, want: woken},
		"what a wave moves is the wave's": {
			seen: asleep, moves: true, want: []Step{Nudge{Cluster: "b", Server: "https://b", Shard: 1, Since: fixture.Start}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := fixture.Plan(3, 0, fixture.Old)
			if p.ControllerReplicas = 0; !test.stateful {
				p.Target.Kind = plan.Deployment
			}
			if test.moves {
				p = fixture.Growing(plan.Moving, func(p *plan.Plan) {
					fixture.Wave(p, fixture.Shards{"b": 0}, fixture.Shards{"b": 1})
					p.Clusters = fixture.Rows(fixture.Old)
				})
				p.Target.Kind = plan.Deployment
			}
			got := Between(plan.NewView(p, nil), test.seen, Options{Nudge: !test.off})
			if diff := cmp.Diff(test.want, got.Steps); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
		})
	}
}
