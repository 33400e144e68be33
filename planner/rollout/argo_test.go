package rollout

import (
	"slices"

	"ballast/planner/diff"
	"ballast/planner/observed"
)

// resyncTicks is how many acts pass before a new owner that nobody nudged looks at its clusters.
const resyncTicks = 12

// argo is what Argo CD makes of its Secrets, as measured: the old owner drops a cluster at once, the new one takes it when
// one of its Applications is refreshed or resynced.
type argo struct {
	owner     map[string]int // the replica that owns the cluster, -1 for none or several
	connected map[string]int // the replica that has it connected, -1 for none
	waits     map[string]int // ticks that its new owner has not looked at it
	dead      map[string]bool
	idle      map[string]bool
	away      bool // nobody can be asked
	orphans   []string
	doubled   []string
}

func newArgo() argo {
	return argo{owner: map[string]int{}, connected: map[string]int{}, waits: map[string]int{}, dead: map[string]bool{}, idle: map[string]bool{}}
}

// resync lets time pass for the clusters' owners. A pod that starts takes all its clusters; one that runs takes a cluster
// that comes to it at the next resync.
func (f *fleet) resync(ticks int) {
	a := f.argo
	for name := range f.stamps {
		owner := -1
		if owners := f.owners(name); len(owners) == 1 {
			owner = owners[0]
		}
		if owner != a.owner[name] {
			a.owner[name], a.waits[name] = owner, 0
		}
		a.waits[name] += ticks
		switch {
		case owner < 0 || a.dead[name]:
			a.connected[name] = -1
		case !f.pods[owner].ready:
			a.connected[name], a.waits[name] = -1, resyncTicks
		case a.waits[name] >= resyncTicks:
			a.connected[name] = owner
		}
	}
}

func (f *fleet) nudge(s diff.Nudge) {
	if owners := f.owners(s.Cluster); slices.Equal(owners, []int{s.Shard}) && f.pods[s.Shard].ready && !f.argo.dead[s.Cluster] {
		f.argo.connected[s.Cluster], f.argo.waits[s.Cluster] = s.Shard, resyncTicks
	}
}

// reports is what pods and their metrics say.
func (f *fleet) reports() observed.State {
	var s observed.State
	for i, p := range f.pods {
		s.Pods = append(s.Pods, observed.Pod{Replica: i, Ready: p.ready, Claimed: true, Restarts: p.restarts, RestartedAt: p.restartedAt, OOMKilled: p.killed,
			Memory: p.memory, MemoryLimit: 100})
	}
	if f.argo.away {
		return s
	}
	s.OwnersKnown, s.Owned, s.Orphans, s.Doubled = true, map[string]observed.Owned{}, f.argo.orphans, f.argo.doubled
	for i := range s.Pods {
		s.Pods[i].Answered = true
	}
	for name := range f.stamps {
		owned := observed.Owned{Idle: f.argo.idle[name]}
		if !owned.Idle {
			owned.Owners = f.owners(name)
		}
		if at := f.argo.connected[name]; slices.Contains(owned.Owners, at) {
			owned.Live = []int{at}
		}
		s.Owned[name] = owned
	}
	return s
}
