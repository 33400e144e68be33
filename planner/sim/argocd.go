package sim

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"ballast/planner/discover"
	"ballast/planner/observed"
	"ballast/planner/ownership"
	"ballast/planner/ownership/scrape"
)

// Owns reports whether the application-controller with that ordinal, which read env at its start (0: it is absent),
// owns a cluster with that shard. A cluster without a shard has the one that Argo CD's algorithm gives it. It is Argo
// CD's rule as measured; e2e/transitions holds it to Argo CD's own package, and a test to what that package said.
func Owns(ordinal, env, shard int) bool {
	if env <= 1 {
		return true
	}
	if shard >= env {
		shard = 0
	}
	if ordinal > env {
		ordinal = 0
	}
	return shard == ordinal
}

// Algorithm is the shard of a cluster without one. It goes by the cluster's name instead of its Secret's UID, which is
// another one in every run; for the same reason it leaves no cluster to a replica that was not there at first.
func (f *Fleet) Algorithm(cluster string, env int) int {
	return int(f.Draw(uint64(min(env, f.Found)), "algorithm", cluster))
}

// First is the Secret that stands for a Secret's server: itself, unless it is another one's twin.
func (f *Fleet) First(secret string) string {
	if first, twin := f.Twins[secret]; twin {
		return first
	}
	return secret
}

// ServerOf is a Secret's server.
func (f *Fleet) ServerOf(secret string) string { return Server(f.First(secret)) }

// SecretsOf are the Secrets of a Secret's server, by name. It is asked of every cluster in every act.
func (f *Fleet) SecretsOf(secret string) []string {
	secrets := []string{f.First(secret)}
	for twin, first := range f.Twins {
		if first == secrets[0] {
			secrets = append(secrets, twin)
		}
	}
	slices.Sort(secrets)
	return secrets
}

// heard is the Secret that a pod goes by: Argo CD keeps one a server, the one it heard of last.
func (f *Fleet) heard(p *Pod, cluster string) string {
	if len(f.Twins) == 0 {
		return cluster
	}
	secrets := f.SecretsOf(cluster)
	if len(secrets) == 1 {
		return secrets[0]
	}
	return secrets[f.Draw(uint64(len(secrets)), "heard", cluster, strconv.Itoa(p.Ordinal))]
}

// Forget has the pods that run forget the shard of a server of which a Secret is deleted while others stay: they take 0
// for it (e2e/gaps TestWhatArgoCDMakesOfASecondSecretThatGoes).
func (f *Fleet) Forget(secret string, now time.Time) {
	if len(f.SecretsOf(secret)) > 1 {
		f.Forgot[f.First(secret)] = now
	}
}

// hearsAgain is when Argo CD's informer of cluster Secrets tells of each of them anew.
const hearsAgain = 3 * time.Minute

// Distribute has them work out all shards anew, as another shard, a cluster that comes and one that goes do: that of a
// server counts again whose other Secret they have heard of since.
func (f *Fleet) Distribute(now time.Time) {
	maps.DeleteFunc(f.Forgot, func(_ string, at time.Time) bool { return now.Sub(at) >= hearsAgain })
}

func (f *Fleet) owns(p *Pod, cluster string) bool {
	if at, forgot := f.Forgot[cluster]; forgot && !p.Runs.After(at) {
		return Owns(p.Ordinal, p.Env, 0)
	}
	shard, stamped := f.Shards[f.heard(p, cluster)]
	if !stamped && p.Env > 1 {
		shard = f.Algorithm(cluster, p.Env)
	}
	return Owns(p.Ordinal, p.Env, shard)
}

// Own lets time pass for the owners. A pod that starts takes all its clusters as it becomes ready; a cluster that comes
// later waits for a nudge or its resync. The loser drops it at once.
func (f *Fleet) Own(now time.Time) {
	for _, p := range f.Pods {
		for _, c := range f.Clusters {
			if f.First(c) == c {
				f.own(p, c, now)
			}
		}
	}
}

func (f *Fleet) own(p *Pod, c string, now time.Time) {
	if !p.running(now) || f.Slotless[p.Ordinal] || !f.owns(p, c) {
		delete(p.Gained, c)
		delete(p.Took, c)
		return
	}
	if _, known := p.Gained[c]; !known {
		p.Gained[c] = now
	}
	if p.Gone.IsZero() && !f.Up(p, now) {
		delete(p.Took, c)
		p.Gained[c] = p.Runs
		return
	}
	if f.Unreachable[c] {
		delete(p.Took, c)
		return
	}
	if _, took := p.Took[c]; !took && (!p.Gained[c].After(p.Ready) || !now.Before(p.Gained[c].Add(f.resync(c)))) {
		p.Took[c] = now
	}
}

// resync is how long a cluster waits for its owner's next resync.
func (f *Fleet) resync(cluster string) time.Duration {
	return f.Resync + time.Duration(f.Draw(uint64(f.Resync/2), "resync", cluster))
}

// Nudge wakes a cluster's owner. One that has not heard of the Secret yet does nothing.
func (f *Fleet) Nudge(cluster string, now time.Time) {
	cluster = f.First(cluster)
	lag := time.Duration(f.Draw(uint64(f.Informer/time.Second)+1, "informer", cluster)) * time.Second
	for _, p := range f.Pods {
		heard := !now.Before(p.Gained[cluster].Add(lag))
		if p.waits(cluster) && heard && f.Up(p, now) && !f.Unreachable[cluster] {
			p.Took[cluster] = now
		}
	}
}

// waits reports whether the pod owns a cluster and does not work on it yet.
func (p *Pod) waits(cluster string) bool {
	_, owns := p.Gained[cluster]
	_, took := p.Took[cluster]
	return owns && !took
}

// Owners are the ordinals of the pods that own a cluster now.
func (f *Fleet) Owners(cluster string) []int {
	var owners []int
	for i, p := range f.Pods {
		if _, owns := p.Gained[f.First(cluster)]; owns {
			owners = append(owners, i)
		}
	}
	slices.Sort(owners)
	return owners
}

// Working reports whether anybody works on a cluster.
func (f *Fleet) Working(cluster string) bool {
	for _, p := range f.Pods {
		if _, took := p.Took[f.First(cluster)]; took {
			return true
		}
	}
	return false
}

// PodName is the name of a StatefulSet's pod.
func PodName(ordinal int) string { return "argocd-application-controller-" + strconv.Itoa(ordinal) }

// Reports are what the pods say of themselves.
func (f *Fleet) Reports(now time.Time) []scrape.PodReport {
	reports := make([]scrape.PodReport, 0, len(f.Pods))
	for _, i := range slices.Sorted(maps.Keys(f.Pods)) {
		reports = append(reports, f.report(f.Pods[i], now))
	}
	return reports
}

func (f *Fleet) report(p *Pod, now time.Time) scrape.PodReport {
	r := scrape.PodReport{Controller: observed.Controller{
		Pod: observed.Pod{Replica: p.Ordinal, Name: PodName(p.Ordinal), Ready: f.Up(p, now),
			Claimed: !f.Deployment || f.Up(p, now) && !f.Slotless[p.Ordinal], Started: p.Runs},
		Running: p.running(now) && !f.Dead(p.Ordinal, now), Terminating: !p.Gone.IsZero()}}
	if p.Gone.IsZero() {
		r.Size = p.Size
	}
	r.Restarts, r.RestartedAt, r.OOMKilled = p.Restarts, p.RestartedAt, p.OOMKilled
	if p.OOMKilled {
		r.KilledAt = p.RestartedAt
	}
	if p.Memory > 0 {
		r.Memory, r.MemoryLimit = p.Memory, f.limitOf(p)
	}
	if times, at := f.killed(p.Ordinal, now); times > 0 {
		r.Restarts, r.RestartedAt, r.OOMKilled, r.KilledAt = times, at, true, at
		if !f.Dead(p.Ordinal, now) {
			r.RestartedAt = at.Add(backoff)
		}
	}
	if ahead := f.Ahead[p.Ordinal]; ahead > 0 {
		for _, at := range []*time.Time{&r.Started, &r.RestartedAt, &r.KilledAt} {
			if !at.IsZero() {
				*at = at.Add(ahead)
			}
		}
	}
	switch {
	case !r.Running:
		r.Err = "it does not run"
		return r
	case f.Silent[p.Ordinal]:
		r.Err = "it does not answer"
		return r
	}
	r.SampledAt, r.Servers = now, map[string]scrape.ServerReport{}
	for c := range p.Gained {
		took, connected := p.Took[c]
		shown := connected && (f.Gauges == 0 || !took.Truncate(f.Gauges).Add(f.Gauges).After(now))
		r.Servers[Server(c)] = scrape.ServerReport{Apps: 1, Cached: shown, Connected: shown}
	}
	return r
}

// Observation is what everybody says, beside the Secrets that were found. Every cluster has one Application, but for
// those that are Idle.
func (f *Fleet) Observation(reports []scrape.PodReport, found discover.Fleet) ownership.Observation {
	apps := ownership.Applications{}
	for _, c := range f.Clusters {
		apps[f.ServerOf(c)] = 1
	}
	return ownership.Join(reports, found, apps)
}
