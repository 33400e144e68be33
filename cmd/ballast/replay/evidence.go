package replay

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"ballast/cmd/ballast/say"
	"ballast/planner/replay"
	"ballast/planner/replay/trace"
)

// evidence is what a replay rests on: how much the trace says, and what is assumed beside it.
type evidence struct {
	Seconds    int64      `json:"seconds"` // from the first step to the end of the last one
	Steps      int        `json:"steps"`
	Samples    int        `json:"samples"`
	Missing    int        `json:"missing"`    // values that clusters have not, which were there
	Gaps       int        `json:"gaps"`       // in which nothing is known, so that nothing is levelled
	GapSeconds int64      `json:"gapSeconds"` // of all of them
	Replicas   int        `json:"replicas"`   // at the beginning
	By         string     `json:"replicasBy"` // whoever said so many
	Capacities []capacity `json:"capacities"` // in the order of the setups
}

// capacity is partition.capacity of some setups; empty: none.
type capacity struct {
	Load   string   `json:"load"`
	Setups []string `json:"setups"`
}

// evidence is that of a trace that was read to its end.
func (o *options) evidence(h trace.Header, read trace.Evidence, reports []replay.Report) evidence {
	e := evidence{Seconds: int64(read.Long / time.Second), Steps: read.Steps, Samples: read.Samples,
		Missing: read.Missing,
		Gaps:    read.Gaps, GapSeconds: int64(read.Gap / time.Second)}
	switch {
	case o.replicas > 0:
		e.Replicas, e.By = o.replicas, "--replicas"
	case h.Replicas > 0:
		e.Replicas, e.By = h.Replicas, "the trace"
	default:
		e.Replicas, e.By = replay.DefaultReplicas, "default"
	}
	for _, r := range reports {
		load := ""
		if r.Capacity > 0 {
			load = strconv.FormatFloat(r.Capacity, 'f', -1, 64)
		}
		at := slices.IndexFunc(e.Capacities, func(c capacity) bool { return c.Load == load })
		if at < 0 {
			at = len(e.Capacities)
			e.Capacities = append(e.Capacities, capacity{Load: load})
		}
		e.Capacities[at].Setups = append(e.Capacities[at].Setups, r.Name)
	}
	return e
}

// says is how much the trace says, in one line.
func (e evidence) says(t traceView) string {
	words := []string{fmt.Sprintf("%s in %s", say.Span(time.Duration(e.Seconds)*time.Second),
		say.Plural(e.Steps, "step")),
		say.Plural(t.Clusters, "cluster"), say.Plural(e.Samples, "sample"), "none missing", "no gap"}
	if e.Missing > 0 {
		words[3] = fmt.Sprintf("%d missing (%.1f %%)", e.Missing, 100*float64(e.Missing)/float64(e.Missing+e.Samples))
	}
	if e.Gaps > 0 {
		words[4] = fmt.Sprintf("%s (%s), in which nothing is known and nothing is levelled", say.Plural(e.Gaps, "gap"),
			say.Span(time.Duration(e.GapSeconds)*time.Second))
	}
	return "Evidence: " + strings.Join(words, ", ") + "."
}

// assumes is what the trace does not say, in one line.
func (e evidence) assumes() string {
	words := []string{fmt.Sprintf("%s at the beginning (by %s)", say.Plural(e.Replicas, "replica"), e.By)}
	if e.By == "default" {
		words[0] = fmt.Sprintf("%s at the beginning (by default: neither the trace nor --replicas says it)",
			say.Plural(e.Replicas, "replica"))
	}
	all := 0
	for _, c := range e.Capacities {
		all += len(c.Setups)
	}
	for _, c := range e.Capacities {
		says := "partition.capacity " + c.Load
		if c.Load == "" {
			says = "no partition.capacity, so that nothing says when a replica is full"
		}
		words = append(words, fmt.Sprintf("%s (%s)", says, setups(c.Setups, all)))
	}
	return "Assumed: " + strings.Join(words, "; ") + "."
}
