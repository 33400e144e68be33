package measure

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/poll"
)

// ten are clusters a to j on replicas 0 and 1 by turns, with a load of 10 each.
var ten = fleetOf("https://a", "https://b", "https://c", "https://d", "https://e", "https://f", "https://g", "https://h", "https://i", "https://j")

func onTwo() Standings {
	s := make(Standings, 10)
	for i := range s {
		s[i].Replica = i % 2
	}
	return s
}

// without is an answer for all of ten but those.
func without(letters string) []poll.Fetched {
	var samples []poll.Sample
	for _, c := range ten.Clusters {
		if !strings.Contains(letters, c.Shard.ID) {
			samples = append(samples, poll.Sample{Key: c.Shard.Server, Value: 10})
		}
	}
	return answer(samples...)
}

func TestALowCoverageEndsWhereItIsNotPrometheusFault(t *testing.T) {
	type step struct {
		after   time.Duration // since noon
		lost    string
		refused bool
	}
	m := time.Minute
	for name, test := range map[string]struct {
		gone   string // clusters that no pod shows
		alone  string // clusters that have replica 2 to themselves
		nobody string // clusters of which no replica is known
		steps  []step
	}{
		"it stays":                          {steps: []step{{0, "ab", true}, {29 * m, "ab", true}, {30 * m, "ab", false}, {31 * m, "ab", false}}},
		"it falls further":                  {steps: []step{{0, "ab", true}, {20 * m, "abc", true}, {49 * m, "abc", true}, {50 * m, "abc", false}}},
		"it falls on and on":                {steps: []step{{0, "ab", true}, {25 * m, "abc", true}, {50 * m, "abcd", true}, {59 * m, "abcde", true}, {60 * m, "abcde", false}}},
		"others, one by one":                {steps: []step{{0, "ab", true}, {30 * m, "ab", false}, {31 * m, "abc", true}, {59 * m, "abc", true}, {60 * m, "abc", false}, {61 * m, "abcd", false}}},
		"it comes and goes":                 {steps: []step{{0, "ab", true}, {10 * m, "", false}, {11 * m, "ab", true}, {29 * m, "", false}, {30 * m, "ab", false}, {23 * 60 * m, "", false}, {1439 * m, "ab", false}}},
		"once a day":                        {steps: []step{{0, "ab", true}, {30 * m, "ab", false}, {1439 * m, "", false}, {1440 * m, "ab", true}, {1469 * m, "ab", true}, {1470 * m, "ab", false}}},
		"a clock that goes":                 {steps: []step{{0, "ab", true}, {-60 * m, "ab", true}, {-31 * m, "ab", true}, {-30 * m, "ab", false}}},
		"half is left":                      {steps: []step{{0, "abcde", true}, {30 * m, "abcde", false}}},
		"less than half":                    {steps: []step{{0, "abcdef", true}, {60 * m, "abcdef", true}, {48 * 60 * m, "abcdef", true}, {2881 * m, "ab", true}, {2911 * m, "ab", false}}},
		"less, that is gone":                {gone: "abcdef", steps: []step{{0, "abcdef", true}, {29 * m, "abcdef", true}, {30 * m, "abcdef", false}}},
		"nothing is left":                   {gone: "abcdefghij", steps: []step{{0, "abcdefghij", true}, {60 * m, "abcdefghij", true}, {48 * 60 * m, "abcdefghij", true}, {2881 * m, "", false}}},
		"one whole replica":                 {steps: []step{{0, "acegi", true}, {60 * m, "acegi", true}, {48 * 60 * m, "acegi", true}}},
		"a replica of its own":              {alone: "abc", steps: []step{{0, "abc", true}, {60 * m, "abc", true}, {48 * 60 * m, "abc", true}}},
		"two that are all of their replica": {alone: "ab", steps: []step{{0, "ab", true}, {60 * m, "ab", true}, {359 * m, "ab", true}, {360 * m, "ab", false}, {1500 * m, "ab", false}}},
		"its pod shows none":                {alone: "ab", gone: "ab", steps: []step{{0, "ab", true}, {30 * m, "ab", false}}},
		"nobody has them":                   {nobody: "abc", steps: []step{{0, "abc", true}, {48 * 60 * m, "abc", true}}},
		"nobody has two":                    {nobody: "ab", steps: []step{{0, "ab", true}, {359 * m, "ab", true}, {360 * m, "ab", false}}},
		"one is little":                     {alone: "a", steps: []step{{0, "a", false}}},
	} {
		t.Run(name, func(t *testing.T) {
			o := usual
			o.Standings = onTwo()
			for i, c := range ten.Clusters {
				o.Standings[i].Gone = strings.Contains(test.gone, c.Shard.ID)
				if strings.Contains(test.alone, c.Shard.ID) {
					o.Standings[i].Replica = 2
				}
				if strings.Contains(test.nobody, c.Shard.ID) {
					o.Standings[i].Replica = -1
				}
			}
			last := NewLastGood(joined(t, "", LastGood{}, o, noon.Add(-time.Minute)), LastGood{})
			for _, step := range test.steps {
				table := joined(t, step.lost, last, o, noon.Add(step.after))
				if table.Columns[0].Refused != step.refused {
					t.Errorf("%v after noon without %q: refused %v, want %v: %v", step.after, step.lost, table.Columns[0].Refused, step.refused, table.Problems)
				}
				if diff := cmp.Diff(slices.Repeat([]float64{10}, 10), table.Columns[0].Values); diff != "" {
					t.Errorf("%v after noon (-want +got):\n%s", step.after, diff)
				}
				last = throughTheHistory(t, NewLastGood(table, last))
			}
		})
	}
}

// Four of 24 clusters are all that their replica has, and nobody knows whether they ended: the others' loads count after six
// hours, and theirs stand as they were for as long as nothing of their replica is measured. Of five they never do.
func TestAFewThatAreAllOfTheirReplicaStopNothingForGood(t *testing.T) {
	for lost, believed := range map[int]bool{4: true, 5: false} {
		servers := make([]string, 24)
		for i := range servers {
			servers[i] = fmt.Sprintf("https://c%02d", i)
		}
		fleet, o := fleetOf(servers...), usual
		o.Standings = make(Standings, 24)
		for i := range 24 {
			o.Standings[i].Replica = 0
			if i < lost {
				o.Standings[i].Replica = 1
			}
		}
		at := func(from int, value float64, last LastGood, now time.Time) Table {
			var samples []poll.Sample
			for _, c := range fleet.Clusters[from:] {
				samples = append(samples, poll.Sample{Key: c.Shard.Server, Value: value})
			}
			apps := poll.Metric{ID: "apps", Query: "q", Match: poll.Match{Label: "dest_server"}, NoData: number(0)}
			table, err := Join([]poll.Metric{apps}, fleet, answer(samples...), last, o, now)
			if err != nil {
				t.Fatal(err)
			}
			return table
		}
		last := NewLastGood(at(0, 10, LastGood{}, noon.Add(-time.Minute)), LastGood{})
		for minute := 0; minute <= 50*60; minute += 10 {
			table := at(lost, 9, last, noon.Add(time.Duration(minute)*time.Minute))
			last = throughTheHistory(t, NewLastGood(table, last))
			want := slices.Concat(slices.Repeat([]float64{10}, lost), slices.Repeat([]float64{9}, 24-lost))
			if minute < 6*60 || !believed {
				want = slices.Repeat([]float64{10}, 24)
			}
			if diff := cmp.Diff(want, table.Columns[0].Values); diff != "" {
				t.Fatalf("without %d, %d min after noon (-want +got):\n%s", lost, minute, diff)
			}
		}
	}
}

// TestClustersThatFallSilentEndInAnyFleet: in a fleet of less than ten one is enough to refuse a metric. Half an hour later the others'
// loads count again, six hours later where those were all that is known of their replica; and people are told until when, and of the mend.
func TestClustersThatFallSilentEndInAnyFleet(t *testing.T) {
	const mend = ": they are all that is known of their replicas, so look whether Prometheus scrapes every pod of the application-controller" +
		"; of clusters that are no more, delete the Secrets, and lower poll.minCoverage where so many are measured at times only"
	for name, test := range map[string]struct {
		clusters, silent int
		alone            bool // on their replica
		want             int  // minutes, for which the metric is refused
	}{
		"one of 2, each on its replica": {2, 1, true, 360},
		"one of 5":                      {5, 1, false, 30},
		"one of 5, on its own":          {5, 1, true, 360},
		"two of 5":                      {5, 2, false, 30},
		"two of 5, on their own":        {5, 2, true, 360},
		"one of 9":                      {9, 1, false, 30},
		"one of 9, on its own":          {9, 1, true, 360},
		"two of 9, on their own":        {9, 2, true, 360},
		"one of 10":                     {10, 1, false, 0},
		"one of 10, on its own":         {10, 1, true, 0},
		"3 of 24":                       {24, 3, false, 30},
		"3 of 24, on their own":         {24, 3, true, 360},
	} {
		t.Run(name, func(t *testing.T) {
			servers, o := make([]string, test.clusters), usual
			o.Standings = make(Standings, test.clusters)
			for i := range servers {
				servers[i] = fmt.Sprintf("https://c%02d", i)
				if test.alone && i < test.silent {
					o.Standings[i].Replica = 1
				}
			}
			fleet := fleetOf(servers...)
			at := func(from int, value float64, last LastGood, now time.Time) Table {
				var samples []poll.Sample
				for _, server := range servers[from:] {
					samples = append(samples, poll.Sample{Key: server, Value: value})
				}
				apps := poll.Metric{ID: "apps", Query: "q", Match: poll.Match{Label: "dest_server"}, NoData: number(0)}
				table, err := Join([]poll.Metric{apps}, fleet, answer(samples...), last, o, now)
				if err != nil {
					t.Fatal(err)
				}
				return table
			}
			last := NewLastGood(at(0, 10, LastGood{}, noon.Add(-time.Minute)), LastGood{})
			for minute := 0; minute < 23*60; minute += 10 {
				table := at(test.silent, 9, last, noon.Add(time.Duration(minute)*time.Minute))
				last = throughTheHistory(t, NewLastGood(table, last))
				others := 9.0
				if minute < test.want {
					others = 10
				}
				want := slices.Concat(slices.Repeat([]float64{10}, test.silent), slices.Repeat([]float64{others}, test.clusters-test.silent))
				if diff := cmp.Diff(want, table.Columns[0].Values); diff != "" {
					t.Fatalf("%d min after noon (-want +got):\n%s", minute, diff)
				}
				if minute > 0 {
					continue
				}
				told := " until " + noon.Add(time.Duration(test.want)*time.Minute).UTC().Format(time.RFC3339)
				if test.alone {
					told += mend
				}
				says := slices.ContainsFunc(table.Problems, func(p MetricProblem) bool {
					return p.Kind == LowCoverage && strings.HasSuffix(p.Message, told)
				})
				if says != (test.want > 0) {
					t.Errorf("people are told %v, want %q: %t", table.Problems, told, test.want > 0)
				}
			}
		})
	}
}

func joined(t *testing.T, lost string, last LastGood, o Options, now time.Time) Table {
	t.Helper()
	table, err := Join([]poll.Metric{{ID: "apps", Query: "q", Match: poll.Match{Label: "dest_server"}, NoData: number(0)}}, ten, without(lost), last, o, now)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func throughTheHistory(t *testing.T, l LastGood) (back LastGood) {
	t.Helper()
	stored, err := l.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	if err := back.UnmarshalBinary(stored); err != nil {
		t.Fatal(err)
	}
	return back
}

func TestWhatCountsForTheCoverage(t *testing.T) {
	for name, test := range map[string]struct {
		lost             string
		uncounted, moved string
		idle             string
		refused          bool
	}{
		"two of ten are too many":                   {lost: "ab", refused: true},
		"both are new":                              {lost: "ab", uncounted: "ab"},
		"both have another server":                  {lost: "ab", moved: "ab"},
		"what is new dilutes nothing":               {lost: "a", uncounted: "bcdefg", refused: true},
		"nor does what moved":                       {lost: "a", moved: "bcdefg", refused: true},
		"nothing is left of what counts":            {lost: "ab", uncounted: "cdefghij", refused: true},
		"nothing is left, and nothing of it counts": {lost: "abcdefghij", uncounted: "abcdefghij", refused: true},
		"and their pods say that they are idle":     {lost: "abcdefghij", uncounted: "abcdefghij", idle: "abcdefghij"},
		"all but one are idle":                      {lost: "abcdefghij", uncounted: "abcdefghi", idle: "abcdefghi", refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			o := usual
			last := NewLastGood(joined(t, "", LastGood{}, o, noon.Add(-time.Minute)), LastGood{})
			o.Standings = onTwo()
			for i, c := range ten.Clusters {
				o.Standings[i].Uncounted = strings.Contains(test.uncounted, c.Shard.ID)
				o.Standings[i].Moved = strings.Contains(test.moved, c.Shard.ID)
				o.Standings[i].Idle = strings.Contains(test.idle, c.Shard.ID)
			}
			table := joined(t, test.lost, last, o, noon)
			if table.Columns[0].Refused != test.refused {
				t.Errorf("refused %v, want %v: %v", table.Columns[0].Refused, test.refused, table.Problems)
			}
		})
	}
}

// What moved while a metric is refused was another cluster ever after.
func TestWhatMovedIsNotMeasuredAnyMore(t *testing.T) {
	o := usual
	o.Standings = onTwo()
	last := NewLastGood(joined(t, "", LastGood{}, o, noon.Add(-time.Minute)), LastGood{})
	o.Standings[0].Moved = true
	last = NewLastGood(joined(t, "abc", last, o, noon), last)
	want := []bool{false, true, true, true, true, true, true, true, true, true}
	if diff := cmp.Diff(want, last.Columns[0].Measured); diff != "" {
		t.Errorf("measured (-want +got):\n%s", diff)
	}
}
