package controller

import (
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"time"

	"ballast/planner/cycle"
	"ballast/planner/discover"
	"ballast/planner/ownership"

	"ballast/planner/observed"
)

const (
	// crashResync is the shortest time after which an owner that nobody nudged looks at a cluster; the longest is half as
	// much again (timeout.reconciliation and its jitter, as shipped).
	crashResync = 2 * time.Minute
	// crashGauges is how often a pod's gauges of its clusters are made anew; Argo CD's 30 s make waves no different, only longer.
	crashGauges = 10 * time.Second
	// crashGrace is how long a pod takes to stop.
	crashGrace = 3 * time.Second
)

// crashPod is an application-controller's pod. It read its env at its start, owns what Argo CD's rule gives it, and has
// connected those of its clusters that it took.
type crashPod struct {
	ordinal, env int
	template     string
	runs, ready  time.Time // from when on
	gone         time.Time // from when on; zero: nobody deleted it
	gained, took map[string]time.Time
}

// crashFleet is what Kubernetes and Argo CD make of the StatefulSet and the Secrets that stand in the API server: the
// StatefulSet's controller (OrderedReady, RollingUpdate), kubelets, and application-controllers. Time is an argument.
type crashFleet struct {
	seed             uint64
	clusters         []string
	loads            map[string]float64
	replicas         int
	env, restartedAt string
	generation       int64
	observed         int64
	shards           map[string]int // of the Secrets that have one
	pods             map[int]*crashPod
	made, found      int               // pods so far, and those that were there at first
	broken           map[int]bool      // ordinals whose pods are not ready, whatever becomes of them
	dies             map[int]time.Time // ordinals whose container is killed for its memory again and again, since when
}

// A container that keeps being killed is so every crashDies, and is backed off for most of that.
const crashDies, crashBackoff = 4 * time.Minute, 3 * time.Minute

// killed is how often an ordinal's container was killed, and when it was last.
func (f *crashFleet) killed(ordinal int, now time.Time) (times int, at time.Time) {
	since, dies := f.dies[ordinal]
	if !dies {
		return 0, time.Time{}
	}
	times = int(now.Sub(since)/crashDies) + 1
	return times, since.Add(time.Duration(times-1) * crashDies)
}

// dead reports whether an ordinal's container was killed and does not run again yet.
func (f *crashFleet) dead(ordinal int, now time.Time) bool {
	times, at := f.killed(ordinal, now)
	return times > 0 && now.Sub(at) < crashBackoff
}

func newCrashFleet(seed uint64, loads map[string]float64) *crashFleet {
	return &crashFleet{seed: seed, clusters: namesIn(loads), loads: loads, shards: map[string]int{}, pods: map[int]*crashPod{}, broken: map[int]bool{}, dies: map[int]time.Time{}}
}

// draw is a number below n that only the seed and the words decide.
func (f *crashFleet) draw(n uint64, words ...string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(strconv.FormatUint(f.seed, 10)))
	for _, w := range words {
		_, _ = h.Write([]byte("/" + w))
	}
	return (h.Sum64() ^ h.Sum64()>>29) % n
}

func (f *crashFleet) template() string { return f.env + "@" + f.restartedAt }

func (p *crashPod) running(now time.Time) bool {
	return !now.Before(p.runs) && (p.gone.IsZero() || now.Before(p.gone))
}

func (f *crashFleet) up(p *crashPod, now time.Time) bool {
	return p != nil && p.gone.IsZero() && p.running(now) && !now.Before(p.ready) && !f.broken[p.ordinal] && !f.dead(p.ordinal, now)
}

// populate starts every pod long ago.
func (f *crashFleet) populate(now time.Time) {
	for i := range f.replicas {
		f.start(i, now.Add(-time.Hour))
	}
	f.found = f.replicas
	f.observed = f.generation
	f.own(now.Add(-time.Hour + time.Second)) // they have had their clusters since
	f.own(now)
}

func (f *crashFleet) start(ordinal int, now time.Time) {
	f.made++
	env, _ := strconv.Atoi(f.env)
	runs := now.Add(time.Second)
	takes := time.Duration(2+f.draw(20, "start", strconv.Itoa(ordinal), strconv.Itoa(f.made))) * time.Second
	f.pods[ordinal] = &crashPod{ordinal: ordinal, env: env, template: f.template(), runs: runs, ready: runs.Add(takes),
		gained: map[string]time.Time{}, took: map[string]time.Time{}}
}

// control is one act of the StatefulSet's controller: a pod that is not ready blocks all others.
func (f *crashFleet) control(now time.Time) {
	highest := -1
	for _, i := range slices.Sorted(maps.Keys(f.pods)) {
		if p := f.pods[i]; !p.gone.IsZero() && !now.Before(p.gone) {
			delete(f.pods, i)
			continue
		}
		highest = i
	}
	f.observed = f.generation
	for i := range f.replicas {
		if f.pods[i] == nil {
			f.start(i, now)
			return
		}
		if !f.up(f.pods[i], now) {
			return
		}
	}
	stop := func(p *crashPod) {
		if p.gone.IsZero() {
			p.gone = now.Add(crashGrace)
		}
	}
	for i := highest; i >= 0; i-- {
		if p := f.pods[i]; p != nil && (i >= f.replicas || p.template != f.template()) {
			stop(p)
			return
		}
	}
}

// crashStatus is the StatefulSet's status.
type crashStatus struct {
	Replicas, ReadyReplicas, UpdatedReplicas int32
	ObservedGeneration                       int64
}

func (f *crashFleet) status(now time.Time) crashStatus {
	s := crashStatus{Replicas: int32(len(f.pods)), ObservedGeneration: f.observed}
	for _, p := range f.pods {
		if f.up(p, now) {
			s.ReadyReplicas++
		}
		if p.template == f.template() {
			s.UpdatedReplicas++
		}
	}
	return s
}

// settled reports whether every pod is there, new and ready.
func (f *crashFleet) settled(now time.Time) bool {
	n := int32(f.replicas)
	return f.status(now) == crashStatus{n, n, n, f.generation}
}

// algorithm is the shard of a cluster without one. It goes by the cluster's name instead of its Secret's UID, which is
// another one in every run; for the same reason it leaves no cluster to a replica that was not there.
func (f *crashFleet) algorithm(cluster string, env int) int {
	return int(f.draw(uint64(min(env, f.found)), "algorithm", cluster))
}

// rule reports whether a pod owns a cluster, by Argo CD's rules as measured.
func (f *crashFleet) rule(p *crashPod, cluster string) bool {
	shard, stamped := f.shards[cluster]
	own := p.ordinal
	switch {
	case p.env <= 1:
		return true
	case !stamped:
		shard = f.algorithm(cluster, p.env)
	case shard >= p.env:
		shard = 0
	}
	if p.ordinal > p.env {
		own = 0
	}
	return shard == own
}

// own lets time pass for the owners. A pod that starts takes all its clusters as it becomes ready; a cluster that comes
// later waits for a nudge or its resync. The loser drops it at once.
func (f *crashFleet) own(now time.Time) {
	for _, p := range f.pods {
		for _, c := range f.clusters {
			if !p.running(now) || !f.rule(p, c) {
				delete(p.gained, c)
				delete(p.took, c)
				continue
			}
			if _, known := p.gained[c]; !known {
				p.gained[c] = now
			}
			if p.gone.IsZero() && !f.up(p, now) {
				delete(p.took, c)
				p.gained[c] = p.runs
				continue
			}
			_, took := p.took[c]
			resync := crashResync + time.Duration(f.draw(uint64(crashResync/2), "resync", c))
			if !took && (!p.gained[c].After(p.ready) || !now.Before(p.gained[c].Add(resync))) {
				p.took[c] = now
			}
		}
	}
}

// nudge wakes a cluster's owner. One that has not heard of the Secret yet does nothing.
func (f *crashFleet) nudge(cluster string, now time.Time) {
	lag := time.Duration(f.draw(2, "informer", cluster)) * time.Second
	for _, p := range f.pods {
		gained, owns := p.gained[cluster]
		if _, took := p.took[cluster]; owns && !took && f.up(p, now) && !now.Before(gained.Add(lag)) {
			p.took[cluster] = now
		}
	}
}

// owners are the replicas that own a cluster now, but for pods that own everything (an env that is absent or at most 1).
func (f *crashFleet) owners(cluster string) []int {
	var owners []int
	for i, p := range f.pods {
		if _, owns := p.gained[cluster]; owns && p.env > 1 {
			owners = append(owners, i)
		}
	}
	slices.Sort(owners)
	return owners
}

// served reports whether anybody works on a cluster.
func (f *crashFleet) served(cluster string) bool {
	for _, p := range f.pods {
		if _, took := p.took[cluster]; took {
			return true
		}
	}
	return false
}

// observe is what the pods say of themselves.
func (f *crashFleet) observe(fleet discover.Fleet, now time.Time) cycle.Observed {
	reports := make([]ownership.PodReport, 0, len(f.pods))
	for _, i := range slices.Sorted(maps.Keys(f.pods)) {
		p := f.pods[i]
		r := ownership.PodReport{Controller: ownership.Controller{
			Pod:     observed.Pod{Replica: i, Name: crashPodName(i), Ready: f.up(p, now), Claimed: true, Started: p.runs},
			Running: p.running(now) && !f.dead(i, now), Terminating: !p.gone.IsZero()}}
		if times, at := f.killed(i, now); times > 0 {
			r.Restarts, r.RestartedAt, r.OOMKilled, r.KilledAt = times, at, true, at
			if !f.dead(i, now) {
				r.RestartedAt = at.Add(crashBackoff)
			}
		}
		if !r.Running {
			r.Err = "it does not run"
			reports = append(reports, r)
			continue
		}
		r.SampledAt, r.Servers = now, map[string]ownership.ServerReport{}
		for c := range p.gained {
			took, connected := p.took[c]
			shown := connected && !took.Truncate(crashGauges).Add(crashGauges).After(now)
			r.Servers[server(c)] = ownership.ServerReport{Apps: 1, Cached: shown, Connected: shown}
		}
		reports = append(reports, r)
	}
	apps := ownership.Applications{}
	for _, c := range f.clusters {
		apps[server(c)] = 1
	}
	return cycle.Observed{Known: true, Pods: ownership.Pods(reports), Reported: ownership.Join(reports, fleet, apps)}
}

func crashPodName(ordinal int) string {
	return "argocd-application-controller-" + strconv.Itoa(ordinal)
}
