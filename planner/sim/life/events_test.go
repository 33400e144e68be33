package life

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"ballast/planner/plan"
)

// draw is which misfortunes a life is drawn from. What a seed means changes with it, so that seeds that are kept for what
// they found go on with the draw of then.
type draw int

const (
	kept     draw = iota // as the kept seeds were drawn
	wider                // clusters come and go, modes change, the break-glass opens, maxReplicas follows the fleet, Deployments
	widest               // more Deployments, with pods that find no slot; rolling restarts; plan and history put back or lost together
	sized                // and sizes by policies, nodes without room, clusters that take more memory than the rules say
	strange              // the widest, beside groups, memory, an env that is not the replicas, one that is awaited, no webhooks, refusals
	rich                 // the sized, beside weights, a node cap, what pods use, sizes at an interval, clusters that leave full nodes
	stranger             // the strange, and silent pods, Secrets' own pins, clocks of nodes and of people that are ahead
)

var (
	keptEvents = []string{"crash", "oom", "elect", "deaf", "lossy", "pin", "unpin", "pause", "load", "shard", "broken", "dies",
		"refused", "unreachable", "stuck", "resume", "rollback", "plan", "clock", "settings", "cordon", "scale", "optout", "optin"}
	widerEvents   = append(slices.Clone(keptEvents), "comes", "comes", "goes", "goes", "several go", "mode", "glass", "most", "mend")
	widestEvents  = append(slices.Clone(widerEvents), "restart", "backup", "restore", "restore", "lost", "slotless")
	strangeEvents = append(slices.Clone(widestEvents), "unheld", "barred", "barred", "regrouped", "restart", "restart")
	sizedEvents   = append(slices.Clone(widestEvents), "node full", "node small", "node room", "hungry", "hungry", "up", "down", "slope", "policies", "apply")
	richEvents    = append(slices.Clone(sizedEvents), "rollback", "rollback", "node full", "node small")

	strangerEvents = append(slices.Clone(strangeEvents), "silent", "silent", "asks", "asks", "asks", "asks no more",
		"node clock", "node clock", "restart ahead")
)

func (d draw) events() []string {
	return [][]string{keptEvents, widerEvents, widestEvents, sizedEvents, strangeEvents, richEvents, strangerEvents}[d]
}

// deployed reports whether a life is a Deployment's.
func (d draw) deployed(seed uint64) bool {
	every := map[draw]uint64{wider: 5, widest: 3, sized: 4, strange: 3, rich: 4, stranger: 3}[d]
	return every > 0 && seed%every == 0
}

// further is a misfortune of the wider draw.
func (l *luck) further(event, cluster string) error {
	switch event {
	case "comes":
		l.join()
	case "goes":
		l.retire(cluster, 1)
	case "several go":
		l.retire(cluster, 1+l.coin.IntN(len(l.Clusters)))
	case "mode":
		l.Config.Mode = []plan.Mode{plan.Hold, plan.Observe}[l.coin.IntN(2)]
		l.ends["mode"] = l.Now.Add(time.Duration(1+l.coin.IntN(8*60)) * time.Minute)
		l.note("mode %s", l.Config.Mode)
	case "glass":
		l.Glass = true
		l.ends["glass"] = l.Now.Add(time.Duration(1+l.coin.IntN(8*60)) * time.Minute)
		l.note("break-glass opens")
	case "most":
		most := max(l.Replicas-1+l.coin.IntN(4), 1)
		l.Config.Partition.MaxReplicas = &most
		l.note("maxReplicas: %d beside %d replicas", most, l.Replicas)
	case "mend": // so that what is ill for good does not fill every life
		clear(l.Broken)
		clear(l.Dies)
		clear(l.Slotless)
		clear(l.Silent)
		clear(l.Ahead)
		l.Stuck = false
		l.note("people mend what is ill")
	default:
		return l.last(event)
	}
	return nil
}

// last is a misfortune of the widest draw.
func (l *luck) last(event string) error {
	switch event {
	case "restart":
		l.RestartedAt = l.Now.UTC().Format(time.RFC3339)
		l.Generation++
		l.note("a person restarts the workload")
		l.joins()
	case "backup":
		if l.later = l.coin.IntN(2) == 0; !l.later {
			return l.saves()
		}
	case "restore":
		if l.backed == nil {
			return nil
		}
		l.note("plan %d and its history are put back", l.backed.plan.Revision)
		return l.restore(*l.backed)
	case "lost":
		l.note("somebody deletes the plan and its history")
		l.lose()
	case "slotless":
		if ordinal := l.coin.IntN(max(l.Replicas, 1)); l.Deployment {
			l.Slotless[ordinal] = true
			l.note("%d finds no slot", ordinal)
		}
	case "unheld", "barred", "regrouped":
		l.odd(event)
	case "silent", "asks", "asks no more", "node clock", "restart ahead":
		l.odder(event)
	default:
		l.resize(event)
	}
	return nil
}

// over ends what people did for a while.
func (l *luck) over() {
	for what, at := range l.ends {
		if l.Now.Before(at) {
			continue
		}
		delete(l.ends, what)
		l.note("%s is over", what)
		switch what {
		case "glass":
			l.Glass = false
		case "mode":
			l.Config.Mode = plan.Enforce
		case "unheld":
			l.Unheld = false
		default:
			l.unresize(what)
		}
	}
}

// unheld reports whether the webhooks let people's writes pass.
func (l *luck) unheld() bool { return l.Glass || l.Config.Mode == plan.Observe }

// join is a cluster that comes, at times one that went.
func (l *luck) join() {
	name := fmt.Sprintf("n%02d", l.comes)
	if back := l.went(); len(back) > 0 && l.coin.IntN(3) == 0 {
		name = back[l.coin.IntN(len(back))]
		delete(l.gone, name)
	} else {
		l.comes++
	}
	l.Join(name, math.Ceil(20*math.Exp(l.coin.NormFloat64())))
	l.note("%s comes", name)
}

// went lists the clusters that are gone, by name.
func (l *luck) went() []string {
	var names []string
	for name := range l.gone {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// retire has up to n clusters go, from one on, but leaves three; one of several Secrets of a server goes with the others.
func (l *luck) retire(from string, n int) {
	at := slices.Index(l.Clusters, from)
	order := slices.Concat(l.Clusters[at:], l.Clusters[:at])
	for _, name := range order[:min(n, len(order))] {
		if len(l.Clusters) <= 3 || len(l.SecretsOf(name)) > 1 {
			continue
		}
		l.Retire(name)
		l.gone[name] = l.Now
		l.note("%s goes", name)
	}
}

// days is how long a lowered maxReplicas may take at most: all clusters by as many as may move in a day, and in other modes
// than live the restart of the day is waited for, too (BudgetWaits, RestartWaits). x0y moves once a day what the budget has
// room for at once. As many may move as are a share of the servers that ballast moves.
func (l *luck) days() int {
	n, most := l.servers(), math.MaxInt
	for _, rate := range l.Config.Change.Moves.Rate {
		if l.Config.Rollout.X0Y != nil || time.Duration(rate.Period) == 24*time.Hour {
			most = min(most, max(1, rate.Percent*n/100))
		}
	}
	return (n+most-1)/most + 1
}

// servers is how many have a Secret that people do not keep.
func (l *luck) servers() int {
	moved := map[string]bool{}
	for _, name := range l.Clusters {
		if !l.OptedOut[name] {
			moved[l.First(name)] = true
		}
	}
	return len(moved)
}

// staysBelow: a lowered maxReplicas holds in the end.
func (l *luck) staysBelow(t *testing.T) {
	most := l.Config.Partition.MaxReplicas
	if most == nil || l.keepsReplicas(*most) {
		return
	}
	for day := 0; day < l.days() && l.Replicas > *most; day++ {
		l.Pass(24 * time.Hour)
	}
	if l.Replicas > *most {
		verdict := "none"
		if l.Last.Candidate != nil {
			verdict = l.Last.Candidate.Verdict
		}
		l.fatal(t, "after %d days more of peace there are %d replicas, and maxReplicas is %d; the candidate: %s",
			l.days(), l.Replicas, *most, verdict)
	}
}

// keepsReplicas reports whether people keep more replicas than that: as an autoscaler's, or by a Secret that ballast does
// not write (ReplicasHeld).
func (l *luck) keepsReplicas(most int) bool {
	return byPeople(l.Config) || slices.ContainsFunc(l.Clusters, func(name string) bool {
		return l.OptedOut[name] && l.Shards[name] >= most
	})
}
