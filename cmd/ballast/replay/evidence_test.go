package replay

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/replay"
	"ballast/planner/replay/trace"
)

// What a replay rests on stands in two lines: how much the trace says, and what it does not.
func TestAReplaySaysWhatItRestsOn(t *testing.T) {
	reports := []replay.Report{{Name: "shipped"}, {Name: "full", Capacity: 0.45}, {Name: "legacy", Capacity: 0.45}, {Name: "lpt"}}
	full := trace.Evidence{Steps: 48, Samples: 300, Missing: 20, Gaps: 2, Gap: 25 * time.Minute, Long: 4 * time.Hour}
	whole := trace.Evidence{Steps: 1, Samples: 1, Long: time.Minute}
	for name, test := range map[string]struct {
		replicas int
		header   trace.Header
		read     trace.Evidence
		reports  []replay.Report
		says     string
		assumes  string
	}{
		"gaps": {0, trace.Header{Replicas: 2}, full, reports,
			"Evidence: 4h in 48 steps, 7 clusters, 300 samples, 20 missing (6.2 %), 2 gaps (25m), in which nothing is known and nothing is levelled.",
			"Assumed: 2 replicas at the beginning (by the trace); no partition.capacity, so that nothing says when a replica is full (shipped, lpt); partition.capacity 0.45 (full, legacy)."},
		"whole": {5, trace.Header{Replicas: 2}, whole, reports[1:3],
			"Evidence: 1m in 1 step, 7 clusters, 1 sample, none missing, no gap.",
			"Assumed: 5 replicas at the beginning (by --replicas); partition.capacity 0.45 (every setup)."},
		"alone": {0, trace.Header{}, whole, reports[:1],
			"Evidence: 1m in 1 step, 7 clusters, 1 sample, none missing, no gap.",
			"Assumed: 3 replicas at the beginning (by default: neither the trace nor --replicas says it); no partition.capacity, so that nothing says when a replica is full (shipped)."},
	} {
		t.Run(name, func(t *testing.T) {
			o := &options{replicas: test.replicas}
			e := o.evidence(test.header, test.read, test.reports)
			if diff := cmp.Diff([]string{test.says, test.assumes}, []string{e.says(traceView{Clusters: 7}), e.assumes()}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// What holds of several setups is said once.
func TestARemarkIsMadeOnce(t *testing.T) {
	kept := func(name string, cycles int) replay.Report {
		return replay.Report{Name: name, Cycles: 10, Kept: []replay.Count{{Kind: "poll/LowCoverage", Cycles: cycles}}}
	}
	for want, reports := range map[string][]replay.Report{
		"every setup: in 5 cycles loads moved nothing, for poll/LowCoverage.": {kept("a", 5), kept("b", 5)},
		"a: in 5 cycles loads moved nothing, for poll/LowCoverage.":           {kept("a", 5)},
		"a, c: in 5 cycles loads moved nothing, for poll/LowCoverage.":        {kept("a", 5), {Name: "b", Cycles: 10}, kept("c", 5)},
	} {
		if got := remarks(trace.Header{}, reports); !slices.Equal(got, []string{want}) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := remarks(trace.Header{}, []replay.Report{kept("a", 1), kept("b", 5)}); len(got) != 2 {
		t.Errorf("remarks that differ: %q", got)
	}
}
