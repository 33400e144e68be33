package apply

import (
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"ballast/planner/diff"
	"ballast/planner/observed"
)

const (
	// firstBackoff and maxBackoff pace the writes of one value to one object: 1 s, doubled by each, to 10 min at most.
	firstBackoff = time.Second
	maxBackoff   = 10 * time.Minute
	// forgetAfter is how long an object must have been left in peace to count as new: several rounds of the hour that
	// External Secrets Operator refreshes at by default.
	forgetAfter = 6 * time.Hour
	// contestedFrom is the number of reverts that make a second writer of what looks like an accident. Nobody wins
	// against a second writer by writing more often: from there on the delay grows eightfold instead of twofold, so
	// that a writer that reverts at once is answered six times in its first ten minutes, and then every ten.
	contestedFrom   = 3
	contestedGrowth = 8
	// nudgeEvery and nudgesAtMost pace the nudges of one move: at once, and again until its new owner took the cluster,
	// for half a minute. The first may come before the new owner heard of the Secret; whom six did not wake, none will.
	nudgeEvery = 5 * time.Second
	// nudgeSoon is when the second one follows the first: 2 of 650 first ones were lost on Argo CD v3.2.11 under load,
	// where the new owner, or only the old one, saw the Application before the Secret.
	nudgeSoon    = time.Second
	nudgesAtMost = 6
	// nudgedFor is how long a repaired cluster is nudged at most, such as while the API server is away. Argo CD's own
	// resync wakes its owner meanwhile: by default after 3 minutes at most.
	nudgedFor = 10 * time.Minute
)

// pace decides when an object may be written again. It is asked by concurrent writes; time is an argument. The backoff
// is its own: that of client-go's flowcontrol knows keys alone, and here a new value waits for nothing, a failed write
// is no revert, and the growth changes with what looks like a second writer.
type pace struct {
	mu       sync.Mutex
	budget   *rate.Limiter
	objects  map[string]record
	nudges   map[nudged]called
	repaired map[string]observed.Repair // by Secret
	hung     time.Time                  // when a nudge took longer than nudgeWithin last
}

// nudged is one move of a cluster, called how often and when its new owner was nudged.
type (
	nudged struct {
		cluster string
		shard   int
		since   int64 // of the wave, in seconds
	}
	called struct {
		times int
		last  time.Time
	}
)

// record is what pace remembers of an object: the value that was written last and how often it was undone.
type record struct {
	value    string
	written  bool // at least one write of the value succeeded
	reverted int
	at, next time.Time
	delay    time.Duration
}

func newPace(perMinute int) *pace {
	return &pace{budget: rate.NewLimiter(rate.Limit(float64(perMinute)/60), perMinute), objects: map[string]record{},
		nudges: map[nudged]called{}, repaired: map[string]observed.Repair{}}
}

// wait is how long a write must still wait for the object's backoff. A new value is not a revert, and waits for
// nothing; a wait beyond any backoff is a clock that went back.
func (p *pace) wait(object, value string, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	r, known := p.objects[object]
	if !known || r.value != value {
		return 0
	}
	if left := r.next.Sub(now); left > 0 && left <= maxBackoff {
		return left
	}
	return 0
}

// spend takes one write from the fleet's budget where so many stay, or answers when there is one again.
func (p *pace) spend(now time.Time, stay int) time.Duration {
	if missing := float64(stay) + 1 - p.budget.TokensAt(now); stay > 0 && missing > 0 {
		return time.Duration(math.Ceil(missing / float64(p.budget.Limit()) * float64(time.Second)))
	}
	reservation := p.budget.ReserveN(now, 1)
	wait := reservation.DelayFrom(now)
	if wait > 0 {
		reservation.CancelAt(now)
	}
	return wait
}

// wrote records a write, and answers how often somebody undid it before.
func (p *pace) wrote(object, value string, succeeded bool, now time.Time) (reverted int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r, known := p.objects[object]
	if !known || r.value != value || now.Sub(r.at) > forgetAfter {
		r = record{value: value}
	}
	if r.written {
		r.reverted++
	}
	r.written = succeeded
	growth := time.Duration(2)
	if r.reverted >= contestedFrom {
		growth = contestedGrowth
	}
	r.delay = min(max(growth*r.delay, firstBackoff), maxBackoff)
	r.at, r.next = now, now.Add(r.delay)
	p.objects[object] = r
	return r.reverted
}

// forget drops what nobody touched for long, so that Secrets that are gone take no memory.
func (p *pace) forget(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for object, r := range p.objects {
		if now.Sub(r.at) > forgetAfter {
			delete(p.objects, object)
		}
	}
	for move, c := range p.nudges {
		if now.Sub(c.last) > forgetAfter {
			delete(p.nudges, move)
		}
	}
	for secret, g := range p.repaired {
		if now.Sub(g.At) > nudgedFor {
			delete(p.repaired, secret)
		}
	}
}

// repair remembers that a repair gave a cluster another owner.
func (p *pace) repair(secret string, g observed.Repair) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.repaired[secret] = g
}

// leave forgets it: there is nobody to be woken.
func (p *pace) leave(secret string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.repaired, secret)
}

// repairs are those whose nudges are not over.
func (p *pace) repairs(now time.Time) map[string]observed.Repair {
	p.mu.Lock()
	defer p.mu.Unlock()
	open := map[string]observed.Repair{}
	for secret, g := range p.repaired {
		if p.nudges[nudged{secret, g.Shard, g.At.Unix()}].times < nudgesAtMost && now.Sub(g.At) <= nudgedFor {
			open[secret] = g
		}
	}
	return open
}

// nudge takes one nudge of a move, or answers when there is one again; spent says that there is none any more. A wait
// beyond the pace is a clock that went back.
func (p *pace) nudge(s diff.Nudge, now time.Time) (wait time.Duration, spent bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	move := nudged{s.Cluster, s.Shard, s.Since.Unix()}
	c := p.nudges[move]
	if c.times >= nudgesAtMost {
		return 0, true
	}
	if left := c.gap() - now.Sub(c.last); !c.last.IsZero() && left > 0 && left <= c.gap() {
		return left, false
	}
	p.nudges[move] = called{c.times + 1, now}
	return 0, false
}

// gap is the time until the next one.
func (c called) gap() time.Duration {
	if c.times == 1 {
		return nudgeSoon
	}
	return nudgeEvery
}

// again is the time until the next nudge of a move that was nudged just now.
func (p *pace) again(s diff.Nudge) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.nudges[nudged{s.Cluster, s.Shard, s.Since.Unix()}].gap()
}

// hangsFor is for how long no nudge is tried after one that took too long.
const hangsFor = time.Minute

// hangs reports whether one did lately.
func (p *pace) hangs(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	since := now.Sub(p.hung)
	return !p.hung.IsZero() && since >= 0 && since < hangsFor
}

// hang has no other nudge tried for a while.
func (p *pace) hang(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hung = now
}

// missed gives a nudge back that reached nobody, such as one while the API server was away. It kept the pace all the
// same.
func (p *pace) missed(s diff.Nudge) {
	p.mu.Lock()
	defer p.mu.Unlock()
	move := nudged{s.Cluster, s.Shard, s.Since.Unix()}
	c := p.nudges[move]
	p.nudges[move] = called{c.times - 1, c.last}
}

// resizeAgain is when an API server that has no pods/resize is asked again: a control plane is upgraded while planners
// run.
const resizeAgain = time.Hour

// unsized is since when the API server is known to lack something of pods/resize; zero: it has it, or nobody knows.
type unsized struct {
	mu    sync.Mutex
	since time.Time
}

func (u *unsized) learn(now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.since = now
}

// wait is how long no pod is tried.
func (u *unsized) wait(now time.Time) time.Duration {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.since.IsZero() || now.Before(u.since) {
		return 0
	}
	return u.since.Add(resizeAgain).Sub(now)
}
