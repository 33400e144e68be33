package discover

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"
)

// Leader is the Secret that leads the others of its server. While it is gone, nobody else leads for an hour: it may be made
// anew, and who made another one beside it must not gain by that.
type Leader struct {
	Name string    `json:"name"`
	Gone time.Time `json:"gone,omitzero"`
}

// String names it in a sentence.
func (l Leader) String() string {
	if l.Gone.IsZero() {
		return fmt.Sprintf("Secret %q", l.Name)
	}
	return fmt.Sprintf("Secret %q, which is gone since %s,", l.Name, l.Gone.UTC().Format(time.RFC3339))
}

// leadsFor is how long a leader that is gone keeps its place, as long as its row.
const leadsFor = time.Hour

// lead has one Secret of each server lead the others: the one that did, else the oldest of those that had the server before and
// that ballast writes, for the age of a Secret is not that of its server. Who may create a Secret beside another's must neither move that one by it nor hold it: the others' own pins are passed over
// (data.pins may name any), and one that ballast may not write stands alone. It answers who leads from now on.
func (k Known) lead(fleet Fleet, o Options, now time.Time) (map[string]Leader, []Problem) {
	leaders, here := map[string]Leader{}, map[string]bool{}
	var problems []Problem
	for _, u := range fleet.Units {
		if len(u.Clusters) == 1 && len(k.Leaders) == 0 {
			continue // as nearly always
		}
		key := leaderKey(u.Server)
		here[key] = true
		before, led := k.Leaders[key]
		if len(u.Clusters) == 1 && !led {
			continue
		}
		leader, at := fleet.leaderOf(u, before, o, now)
		problems = append(problems, fleet.follow(u, at, leader)...)
		if len(u.Clusters) > 1 || at < 0 {
			leaders[key] = leader
		}
	}
	for key, leader := range k.Leaders {
		if !here[key] && leader.waits(now) { // its server has no Secret at all
			leaders[key] = leader.goneAt(now)
		}
	}
	if len(leaders) == 0 {
		return nil, problems
	}
	return leaders, problems
}

// leaderKey is a server in the history, which must hold no credentials of a URL.
func leaderKey(server string) string {
	sum := sha256.Sum256([]byte(server))
	return hex.EncodeToString(sum[:16])
}

// leaderOf is who leads a unit; its index is -1 while the one that led is gone.
func (f Fleet) leaderOf(u Unit, before Leader, o Options, now time.Time) (Leader, int) {
	for _, i := range u.Clusters {
		if f.Clusters[i].Shard.ID == before.Name {
			return Leader{Name: before.Name}, i
		}
	}
	if before.Name != "" && before.waits(now) {
		return before.goneAt(now), -1
	}
	at := slices.MinFunc(u.Clusters, func(a, b int) int {
		x, y := f.Clusters[a], f.Clusters[b]
		return cmp.Or(falseFirst(!o.had(x), !o.had(y)), falseFirst(x.Unmanaged, y.Unmanaged), x.Created.Compare(y.Created))
	})
	return Leader{Name: f.Clusters[at].Shard.ID}, at
}

func (o Options) had(c Cluster) bool { return o.Had != nil && o.Had(c.Shard.ID, c.Shard.Server) }

// waits reports whether a leader keeps its place; a clock that went back counts as no time.
func (l Leader) waits(now time.Time) bool {
	return l.Gone.IsZero() || now.Before(l.Gone) || now.Sub(l.Gone) < leadsFor
}

func (l Leader) goneAt(now time.Time) Leader {
	if l.Gone.IsZero() || now.Before(l.Gone) {
		l.Gone = now
	}
	return l
}

// follow takes from the others what only a leader has.
func (f Fleet) follow(u Unit, leader int, named Leader) []Problem {
	var problems []Problem
	for _, i := range u.Clusters {
		c := &f.Clusters[i]
		if i == leader {
			continue
		}
		c.Follows = true
		if c.Immutable || c.Unmanaged {
			c.Alone = leader < 0 || c.Created.After(f.Clusters[leader].Created)
		}
		if c.Pin == "" || leader >= 0 && c.Pin == f.Clusters[leader].Pin {
			continue
		}
		problems = append(problems, Problem{c.Shard.ID, PinFollows, fmt.Sprintf("the pin annotation of Secret %q is passed over, since %s of the same server leads, "+
			"which it stays together with: pin that one, or either in data.pins", c.Shard.ID, named)})
		c.Pin = ""
	}
	return problems
}

func falseFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
