package diff

import (
	"slices"
	"time"

	"ballast/planner/observed"
	"ballast/planner/plan"
)

// begun is how long after a controller's start its gauges tell of the clusters that it began with: they are renewed
// every 30 s, and a start takes some more.
const begun = 35 * time.Second

// wakes nudges pods for clusters that they own and do nothing for. A Deployment's pod that finds no free slot at its
// start claims one when its last holder's heartbeat has become old. By its own metrics it then owns the slot's
// clusters, and yet it begins with none of them before an Application's refresh or its resync (argo-cd v3.2.11):
// everybody who asks for owners is told that all is well. So it is with any pod where a leader ended between a write
// and its nudge, and where the webhook wrote a person's pin. What a wave moves is the wave's to nudge.
func (a *Result) wakes(v *plan.View, seen observed.State) {
	nudged := map[string]bool{}
	for _, s := range a.Steps {
		if n, ok := s.(Nudge); ok {
			nudged[n.Cluster] = true
		}
	}
	for _, s := range seen.Sorted() {
		replica, _, known := v.Effective(s.Name)
		owned := seen.Owned[s.Name]
		if !known || nudged[s.Name] || s.Skip || owned.Idle || len(owned.Live) > 0 || !slices.Equal(owned.Owners, []int{replica}) {
			continue
		}
		if since, sleeps := sleeper(seen, replica); sleeps {
			a.Steps = append(a.Steps, Nudge{Cluster: s.Name, Server: s.Server, Name: s.Cluster, Shard: replica,
				Since: since})
		}
	}
}

// sleeper is when the pod that holds a slot started, if that is so long ago that it would show what it began with.
func sleeper(s observed.State, replica int) (started time.Time, sleeps bool) {
	for _, p := range s.PodsOf(replica) {
		if p.Ready && p.Claimed && !p.Started.IsZero() && s.Looked.Sub(p.Started) >= begun {
			return p.Started, true
		}
	}
	return time.Time{}, false
}
