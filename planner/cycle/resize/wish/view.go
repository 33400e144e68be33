package wish

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"ballast/planner/cycle/problem"
	"ballast/planner/cycle/resize/quantity"
	"ballast/planner/cycle/resize/question"
	"ballast/planner/cycle/track"
	"ballast/planner/observed"
	"ballast/planner/plan"
	"ballast/planner/size"
)

// View is what stands, as the workload, the pods and the memory show it.
type View struct {
	Found   *plan.Resources        // what the template had before ballast held it
	Current map[int]size.Resources // in force, by ordinal
	Peaks   map[int]track.Peak     // of memory, by replica
	Killed  map[int]int64          // the OOM kill that a replica grew for last
	Kills   map[int]time.Time      // OOM kills that nobody grew for yet
	Urgent  map[int]string         // ordinals that grow at once, and why
	forged  map[int]bool           // replicas that kills have raised as far as kills may

	Overtaken map[int]map[string]bool // resources whose size the memory knows nothing of
}

// ViewOf takes in what stands, peaks of memory, and who was killed for want of it.
func ViewOf(q question.Question) View {
	v := View{Found: q.PodTemplate().Found(), Current: map[int]size.Resources{}, Peaks: map[int]track.Peak{},
		Killed: maps.Clone(q.Memory.Killed),
		Kills:  map[int]time.Time{}, Urgent: map[int]string{}, forged: map[int]bool{},
		Overtaken: question.Handover{Question: q}.Newer()}
	found := quantity.Of(v.Found)
	for _, r := range q.Ordinals() {
		v.Current[r] = found
		if held := q.Held(q.Plan, r); held != nil {
			v.Current[r] = quantity.Over(found, quantity.Of(held))
		}
	}
	for replica, peak := range q.Memory.Peaks {
		if replica < q.Replicas {
			v.Peaks[replica] = peak
		}
	}
	maps.DeleteFunc(v.Killed, func(replica int, _ int64) bool { return replica >= q.Replicas })
	if v.Killed == nil {
		v.Killed = map[int]int64{}
	}
	for _, p := range q.Pods {
		if p.Replica >= 0 && p.Replica < q.Replicas {
			v.pod(q, p)
		}
	}
	for replica := range q.Receivers {
		if v.Urgent[q.Of(replica)] == "" {
			v.Urgent[q.Of(replica)] = "clusters are about to move to it"
		}
	}
	return v
}

// pod takes in what one pod uses, and whether it was killed.
func (v View) pod(q question.Question, p observed.Pod) {
	used := min(p.Memory, mostUsed(q, p))
	switch {
	case !p.OOMKilled || !fresh(q, p):
	case v.Overtaken[q.Of(p.Replica)][size.Memory], comes(q, p): // the size that the memory does not know of may be the answer to it
		v.Killed[p.Replica] = p.KilledAt.Unix()
	default:
		used = max(used, v.afterKill(q, p))
		v.Urgent[q.Of(p.Replica)], v.Kills[p.Replica] = "it was OOM-killed since it grew last", p.KilledAt
	}
	v.Peaks[p.Replica] = v.Peaks[p.Replica].Next(used, q.Now)
}

// mostUsed is the most that a pod can have in use, whoever says so: what its limit lets it, or, without one, what a
// node has.
func mostUsed(q question.Question, p observed.Pod) int64 {
	if p.MemoryLimit > 0 {
		return mostSeen(p.MemoryLimit)
	}
	if most, known := q.NodeCap[size.Memory]; known {
		return most.Value()
	}
	return math.MaxInt64
}

// mostSeen is the most that counts as used under a limit: a fifth above it is that limit, so that what is seen in use
// keeps a limit from shrinking and makes none larger. Only a kill does.
func mostSeen(limit int64) int64 { return limit / 6 * 5 / size.FloorStep * size.FloorStep }

// fresh reports whether a replica did not grow yet for a kill: each counts once, by the time that its node says.
func fresh(q question.Question, p observed.Pod) bool {
	return p.KilledLately(q.Now) && p.KilledAt.Unix() > q.Memory.Killed[p.Replica]
}

// comes reports whether the plan holds a replica at a larger memory limit than its pod has got: that is the answer to
// its kills.
func comes(q question.Question, p observed.Pod) bool {
	limit, limited := quantity.Of(q.Held(q.Plan, q.Of(p.Replica))).Limits[size.Memory]
	return limited && p.MemoryLimit > 0 && limit.CmpInt64(p.MemoryLimit) > 0
}

// mostByKills is how many times the limit that people and policies give a replica its kills may make of it, where
// nobody knows what a node has: who writes pods' status can tell of kills without end.
const mostByKills = 4

// afterKill is what a replica is taken to have used that was killed: all of its limit.
func (v View) afterKill(q question.Question, p observed.Pod) int64 {
	if _, bounded := q.NodeCap[size.Memory]; bounded {
		return p.MemoryLimit
	}
	plain, known := v.withoutPeaks(q, p.Replica)
	if !known {
		return p.MemoryLimit
	}
	if found, limited := quantity.Of(v.Found).Limits[size.Memory]; limited && found.Cmp(plain) > 0 {
		plain = found
	}
	if most := plain.Value(); most > 0 && p.MemoryLimit/mostByKills >= most {
		v.forged[p.Replica] = true
		return 0
	}
	return p.MemoryLimit
}

// Problems name the replicas whose kills raise nothing any more.
func (v View) Problems() (all []problem.Problem) {
	for _, replica := range slices.Sorted(maps.Keys(v.forged)) {
		all = append(all, problem.Problem{Phase: problem.PhaseSize, Subject: fmt.Sprintf("replica %d", replica),
			Kind: "NodeTooSmall", Message: fmt.Sprintf(
				"replica %d was OOM-killed at four times the memory limit that the pod template or the policies give it, and kills raise it no further: "+
					"have a rule give it more, or write size.nodeCap.memory, up to which they do", replica)})
	}
	return all
}

// withoutPeaks is the memory limit that the policies make for a replica, whatever was seen in use.
func (v View) withoutPeaks(q question.Question, replica int) (resource.Quantity, bool) {
	sizes := questionOf(q, v)
	sizes.Peak = nil
	plain, _ := size.Evaluate(sizes, q.Memory.Rules)
	limit, known := plain.Sizes[q.Of(replica)].Limits[size.Memory]
	return limit, known
}

// used is the most that each ordinal was seen to use; the highest of all where they have one size.
func (v View) used(q question.Question) map[int]float64 {
	out := map[int]float64{}
	for replica, peak := range v.Peaks {
		at := q.Of(replica)
		out[at] = max(out[at], float64(peak.Bytes))
	}
	return out
}

// questionOf is what the sizes follow from.
func questionOf(q question.Question, v View) size.Question {
	return size.Question{Rules: sampled(q.Size.Merged(), q.Interval), Inputs: q.Readings, Replicas: q.Ordinals(),
		Uniform: q.Uniform(),
		InForce: v.Current, Found: quantity.Of(v.Found), Headroom: q.Size.Headrooms(), Peak: v.used(q),
		NodeCap: q.NodeCap, Held: true, Now: q.Now}
}

// sampled are rules whose percentiles are of one sample an interval, however often cycles run.
func sampled(rules []size.Rule, interval time.Duration) []size.Rule {
	for i, r := range rules {
		if r.Smoothing != nil {
			smoothing := *r.Smoothing
			smoothing.Every = interval
			rules[i].Smoothing = &smoothing
		}
	}
	return rules
}
