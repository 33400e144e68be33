package health

import (
	"maps"
	"slices"
	"time"

	"ballast/planner/observed"
)

const (
	// window is how long a restart or an OOM kill counts.
	window = 15 * time.Minute
	// long is how long a rollout of the workload may keep a replica from working before people hear of it.
	long = 10 * time.Minute
	// manyRestarts within it make a replica unwell.
	manyRestarts = 3
)

// Memory is what is remembered of the replicas from one look to the next, and from one leader to the next.
type Memory struct {
	Looked   time.Time       `json:"looked,omitzero"`
	Rolled   time.Time       `json:"rolled,omitzero"`  // when a rollout of the workload was seen last
	Rolling  time.Time       `json:"rolling,omitzero"` // since when one is seen that goes on
	Replicas map[int]Replica `json:"replicas,omitempty"`
}

// Replica is one replica's: its pod with that pod's count of restarts, since when it does not work (zero: it does), and
// the restarts and the last OOM kill of the last 15 minutes.
type Replica struct {
	Pod      string      `json:"pod,omitempty"`
	Count    int         `json:"count,omitempty"`
	Down     time.Time   `json:"down,omitzero"`
	Restarts []time.Time `json:"restarts,omitempty"`
	OOM      time.Time   `json:"oom,omitzero"`
	Ahead    bool        `json:"ahead,omitempty"` // its last restart was dated ahead, and counted as it was seen
	Start    Start       `json:"start,omitzero"`
}

// Start is the start of a container that its node dated ahead, and when it was seen.
type Start struct {
	Said time.Time `json:"said"`
	Seen time.Time `json:"seen"`
}

// of is what is remembered of a pod's start: nothing, where it lies in the past.
func (s Start) of(pod observed.Pod, now time.Time) Start {
	switch {
	case s.Said.Equal(pod.Started):
		return s
	case pod.Started.After(now):
		return Start{pod.Started.UTC(), now}
	}
	return Start{}
}

// Options are the limits of patience. Interval is how often the fleet is looked at.
type Options struct {
	After    time.Duration
	Settle   time.Duration
	Interval time.Duration
}

// Blind reports whether nobody looked for so long that a replica may have been well meanwhile.
func (o Options) Blind(m Memory, now time.Time) bool {
	return now.Sub(m.Looked) > max(o.After, 3*o.Interval)
}

// Dead are the replicas that do not work, in order.
func (m Memory) Dead() []int {
	var dead []int
	for _, replica := range slices.Sorted(maps.Keys(m.Replicas)) {
		if !m.Replicas[replica].Down.IsZero() {
			dead = append(dead, replica)
		}
	}
	return dead
}

// Recovers reports whether a replica that does not work at this look may be back at the next: it has done so for less
// than after, and is in no loop of restarts.
func (m Memory) Recovers(replica int, after time.Duration, now time.Time) bool {
	h := m.Replicas[replica]
	return len(h.Restarts) < manyRestarts && now.Sub(h.Down) < after
}

// rolling forgets everything but the counts: what happens while pods are replaced says nothing of a replica, then or
// later. Only a pod that did not work before and does not yet has not worked all along: that the workload rolls out is
// said by its status, which may be wrong.
func (m Memory) rolling(f Fleet, now time.Time) Memory {
	next := Memory{Looked: now, Rolled: now, Rolling: m.Rolling, Replicas: make(map[int]Replica, f.Replicas)}
	if next.Rolling.IsZero() {
		next.Rolling = now
	}
	for replica, pod := range f.pods() {
		h, was := Replica{Pod: pod.Name, Count: pod.Restarts}, m.Replicas[replica]
		same := was.Pod == h.Pod && was.Count == h.Count
		if same && !f.up(pod) {
			h.Down = was.Down
		}
		h.Ahead = pod.RestartedAt.After(now) || same && was.Ahead
		h.Start = was.Start.of(pod, now)
		next.Replicas[replica] = h
	}
	return next
}

// looked takes in what is seen.
func (m Memory) looked(f Fleet, o Options, now time.Time) Memory {
	// After a longer absence nobody knows whether a pod that does not work did so in between, nor when it restarted.
	blind := o.Blind(m, now)
	next := Memory{Looked: now, Rolled: m.Rolled, Replicas: make(map[int]Replica, f.Replicas)}
	for replica, pod := range f.pods() {
		h := m.Replicas[replica]
		switch {
		case f.up(pod):
			h.Down = time.Time{}
		case h.Down.IsZero() || blind:
			h.Down = now
		}
		if !h.Down.IsZero() && now.Sub(m.Rolled) < o.Settle { // a rollout that comes and goes at every other look goes on
			next.Rolling = m.Rolling
		}
		next.Replicas[replica] = h.taking(pod, blind, m.Rolled, now)
	}
	return next
}

// taking adds the pod's restarts and its OOM kill. Of a pod that is new, or was not looked at for long, only the last
// restart has a known time. A time that lies ahead is none: by a node's clock one kill would stand until ours reaches
// it. What happened before the last rollout was over does not count.
func (h Replica) taking(pod observed.Pod, blind bool, rolled, now time.Time) Replica {
	same := pod.Name == h.Pod && pod.Restarts >= h.Count
	restarts := pod.Restarts - h.Count
	if !same || blind {
		restarts = min(restarts, 1)
	}
	if !same {
		restarts = min(pod.Restarts, 1)
	}
	at, known := pod.RestartedAt.UTC(), !pod.RestartedAt.IsZero() && !pod.RestartedAt.After(now)
	if !known {
		at = now
	}
	counts := at.After(rolled)
	h.Restarts = slices.Clone(h.Restarts)
	for range min(restarts, manyRestarts) {
		if counts {
			h.Restarts = append(h.Restarts, at)
		}
	}
	stands := same && restarts == 0 // as it was seen before, when its time was as little known
	if old := stands && (h.Ahead || !blind && !known); pod.OOMKilled && counts && !old {
		h.OOM = at
	}
	h.Ahead = pod.RestartedAt.After(now) || stands && h.Ahead
	h.Start = h.Start.of(pod, now)
	if pod.Name != "" {
		h.Pod, h.Count = pod.Name, pod.Restarts
	}
	return h.since(now.Add(-window))
}

// Dated are the pods with their starts, last restarts and OOM kills as they were seen, where a node dates them ahead:
// by that date they would be blamed on each wave that comes until our clock reaches it, and the pod would have begun a
// moment ago for as long. A restart or kill that nobody saw, or is long ago, has no time.
func (m Memory) Dated(pods []observed.Pod, now time.Time) []observed.Pod {
	pods = slices.Clone(pods)
	for i, pod := range pods {
		h := m.Replicas[pod.Replica]
		if start := h.Start.of(pod, now); start != (Start{}) {
			pods[i].Started = start.Seen
		}
		ahead := h.Ahead && h.Pod == pod.Name && h.Count == pod.Restarts
		if ahead || pod.RestartedAt.After(now) {
			pods[i].RestartedAt = time.Time{}
		}
		if ahead || pod.KilledAt.After(now) {
			pods[i].KilledAt = time.Time{}
		}
		if n := len(h.Restarts); ahead && n > 0 {
			pods[i].RestartedAt = h.Restarts[n-1]
		}
		if ahead && pod.OOMKilled {
			pods[i].KilledAt = h.OOM
		}
	}
	return pods
}

// since forgets what is older.
func (h Replica) since(from time.Time) Replica {
	h.Restarts = slices.DeleteFunc(h.Restarts, func(at time.Time) bool { return !at.After(from) })
	h.Restarts = slices.Clip(h.Restarts[max(len(h.Restarts)-manyRestarts, 0):])
	if len(h.Restarts) == 0 {
		h.Restarts = nil
	}
	if !h.OOM.After(from) {
		h.OOM = time.Time{}
	}
	return h
}

// shifted is the memory after the clock went back: no time passed since the last look, and goes on from now.
func (m Memory) shifted(now time.Time) Memory {
	back := m.Looked.Sub(now)
	if back <= 0 {
		return m
	}
	shift := func(t time.Time) time.Time {
		if t.IsZero() {
			return t
		}
		return t.Add(-back)
	}
	next := Memory{Looked: now, Rolled: shift(m.Rolled), Rolling: shift(m.Rolling),
		Replicas: make(map[int]Replica, len(m.Replicas))}
	for replica, h := range m.Replicas {
		h.Down, h.OOM, h.Start.Seen = shift(h.Down), shift(h.OOM), shift(h.Start.Seen)
		h.Restarts = slices.Clone(h.Restarts)
		for i := range h.Restarts {
			h.Restarts[i] = shift(h.Restarts[i])
		}
		next.Replicas[replica] = h
	}
	return next
}
