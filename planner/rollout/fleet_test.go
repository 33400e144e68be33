package rollout

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"ballast/planner/diff"
	"ballast/planner/observed"
)

// pod is one application-controller: it read its env at its start.
type pod struct {
	env, generation int
	ready           bool
	slow            int // ticks until it is ready
	restarts        int
	restartedAt     time.Time
	killed          bool
	memory          int64 // of 100
}

// fleet is a StatefulSet as Kubernetes treats it (OrderedReady, RollingUpdate) and the shards of its cluster Secrets as
// Argo CD takes them.
type fleet struct {
	replicas, env, generation, observed int
	restartedAt                         string
	pods                                []pod
	stamps                              map[string]observed.Secret
	broken                              bool // pods that start from now on never become ready
	slow                                int  // ticks that pods which start from now on take
	deployment                          bool // pods read spec.replicas for the env; a slot is an ordinal
	argo                                argo
}

func newFleet(replicas, env int, shards map[string]int) *fleet {
	f := &fleet{replicas: replicas, env: env, generation: 1, observed: 1, stamps: map[string]observed.Secret{}, argo: newArgo()}
	for range replicas {
		f.pods = append(f.pods, pod{env: env, generation: 1, ready: true})
	}
	for name, shard := range shards {
		f.stamps[name] = observed.Secret{Name: name, Cluster: name, Shard: shard, Valid: true, Server: "https://" + name}
	}
	f.resync(resyncTicks)
	return f
}

func (f *fleet) seen() observed.State {
	w := &observed.Workload{Replicas: f.replicas, Current: len(f.pods), ObservedCurrent: f.observed == f.generation, RestartedAt: f.restartedAt}
	if f.env > 0 {
		env := f.env
		w.ControllerReplicas = &env
	}
	for _, p := range f.pods {
		if p.ready {
			w.Ready++
		}
		if p.generation == f.generation {
			w.Updated++
		}
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
		if s.Replicas != nil {
			f.replicas = *s.Replicas
		}
		if s.ControllerReplicas != nil {
			f.env = *s.ControllerReplicas
		}
		if s.RestartedAt != "" {
			f.restartedAt = s.RestartedAt
		}
		if s.ControllerReplicas != nil || s.RestartedAt != "" {
			f.generation++
		}
	case diff.Nudge:
		f.nudge(s)
	}
}

// tick is one act of the StatefulSet's controller: an unready pod blocks all others.
func (f *fleet) tick() {
	f.resync(1)
	if f.observed != f.generation {
		f.observed = f.generation
		return
	}
	for i := range f.pods[:min(len(f.pods), f.replicas)] {
		if p := &f.pods[i]; !p.ready {
			p.slow--
			p.ready = !f.broken && p.slow < 0
			return
		}
	}
	fresh := pod{env: f.env, generation: f.generation, slow: f.slow}
	if f.deployment {
		fresh.env = f.replicas
	}
	switch {
	case len(f.pods) < f.replicas:
		f.pods = append(f.pods, fresh)
	case len(f.pods) > f.replicas:
		f.pods = f.pods[:len(f.pods)-1]
	default:
		for i := len(f.pods) - 1; i >= 0; i-- {
			if f.pods[i].generation != f.generation {
				f.pods[i] = fresh
				return
			}
		}
	}
}

// owners are the pods that reconcile a cluster, by the rules measured on Argo CD.
func (f *fleet) owners(name string) []int {
	var owners []int
	for ordinal, p := range f.pods {
		shard, own := f.stamps[name].Shard, ordinal
		switch {
		case p.env <= 1:
			shard, own = 0, 0
		case ordinal > p.env:
			own = 0
		}
		if p.env > 1 && shard >= p.env {
			shard = 0
		}
		if shard == own {
			owners = append(owners, ordinal)
		}
	}
	return owners
}

// misowned names a cluster with more or fewer owners than one.
func (f *fleet) misowned() string {
	for name := range f.stamps {
		if owners := f.owners(name); len(owners) != 1 {
			return fmt.Sprintf("cluster %s with shard %d is owned by %v; pods %+v", name, f.stamps[name].Shard, owners, f.pods)
		}
	}
	return ""
}

func (f *fleet) String() string {
	return fmt.Sprintf("%d replicas, env %d, pods %+v, shards %v", f.replicas, f.env, f.pods, f.shards())
}

func (f *fleet) shards() map[string]int {
	shards := map[string]int{}
	for name, s := range f.stamps {
		shards[name] = s.Shard
	}
	return shards
}
