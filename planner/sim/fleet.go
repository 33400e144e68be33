package sim

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"ballast/planner/observed"
	"ballast/planner/plan"
)

// Timing is how long Kubernetes and Argo CD take.
type Timing struct {
	Schedule time.Duration // until a new pod's container runs
	Start    time.Duration // until it is ready after that, at least
	Spread   time.Duration // how much longer that may take, in whole seconds
	Grace    time.Duration // until a pod that is deleted is gone; 0: it is replaced at once
	Resync   time.Duration // until an owner that nobody nudged looks at its cluster, at least; at most half as much again
	Gauges   time.Duration // how often a pod's gauges of its clusters are made anew; 0: always
	Informer time.Duration // how long a pod may not have heard of a Secret
}

// Usual is how long they took where it was measured; only the gauges are made anew every 10 s instead of every 30 s,
// which makes waves no different, only longer.
func Usual() Timing {
	return Timing{Schedule: time.Second, Start: 2 * time.Second, Spread: 20 * time.Second, Grace: 3 * time.Second,
		Resync: 2 * time.Minute, Gauges: 10 * time.Second, Informer: time.Second}
}

// MemoryLimit is every pod's.
const MemoryLimit = 100

// Pod is an application-controller's pod. It read its env at its start, owns what Argo CD's rule gives it, and has
// connected those of its clusters that it took.
type Pod struct {
	Ordinal, Env int
	Template     string
	Runs, Ready  time.Time            // from when on
	Gone         time.Time            // from when on; zero: nobody deleted it
	Gained, Took map[string]time.Time // when it came to own a cluster, and when it began to work on it

	Restarts    int // so far, by no Dies
	RestartedAt time.Time
	OOMKilled   bool
	Memory      int64
	Size        *observed.Size // nil: it has none
}

// Fleet is what Kubernetes and Argo CD make of the application-controller and the cluster Secrets: the StatefulSet's
// controller (OrderedReady, RollingUpdate), kubelets, and application-controllers. Time is an argument, and everything
// that is left to chance is drawn from the seed.
type Fleet struct {
	Timing

	Seed             uint64
	Clusters         []string
	Shards           map[string]int // of the Secrets that have one
	Replicas         int
	Env, RestartedAt string
	Generation       int64
	Observed         int64
	Deployment       bool // pods count spec.replicas instead of the env; a slot is an ordinal, claimed while its pod is up
	Pods             map[int]*Pod
	Made, Found      int // pods so far, and those that were there at first

	Stuck       bool                 // pods that are not ready yet do not become so
	Broken      map[int]bool         // ordinals whose pods are not ready, whatever becomes of them
	Dies        map[int]time.Time    // ordinals whose container is killed for its memory again and again, since when
	Slotless    map[int]bool         // ordinals of a Deployment whose pods find no free slot, and own nothing
	Unreachable map[string]bool      // clusters that nobody can connect
	Twins       map[string]string    // Secrets of another one's server, and which that is
	Forgot      map[string]time.Time // servers, by their first Secret, of which one of several Secrets was deleted, and when
	Sizing      *Sizing              // nil: pods have no sizes

	Silent map[int]bool          // ordinals whose pods tell nobody what they own, ready or not
	Ahead  map[int]time.Duration // by how much the clock of an ordinal's node is ahead: its pods' restarts and kills are dated by it

	acted time.Time // when the StatefulSet's controller acted last
}

// Sizing is how large the controller's container of each pod is, and how much memory it uses. Uses is asked with the
// clusters that a pod works on. Full are ordinals whose node has no room for more now, and Small those whose node never
// has, with its bytes.
type Sizing struct {
	Template plan.Resources                             // what the pod template gives it
	Held     func(replica int) (plan.Resources, bool)   // what the webhook gives a new pod
	Uses     func(ordinal int, clusters []string) int64 // in bytes
	Full     map[int]bool
	Small    map[int]int64
	Killed   int // containers that were killed for their memory, so far

	words string // of the template
}

func (s *Sizing) template(r plan.Resources) { s.Template, s.words = r, fmt.Sprint(r) }

// NewFleet has those clusters and no pod yet.
func NewFleet(seed uint64, timing Timing, clusters []string) *Fleet {
	return &Fleet{Timing: timing, Seed: seed, Clusters: clusters, Shards: map[string]int{}, Pods: map[int]*Pod{},
		Broken: map[int]bool{}, Dies: map[int]time.Time{}, Slotless: map[int]bool{}, Unreachable: map[string]bool{},
		Twins: map[string]string{}, Forgot: map[string]time.Time{}, Silent: map[int]bool{},
		Ahead: map[int]time.Duration{}}
}

// Join is a Secret that somebody makes, without a shard.
func (f *Fleet) Join(secret string) {
	f.Clusters = slices.Sorted(slices.Values(append(slices.Clone(f.Clusters), secret)))
}

// Retire is a Secret that somebody deletes. One that has twins goes after them.
func (f *Fleet) Retire(secret string) {
	f.Clusters = slices.DeleteFunc(slices.Clone(f.Clusters), func(other string) bool { return other == secret })
	delete(f.Shards, secret)
	delete(f.Twins, secret)
	delete(f.Unreachable, secret)
	for _, p := range f.Pods {
		delete(p.Gained, secret)
		delete(p.Took, secret)
	}
}

// Draw is a number below n that only the seed and the words decide.
func (f *Fleet) Draw(n uint64, words ...string) uint64 {
	var seed [20]byte
	h := fnv1a(fnvBasis, strconv.AppendUint(seed[:0], f.Seed, 10))
	for _, w := range words {
		h = fnv1a(fnv1a(h, "/"), w)
	}
	return (h ^ h>>29) % n
}

const fnvBasis, fnvPrime = 14695981039346656037, 1099511628211

// fnv1a goes on with hash/fnv's 64-bit FNV-1a, without an allocation: simulations draw some million numbers.
func fnv1a[T string | []byte](h uint64, text T) uint64 {
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * fnvPrime
	}
	return h
}

// A container that keeps being killed is so every dies, and is backed off for most of that.
const dies, backoff = 4 * time.Minute, 3 * time.Minute

// killed is how often an ordinal's container was killed, and when it was last.
func (f *Fleet) killed(ordinal int, now time.Time) (times int, at time.Time) {
	since, keepsDying := f.Dies[ordinal]
	if !keepsDying {
		return 0, time.Time{}
	}
	times = int(now.Sub(since)/dies) + 1
	return times, since.Add(time.Duration(times-1) * dies)
}

// Dead reports whether an ordinal's container was killed and does not run again yet.
func (f *Fleet) Dead(ordinal int, now time.Time) bool {
	times, at := f.killed(ordinal, now)
	return times > 0 && now.Sub(at) < backoff
}

// Template is what a pod that starts now is made of.
func (f *Fleet) Template() string {
	if f.Sizing == nil {
		return f.Env + "@" + f.RestartedAt
	}
	return f.Env + "@" + f.RestartedAt + "@" + f.Sizing.words
}

func (p *Pod) running(now time.Time) bool {
	return !now.Before(p.Runs) && (p.Gone.IsZero() || now.Before(p.Gone))
}

// Up reports whether a pod is there and ready.
func (f *Fleet) Up(p *Pod, now time.Time) bool {
	if p == nil || !p.Gone.IsZero() {
		return false
	}
	ill := f.Broken[p.Ordinal] || f.Dead(p.Ordinal, now)
	return !ill && p.running(now) && !now.Before(p.Ready)
}

// Crash restarts a pod's container in its place.
func (f *Fleet) Crash(ordinal int, oom bool, now time.Time) {
	if p := f.Pods[ordinal]; p != nil && p.Gone.IsZero() {
		p.Restarts, p.RestartedAt, p.OOMKilled, p.Ready = p.Restarts+1, now, oom, now.Add(f.Start)
		p.Runs = now
	}
}
