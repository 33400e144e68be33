// Package harm says when a wave, or a rollout that fails again and again, stops everything after it.
package harm

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"ballast/planner/change"
)

const (
	// watched is how long a wave answers for what follows it.
	watched = 15 * time.Minute
	// warm is how long after a wave reconcile times say nothing: its clusters' caches fill, and their first refreshes
	// wait for that.
	warm = 3 * time.Minute
	// minReconciles is how many reconciles a mean needs, before as after.
	minReconciles = 20
	// slower is how much longer than before a mean must be.
	slower = 2.0
	// minRise is how much longer in seconds: the first bucket of Argo CD's own histogram, below which it tells nothing
	// apart.
	minRise = 0.25
)

// Work is what a replica did, by argocd_app_reconcile's count and sum: counters since its process began.
type Work struct {
	Reconciles uint64  `json:"n"`
	Seconds    float64 `json:"s"`
}

func (w Work) mean() float64 { return w.Seconds / float64(w.Reconciles) }

func (w Work) believable() bool {
	return w.Seconds >= 0 && !math.IsInf(w.Seconds, 1) // NaN is not >= 0
}

// Plus adds up work. What no number can hold is the largest that one can: JSON could not carry an infinite one.
func (w Work) Plus(other Work) Work {
	return Work{w.Reconciles + min(other.Reconciles, math.MaxUint64-w.Reconciles),
		min(w.Seconds+other.Seconds, math.MaxFloat64)}
}

// since is the work after an earlier count; ok is false for a process that began anew in between.
func (w Work) since(earlier Work) (done Work, ok bool) {
	if w.Reconciles < earlier.Reconciles || w.Seconds < earlier.Seconds {
		return Work{}, false
	}
	return Work{w.Reconciles - earlier.Reconciles, w.Seconds - earlier.Seconds}, true
}

// Kill is a replica's container that was killed for its memory, and when.
type Kill struct {
	Pod     string    `json:"pod"`
	Replica int       `json:"replica"`
	At      time.Time `json:"at"`
}

// portions is how many parts each replica's work has. The slower half of them says nothing of it: a cluster whose API
// server or Git is slow makes no replica slow, whoever it is that has it, nor do a few.
const portions = 8

// Portion is a part of the clusters of a replica, always the same for a server.
type Portion int

// PortionOf is the one that a server's work on a replica counts for.
func PortionOf(replica int, server string) Portion {
	h := fnv.New32a()
	h.Write([]byte(server))
	return Portion(replica*portions + int(h.Sum32()%portions))
}

func (p Portion) replica() int { return int(p) / portions }

// Signs is what is seen of the fleet at one time: orphaned clusters (beyond their grace period), OOM kills, and every
// replica's work so far, for all clusters but those Apart.
type Signs struct {
	Orphans []string         `json:"orphans,omitempty"`
	Kills   []Kill           `json:"kills,omitempty"`
	Work    map[Portion]Work `json:"portions,omitempty"`
	Apart   []string         `json:"apart,omitempty"`
}

// Wave is one that ended. Receivers are the replicas that its clusters came to; Orphans, Work and Apart are of the time
// at which it began.
type Wave struct {
	Began     time.Time
	Ended     time.Time
	Clusters  []string
	Receivers []int
	Orphans   []string
	Work      map[Portion]Work
	Apart     []string
}

// Watch is the memory of waves that still answer for what follows them; the zero value watches nothing. Apart are the
// clusters that its work leaves out, and From is each replica's work when its caches had filled. Over is when its time
// was found to be over: a clock that was ahead says so, too, and it goes on once that is back.
type Watch struct {
	Began     time.Time        `json:"began,omitzero"`
	Ended     time.Time        `json:"ended,omitzero"`
	Over      time.Time        `json:"over,omitzero"`
	Clusters  []string         `json:"clusters,omitempty"`
	Receivers []int            `json:"receivers,omitempty"`
	Orphans   []string         `json:"orphans,omitempty"`
	Apart     []string         `json:"apart,omitempty"`
	Before    map[Portion]Work `json:"portionsBefore,omitempty"`
	From      map[Portion]Work `json:"portionsFrom,omitempty"`
}

// TripReason is why nothing more may move. The set is closed.
type TripReason string

// The reasons.
const (
	Orphaned  TripReason = "Orphaned"
	OOMKilled TripReason = "OOMKilled"
	Slowed    TripReason = "Slowed" // a replica's mean reconcile time more than doubled
)

// Trip says that nothing more may move until a person clears it. Reasons are those above, and Failing. Where the reason
// is OOMKilled, Replicas are those that were killed, ascending, and Moved is how many clusters the watched waves moved:
// their names are kept beside it, in what may be large.
type Trip struct {
	At       time.Time    `json:"at"`
	Reason   TripReason   `json:"reason"`
	Why      string       `json:"why"`
	Cause    change.Cause `json:"cause,omitempty"` // of the rollout that failed, where Reason is Failing
	Replicas []int        `json:"replicas,omitempty"`
	Moved    int          `json:"moved,omitempty"`
}

// mostKilled bounds the replicas that a trip names.
const mostKilled = 1000

// Bounds reports whether a trip for memory says which failovers could hand on what killed a replica, given the names of
// the clusters that moved. One of an older version does not, nor does one whose names were lost: nobody knows what is
// safe then.
func (t Trip) Bounds(moved []string) bool {
	if n := len(t.Replicas); n == 0 || n > mostKilled || t.Replicas[0] < 0 {
		return false
	}
	ordered := slices.IsSorted(t.Replicas) && slices.IsSorted(moved)
	return ordered && t.Moved > 0 && t.Moved == len(moved)
}

// With is the trip with more replicas that were killed while it stood; the one that it was given stays as it is.
func (t Trip) With(now time.Time, replicas ...int) Trip {
	all := sorted(slices.Concat(t.Replicas, replicas))
	if !slices.Equal(all, t.Replicas) {
		t.At, t.Replicas = now, all
	}
	return t
}

// Joined is a trip for memory, and another one that came while it stood: the later words, and the replicas of both. The
// names of the clusters that moved are those of both.
func (t Trip) Joined(moved []string, later Trip, movedLater []string) (Trip, []string) {
	moved = sorted(slices.Concat(moved, movedLater))
	later.Replicas, later.Moved = sorted(slices.Concat(t.Replicas, later.Replicas)), len(moved)
	return later, moved
}

// Standing is the watch whose time is not over; else the zero value.
func (w Watch) Standing() Watch {
	if !w.Over.IsZero() {
		return Watch{}
	}
	return w
}

// After watches another wave. What was before the first of several waves in a row stays what the fleet is compared
// with, unless the new one leaves out other clusters.
func (w Watch) After(wave Wave) Watch {
	w = w.Standing()
	next := Watch{Began: wave.Began, Ended: wave.Ended,
		Clusters:  sorted(append(slices.Clone(w.Clusters), wave.Clusters...)),
		Receivers: sorted(slices.Concat(w.Receivers, wave.Receivers)), Orphans: sorted(wave.Orphans),
		Apart: sorted(wave.Apart), Before: Believable(wave.Work)}
	if w.Ended.IsZero() {
		return next
	}
	next.Began, next.Orphans = w.Began, w.Orphans
	if slices.Equal(next.Apart, w.Apart) {
		maps.Copy(next.Before, w.Before)
	}
	return next
}

// Believable leaves out what is no measurement; JSON could not carry it either.
func Believable(work map[Portion]Work) map[Portion]Work {
	out := make(map[Portion]Work, len(work))
	for portion, w := range work {
		if w.believable() {
			out[portion] = w
		}
	}
	return out
}

func sorted[T cmp.Ordered](values []T) []T {
	return slices.Compact(slices.Sorted(slices.Values(values)))
}

// Judge looks at the fleet after waves. A sign that they did harm within 15 minutes ends the watch with a trip; without
// one the watch goes on, or is over with its time, and is forgotten as much later. A clock that went back counts as no
// time passed.
func Judge(w Watch, now time.Time, signs Signs) (*Trip, Watch) {
	if w.Ended.IsZero() {
		return nil, Watch{}
	}
	trip := func(r TripReason, format string, args ...any) (*Trip, Watch) {
		return &Trip{At: now, Reason: r, Why: fmt.Sprintf(format, args...) + w.blame(now)}, Watch{}
	}
	if kills := w.killed(signs.Kills); len(kills) > 0 {
		t, next := trip(OOMKilled, "pod %q was killed for its memory", kills[0].Pod)
		t.Moved = len(w.Clusters)
		for _, k := range kills {
			*t = t.With(now, k.Replica)
		}
		return t, next
	}
	elapsed := now.Sub(w.Ended)
	switch over := !w.Over.IsZero(); {
	case elapsed > watched && over && now.Sub(w.Over) > watched:
		return nil, Watch{}
	case elapsed > watched && over:
		return nil, w
	case elapsed > watched:
		w.Over = now
		return nil, w
	}
	w.Over = time.Time{}
	if cluster, ok := w.orphan(signs.Orphans); ok {
		return trip(Orphaned, "cluster %q has no owner", cluster)
	}
	if elapsed < warm {
		return nil, w
	}
	w = w.measuredFrom(signs.Work)
	if replica, before, after, ok := w.slowed(signs.Work); ok {
		return trip(Slowed, "replica %d takes %.2f s for a reconcile instead of %.2f s", replica, after, before)
	}
	return nil, w
}

// blame ends a trip's sentence.
func (w Watch) blame(now time.Time) string {
	ago := max(now.Sub(w.Ended), 0).Truncate(time.Second)
	switch len(w.Clusters) {
	case 0:
		return fmt.Sprintf(", %s after clusters moved", ago)
	case 1:
		return fmt.Sprintf(", %s after cluster %q moved", ago, w.Clusters[0])
	}
	return fmt.Sprintf(", %s after cluster %q and %d more moved", ago, w.Clusters[0], len(w.Clusters)-1)
}

// killed finds the OOM kills that may be the waves' doing, the first one first: of replicas that received. One that
// lost clusters may go on dying of what it has left, and that is what a failover is for. A kill may be seen late, by
// its own time it is judged.
func (w Watch) killed(kills []Kill) []Kill {
	var found []Kill
	for _, k := range kills {
		if _, received := slices.BinarySearch(w.Receivers, k.Replica); !received || k.At.Before(w.Began) || k.At.Sub(w.Ended) > watched {
			continue
		}
		found = append(found, k)
	}
	slices.SortFunc(found, func(a, b Kill) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Pod, b.Pod)) })
	return found
}

// orphan finds a cluster that lost its owner since, one that moved before others.
func (w Watch) orphan(orphans []string) (string, bool) {
	var found []string
	for _, name := range sorted(orphans) {
		if _, before := slices.BinarySearch(w.Orphans, name); before {
			continue
		}
		if _, moved := slices.BinarySearch(w.Clusters, name); moved {
			return name, true
		}
		found = append(found, name)
	}
	if len(found) == 0 {
		return "", false
	}
	return found[0], true
}

// measuredFrom notes the work of replicas that are seen for the first time, or whose process began anew.
func (w Watch) measuredFrom(work map[Portion]Work) Watch {
	from := Believable(work)
	for portion, earlier := range w.From {
		if now, ok := from[portion]; ok {
			if _, same := now.since(earlier); !same {
				continue
			}
		}
		from[portion] = earlier
	}
	w.From = from
	return w
}

// compared is the work of one portion before a wave and after it.
type compared struct{ before, after Work }

// extra is how many more seconds it took after than before, for as much work.
func (c compared) extra() float64 {
	if c.before.Reconciles == 0 {
		return c.after.Seconds
	}
	return c.after.Seconds - c.before.mean()*float64(c.after.Reconciles)
}

// slowed finds the first replica whose mean reconcile time rose too much, without the portions that slowed most.
func (w Watch) slowed(work map[Portion]Work) (replica int, before, after float64, ok bool) {
	for _, r := range w.compare(work) {
		var base, done Work
		for _, c := range r.portions[len(r.portions)/2:] {
			base, done = base.Plus(c.before), done.Plus(c.after)
		}
		if base.Reconciles < minReconciles || done.Reconciles < minReconciles {
			continue
		}
		if before, after := base.mean(), done.mean(); after > slower*before && after-before >= minRise {
			return r.replica, before, after, true
		}
	}
	return 0, 0, 0, false
}

// replicaWork is what the portions of a replica did, the one that slowed most first.
type replicaWork struct {
	replica  int
	portions []compared
}

// compare is the work of each replica that goes on, ascending.
func (w Watch) compare(work map[Portion]Work) []replicaWork {
	var replicas []replicaWork
	for _, portion := range slices.Sorted(maps.Keys(work)) {
		done, same := work[portion].since(w.From[portion])
		if !same || !work[portion].believable() {
			continue
		}
		if n := len(replicas); n == 0 || replicas[n-1].replica != portion.replica() {
			replicas = append(replicas, replicaWork{replica: portion.replica()})
		}
		last := &replicas[len(replicas)-1]
		last.portions = append(last.portions, compared{w.Before[portion], done})
	}
	for _, r := range replicas {
		slices.SortStableFunc(r.portions, func(a, b compared) int { return cmp.Compare(b.extra(), a.extra()) })
	}
	return replicas
}

// Failing is that the same rollout failed again and again.
const Failing TripReason = "Failing"

const (
	// failsAgain is for how long a rollout that failed counts.
	failsAgain = 24 * time.Hour
	// mostFailures of one rollout within that time stop ballast: what kept it from ending twice does so again, and each
	// try makes pods come and go, or clusters.
	mostFailures = 3
	// triesAgain is how long what is tried all the same waits after that many, twice as long each time, at most longestWait.
	triesAgain  = 30 * time.Minute
	longestWait = 4 * time.Hour
	// keptFailures bounds what is remembered.
	keptFailures = 32
)

// OnlyMoves is what failed of a rollout that changes neither replicas nor env.
const OnlyMoves = "moves"

// Failure is a rollout that did not come to its end: for what cause, and what it was to bring about, in words.
type Failure struct {
	At    time.Time    `json:"at"`
	Cause change.Cause `json:"cause"`
	What  string       `json:"what"`
}

// Failures are those that count, oldest first. It is a value.
type Failures []Failure

// Add remembers one, and forgets what counts no more. The third of the same is a trip.
func (f Failures) Add(now time.Time, cause change.Cause, what, why string) (Failures, *Trip) {
	kept := slices.DeleteFunc(f.Until(now), func(one Failure) bool { return now.Sub(one.At) >= failsAgain })
	kept = append(kept, Failure{At: now, Cause: cause, What: what})
	kept = kept[max(0, len(kept)-keptFailures):]
	same := len(kept.same(cause, what))
	tried := cause == change.Failover && what == OnlyMoves // nobody has those clusters: they are tried for as long as it takes
	if same < mostFailures || tried {
		return kept, nil
	}
	return kept, &Trip{At: now, Reason: Failing, Cause: cause,
		Why: fmt.Sprintf("a rollout (%s: %s) failed %d times within a day, the last time: %s", cause, what, same, why)}
}

// same are the failures of one rollout, or of those that begin with what it is to bring about.
func (f Failures) same(cause change.Cause, what string) Failures {
	return slices.DeleteFunc(slices.Clone(f), func(one Failure) bool {
		return one.Cause != cause || one.What != what && !strings.HasPrefix(one.What, what+",")
	})
}

// Again is until when a rollout waits that failed as often as stops ballast, and is tried all the same, since clusters
// have no owner without it; zero: it may begin. What is how it was worded, up to a comma.
func (f Failures) Again(now time.Time, cause change.Cause, what string) time.Time {
	counts := slices.DeleteFunc(f.Until(now), func(one Failure) bool { return now.Sub(one.At) >= failsAgain })
	same := counts.same(cause, what)
	if len(same) < mostFailures {
		return time.Time{}
	}
	doubled := min(len(same)-mostFailures, 8) // no shift overflows
	again := same[len(same)-1].At.Add(min(triesAgain<<doubled, longestWait))
	if !again.After(now) {
		return time.Time{}
	}
	return again
}

// Until takes times that lie ahead as now, in a copy.
func (f Failures) Until(now time.Time) Failures {
	f = slices.Clone(f)
	for i := range f {
		if f[i].At.After(now) {
			f[i].At = now
		}
	}
	return f
}
