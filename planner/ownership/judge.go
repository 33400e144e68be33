package ownership

import (
	"cmp"
	"slices"
	"time"

	"ballast/planner/observed"
	"ballast/planner/plan"
)

// Grace is for how long a fault must be seen before it is one: clusters are without an owner, or have two, for a moment
// whenever they move. Zero values are the defaults.
type Grace struct {
	Orphaned time.Duration // default OrphanedAfter
	Doubled  time.Duration // default 30 s
}

func (g Grace) withDefaults() Grace {
	return Grace{Orphaned: cmp.Or(max(g.Orphaned, 0), OrphanedAfter),
		Doubled: cmp.Or(max(g.Doubled, 0), 30*time.Second)}
}

// OrphanedAfter is for how long nobody must have a cluster.
const OrphanedAfter = 2 * time.Minute

const (
	// resting is for how long a replica must show a cluster's gauges without any Application until the last Application
	// is taken to be deleted: a loser shows its gauges for 30 s, half as much again is the margin.
	resting = 45 * time.Second
	// forgotten is for how long a cluster that vanished without a trace is taken to be orphaned, where nobody can read
	// the Applications: longer than the longest orphan that was reported (argo-cd#29476: 57 h), and not for ever.
	forgotten = 72 * time.Hour
)

// Verdict is what an observation means. Orphans and Doubled are beyond their grace, by cluster.
type Verdict struct {
	Owned   map[string]observed.Owned `json:"owned"`
	Orphans []Orphan                  `json:"orphans,omitempty"`
	Doubled []Doubled                 `json:"doubled,omitempty"`
	Astray  []Astray                  `json:"astray,omitempty"` // by Stray
}

// Judge says who owns each cluster, and which have no owner or several for longer than the grace. intended is the
// replica that the plan gives a cluster. now only bounds the samples' own clock. Neither argument is changed.
func Judge(m Memory, s Observation, intended func(cluster string) (replica int, planned bool), now time.Time, g Grace) (Memory, Verdict) {
	j := judge{observation: s, grace: g.withDefaults(), memory: m.clone(),
		verdict: Verdict{Owned: make(map[string]observed.Owned, len(s.Clusters))}}
	j.oldest, j.newest = span(s.Pods, everyPod(s.Pods), now)
	j.newest = later(j.newest, m.Newest)
	if j.memory.Begun.IsZero() {
		j.memory.Begun = j.newest
	}
	j.memory.Settings = m.settings(s, now)
	for name, c := range s.Clusters { // each by itself; what is found is in order
		replica, planned := intended(name)
		if !planned {
			replica = plan.NoReplica
		}
		j.cluster(name, c, replica, now)
	}
	slices.SortFunc(j.verdict.Orphans, func(a, b Orphan) int { return cmp.Compare(a.Cluster, b.Cluster) })
	slices.SortFunc(j.verdict.Doubled, func(a, b Doubled) int { return cmp.Compare(a.Cluster, b.Cluster) })
	j.memory.Newest = j.newest
	j.memory.forget(s.Clusters)
	return j.memory, j.verdict
}

// judge is one verdict while it is made. Oldest and newest are the samples' bounds.
type judge struct {
	observation    Observation
	grace          Grace
	memory         Memory
	verdict        Verdict
	oldest, newest time.Time
}

func (j *judge) cluster(name string, c ClusterObservation, intended int, now time.Time) {
	idle := false
	switch {
	case len(c.Holders) > 0:
		j.memory.Last[name] = c.Owners[0]
		delete(j.memory.Lost, name)
	case c.Skip:
		idle = true
		delete(j.memory.Last, name)
		delete(j.memory.Lost, name)
	case j.unknown(name, c, intended):
	case j.empty(name, c):
		idle = true
		delete(j.memory.Last, name)
		delete(j.memory.Lost, name)
	default:
		j.orphan(name, c, intended)
	}
	j.doubled(name, c, now)
	j.verdict.Owned[name] = observed.Owned{Owners: c.Owners, Live: c.Live, Idle: idle}
}

// unknown reports whether somebody who did not answer may have the cluster: any ready pod; the pod of its replica,
// however it is; the pod that had it last, and one whose replica nobody knows, if they run. So is a cluster that was
// not seen since the memory began, until more than one look was taken.
func (j *judge) unknown(name string, c ClusterObservation, intended int) bool {
	last, known := j.memory.Last[name]
	if !j.observation.Asked || c.Apps == Unknown && !known && j.oldest.Sub(j.memory.Begun) < resting {
		return true
	}
	return slices.ContainsFunc(j.observation.Pods, func(p PodObservation) bool {
		if p.Answered {
			return false
		}
		return p.Replica == intended && intended != plan.NoReplica || p.Running &&
			(p.Replica == plan.NoReplica || known && p.Replica == last)
	})
}

// empty reports whether a cluster that nobody has is one without Applications. Where those cannot be read, one that
// nobody ever had is; so is one whose cache stays where it was. What was listed before its owner was gone says nothing:
// its Application may be younger.
func (j *judge) empty(name string, c ClusterObservation) bool {
	if c.Apps > 0 || c.Apps == 0 && j.staleFor(name) {
		return false
	}
	if c.Apps == 0 {
		return true
	}
	if _, had := j.memory.Last[name]; !had {
		return true
	}
	lost, known := j.memory.Lost[name]
	if !known {
		return false
	}
	if len(c.Cached) > 0 && j.oldest.Sub(lost) >= resting {
		return true
	}
	return j.oldest.Sub(lost) >= forgotten
}

// staleFor reports whether the Applications were listed before a cluster's owner was gone.
func (j *judge) staleFor(name string) bool {
	_, had := j.memory.Last[name]
	since, lost := j.memory.Lost[name]
	if !lost {
		since = j.newest
	}
	counted := j.observation.Counted
	return had && !counted.IsZero() && counted.Before(since)
}

func (j *judge) orphan(name string, c ClusterObservation, intended int) {
	since, known := j.memory.Lost[name]
	if !known {
		since = j.newest
		j.memory.Lost[name] = since
	}
	counted := j.observation.Counted
	stale := !counted.IsZero() && counted.Before(since) // it may have lost its last Application then, or had its first
	if stale || j.oldest.Sub(since) < j.grace.Orphaned {
		return
	}
	o := Orphan{Cluster: name, Since: since, Intended: intended, Last: plan.NoReplica, Apps: c.Apps, Why: NotTaken}
	if last, had := j.memory.Last[name]; had {
		o.Last = last
	}
	switch {
	case intended == plan.NoReplica:
		o.Why = NotPlanned
	case !slices.ContainsFunc(j.observation.Pods, func(p PodObservation) bool { return p.Replica == intended }):
		o.Why = NoPod
	}
	j.verdict.Orphans = append(j.verdict.Orphans, o)
}

// doubled judges by the samples of those pods alone that have the cluster. One holder clears the fault only if no other
// ready pod kept silent.
func (j *judge) doubled(name string, c ClusterObservation, now time.Time) {
	if len(c.Holders) < 2 {
		if j.observation.Asked {
			delete(j.memory.Doubled, name)
		}
		return
	}
	oldest, newest := span(j.observation.Pods, c.Holders, now)
	since, known := j.memory.Doubled[name]
	if !known {
		since = later(newest, j.memory.Newest)
		j.memory.Doubled[name] = since
	}
	if oldest.Sub(since) < j.grace.Doubled {
		return
	}
	d := Doubled{Cluster: name, Since: since, Owners: c.Owners}
	for _, i := range c.Holders {
		d.Pods = append(d.Pods, j.observation.Pods[i].Name)
	}
	slices.Sort(d.Pods)
	j.verdict.Doubled = append(j.verdict.Doubled, d)
}
