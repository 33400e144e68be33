package rollout

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"ballast/planner/diff"
	"ballast/planner/observed"
	"ballast/planner/ownership/scrape"
	"ballast/planner/plan"
	"ballast/planner/sim"
)

// tick is how long one act of the StatefulSet's controller takes, and a pod to become ready.
const tick = 10 * time.Second

// fleet is a simulated fleet with a clock of its own, and its cluster Secrets.
type fleet struct {
	*sim.Fleet
	at      time.Time
	stamps  map[string]observed.Secret
	away    bool // nobody can be asked
	orphans []string
	doubled []string
}

func newFleet(replicas, env int, shards map[string]int) *fleet {
	f := &fleet{Fleet: sim.NewFleet(1, sim.Timing{Start: tick, Resync: 12 * tick}, nil), at: start, stamps: map[string]observed.Secret{}}
	f.Replicas, f.Generation = replicas, 1
	if env > 0 {
		f.Env = strconv.Itoa(env)
	}
	for name, shard := range shards {
		f.stamps[name] = observed.Secret{Name: name, Cluster: name, Shard: shard, Valid: true, Server: "https://" + name}
	}
	f.hear()
	f.Populate(f.at)
	return f
}

// hear tells Argo CD of the Secrets.
func (f *fleet) hear() {
	f.Clusters, f.Shards = slices.Sorted(maps.Keys(f.stamps)), f.shards()
	f.Own(f.at)
}

func (f *fleet) seen() observed.State {
	status := f.Status(f.at)
	w := &observed.Workload{Replicas: f.Replicas, Current: int(status.Replicas), Ready: int(status.ReadyReplicas), Updated: int(status.UpdatedReplicas),
		ObservedCurrent: f.Observed == f.Generation, RestartedAt: f.RestartedAt}
	if env := f.count().ControllerReplicas; env > 0 {
		w.ControllerReplicas = &env
	}
	s := f.reports()
	s.Workload = w
	for _, name := range slices.Sorted(maps.Keys(f.stamps)) {
		s.Secrets = append(s.Secrets, f.stamps[name])
	}
	return s
}

// do is one write of the applier.
func (f *fleet) do(s diff.Step) {
	switch s := s.(type) {
	case diff.PatchShard:
		stamp := f.stamps[s.Secret]
		stamp.Shard, stamp.Valid, stamp.Absent = s.Shard, true, false
		f.stamps[s.Secret] = stamp
	case diff.PatchWorkload:
		f.Patch(s)
	case diff.Nudge:
		f.hear()
		f.Nudge(s.Cluster, f.at)
	}
	f.hear()
}

func (f *fleet) tick() {
	f.at = f.at.Add(tick)
	f.Control(f.at)
	f.hear()
}

// owners are the pods that would reconcile a cluster, running or not.
func (f *fleet) owners(name string) []int {
	var owners []int
	for _, ordinal := range slices.Sorted(maps.Keys(f.Pods)) {
		if sim.Owns(ordinal, f.Pods[ordinal].Env, f.stamps[name].Shard) {
			owners = append(owners, ordinal)
		}
	}
	return owners
}

// served reports whether a cluster's one owner works on it.
func (f *fleet) served(name string) bool {
	owners := f.owners(name)
	if len(owners) != 1 {
		return false
	}
	_, took := f.Pods[owners[0]].Took[name]
	return took
}

// misowned names a cluster with more or fewer owners than one.
func (f *fleet) misowned() string {
	for name := range f.stamps {
		if owners := f.owners(name); len(owners) != 1 {
			return fmt.Sprintf("cluster %s with shard %d is owned by %v of %s", name, f.stamps[name].Shard, owners, f)
		}
	}
	return ""
}

func (f *fleet) String() string {
	pods := make([]string, 0, len(f.Pods))
	for _, ordinal := range slices.Sorted(maps.Keys(f.Pods)) {
		p := f.Pods[ordinal]
		pods = append(pods, fmt.Sprintf("%d (env %d, template %s, ready %t)", ordinal, p.Env, p.Template, f.Up(p, f.at)))
	}
	return fmt.Sprintf("%d replicas, env %q, pods %v, shards %v", f.Replicas, f.Env, pods, f.shards())
}

func (f *fleet) shards() map[string]int {
	shards := map[string]int{}
	for name, s := range f.stamps {
		shards[name] = s.Shard
	}
	return shards
}

// count is what the workload's spec asks for; an absent env is 0.
func (f *fleet) count() plan.Count {
	env, _ := strconv.Atoi(f.Env)
	return plan.Count{Replicas: f.Replicas, ControllerReplicas: env}
}

// reports is what pods and their metrics say.
func (f *fleet) reports() observed.State {
	s := observed.State{Pods: scrape.Pods(f.Reports(f.at))}
	for i := range s.Pods {
		s.Pods[i].Answered = !f.away
	}
	if f.away {
		return s
	}
	s.OwnersKnown, s.Owned, s.Orphans, s.Doubled = true, map[string]observed.Owned{}, f.orphans, f.doubled
	for name := range f.stamps {
		owned := observed.Owned{Owners: f.owners(name)}
		if f.served(name) {
			owned.Live = owned.Owners
		}
		s.Owned[name] = owned
	}
	return s
}
