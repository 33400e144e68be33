package resize

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"ballast/planner/cycle/memory"
	"ballast/planner/cycle/problem"
	"ballast/planner/observed"
	"ballast/planner/plan"
	"ballast/planner/size"
)

// view is what stands, as the workload, the pods and the memory show it.
type view struct {
	found  *plan.Resources        // what the template had before ballast held it
	now    map[int]size.Resources // in force, by ordinal
	peaks  map[int]memory.Peak    // of memory, by replica
	killed map[int]int64          // the OOM kill that a replica grew for last
	kills  map[int]time.Time      // OOM kills that nobody grew for yet
	urgent map[int]string         // ordinals that grow at once, and why
	forged map[int]bool           // replicas that kills have raised as far as kills may

	overtaken map[int]map[string]bool // resources whose size the memory knows nothing of
}

// viewOf takes in what stands, peaks of memory, and who was killed for want of it.
func viewOf(q Question) view {
	v := view{found: q.podTemplate().found(), now: map[int]size.Resources{}, peaks: map[int]memory.Peak{}, killed: maps.Clone(q.Memory.Killed),
		kills: map[int]time.Time{}, urgent: map[int]string{}, forged: map[int]bool{}, overtaken: handover{q}.newer()}
	found := quantitiesOf(v.found)
	for _, r := range q.ordinals() {
		v.now[r] = found
		if held := q.held(q.Plan, r); held != nil {
			v.now[r] = over(found, quantitiesOf(held))
		}
	}
	for replica, peak := range q.Memory.Peaks {
		if replica < q.Replicas {
			v.peaks[replica] = peak
		}
	}
	maps.DeleteFunc(v.killed, func(replica int, _ int64) bool { return replica >= q.Replicas })
	if v.killed == nil {
		v.killed = map[int]int64{}
	}
	for _, p := range q.Pods {
		if p.Replica >= 0 && p.Replica < q.Replicas {
			v.pod(q, p)
		}
	}
	for replica := range q.Receivers {
		if v.urgent[q.of(replica)] == "" {
			v.urgent[q.of(replica)] = "clusters are about to move to it"
		}
	}
	return v
}

// pod takes in what one pod uses, and whether it was killed.
func (v view) pod(q Question, p observed.Pod) {
	used := min(p.Memory, mostUsed(q, p))
	switch {
	case !p.OOMKilled || !q.fresh(p):
	case v.overtaken[q.of(p.Replica)][size.Memory], q.comes(p): // the size that the memory does not know of may be the answer to it
		v.killed[p.Replica] = p.KilledAt.Unix()
	default:
		used = max(used, v.afterKill(q, p))
		v.urgent[q.of(p.Replica)], v.kills[p.Replica] = "it was OOM-killed since it grew last", p.KilledAt
	}
	v.peaks[p.Replica] = v.peaks[p.Replica].Next(used, q.Now)
}

// mostUsed is the most that a pod can have in use, whoever says so: what its limit lets it, or, without one, what a node has.
func mostUsed(q Question, p observed.Pod) int64 {
	if p.MemoryLimit > 0 {
		return mostSeen(p.MemoryLimit)
	}
	if most, known := q.NodeCap[size.Memory]; known {
		return most.Value()
	}
	return math.MaxInt64
}

// mostSeen is the most that counts as used under a limit: a fifth above it is that limit, so that what is seen in use keeps a limit from
// shrinking and makes none larger. Only a kill does.
func mostSeen(limit int64) int64 { return limit / 6 * 5 / size.FloorStep * size.FloorStep }

// fresh reports whether a replica did not grow yet for a kill: each counts once, by the time that its node says.
func (q Question) fresh(p observed.Pod) bool {
	return p.KilledLately(q.Now) && p.KilledAt.Unix() > q.Memory.Killed[p.Replica]
}

// comes reports whether the plan holds a replica at a larger memory limit than its pod has got: that is the answer to its kills.
func (q Question) comes(p observed.Pod) bool {
	limit, limited := quantitiesOf(q.held(q.Plan, q.of(p.Replica))).Limits[size.Memory]
	return limited && p.MemoryLimit > 0 && limit.CmpInt64(p.MemoryLimit) > 0
}

// mostByKills is how many times the limit that people and policies give a replica its kills may make of it, where nobody knows what
// a node has: who writes pods' status can tell of kills without end.
const mostByKills = 4

// afterKill is what a replica is taken to have used that was killed: all of its limit.
func (v view) afterKill(q Question, p observed.Pod) int64 {
	if _, bounded := q.NodeCap[size.Memory]; bounded {
		return p.MemoryLimit
	}
	plain, known := v.withoutPeaks(q, p.Replica)
	if !known {
		return p.MemoryLimit
	}
	if found, limited := quantitiesOf(v.found).Limits[size.Memory]; limited && found.Cmp(plain) > 0 {
		plain = found
	}
	if most := plain.Value(); most > 0 && p.MemoryLimit/mostByKills >= most {
		v.forged[p.Replica] = true
		return 0
	}
	return p.MemoryLimit
}

// problems name the replicas whose kills raise nothing any more.
func (v view) problems() (all []problem.Problem) {
	for _, replica := range slices.Sorted(maps.Keys(v.forged)) {
		all = append(all, problem.Problem{Phase: problem.PhaseSize, Subject: fmt.Sprintf("replica %d", replica), Kind: "NodeTooSmall", Message: fmt.Sprintf(
			"replica %d was OOM-killed at four times the memory limit that the pod template or the policies give it, and kills raise it no further: "+
				"have a rule give it more, or write size.nodeCap.memory, up to which they do", replica)})
	}
	return all
}

// withoutPeaks is the memory limit that the policies make for a replica, whatever was seen in use.
func (v view) withoutPeaks(q Question, replica int) (resource.Quantity, bool) {
	asked := asks(q, v)
	asked.Peak = nil
	plain, _ := size.Evaluate(asked, q.Memory.Rules)
	limit, known := plain.Sizes[q.of(replica)].Limits[size.Memory]
	return limit, known
}

// used is the most that each ordinal was seen to use; the highest of all where they have one size.
func (v view) used(q Question) map[int]float64 {
	out := map[int]float64{}
	for replica, peak := range v.peaks {
		at := q.of(replica)
		out[at] = max(out[at], float64(peak.Bytes))
	}
	return out
}
