package loads

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"ballast/planner/config"
	"ballast/planner/cycle/ground"
	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/problem"
	"ballast/planner/observed"
	"ballast/planner/plan"
	"ballast/planner/plan/configmap"
)

const (
	// fullWindow is for how long a fleet is measured before the default queries, which look three hours back at rates
	// of ten minutes, say what is usual.
	fullWindow = 3*time.Hour + 10*time.Minute
	// farOff is the share by which a reference may differ from what a full window shows and stay.
	farOff = 0.25
	// rebaseEvery is how often people may have the references taken anew: a load means another thing each time.
	rebaseEvery = 24 * time.Hour
	// rebaseAnswered is for how long one that is asked for is the one that was just done.
	rebaseAnswered = 5 * time.Minute
)

// referencesCount reports whether loads are shares of references.
func referencesCount(n config.Normalize) bool {
	return n.Robust == nil && n.MinMax == nil && n.None == nil
}

// unitOf names what loads are made by. Under another configuration, or by other references, the same number is another
// load.
func unitOf(c config.PlannerConfig, references map[string]string) string {
	var metrics []config.Metric // nil: the default ones, of whoever shows them
	if p := c.Poll.Prometheus; p != nil {
		metrics = p.OfClusters()
	}
	made := struct {
		Normalize  config.Normalize
		Index      config.Index
		Metrics    []config.Metric
		References map[string]string
	}{c.Normalize, c.Index, metrics, references}
	text, err := json.Marshal(made)
	if err != nil {
		return "" // none of this is ever refused
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// referencing keeps the references that loads are shares of, or takes them anew.
type referencing struct{ *outcome.Draft }

// outdated are the references that this cycle takes anew, and why: those that were taken before a full window was
// measured and are far from what it shows, and all of them where a person asks for it. A rollout goes on by the loads
// it was decided on.
func (r referencing) outdated(g *ground.Ground) (due []string, why string) {
	totals := map[string]float64{}
	for _, col := range r.Out.Table.Columns {
		total := 0.0
		for _, v := range col.Values {
			total += v
		}
		totals[col.ID] = total
	}
	m := &r.Out.Memory
	if r.Out.Table.Frozen {
		m.Refused = r.In.Now
	}
	asked := r.In.Rebase == configmap.RebaseAnew && r.mayRebase()
	if r.Out.Table.Frozen || g.Next.Rollout != nil || !referencesCount(r.In.Config.Normalize) {
		return nil, ""
	}
	if m.Young = maps.Clone(m.Young); m.Young == nil {
		m.Young = map[string]time.Time{}
	}
	kept, pinned := []string{}, r.In.Config.Partition.Capacity != nil // size.weights have a way of their own: see ratioTo
	for _, id := range slices.Sorted(maps.Keys(g.Next.References)) {
		ref, err := strconv.ParseFloat(g.Next.References[id], 64)
		since, young := m.Young[id]
		full := young && r.In.Now.Sub(since) >= fullWindow && r.calm()
		uncertain := young && !full || r.cold()
		far := err == nil && math.Abs(totals[id]-ref) > farOff*ref && totals[id] > 0
		switch {
		case asked && uncertain:
			m.Young[id] = r.In.Now // what is taken now is no more certain than what was
		case asked:
			delete(m.Young, id)
		case full && far && pinned: // young for as long as it is so
			kept = append(kept, fmt.Sprintf("%s is %s and a full window shows %s", id, g.Next.References[id],
				strconv.FormatFloat(totals[id], 'g', 4, 64)))
		case full:
			delete(m.Young, id)
		}
		anew := full && far && !pinned
		if asked && totals[id] > 0 || anew {
			due = append(due, id)
		}
	}
	if len(kept) > 0 {
		r.refuseRebase("the references are not what is usual (" + strings.Join(kept, ", ") + ") and are kept: " +
			underCapacity)
	}
	if asked {
		r.Out.Rebased, m.Rebased, m.Before = true, r.In.Now, maps.Clone(g.Next.References)
		return due, "as a person asked"
	}
	return due, "a full window is measured now"
}

// calm reports whether the metrics were believed for a full window: what was refused a moment ago, and is believed
// because it stays, must not become what is usual.
func (r referencing) calm() bool {
	last := r.In.Memory.Refused
	return last.IsZero() || r.In.Now.Sub(last) >= fullWindow
}

// cold reports whether a replica has run for less than a full window: what it counts since its start is no usual hour's
// yet.
func (r referencing) cold() bool {
	pods := r.Out.Memory.Changes.Replicas.Dated(r.In.Observed.Pods, r.In.Now)
	return slices.ContainsFunc(pods, func(p observed.Pod) bool {
		return !p.Started.IsZero() && r.In.Now.Sub(p.Started) < fullWindow
	})
}

// underCapacity is why nobody changes what a load is while a replica's capacity is written as a share of it.
const underCapacity = "partition.capacity is a share of what they are, and would ask for another number of replicas: set it to null, and to its new value afterwards"

// underWeights is why no person changes what a load is while the weights make a number of replicas of it.
const underWeights = "size.weights go by shares of what they are, and might ask for another number of replicas: take the weights out meanwhile"

func (r referencing) refuseRebase(why string) {
	r.Tell(problem.Problem{Phase: problem.PhaseNormalize, Subject: plan.AnnotationRebase, Kind: "RebaseRefused",
		Message: why})
}

// undoRebase brings the references of before back, where a person asks for it.
func (r referencing) undoRebase(g *ground.Ground) {
	if r.In.Rebase != configmap.RebaseBack || r.Out.Table.Frozen || g.Next.Rollout != nil {
		return
	}
	r.Out.Rebased = true
	if len(r.In.Config.Size.Weights) > 0 {
		r.refuseRebase("the references of before are not taken back: " + underWeights)
		return
	}
	m := &r.Out.Memory
	references := maps.Clone(g.Next.References)
	m.Young = maps.Clone(m.Young)
	var changed []string
	for _, id := range slices.Sorted(maps.Keys(m.Before)) {
		now, counts := references[id]
		if before := m.Before[id]; counts && before != now {
			references[id] = before
			delete(m.Young, id) // a person says that they are right
			changed = append(changed, fmt.Sprintf("%s %s instead of %s", id, before, now))
		}
	}
	m.Before = nil
	if len(changed) == 0 {
		r.refuseRebase("no references of before are known that differ from those that count: nothing is undone")
		return
	}
	g.Next.References = references
	r.Note("took the references of before back, as a person asked: " + strings.Join(changed, ", "))
}

// mayRebase answers a person whose wish cannot be done: it is taken away, so that it is not done when nobody thinks of
// it any more.
func (r referencing) mayRebase() bool {
	refuse := func(why string) bool {
		r.Out.Rebased = true
		r.refuseRebase("the references are not taken anew: " + why)
		return false
	}
	last := r.In.Memory.Rebased
	switch since := r.In.Now.Sub(last); {
	case !referencesCount(r.In.Config.Normalize):
		return refuse("normalize.reference is not what the configuration says, and nothing else has any")
	case r.In.Config.Partition.Capacity != nil:
		return refuse(underCapacity)
	case len(r.In.Config.Size.Weights) > 0:
		return refuse(underWeights)
	case !last.IsZero() && since < rebaseAnswered:
		r.Out.Rebased = true // done, and only the annotation stands still
		return false
	case !last.IsZero() && since < rebaseEvery:
		return refuse(fmt.Sprintf("they were at %s, and it is done once a day: ask again after %s",
			last.UTC().Format(time.RFC3339), last.Add(rebaseEvery).UTC().Format(time.RFC3339)))
	case !r.calm():
		at := r.In.Memory.Refused
		return refuse(fmt.Sprintf("the metrics were not believed at %s: ask again after %s",
			at.UTC().Format(time.RFC3339), at.Add(fullWindow).UTC().Format(time.RFC3339)))
	}
	return true
}

// ratioTo is how many of the loads' units one is by the references of before, where those are what the memory's loads
// are in; 0: they are not.
func (r referencing) ratioTo(before map[string]string) float64 {
	if r.In.Memory.Unit == "" || r.In.Memory.Unit != unitOf(r.In.Config, before) {
		return 0
	}
	old, _, problem := Of(r.In.Config, r.Out.Table, before)
	was, is := sumOf(old), sumOf(r.Out.Loads)
	if problem != nil || was == 0 {
		return 0
	}
	return is / was
}

func sumOf(loads []plan.Load) (sum float64) {
	for _, load := range loads {
		sum += load.Float()
	}
	return sum
}

// without leaves references out, so that they are taken anew.
func without(references map[string]string, ids []string) map[string]string {
	kept := maps.Clone(references)
	for _, id := range ids {
		delete(kept, id)
	}
	return kept
}

// takeReferences takes over the references that the loads were made by: what is new is young, and people are told what
// was taken anew.
func (r referencing) takeReferences(g *ground.Ground, references map[string]string, anew []string, why string) {
	before, m := g.Next.References, &r.Out.Memory
	var first, changed []string
	m.Young = maps.Clone(m.Young)
	for _, id := range slices.Sorted(maps.Keys(references)) {
		old, known := before[id]
		switch {
		case !known:
			if m.Young == nil {
				m.Young = map[string]time.Time{}
			}
			m.Young[id] = r.In.Now
			first = append(first, id)
		case slices.Contains(anew, id) && old != references[id]:
			changed = append(changed, fmt.Sprintf("%s %s instead of %s", id, references[id], old))
		}
	}
	maps.DeleteFunc(m.Young, func(id string, _ time.Time) bool { _, stays := references[id]; return !stays })
	g.Next.References = references
	if len(first) > 0 {
		r.Provisional = fmt.Sprintf("the references of %s are taken anew at %s if they are not what is usual",
			strings.Join(first, ", "),
			r.In.Now.Add(fullWindow).UTC().Format(time.RFC3339))
	}
	if len(changed) > 0 {
		r.Note(fmt.Sprintf("took references anew, %s: %s", why, strings.Join(changed, ", ")))
	}
}
