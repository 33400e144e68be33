package wish

import (
	"math"
	"time"

	"ballast/planner/cycle/memory"
	"ballast/planner/cycle/resize/quantity"
	"ballast/planner/cycle/resize/question"
	"ballast/planner/observed"
	"ballast/planner/size"
)

// LeftFor is how long at least nothing is levelled to a replica that clusters left since its node had no room, nor
// leaves it for that again.
const LeftFor = 24 * time.Hour

// stillLeaving is how long after a look clusters that leave are of the same rollout, at least: a look may be left out.
const stillLeaving = 5 * time.Minute

// sameTry reports whether a rollout that has clusters leave was seen so short a while ago.
func sameTry(q question.Question, c memory.Cramped) bool {
	lasts := max(stillLeaving, 2*q.Interval+time.Minute)
	began := c.Tries > 0 || !c.Left.IsZero() && q.Now.Sub(c.Left) < lasts
	return began && !c.Since.IsZero() && q.Now.Sub(c.Since) < lasts
}

// LeavesFor is how long that is by the rules: what they want falls only once their delays are over.
func LeavesFor(q question.Question) time.Duration {
	longest := time.Duration(0)
	for _, r := range q.Size.Merged() {
		longest = max(longest, r.DelayDown.For)
	}
	return max(LeftFor, longest+time.Duration(q.Size.MoveAway.After))
}

// Cramped remembers the replicas whose nodes have no room for what is wanted, where clusters are to leave them for
// that. The time begins anew with a rollout that takes clusters from a replica or gives it some: what it needs changes
// with it. A rollout for it that ends before anything left is one try more.
func Cramped(q question.Question, w Wishes) map[int]memory.Cramped {
	if q.Size.MoveAway == nil || q.Uniform() {
		return nil
	}
	next := map[int]memory.Cramped{}
	for _, replica := range q.All() {
		c := q.Memory.Cramped[replica]
		if q.Now.Sub(c.Left) >= LeavesFor(q) {
			c.Left = time.Time{}
		}
		if q.Givers[replica] && c.Left.IsZero() && c.Due(time.Duration(q.Size.MoveAway.After), q.Now) {
			c.Tries, c.Since = c.Tries+1, q.Now
		}
		if q.Givers[replica] && sameTry(q, c) { // also while a look says nothing
			c.Since = q.Now
		}
		if q.Leavers[replica] && sameTry(q, c) {
			c.Tries, c.Left = 0, q.Now
		}
		has, known := hasOf(q, w, replica)
		_, receives := q.Receivers[replica]
		switch {
		case !known: // it is as it was
		case has >= whole:
			c.Since, c.Has, c.Tries = time.Time{}, 0, 0
		case c.Since.IsZero() || receives || q.Givers[replica]:
			c.Since, c.Has = q.Now, has
		default:
			c.Has = has
		}
		if !c.Since.IsZero() || !c.Left.IsZero() {
			next[replica] = c
		}
	}
	return next
}

// whole is all of it, in percent.
const whole = 100

// hasOf is how many percent its pod has of what a replica is held at and its node has no room for; all of it where its
// node has. False: nobody can tell, since no pod of it is seen, or its node has not answered what it was asked for
// last.
func hasOf(q question.Question, w Wishes, replica int) (has int, known bool) {
	wanted, beyond := w.Beyond[replica]
	tight, asked := beyond, false
	for _, u := range q.Unmet {
		if u.Replica == replica {
			tight, asked = tight || u.NoRoom(), asked || u.Coming()
		}
	}
	if held := q.Held(q.Plan, q.Of(replica)); !beyond && held != nil {
		wanted = quantity.Of(held)
	}
	least, seen := float64(whole), false
	for _, p := range q.Pods {
		if p.Replica == replica && p.Size != nil {
			least, seen = math.Min(least, share(*p.Size, wanted)), true
		}
	}
	switch {
	case !seen, asked && !tight:
		return 0, false
	case !tight:
		return whole, true
	}
	return int(least), true
}

// share is how many percent of a size's requests a container has, of the one that it has least of.
func share(has observed.Size, wanted size.Resources) float64 {
	stands := quantity.Of(&has.Has)
	if len(stands.Requests) == 0 {
		stands = quantity.Of(&has.Asks.Controller)
	}
	least := float64(whole)
	for name, q := range wanted.Requests {
		if mine, known := stands.Requests[name]; known && q.Sign() > 0 {
			least = math.Min(least, whole*mine.AsApproximateFloat64()/q.AsApproximateFloat64())
		}
	}
	return least
}
