// Package health says which replicas are unwell.
package health

import (
	"fmt"
	"slices"
	"time"
)

// Reason is why a replica is unwell. The set is closed.
type Reason string

// The reasons.
const (
	OOMKilled  Reason = "OOMKilled"  // within 15 min
	Restarting Reason = "Restarting" // three times within 15 min
	NotReady   Reason = "NotReady"   // for Options.After
	Missing    Reason = "Missing"    // no pod for as long
	Unclaimed  Reason = "Unclaimed"  // no pod claims the slot for as long
)

// Sick is a replica that is unwell, since when, and its pod if it has one.
type Sick struct {
	Replica int
	Reason  Reason
	Since   time.Time
	Pod     string
}

// String is a sentence for people.
func (s Sick) String() string {
	since := s.Since.UTC().Format(time.RFC3339)
	switch s.Reason {
	case OOMKilled:
		return fmt.Sprintf("replica %d is unwell: pod %q was killed for its memory, and started again at %s", s.Replica,
			s.Pod, since)
	case Restarting:
		return fmt.Sprintf("replica %d is unwell: pod %q restarted %d times since %s", s.Replica, s.Pod, manyRestarts,
			since)
	case NotReady:
		return fmt.Sprintf("replica %d is unwell: pod %q is not ready since %s", s.Replica, s.Pod, since)
	case Unclaimed:
		return fmt.Sprintf("replica %d is unwell: no pod claims its slot since %s", s.Replica, since)
	}
	return fmt.Sprintf("replica %d is unwell: it has no pod since %s", s.Replica, since)
}

// Hold is why nothing is done about replicas that are unwell. The set is closed; the empty one holds nothing.
type Hold string

// The holds.
const (
	Unseen     Hold = "Unseen"     // the pods could not be listed
	RollingOut Hold = "RollingOut" // the workload's pods are being replaced
	Settling   Hold = "Settling"   // they were, less than Options.Settle ago
	WholeFleet Hold = "WholeFleet" // more than half of the replicas are unwell, or do not work now
)

// Verdict is which replicas are sick, which others do not work now, and what holds failover back.
type Verdict struct {
	Sick []Sick // by replica
	Down []int  // for less than Options.After; they receive nothing
	Held Hold
	// Stuck are the replicas that do not work while the workload has rolled out for long, since Rolling: nobody judges
	// them, and nothing fails over.
	Stuck   []int
	Rolling time.Time
}

// Unwell lists the replicas whose clusters are to go elsewhere: none while anything holds failover back.
func (v Verdict) Unwell() []int {
	if v.Held != "" {
		return nil
	}
	var replicas []int
	for _, s := range v.Sick {
		replicas = append(replicas, s.Replica)
	}
	return replicas
}

// String is a sentence for people; empty where there is nothing to say.
func (v Verdict) String() string {
	n := len(v.Sick) + len(v.Down)
	switch v.Held {
	case Unseen:
		return "the application-controller's pods cannot be listed: no replica is judged"
	case RollingOut:
		return "the workload rolls out: no replica is judged"
	case Settling:
		return fmt.Sprintf("the workload rolled out a short while ago: nothing moves although %s unwell",
			count(len(v.Sick)))
	case WholeFleet:
		return fmt.Sprintf("more than half of the fleet is ill (%s unwell or not ready): nothing moves, for what ails most of them is not theirs alone and would come along; "+
			"look at Redis, the repo-server, the API server, the nodes and the image first", count(n))
	}
	return ""
}

func count(n int) string {
	if n == 1 {
		return "1 replica is"
	}
	return fmt.Sprintf("%d replicas are", n)
}

// Judge looks at the replicas. Nothing is done for more than half of the fleet: what makes most of it ill (Redis, the
// API server, the nodes, an image) comes along with the clusters, and the few healthy ones would fall under the load of
// the many. Half of it, one of two, is still one replica's own trouble. Pods of one fault fall one after the other:
// those that do not work now count from the first moment.
func Judge(f Fleet, o Options, now time.Time, m Memory) (Verdict, Memory) {
	m = m.shifted(now)
	if !f.Known {
		return Verdict{Held: Unseen}, m
	}
	if f.Rolling {
		m = m.rolling(f, now)
		return Verdict{Held: RollingOut, Stuck: m.stuck(f, now), Rolling: m.Rolling}, m
	}
	m = m.looked(f, o, now)
	v := Verdict{Sick: m.sick(f, o, now)}
	v.Down = m.down(f, v.Sick)
	switch {
	case len(v.Sick) == 0:
	case !m.Rolled.IsZero() && now.Sub(m.Rolled) < o.Settle:
		v.Held = Settling
	case OfMost(len(v.Sick)+len(v.Down), f.Replicas):
		v.Held = WholeFleet
	}
	return v, m
}

// OfMost reports whether so many replicas that are unwell are more than half of a fleet, for which nothing is done.
func OfMost(unwell, replicas int) bool { return 2*unwell > replicas }

// stuck are the replicas that do not work after a rollout has gone on for long, in order.
func (m Memory) stuck(f Fleet, now time.Time) []int {
	if now.Sub(m.Rolling) < long {
		return nil
	}
	var stuck []int
	for replica, pod := range f.pods() {
		if !f.up(pod) {
			stuck = append(stuck, replica)
		}
	}
	return stuck
}

// down are the replicas that do not work now and are not sick, in order.
func (m Memory) down(f Fleet, sick []Sick) []int {
	var down []int
	for replica := range f.Replicas {
		known := slices.ContainsFunc(sick, func(s Sick) bool { return s.Replica == replica })
		if !known && !m.Replicas[replica].Down.IsZero() {
			down = append(down, replica)
		}
	}
	return down
}

// sick judges what is remembered, replica by replica. A slot that a pod claims is well whatever became of that pod.
func (m Memory) sick(f Fleet, o Options, now time.Time) []Sick {
	var sick []Sick
	for replica, pod := range f.pods() {
		h := m.Replicas[replica]
		s := Sick{Replica: replica, Pod: pod.Name}
		switch {
		case f.Dynamic && f.up(pod):
			continue
		case !h.OOM.IsZero():
			s.Reason, s.Since = OOMKilled, h.OOM
		case len(h.Restarts) >= manyRestarts:
			s.Reason, s.Since = Restarting, h.Restarts[len(h.Restarts)-manyRestarts]
		case h.Down.IsZero() || now.Sub(h.Down) < o.After:
			continue
		case f.Dynamic:
			s.Reason, s.Since = Unclaimed, h.Down
		case pod.Name == "":
			s.Reason, s.Since = Missing, h.Down
		default:
			s.Reason, s.Since = NotReady, h.Down
		}
		sick = append(sick, s)
	}
	return slices.Clip(sick)
}
