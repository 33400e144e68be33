package cycle

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
	"ballast/planner/cycle/problem"
	"ballast/planner/observed"
	"ballast/planner/plan"
)

const (
	// fullWindow is for how long a fleet is measured before the default queries, which look three hours back at rates of
	// ten minutes, say what is usual.
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

// unitOf names what loads are made by. Under another configuration, or by other references, the same number is another load.
func unitOf(c config.PlannerConfig, references map[string]string) string {
	var metrics []config.Metric // nil: the default ones, of whoever shows them
	if p := c.Poll.Prometheus; p != nil {
		metrics = p.Metrics
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

// outdated are the references that this cycle takes anew, and why: those that were taken before a full window was measured and
// are far from what it shows, and all of them where a person asks for it. A rollout goes on by the loads it was decided on.
func (c *cycle) outdated(a *adoption) (due []string, why string) {
	totals := map[string]float64{}
	for _, col := range c.out.Table.Columns {
		for _, v := range col.Values {
			totals[col.ID] += v
		}
	}
	m := &c.out.Memory
	if c.out.Table.Frozen {
		m.Refused = c.in.Now
	}
	asked := c.in.Rebase == plan.RebaseAnew && c.mayRebase()
	if c.out.Table.Frozen || a.next.Rollout != nil || !referencesCount(c.in.Config.Normalize) {
		return nil, ""
	}
	if m.Young = maps.Clone(m.Young); m.Young == nil {
		m.Young = map[string]time.Time{}
	}
	for _, id := range slices.Sorted(maps.Keys(a.next.References)) {
		ref, err := strconv.ParseFloat(a.next.References[id], 64)
		taken, young := m.Young[id]
		full := young && c.in.Now.Sub(taken) >= fullWindow && c.calm()
		uncertain := young && !full || c.cold()
		switch {
		case asked && uncertain:
			m.Young[id] = c.in.Now // what is taken now is no more certain than what was
		case asked, full:
			delete(m.Young, id)
		}
		far := err == nil && math.Abs(totals[id]-ref) > farOff*ref
		if totals[id] > 0 && (asked || full && far) {
			due = append(due, id)
		}
	}
	if asked {
		c.out.Rebased, m.Rebased, m.Before = true, c.in.Now, maps.Clone(a.next.References)
		return due, "as a person asked"
	}
	return due, "a full window is measured now"
}

// calm reports whether the metrics were believed for a full window: what was refused a moment ago, and is believed because it
// stays, must not become what is usual.
func (c *cycle) calm() bool {
	last := c.in.Memory.Refused
	return last.IsZero() || c.in.Now.Sub(last) >= fullWindow
}

// cold reports whether a replica has run for less than a full window: what it counts since its start is no usual hour's yet.
func (c *cycle) cold() bool {
	return slices.ContainsFunc(c.in.Observed.Pods, func(p observed.Pod) bool {
		return !p.Started.IsZero() && c.in.Now.Sub(p.Started) < fullWindow
	})
}

// undoRebase brings the references of before back, where a person asks for it.
func (c *cycle) undoRebase(a *adoption) {
	if c.in.Rebase != plan.RebaseBack || c.out.Table.Frozen || a.next.Rollout != nil {
		return
	}
	c.out.Rebased = true
	m := &c.out.Memory
	references := maps.Clone(a.next.References)
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
		c.problem(problem.Problem{Phase: problem.PhaseNormalize, Subject: plan.AnnotationRebase, Kind: "RebaseRefused",
			Message: "no references of before are known that differ from those that count: nothing is undone"})
		return
	}
	a.next.References = references
	c.note("took the references of before back, as a person asked: " + strings.Join(changed, ", "))
}

// mayRebase answers a person whose wish cannot be done: it is taken away, so that it is not done when nobody thinks of it any more.
func (c *cycle) mayRebase() bool {
	refuse := func(why string) bool {
		c.out.Rebased = true
		c.problem(problem.Problem{Phase: problem.PhaseNormalize, Subject: plan.AnnotationRebase, Kind: "RebaseRefused", Message: "the references are not taken anew: " + why})
		return false
	}
	last := c.in.Memory.Rebased
	switch since := c.in.Now.Sub(last); {
	case !referencesCount(c.in.Config.Normalize):
		return refuse("normalize.reference is not what the configuration says, and nothing else has any")
	case c.in.Config.Partition.Capacity != nil:
		return refuse("partition.capacity is a share of what they are, and would ask for another number of replicas: set it to null, and to its new value afterwards")
	case !last.IsZero() && since < rebaseAnswered:
		c.out.Rebased = true // done, and only the annotation stands still
		return false
	case !last.IsZero() && since < rebaseEvery:
		return refuse(fmt.Sprintf("they were at %s, and it is done once a day: ask again after %s", last.UTC().Format(time.RFC3339), last.Add(rebaseEvery).UTC().Format(time.RFC3339)))
	case !c.calm():
		at := c.in.Memory.Refused
		return refuse(fmt.Sprintf("the metrics were not believed at %s: ask again after %s", at.UTC().Format(time.RFC3339), at.Add(fullWindow).UTC().Format(time.RFC3339)))
	}
	return true
}

// without leaves references out, so that they are taken anew.
func without(references map[string]string, ids []string) map[string]string {
	kept := maps.Clone(references)
	for _, id := range ids {
		delete(kept, id)
	}
	return kept
}

// takeReferences takes over the references that the loads were made by: what is new is young, and people are told what was
// taken anew.
func (c *cycle) takeReferences(a *adoption, references map[string]string, anew []string, why string) {
	before, m := a.next.References, &c.out.Memory
	var first, changed []string
	m.Young = maps.Clone(m.Young)
	for _, id := range slices.Sorted(maps.Keys(references)) {
		old, known := before[id]
		switch {
		case !known:
			if m.Young == nil {
				m.Young = map[string]time.Time{}
			}
			m.Young[id] = c.in.Now
			first = append(first, id)
		case slices.Contains(anew, id) && old != references[id]:
			changed = append(changed, fmt.Sprintf("%s %s instead of %s", id, references[id], old))
		}
	}
	maps.DeleteFunc(m.Young, func(id string, _ time.Time) bool { _, stays := references[id]; return !stays })
	a.next.References = references
	if len(first) > 0 {
		c.provisional = fmt.Sprintf("the references of %s are taken anew at %s if they are not what is usual", strings.Join(first, ", "),
			c.in.Now.Add(fullWindow).UTC().Format(time.RFC3339))
	}
	if len(changed) > 0 {
		c.note(fmt.Sprintf("took references anew, %s: %s", why, strings.Join(changed, ", ")))
	}
}
