package resize

import (
	"math"
	"time"

	"ballast/planner/cycle/memory"
	"ballast/planner/observed"
	"ballast/planner/size"
)

// leftFor is how long nothing is levelled to a replica that clusters left since its node had no room.
const leftFor = 24 * time.Hour

// cramped remembers the replicas whose nodes have no room for what is wanted, where clusters are to leave them for that. The time begins
// anew while a rollout is under way: what they need changes with it.
func (q Question) cramped(w wishes) map[int]memory.Cramped {
	if q.Size.MoveAway == nil || q.uniform() {
		return nil
	}
	next := map[int]memory.Cramped{}
	for _, replica := range q.all() {
		c := q.Memory.Cramped[replica]
		if q.Now.Sub(c.Left) >= leftFor {
			c.Left = time.Time{}
		}
		if known := !c.Since.IsZero() || !c.Left.IsZero(); known && q.Givers[replica] {
			c.Left = q.Now
		}
		has := q.hasOf(w, replica)
		switch {
		case has >= whole:
			c.Since, c.Has = time.Time{}, 0
		case c.Since.IsZero() || q.Plan.Rollout != nil:
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

// hasOf is how many percent of what is wanted a replica's pod has whose node has no room for more; all of it where its node has.
func (q Question) hasOf(w wishes, replica int) int {
	wanted, beyond := w.beyond[replica]
	tight := beyond
	for _, u := range q.Unmet {
		tight = tight || u.Replica == replica && u.NoRoom()
	}
	if !tight {
		return whole
	}
	if !beyond {
		wanted = w.Sizes[replica]
	}
	least := float64(whole)
	for _, p := range q.Pods {
		if p.Replica == replica && p.Size != nil {
			least = math.Min(least, share(*p.Size, wanted))
		}
	}
	return int(least)
}

// share is how many percent of a size's requests a container has, of the one that it has least of.
func share(has observed.Size, wanted size.Resources) float64 {
	stands := quantitiesOf(&has.Has)
	if len(stands.Requests) == 0 {
		stands = quantitiesOf(&has.Asks.Controller)
	}
	least := float64(whole)
	for name, q := range wanted.Requests {
		if mine, known := stands.Requests[name]; known && q.Sign() > 0 {
			least = math.Min(least, whole*mine.AsApproximateFloat64()/q.AsApproximateFloat64())
		}
	}
	return least
}
