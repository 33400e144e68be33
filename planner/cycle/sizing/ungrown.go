package sizing

import (
	"fmt"
	"maps"
	"slices"

	"ballast/planner/change"
	"ballast/planner/config"
	"ballast/planner/cycle/input"
	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/resize"
	"ballast/planner/plan"
	"ballast/planner/size"
)

// Ungrown are the growths that the rules of change hold back and that levelling would need, by the replica that
// clusters would come to.
type Ungrown map[int][]resize.Blocked

// mostTries is how often a cycle is run anew without the moves to replicas that may not grow.
const mostTries = 4

// WithGrowth runs a cycle, and runs it anew where it begins to level clusters to replicas that may not grow for them:
// what is levelled waits until they may. Each run is given the replicas that are held, to which it levels nothing, and
// shows more to hold or to let go: one that wants to grow as much without what was kept from it is let go for good,
// since it is not for what would come that it may not. After mostTries runs every replica is held: the next run levels
// nothing, and is the last.
func WithGrowth(in input.Inputs, run func(held Ungrown) outcome.Outcome) outcome.Outcome {
	held, letGo := Ungrown{}, map[int]bool{}
	for tries := 1; ; tries++ {
		out := run(held)
		if freed := held.asMuch(out); len(freed) > 0 && tries <= mostTries {
			for _, replica := range freed {
				letGo[replica] = true
				delete(held, replica)
			}
			continue
		}
		more := ungrownIn(in, out)
		maps.DeleteFunc(more, func(replica int, _ []resize.Blocked) bool { return letGo[replica] || len(held[replica]) > 0 })
		if len(more) == 0 || tries > mostTries {
			return held.shown(out)
		}
		if tries == mostTries {
			more = more.forAll(out.Next.Replicas)
		}
		maps.Copy(held, more)
	}
}

// ungrownIn are the replicas to which a cycle began to level clusters and that may not grow for them, but those that
// are to come: of a fleet with too few replicas each new one is a relief.
func ungrownIn(in input.Inputs, out outcome.Outcome) Ungrown {
	rests := in.InForce != nil && in.InForce.Rollout == nil
	levelled := out.Memory.Changes.Cause.Levels() && out.Next.Rollout != nil
	inPlace := out.Sizing != nil && out.Sizing.Apply != config.Template
	if !rests || !levelled || !inPlace {
		return nil
	}
	held := Ungrown{}
	for replica := range ReceiversOf(out.Next, out.Memory.Changes.Target) {
		for _, b := range out.Sizing.Blocked {
			mine := b.Replica == replica || b.Replica == size.All
			if mine && replica < in.InForce.Replicas && byRule(in.Config.Change, b) {
				held[replica] = append(held[replica], b)
			}
		}
	}
	return held
}

// asMuch are the replicas that want to grow as much in an outcome that levels nothing to them: it is not for what would
// come that they may not, and a replica that is never to grow would never receive anything.
func (u Ungrown) asMuch(out outcome.Outcome) (replicas []int) {
	if out.Sizing == nil {
		return nil
	}
	less := func(b resize.Blocked) bool {
		return !slices.ContainsFunc(out.Sizing.Blocked, func(now resize.Blocked) bool { return now.Key() == b.Key() && !exceeds(b.To, now.To) })
	}
	for replica, with := range u {
		if !slices.ContainsFunc(with, less) {
			replicas = append(replicas, replica)
		}
	}
	slices.Sort(replicas)
	return replicas
}

// exceeds reports whether one amount is more than another.
func exceeds(one, other string) bool {
	a, err := plan.ReadQuantity(one)
	b, unread := plan.ReadQuantity(other)
	return err != nil || unread != nil || a.Cmp(b) > 0
}

// byRule reports whether change.up holds a growth back.
func byRule(c config.Change, b resize.Blocked) bool {
	if b.Direction != change.Up {
		return false
	}
	off := b.Reason == change.UpdatePolicy && c.Up.Mode == change.Off
	return off || b.Reason == change.OutsideMaintenance || b.Reason == change.RateLimit
}

// forAll holds every replica back for the first one's reason.
func (u Ungrown) forAll(replicas int) Ungrown {
	all, first := Ungrown{}, slices.Min(slices.Collect(maps.Keys(u)))
	for replica := range replicas {
		all[replica] = u[first]
	}
	return all
}

// Why is what people are told of each.
func (u Ungrown) Why() map[int]string {
	all := map[int]string{}
	for replica, blocked := range u {
		all[replica] = fmt.Sprintf("replica %d may not grow now for what would come to it (change.up: %s)", replica,
			blocked[0].Reason)
	}
	return all
}

// shown adds them to what an outcome says is blocked, and remembers since when.
func (u Ungrown) shown(out outcome.Outcome) outcome.Outcome {
	for _, replica := range slices.Sorted(maps.Keys(u)) {
		for _, b := range u[replica] {
			if _, told := out.Memory.Sizes.Blocked[b.Key()]; told || out.Sizing == nil {
				continue
			}
			out.Memory.Sizes.Blocked[b.Key()] = b.Since
			out.Sizing.Blocked = append(out.Sizing.Blocked, b)
		}
	}
	return out
}
