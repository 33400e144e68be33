package ownership

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// worked is a pod's report of its counters for server a, b, ... as pairs of reconciliations and seconds.
func worked(replica int, counters ...float64) PodReport {
	servers := map[string]ServerReport{}
	for i := 0; i < len(counters); i += 2 {
		servers[string(rune('a'+i/2))] = ServerReport{Reconciles: counters[i], Seconds: counters[i+1]}
	}
	return answer(replica, servers)
}

func TestWorkIsCountedBetweenTwoReports(t *testing.T) {
	for name, test := range map[string]struct {
		earlier, later []PodReport
		want           Interval
	}{
		"counters went on": {
			[]PodReport{worked(0, 100, 50, 10, 1), worked(1, 7, 7)}, []PodReport{worked(0, 140, 70, 10, 1), worked(1, 8, 9)},
			Interval{0: {"a": {40, 20}}, 1: {"a": {1, 2}}},
		},
		"a counter began anew":                 {[]PodReport{worked(0, 100, 50)}, []PodReport{worked(0, 30, 60)}, Interval{0: {"a": {30, 60}}}},
		"the seconds alone show it":            {[]PodReport{worked(0, 20, 50)}, []PodReport{worked(0, 30, 4)}, Interval{0: {"a": {30, 4}}}},
		"a cluster came":                       {[]PodReport{worked(0, 1, 1)}, []PodReport{worked(0, 1, 1, 5, 2)}, Interval{0: {"b": {5, 2}}}},
		"a pod came: since when is not known":  {nil, []PodReport{worked(0, 30, 60)}, Interval{}},
		"a pod was silent before":              {[]PodReport{silent(0, true)}, []PodReport{worked(0, 30, 60)}, Interval{}},
		"a pod is silent now":                  {[]PodReport{worked(0, 30, 60)}, []PodReport{silent(0, true)}, Interval{}},
		"nothing was done":                     {[]PodReport{worked(0, 30, 60)}, []PodReport{worked(0, 30, 60)}, Interval{0: {}}},
		"a pod changed its slot in between":    {[]PodReport{worked(0, 30, 60)}, []PodReport{renamed(worked(2, 40, 70), "ac-0")}, Interval{2: {"a": {10, 10}}}},
		"two pods take themselves for replica": {[]PodReport{worked(0, 1, 1), renamed(worked(0, 2, 2), "x")}, []PodReport{worked(0, 2, 3), renamed(worked(0, 4, 5), "x")}, Interval{0: {"a": {3, 5}}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Between(test.earlier, test.later)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func renamed(r PodReport, name string) PodReport {
	r.Name = name
	return r
}

func TestAReplicaIsSlowerLikeForLike(t *testing.T) {
	steady := map[string]Work{"s": {100, 40}}
	for name, test := range map[string]struct {
		before, after Interval
		receivers     []int
		want          []Pace
	}{
		"twice as slow":                    {Interval{0: {"a": {100, 40}}}, Interval{0: {"a": {50, 40}}}, []int{0}, []Pace{{0, 0.4, 0.8}}},
		"not quite twice":                  {Interval{0: {"a": {100, 40}}}, Interval{0: {"a": {100, 79}}}, []int{0}, nil},
		"a slow cluster came, others stay": {Interval{0: {"a": {100, 40}}}, Interval{0: {"a": {100, 40}, "b": {100, 900}}}, []int{0}, nil},
		"a slow cluster came, others slow": {Interval{0: {"a": {100, 40}}}, Interval{0: {"a": {100, 100}, "b": {100, 900}}}, []int{0}, []Pace{{0, 0.4, 1}}},
		"more of the slow cluster's work":  {Interval{0: {"a": {100, 10}, "b": {100, 200}}}, Interval{0: {"a": {20, 2}, "b": {400, 800}}}, []int{0}, nil},
		"too little was done before":       {Interval{0: {"a": {19, 1}}}, Interval{0: {"a": {100, 90}}}, []int{0}, nil},
		"too little was done after":        {Interval{0: {"a": {100, 10}}}, Interval{0: {"a": {19, 90}}}, []int{0}, nil},
		"slower by nothing that hurts":     {Interval{0: {"a": {100, 2}}}, Interval{0: {"a": {100, 11}}}, []int{0}, nil},
		"it received nothing":              {Interval{0: {"a": {100, 40}}}, Interval{0: {"a": {100, 90}}}, []int{1}, nil},
		"everybody is slower":              {Interval{0: {"a": {100, 40}}, 1: steady, 2: steady}, Interval{0: {"a": {100, 90}}, 1: {"s": {100, 80}}, 2: {"s": {100, 90}}}, []int{0}, nil},
		"it is slower than everybody":      {Interval{0: {"a": {100, 40}}, 1: steady, 2: steady}, Interval{0: {"a": {100, 200}}, 1: {"s": {100, 60}}, 2: {"s": {100, 80}}}, []int{0}, []Pace{{0, 0.4, 2}}},
		"others became faster":             {Interval{0: {"a": {100, 40}}, 1: steady}, Interval{0: {"a": {100, 79}}, 1: {"s": {100, 10}}}, []int{0}, nil},
		"two of three receivers":           {Interval{0: steady, 1: steady, 2: steady}, Interval{0: {"s": {100, 100}}, 1: {"s": {100, 50}}, 2: {"s": {100, 160}}}, []int{2, 1, 0}, []Pace{{0, 0.4, 1}, {2, 0.4, 1.6}}},
		"nothing is known":                 {nil, nil, []int{0}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, SlowedDown(test.before, test.after, test.receivers), equalNumbers()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// However often counters begin anew, work is never negative and never more than the counters say.
func TestWorkIsNeverNegative(t *testing.T) {
	counter := rapid.Float64Range(0, 1e9)
	rapid.Check(t, func(t *rapid.T) {
		draw := func() PodReport {
			var counters []float64
			for range rapid.IntRange(0, 3).Draw(t, "servers") {
				counters = append(counters, counter.Draw(t, "reconciles"), counter.Draw(t, "seconds"))
			}
			return worked(0, counters...)
		}
		earlier, later := draw(), draw()
		for server, work := range Between([]PodReport{earlier}, []PodReport{later})[0] {
			most := later.Servers[server]
			if work.Reconciles <= 0 || work.Seconds < 0 || work.Reconciles > most.Reconciles || work.Seconds > most.Seconds {
				t.Fatal(fmt.Sprintf("from %+v to %+v: %+v", earlier.Servers[server], most, work))
			}
		}
	})
}
