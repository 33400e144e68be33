package measure

import (
	"testing"
	"time"

	"ballast/planner/discover"
	"ballast/planner/poll"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// made are Secrets that were made so many hours before noon, each with a server of its own.
func made(hours ...int) discover.Fleet {
	all := fleetOf([]string{"https://a", "https://b", "https://c", "https://d"}[:len(hours)]...)
	for i, h := range hours {
		all.Clusters[i].Created = noon.Add(-time.Duration(h) * time.Hour)
	}
	return all
}

func byName() poll.Metric {
	return poll.Metric{ID: "apps", Query: "q", Match: poll.Match{Label: "name", To: poll.ToName}}
}

// Who gives a cluster of his the data.name of another's takes nothing from that one: neither now, nor once it is known, a day on.
func TestASecondClusterOfANameTakesNoSeries(t *testing.T) {
	both := answer(poll.Sample{Key: "the-a", Value: 7}, poll.Sample{Key: "the-c", Value: 3})
	for name, created := range map[string][]int{"a new Secret": {9, 0, 9}, "an older one": {9, 90, 9}} {
		t.Run(name, func(t *testing.T) {
			each := answer(poll.Sample{Key: "the-a", Value: 7}, poll.Sample{Key: "the-b", Value: 1}, poll.Sample{Key: "the-c", Value: 3})
			before, err := Join([]poll.Metric{byName()}, made(created...), each, LastGood{}, usual, noon)
			if err != nil {
				t.Fatal(err)
			}
			last := NewLastGood(before, LastGood{})
			if created[1] == 0 {
				last = LastGood{}
			}
			fleet := made(created...)
			fleet.Clusters[1].Shard.Name = "the-a"
			o := lenient(usual)
			for minute := 0; minute < 48*60; minute += 15 {
				o.Standings = Standings{{}, {New: created[1] == 0 && minute < 60}, {}}
				table, err := Join([]poll.Metric{byName()}, fleet, both, last, o, noon.Add(time.Duration(minute)*time.Minute))
				if err != nil {
					t.Fatal(err)
				}
				c := table.Columns[0]
				if c.Values[0] != 7 || c.Flags[0] != Fresh || c.Flags[1] == Fresh || c.Values[2] != 3 {
					t.Fatalf("after %d minutes the values are %v, %v", minute, c.Values, c.Flags)
				}
				if minute == 0 {
					want := MetricProblem{"apps", SharedName, `metric "apps": "the-a": several clusters are called so, ` +
						`and the one that was first has the value; match by server or id`}
					if diff := cmp.Diff(want, table.Problems[0]); diff != "" {
						t.Errorf("(-want +got):\n%s", diff)
					}
				}
				stored, err := NewLastGood(table, last).MarshalBinary()
				if err == nil {
					err = last.UnmarshalBinary(stored)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// A series that spells a server in a third way is that of the cluster that was there first.
func TestASecondSpellingOfAServerTakesNoSeries(t *testing.T) {
	for name, tc := range map[string]struct {
		hours     []int
		standings Standings
		want      []Flag
	}{
		"the older one":           {[]int{9, 5}, nil, []Flag{Fresh, Missing}},
		"the other":               {[]int{5, 9}, nil, []Flag{Missing, Fresh}},
		"the one that is known":   {[]int{5, 9}, Standings{{}, {New: true}}, []Flag{Fresh, Missing}},
		"the one that stayed":     {[]int{5, 9}, Standings{{}, {Moved: true}}, []Flag{Fresh, Missing}},
		"of one age, nobody's":    {[]int{5, 5}, nil, []Flag{Missing, Missing}},
		"which carries something": {[]int{9, 5}, Standings{}, []Flag{Skipped, Fresh}},
	} {
		t.Run(name, func(t *testing.T) {
			first := "https://A.example"
			if tc.want[0] == Skipped {
				first = "-" + first
			}
			fleet := fleetOf(first, "https://a.Example")
			for i, h := range tc.hours {
				fleet.Clusters[i].Created = noon.Add(-time.Duration(h) * time.Hour)
			}
			o := lenient(usual)
			o.Standings = tc.standings
			table, err := Join([]poll.Metric{apps()}, fleet, answer(poll.Sample{Key: "https://a.example", Value: 7}), LastGood{}, o, noon)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, table.Columns[0].Flags); diff != "" {
				t.Errorf("flags (-want +got):\n%s", diff)
			}
		})
	}
}

// Whatever others call their clusters, and however they change it: who had a name alone keeps its series.
func TestNoNamesTakeTheFirstOnesSeries(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hours := rapid.SliceOfN(rapid.IntRange(1, 9), 4, 4).Draw(t, "hours")
		fleet, last := made(hours...), LastGood{}
		samples := answer(poll.Sample{Key: "the-a", Value: 7})
		for round := range 6 {
			table, err := Join([]poll.Metric{byName()}, fleet, samples, last, lenient(usual), noon.Add(time.Duration(round)*time.Minute))
			if err != nil {
				t.Fatal(err)
			}
			if c := table.Columns[0]; c.Values[0] != 7 || c.Flags[0] != Fresh {
				t.Fatalf("round %d: the values are %v, %v", round, c.Values, c.Flags)
			}
			last = NewLastGood(table, last)
			for i := range fleet.Clusters[1:] {
				fleet.Clusters[1+i].Shard.Name = rapid.SampledFrom([]string{"the-a", "the-b", ""}).Draw(t, "name")
			}
		}
	})
}
