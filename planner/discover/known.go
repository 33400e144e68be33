package discover

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

const (
	// shrinkFrom is the smallest fleet whose shrinking is judged by its share: of three clusters, losing two is a
	// Tuesday. Losing all of any fleet is judged always.
	shrinkFrom = 4
	// AcceptAfter is how long a shrunken discovery must last until it is believed. A further loss is a new one to get
	// used to, but whoever deletes one Secret every half an hour keeps nothing still for longer than twice of it.
	AcceptAfter = 30 * time.Minute
	// KnownAfter is how long a Secret must be there until its loss is one. Who makes Secrets and deletes them again
	// would keep the plan still by it, over and over.
	KnownAfter = time.Hour
	// mostJoin is how many of those join the known ones within a day, in percent of them, and leastJoin that many at
	// least: who makes hundreds must not lift by it what is a share of the known ones, the moves within a day and what
	// is no loss. A day begins with the first that joins, so that two days' may join within one that lies across both.
	mostJoin  = 25
	leastJoin = 10
)

// Known is the last accepted discovery: the names of the cluster Secrets that were there for an hour, sorted, and those
// that are to be, Fresh since then; Joined of them joined in the day that began at JoinedSince. Lost are those that
// were known and went within AcceptAfter, by when that was seen: a fleet that goes by and by is lost as one that goes
// at once. While a smaller discovery waits to be accepted, ShrunkFirst says since when, ShrunkSince since when no more
// were lost, and ShrunkTo how many clusters are left. Leaders are who leads where several Secrets have one server.
// Unsure are those of a plan that were not there at UnsureSince, when nothing else was known: for AcceptAfter nobody
// can say whether they were the fleet's. Twins are the servers that had several Secrets within twinsAfter, and when
// last.
type Known struct {
	Clusters    []string             `json:"clusters,omitempty"`
	Fresh       []string             `json:"fresh,omitempty"`
	FreshSince  time.Time            `json:"freshSince,omitzero"`
	Joined      int                  `json:"joined,omitempty"`
	JoinedSince time.Time            `json:"joinedSince,omitzero"`
	Lost        map[string]time.Time `json:"lost,omitempty"`
	ShrunkFirst time.Time            `json:"shrunkFirst,omitzero"`
	ShrunkSince time.Time            `json:"shrunkSince,omitzero"`
	ShrunkTo    int                  `json:"shrunkTo,omitempty"`
	Leaders     map[string]Leader    `json:"leaders,omitempty"`
	Unsure      []string             `json:"unsure,omitempty"`
	UnsureSince time.Time            `json:"unsureSince,omitzero"`
	Twins       map[string]time.Time `json:"twins,omitempty"`
}

// Has reports whether a Secret was there for long enough to be one of the fleet's. Where nothing is known yet, any is.
func (k Known) Has(name string) bool {
	if len(k.Clusters) == 0 {
		return true
	}
	_, known := slices.BinarySearch(k.Clusters, name)
	return known
}

// HasInOrder is Has for names that are asked in their order.
func (k Known) HasInOrder() func(name string) bool {
	if len(k.Clusters) == 0 {
		return k.Has
	}
	return inOrder(k.Clusters)
}

// inOrder answers for names in their order whether a sorted list has them.
func inOrder(sorted []string) func(name string) bool {
	at := 0
	return func(name string) bool {
		for at < len(sorted) && sorted[at] < name {
			at++
		}
		return at < len(sorted) && sorted[at] == name
	}
}

// Knew reports whether a Secret is or was lately one of the fleet's, and not only because nothing is known yet.
func (k Known) Knew(name string) bool {
	_, lately := k.Lost[name]
	return lately || len(k.Clusters) > 0 && k.Has(name)
}

// Misses reports whether a Secret that is gone may be there all the same, and only our list broken: it was known, and
// went within AcceptAfter, or nobody can say. A loss that was accepted is none.
func (k Known) Misses(name string) bool {
	_, lately := k.Lost[name]
	_, unsure := slices.BinarySearch(k.Unsure, name)
	return lately || unsure || k.Has(name)
}

// lately are the names that were known within AcceptAfter, sorted.
func (k Known) lately(now time.Time) []string {
	if len(k.Lost) == 0 {
		return k.Clusters
	}
	names := slices.Clone(k.Clusters)
	for name, since := range k.Lost {
		if now.Sub(since) < AcceptAfter {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// ShrinkError refuses a discovery that lost too many of the known clusters at once.
type ShrinkError struct {
	Found, Lost, Known int
	Until              time.Time // when it is believed, if it stays so
}

// Error names the counts, what happens, and what a person can do.
func (e *ShrinkError) Error() string {
	return fmt.Sprintf("accepting a discovery of %d clusters: %d of %d known clusters are gone within half an hour, so until %s the plan stays as it is, but for "+
		"clusters that leave a replica that is unwell, cordoned or taken away by an autoscaler; if they are gone for good, annotate the plan ConfigMap with ballast.argoproj.io/accept-discovery: %q",
		e.Found, e.Lost, e.Known, e.Until.UTC().Format(time.RFC3339), fmt.Sprint(e.Found))
}

// accept is judge, for those too of whom nobody can say whether they were known.
func (k Known) accept(found, ours []string, accepted *int, o Options, now time.Time) (Known, error) {
	next, err := k.judge(found, ours, accepted, o, now)
	next.Unsure, next.UnsureSince = nil, time.Time{}
	said := accepted != nil && *accepted == len(found)
	since := k.UnsureSince
	if now.Before(since) { // a clock that went back counts as no time
		since = now
	}
	if len(k.Unsure) == 0 || said || now.Sub(since) >= AcceptAfter {
		return next, err
	}
	for _, name := range k.Unsure {
		if _, back := slices.BinarySearch(found, name); !back {
			next.Unsure = append(next.Unsure, name)
		}
	}
	if len(next.Unsure) > 0 {
		next.UnsureSince = since
	}
	return next, err
}

// judge compares the names found, sorted, with the known ones; ours are those of them that ballast writes, which alone
// may become known: who may make Secrets must not dilute a loss by it.
func (k Known) judge(found, ours []string, accepted *int, o Options, now time.Time) (Known, error) {
	k.Clusters = k.lately(now)
	lost := k.missing(found, now)
	tooMany := len(k.Clusters) >= shrinkFrom && float64(len(lost)) > o.MaxShrink*float64(len(k.Clusters))
	empty := len(lost) == len(k.Clusters) && len(lost) > 0
	switch {
	case accepted != nil && *accepted == len(found): // a person's word for what is gone, and for nothing that came
		return k.grown(ours, k.FreshSince, o.Made, now), nil
	case !tooMany && !empty:
		next := k.grown(ours, k.FreshSince, o.Made, now)
		next.Lost = lost
		return next, nil
	}
	first, since := cmp.Or(k.ShrunkFirst, k.ShrunkSince), k.ShrunkSince // an older history has the one alone
	// A clock that went back counts as no time.
	if first.IsZero() || now.Before(first) {
		first = now
	}
	if since.IsZero() || now.Before(since) || len(found) < k.ShrunkTo {
		since = now
	}
	until := since.Add(AcceptAfter)
	if most := first.Add(2 * AcceptAfter); most.Before(until) {
		until = most
	}
	if !now.Before(until) {
		return k.grown(ours, now, o.Made, now), nil // what came meanwhile is as fresh as this
	}
	k.Lost, k.ShrunkFirst, k.ShrunkSince, k.ShrunkTo = nil, first, since, len(found)
	return k, &ShrinkError{Found: len(found), Lost: len(lost), Known: len(k.Clusters), Until: until}
}

// grown is what is known once these are found: whose time has come joins those that are known, the oldest first, as
// long as there is room for a day. Who makes Secrets anew, day by day, takes nobody's room by it.
func (k Known) grown(found []string, since time.Time, made map[string]time.Time, now time.Time) Known {
	if len(k.Clusters) == 0 {
		return Known{Clusters: found}
	}
	if since.IsZero() || now.Before(since) {
		since = now
	}
	due := now.Sub(since) >= KnownAfter
	next, room := k.today(now)
	most := 2 * max(leastJoin, len(k.Clusters)*mostJoin/100)
	var joining, newer []string
	known, isFresh := inOrder(k.Clusters), inOrder(k.Fresh)
	next.Clusters = make([]string, 0, len(k.Clusters))
	for _, name := range found {
		fresh := isFresh(name)
		switch {
		case known(name):
			next.Clusters = append(next.Clusters, name)
		case fresh && due && (len(made) == 0 || !made[name].IsZero()):
			joining = append(joining, name)
		case fresh || len(k.Fresh) == 0 || due:
			newer = append(newer, name)
		}
	}
	older := func(a, b string) int { return cmp.Or(made[a].Compare(made[b]), cmp.Compare(a, b)) }
	slices.SortFunc(joining, older)
	joins := min(max(room, 0), len(joining))
	next.Clusters, next.Joined = append(next.Clusters, joining[:joins]...), next.Joined+joins
	slices.Sort(next.Clusters)
	slices.SortFunc(newer, older)
	newer = append(joining[joins:], newer...)
	next.Fresh = slices.Clone(newer[:min(len(newer), most)])
	slices.Sort(next.Fresh)
	if next.Joined == 0 {
		next.JoinedSince = time.Time{}
	}
	if len(next.Fresh) == 0 {
		next.Fresh = nil
		return next
	}
	next.FreshSince = since
	if due || len(k.Fresh) == 0 {
		next.FreshSince = now
	}
	return next
}

// today is what joined within a day, and how many more may.
func (k Known) today(now time.Time) (next Known, room int) {
	next = Known{Joined: k.Joined, JoinedSince: k.JoinedSince}
	if since := now.Sub(k.JoinedSince); since < 0 || since >= 24*time.Hour {
		next.Joined, next.JoinedSince = 0, now
	}
	return next, max(leastJoin, (len(k.Clusters)-next.Joined)*mostJoin/100) - next.Joined
}

// missing are the known ones that are not found, and since when; nil for none.
func (k Known) missing(found []string, now time.Time) map[string]time.Time {
	var missing map[string]time.Time
	isFound := inOrder(found)
	for _, name := range k.Clusters {
		if isFound(name) {
			continue
		}
		if missing == nil {
			missing = map[string]time.Time{}
		}
		if missing[name] = now; k.Lost[name].Before(now) && !k.Lost[name].IsZero() {
			missing[name] = k.Lost[name]
		}
	}
	return missing
}
