package discover

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

// lead has one Secret of each server lead the others: the one that did, else the oldest of those that had the server
// before, for the age of a Secret is not that of its server. Who may create a Secret beside another's must neither move
// that one by it nor hold it: the others' own pins are passed over (data.pins may name any), and one that ballast may
// not write stands alone. It answers who leads from now on.
func (k Known) lead(fleet Fleet, o Options, now time.Time) (map[string]Leader, []SecretProblem) {
	known, leaders, here := k.led(fleet, o, now), map[string]Leader{}, map[string]bool{}
	var problems []SecretProblem
	for _, u := range fleet.Units {
		if len(u.Clusters) == 1 && len(known) == 0 {
			continue // as nearly always
		}
		key := leaderKey(u.Server)
		here[key] = true
		before, led := known[key]
		if len(u.Clusters) == 1 && !led {
			continue
		}
		leader, at := fleet.leaderOf(u, before, o, now)
		problems = append(problems, fleet.follow(u, at, leader, o)...)
		if len(u.Clusters) > 1 || at < 0 {
			leaders[key] = leader
		}
	}
	for key, leader := range known {
		if !here[key] && leader.waits(now) { // its server has no Secret at all
			leaders[key] = leader.goneAt(now)
		}
	}
	for key, l := range leaders {
		sameAsBefore := known[key].Name == l.Name && known[key].Known
		l.Known = sameAsBefore || k.Knew(l.Name)
		leaders[key] = l
	}
	return k.bounded(leaders), problems
}

// bounded leaves out first what was not there for an hour, then what was made last: who makes Secrets of a thousand
// servers must have nobody's leader forgotten by it, and makes none that is older than those. Of which nobody knows
// when it was made comes last.
func (k Known) bounded(leaders map[string]Leader) map[string]Leader {
	if len(leaders) == 0 {
		return nil
	}
	if len(leaders) <= mostLeaders {
		return leaders
	}
	keys := slices.SortedFunc(maps.Keys(leaders), func(a, b string) int {
		x, y := leaders[a], leaders[b]
		return cmp.Or(FalseFirst(!x.Known, !y.Known), FalseFirst(x.Made.IsZero(), y.Made.IsZero()),
			x.Made.Compare(y.Made),
			FalseFirst(!x.Gone.IsZero(), !y.Gone.IsZero()), cmp.Compare(a, b))
	})
	for _, key := range keys[mostLeaders:] {
		delete(leaders, key)
	}
	return leaders
}

// mostGone is how many of the Secrets that are gone since the last discovery keep the lead of their server, those first
// that were made first: the history has room for so many.
const mostGone = 1000

// led are those that led until now: those that are remembered, and the only Secret of a server where that is gone.
func (k Known) led(fleet Fleet, o Options, now time.Time) map[string]Leader {
	here := 0
	for _, c := range fleet.Clusters {
		if _, before := o.Before[c.Shard.ID]; before {
			here++
		}
	}
	if here == len(o.Before) { // as nearly always
		return k.Leaders
	}
	var gone []string
	for name := range o.Before {
		if _, here := fleet.find(name); !here {
			gone = append(gone, name)
		}
	}
	if len(gone) == 0 {
		return k.Leaders
	}
	slices.SortFunc(gone, func(a, b string) int { // a name without a time came from an older memory
		x, y := o.Made[a], o.Made[b]
		return cmp.Or(FalseFirst(!k.Knew(a), !k.Knew(b)), FalseFirst(x.IsZero(), y.IsZero()), x.Compare(y),
			cmp.Compare(a, b))
	})
	gone = gone[:min(len(gone), mostGone)]
	led := make(map[string]Leader, len(k.Leaders)+len(gone))
	maps.Copy(led, k.Leaders)
	for _, name := range gone {
		if key := leaderKey(o.Before[name]); led[key].Name == "" {
			led[key] = Leader{Name: name, Gone: now, Made: o.Made[name]}
		}
	}
	return led
}

// leaderOf is who leads a unit; its index is -1 while the one that led is gone.
func (f Fleet) leaderOf(u Unit, before Leader, o Options, now time.Time) (Leader, int) {
	for _, i := range u.Clusters {
		if f.Clusters[i].Shard.ID == before.Name {
			made := f.Clusters[i].Created
			if !before.Made.IsZero() && before.Made.Before(made) {
				made = before.Made // it was made anew
			}
			return Leader{Name: before.Name, Made: made}, i
		}
	}
	if before.Name != "" && before.waits(now) {
		return before.goneAt(now), -1
	}
	at := slices.MinFunc(u.Clusters, f.earlier(o))
	return Leader{Name: f.Clusters[at].Shard.ID, Made: f.Clusters[at].Created}, at
}

// earlier orders first who had the server before, then by age.
func (f Fleet) earlier(o Options) func(a, b int) int {
	return func(a, b int) int {
		x, y := f.Clusters[a], f.Clusters[b]
		return cmp.Or(FalseFirst(!o.had(x), !o.had(y)), x.Created.Compare(y.Created))
	}
}

func (o Options) had(c Cluster) bool { return o.Had != nil && o.Had(c.Shard.ID, c.Shard.Server) }

// follow takes from the others what only a leader has. Where the leader opted out, and so has no pin, the first of the
// others that ballast writes keeps its own.
func (f Fleet) follow(u Unit, leader int, named Leader, o Options) []SecretProblem {
	pinned := leader
	if leader >= 0 && f.Clusters[leader].Unmanaged {
		ours := slices.DeleteFunc(slices.Clone(u.Clusters), func(i int) bool { return f.Clusters[i].Unmanaged })
		if pinned = -1; len(ours) > 0 {
			pinned = slices.MinFunc(ours, f.earlier(o))
		}
	}
	var problems []SecretProblem
	for _, i := range u.Clusters {
		c := &f.Clusters[i]
		if i != leader {
			c.Follows, c.Alone = true, c.Immutable || c.Unmanaged
		}
		keeps := i == pinned || pinned >= 0 && c.Pin == f.Clusters[pinned].Pin
		if keeps || c.Pin == "" {
			continue
		}
		problems = append(problems, SecretProblem{c.Shard.ID, PinFollows,
			fmt.Sprintf("the pin annotation of Secret %q is passed over, since %s of the same server leads, "+
				"which it stays together with: pin that one, or either in data.pins", c.Shard.ID, named)})
		c.Pin = ""
	}
	return problems
}

// FalseFirst orders what does not hold before what does.
func FalseFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
