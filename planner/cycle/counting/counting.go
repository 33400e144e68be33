// Package counting says how many replicas there may be: by the weights, by what they are known to bear, and by the
// rules of change.
package counting

import (
	"slices"
	"strconv"
	"time"

	"ballast/planner/change"
	"ballast/planner/config/changerules"
	"ballast/planner/cycle/division"
	"ballast/planner/cycle/division/bounds"
	"ballast/planner/cycle/ground"
	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/resize"
	"ballast/planner/observed"
	"ballast/planner/plan"
	"ballast/planner/size"
)

// tally is a number of replicas that is wanted, and what stands.
type tally struct {
	now, wanted int
	musts       int  // replicas that pins, Secrets that nobody may write, caps and groups ask for: nothing holds those back
	due         bool // it is wanted now: what is merely not needed waits for downWindow first
	over        bool // a replica carries more than it may
}

// counting asks the rules of change for the number of replicas.
type counting struct{ *outcome.Draft }

// Allowed asks change.out and change.in for how many of the replicas that are wanted there may be now, of however many:
// all of those that people did not ask for.
func Allowed(draft *outcome.Draft, g *ground.Ground, d division.Division, wanted int, due bool) (allowed int) {
	c := counting{draft}
	if bounds.Counted(g, false) {
		c.Out.Memory.Counts.History, c.Out.Memory.Counts.Blocked = change.Past{}, nil
		return wanted
	}
	of := tally{now: min(bounds.Settled(g.Next), d.Bounds.MaxReplicas), wanted: wanted,
		musts: max(bounds.MustHave(g), g.ReplicasHeld()), due: due,
		over: d.Starved > 0 || c.overloaded(c.Out.Now, d.Bounds.Capacity)}
	for _, item := range d.Items {
		of.musts = max(of.musts, item.Replica+1)
	}
	return c.allowed(g, of)
}

// overloaded reports whether a replica carries more than it may.
func (c counting) overloaded(now []plan.Replica, capacity plan.Load) bool {
	most := MostLoad(c.Out.Counts, capacity)
	return most > 0 && slices.ContainsFunc(now, func(r plan.Replica) bool { return r.TotalLoad.Float() > most })
}

// allowed is how many of the replicas that are wanted there may be now, with what is in the way of the others.
func (c counting) allowed(g *ground.Ground, of tally) int {
	rules, m := changerules.OfCount(c.In.Config), &c.Out.Memory.Counts
	h := c.In.Memory.Counts.History
	if h.Last == 0 && len(h.Wishes) == 0 { // what stands was wanted until now
		h = h.Wish(c.In.Now, int64(of.now), rules.Out, rules.In)
	}
	h = h.Wish(c.In.Now, int64(of.wanted), rules.Out, rules.In)
	before := m.Blocked
	m.History, m.Blocked = h, nil
	if of.wanted > of.now && of.wanted <= of.musts {
		return of.wanted
	}
	ask := change.Ask{Now: c.In.Now, Current: int64(of.now), Wanted: int64(of.wanted), OverCapacity: of.over,
		OOMKilled: c.killedSince(h.Last)}
	if g.Next.Rollout != nil {
		ask.Known = []change.BlockReason{change.RolloutInProgress}
	}
	v := rules.Replicas(ask, h)
	if resting := g.Next.Rollout == nil || g.Weighed > 0; of.due && resting { // what a partition asks for midway says little
		c.blockCount(v, of, before)
	}
	allowed := int(v.Value)
	if of.wanted > of.now {
		allowed = max(allowed, min(of.musts, of.wanted))
	}
	return allowed
}

// killedSince reports whether a replica was OOM-killed since the number changed last, and within a day. A node's clock
// that is ahead may date a kill after the change that was made for it.
func (c counting) killedSince(last int64) bool {
	answered := c.In.Memory.Counts.Killed
	return slices.ContainsFunc(c.In.Observed.Pods, func(p observed.Pod) bool {
		at := p.KilledAt.Unix()
		since := at > last && at != answered[p.Replica]
		return since && p.OOMKilled && p.KilledLately(c.In.Now)
	})
}

// blockCount says what keeps the number from changing, and since when: the rules of change, or the weights themselves.
func (c counting) blockCount(v change.Verdict, of tally, before map[string]time.Time) {
	b := resize.Blocked{Replica: size.All, Resource: resize.ResourceReplicas, Direction: v.Direction,
		From: strconv.Itoa(of.now), To: strconv.Itoa(of.wanted)}
	w := c.Counts().Weights
	switch {
	case len(v.Blocks) > 0:
		b.Reason, b.Until, b.Why = v.Blocks[0].Reason, v.Blocks[0].Until, v.Blocks[0].Why
	case w == nil || of.wanted != of.now:
		return
	case w.Fewer > 0:
		b.Reason, b.Direction, b.To = change.Paradoxical, change.In, strconv.Itoa(w.Fewer)
		b.Why = "each of them would be larger than the weights ask"
	case w.Weight == 100 && w.Horizontal != of.now:
		b.Reason, b.Direction, b.To = change.Weight, change.Out, strconv.Itoa(w.Horizontal)
		if w.Horizontal < of.now {
			b.Direction = change.In
		}
		b.Why = "all of the load's interval makes replicas larger or smaller"
	default:
		return
	}
	key := string(b.Direction) + "/" + string(b.Reason)
	since, known := before[key]
	if !known {
		since = c.In.Now
	}
	b.Since, c.Out.Memory.Counts.Blocked = since, map[string]time.Time{key: since}
	c.Counts().Blocked = []resize.Blocked{b}
}

// Scaled remembers another number of replicas that begins to come about, whoever asked for it.
func Scaled(c *outcome.Draft, now, next plan.Plan) {
	r := next.Rollout
	if r == nil || r.Replicas == now.Replicas || now.FreeReplicas {
		return
	}
	rules, m := changerules.OfCount(c.In.Config), &c.Out.Memory.Counts
	m.History = m.History.Changed(c.In.Now, r.Replicas-now.Replicas, rules.Out, rules.In)
	m.Killed = killsAhead(c.In.Observed.Pods, c.In.Now)
}

// killsAhead are the kills that nodes date later than it is, by replica.
func killsAhead(pods []observed.Pod, now time.Time) (kills map[int]int64) {
	for _, p := range pods {
		if ahead := p.KilledAt.After(now) && p.KilledLately(now); !p.OOMKilled || !ahead {
			continue
		}
		if kills == nil {
			kills = map[int]int64{}
		}
		kills[p.Replica] = p.KilledAt.Unix()
	}
	return kills
}
