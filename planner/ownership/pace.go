package ownership

import (
	"maps"
	"slices"
)

const (
	// minReconciles is how many reconciliations each side of a comparison must have: below, one slow one would decide.
	minReconciles = 20
	// slowFactor is how much longer a reconciliation must take to be called slower.
	slowFactor = 2
	// minSlower is by how many seconds it must take longer: nobody is harmed by 20 ms that became 50.
	minSlower = 0.1
)

// Work is reconciliations and the seconds that they took together.
type Work struct {
	Reconciles float64 `json:"reconciles"`
	Seconds    float64 `json:"seconds"`
}

// Interval is the work of each replica between two reports, by server URL.
type Interval map[int]map[string]Work

// Between is the work that was done from the earlier reports to the later ones. A counter that fell began anew at 0, as
// did one that was not there before; a pod that did not answer both times says nothing.
func Between(earlier, later []PodReport) Interval {
	before := make(map[string]PodReport, len(earlier))
	for _, r := range earlier {
		if r.Answered() {
			before[r.Name] = r
		}
	}
	in := Interval{}
	for _, r := range later {
		old, found := before[r.Name]
		if !found || !r.Answered() {
			continue
		}
		if in[r.Replica] == nil {
			in[r.Replica] = map[string]Work{}
		}
		for server, now := range r.Servers {
			was := old.Servers[server]
			if now.Reconciles < was.Reconciles || now.Seconds < was.Seconds {
				was = ServerReport{}
			}
			if done := now.Reconciles - was.Reconciles; done > 0 {
				w := in[r.Replica][server]
				in[r.Replica][server] = Work{w.Reconciles + done, w.Seconds + now.Seconds - was.Seconds}
			}
		}
	}
	return in
}

// Pace compares what reconciliations of the same clusters took on one replica: the mean seconds of one, weighted by the
// reconciliations after.
type Pace struct {
	Replica int     `json:"replica"`
	Before  float64 `json:"before"`
	After   float64 `json:"after"`
}

// Factor is how many times as long a reconciliation takes.
func (p Pace) Factor() float64 { return p.After / p.Before }

// Paces compares two intervals replica by replica, like for like: only clusters that the replica had in both, so that neither
// a cluster that takes long by nature nor the first reading of one that came makes a replica look slow. A replica with fewer
// than 20 such reconciliations in either interval is left out.
func Paces(before, after Interval) []Pace {
	var paces []Pace
	for _, replica := range slices.Sorted(maps.Keys(after)) {
		var old, expected, now Work
		for _, server := range slices.Sorted(maps.Keys(after[replica])) {
			b, a := before[replica][server], after[replica][server]
			if b.Reconciles == 0 {
				continue
			}
			old = Work{old.Reconciles + b.Reconciles, old.Seconds + b.Seconds}
			now = Work{now.Reconciles + a.Reconciles, now.Seconds + a.Seconds}
			expected.Seconds += a.Reconciles * b.Seconds / b.Reconciles
		}
		if min(old.Reconciles, now.Reconciles) >= minReconciles && expected.Seconds > 0 {
			paces = append(paces, Pace{replica, expected.Seconds / now.Reconciles, now.Seconds / now.Reconciles})
		}
	}
	return paces
}

// SlowedDown are the replicas among receivers, those that a wave gave clusters to, whose reconciliations take at least twice
// as long after it, and twice as long as what became of the other replicas: what slows all of them, such as a busy
// repo-server, is not the wave's doing.
func SlowedDown(before, after Interval, receivers []int) []Pace {
	var slower []Pace
	var others []float64
	paces := Paces(before, after)
	for _, p := range paces {
		if !slices.Contains(receivers, p.Replica) {
			others = append(others, p.Factor())
		}
	}
	slices.Sort(others)
	common := 1.0
	if len(others) > 0 {
		common = max(common, others[len(others)/2])
	}
	for _, p := range paces {
		if slices.Contains(receivers, p.Replica) && p.Factor() >= slowFactor*common && p.After-p.Before >= minSlower {
			slower = append(slower, p)
		}
	}
	return slower
}
