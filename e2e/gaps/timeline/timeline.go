// Package timeline is who owned each cluster when, by what the application-controllers logged: how long a cluster was
// without an owner, how long it had two, and a picture of it.
package timeline

import (
	"fmt"
	"slices"
	"time"
)

// Cluster is a destination cluster.
type Cluster struct {
	Name   string // of its Secret and of its Application
	Server string
}

// Timeline is what the application-controllers did from the first event until To. What happened before From counts only
// for who owned what at From.
type Timeline struct {
	From, To time.Time
	Clusters []Cluster
	Events   []Event // by time
}

// Tenure is the time in which a pod owned a cluster: from its "Start syncing cluster" until its "Invalidated cluster",
// the end of its process, or its claim of another slot. A zero To means that it owns it still.
type Tenure struct {
	Pod      string
	From, To time.Time
}

// Span is a stretch of time.
type Span struct{ From, To time.Time }

// Length is how long it is.
func (s Span) Length() time.Duration { return s.To.Sub(s.From) }

// Move is a cluster's way from one owner to the next.
type Move struct {
	Cluster  string
	From, To string // pods; From is empty for a cluster that had no owner before
	At       time.Time
	// Gap is from the loser's "Invalidated cluster", or its end, to the winner's "Start syncing cluster"; below 0 the
	// winner was there first, and the cluster had two owners for that long.
	Gap time.Duration
}

// Account is what became of a cluster in the timeline's window.
type Account struct {
	Cluster string
	// Touched says that an owner was lost, won, or began anew.
	Touched bool
	Moves   []Move
	Unowned []Span // one that ends with the timeline may go on
	Doubled []Span
}

// Accounts are those of all clusters, in the order of Clusters.
func (t Timeline) Accounts() []Account {
	accounts := make([]Account, 0, len(t.Clusters))
	for _, c := range t.Clusters {
		tenures := t.Tenures(c.Server)
		owned := t.depths(tenures)
		accounts = append(accounts, Account{
			Cluster: c.Name,
			Touched: t.touched(c.Server, tenures),
			Moves:   t.moves(c.Name, tenures),
			Unowned: spans(owned, func(owners int) bool { return owners == 0 }),
			Doubled: spans(owned, func(owners int) bool { return owners > 1 }),
		})
	}
	return accounts
}

// Restarts counts, for each pod of that name which had run before, how often it began in the window.
func (t Timeline) Restarts() map[string]int {
	restarts, known := map[string]int{}, map[string]bool{}
	for _, e := range t.Events {
		if e.Kind != Began {
			continue
		}
		if known[e.Pod] && t.within(e.At) {
			restarts[e.Pod]++
		}
		known[e.Pod] = true
	}
	return restarts
}

// Runs are the times in which a process of that pod ran, until To.
func (t Timeline) Runs(pod string) []Span {
	var runs []Span
	running := false
	for _, e := range t.Events {
		if e.Pod != pod || e.At.After(t.To) || e.Kind != Began && e.Kind != Ended {
			continue
		}
		if running {
			runs[len(runs)-1].To = e.At
		}
		if running = e.Kind == Began; running {
			runs = append(runs, Span{e.At, t.To})
		}
	}
	return runs
}

func (t Timeline) within(at time.Time) bool { return !at.Before(t.From) && !at.After(t.To) }

// Tenures are those of a cluster, by their beginning, until To.
func (t Timeline) Tenures(server string) []Tenure {
	var tenures []Tenure
	held := map[string]int{} // pod: index among the tenures
	lose := func(e Event) {
		if i, ok := held[e.Pod]; ok {
			tenures[i].To = e.At
			delete(held, e.Pod)
		}
	}
	for _, e := range t.Events {
		switch {
		case e.At.After(t.To):
			return tenures
		case e.Kind == Began || e.Kind == Ended || e.Kind == Claimed: // one that begins has ended, whether or not it said so
			lose(e)
		case e.Server == server && e.Kind == Invalidated:
			lose(e)
		case e.Server == server && e.Kind == Syncing:
			if _, ok := held[e.Pod]; !ok {
				held[e.Pod] = len(tenures)
				tenures = append(tenures, Tenure{Pod: e.Pod, From: e.At})
			}
		}
	}
	return tenures
}

// Owner is the pod that owns the cluster at To. It is an error if none does, if two do, or if it has not synced it yet.
func (t Timeline) Owner(c Cluster) (string, error) {
	var owner *Tenure
	for _, n := range t.Tenures(c.Server) {
		switch {
		case !n.To.IsZero():
		case owner != nil:
			return "", fmt.Errorf("cluster %q has two owners, %q and %q", c.Name, owner.Pod, n.Pod)
		default:
			owner = &n
		}
	}
	if owner == nil {
		return "", fmt.Errorf("cluster %q has no owner", c.Name)
	}
	synced := slices.ContainsFunc(t.Events, func(e Event) bool {
		return e.Kind == Synced && e.Server == c.Server && e.Pod == owner.Pod && !e.At.Before(owner.From) &&
			!e.At.After(t.To)
	})
	if !synced {
		return owner.Pod, fmt.Errorf("cluster %q is not yet synced by its owner %q", c.Name, owner.Pod)
	}
	return owner.Pod, nil
}

// Holds says whether the pod owns the cluster at To.
func (t Timeline) Holds(pod string, c Cluster) bool {
	return slices.ContainsFunc(t.Tenures(c.Server), func(n Tenure) bool { return n.Pod == pod && n.To.IsZero() })
}

// touched also of a cluster that its owner syncs anew.
func (t Timeline) touched(server string, tenures []Tenure) bool {
	for _, e := range t.Events {
		if e.Server == server && t.within(e.At) && (e.Kind == Syncing || e.Kind == Invalidated || e.Kind == Changed) {
			return true
		}
	}
	return slices.ContainsFunc(tenures, func(n Tenure) bool { return !n.To.IsZero() && t.within(n.To) })
}

// moves pairs each beginning with the last end of the owner before it; one that began while another still owned the
// cluster is paired with that one's end, which may come later.
func (t Timeline) moves(name string, tenures []Tenure) []Move {
	var moves []Move
	for i, n := range tenures {
		if !t.within(n.From) {
			continue
		}
		m := Move{Cluster: name, To: n.Pod, At: n.From}
		if i > 0 {
			before := tenures[i-1]
			end := before.To
			if end.IsZero() {
				end = t.To
			}
			m.From, m.Gap = before.Pod, n.From.Sub(end)
		}
		if m.From != m.To || m.Gap > 0 {
			moves = append(moves, m)
		}
	}
	return moves
}

// depth is the number of owners from a time on.
type depth struct {
	at     time.Time
	owners int
}

// depths are the numbers of owners in the window, each until the next; the last is for To.
func (t Timeline) depths(tenures []Tenure) []depth {
	changes := []depth{{t.From, 0}, {t.To, 0}}
	for _, n := range tenures {
		from, to := n.From, n.To
		if from.Before(t.From) {
			from = t.From
		}
		if to.IsZero() {
			to = t.To
		}
		if from.Before(to) {
			changes = append(changes, depth{from, 1}, depth{to, -1})
		}
	}
	slices.SortStableFunc(changes, func(a, b depth) int { return a.at.Compare(b.at) })
	owners := 0
	for i := range changes {
		owners += changes[i].owners
		changes[i].owners = owners
	}
	return changes
}

// spans are the longest stretches that fit; what takes no time is none.
func spans(depths []depth, fits func(owners int) bool) []Span {
	var found []Span
	for i := range len(depths) - 1 {
		from, to := depths[i].at, depths[i+1].at
		if !fits(depths[i].owners) || !from.Before(to) {
			continue
		}
		if n := len(found); n > 0 && found[n-1].To.Equal(from) {
			found[n-1].To = to
			continue
		}
		found = append(found, Span{from, to})
	}
	return found
}

// Median and longest of durations; 0 of none.
func Median(ds []time.Duration) time.Duration { return quantile(ds, 0.5) }

// Longest of durations; 0 of none.
func Longest(ds []time.Duration) time.Duration { return quantile(ds, 1) }

func quantile(ds []time.Duration, q float64) time.Duration {
	if len(ds) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(ds))
	return sorted[int(q*float64(len(sorted)-1))]
}
