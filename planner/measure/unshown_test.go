package measure

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ballast/planner/poll"
)

// unshown are the standings of ten with those clusters' Applications all by name.
func unshown(letters string) Standings {
	s := onTwo()
	for i, c := range ten.Clusters {
		s[i].Unshown = strings.Contains(letters, c.Shard.ID)
	}
	return s
}

// TestWhatArgoCDDoesNotShowIsHeldWithoutAnEnd: a to d have Applications by name alone, of which d never had a value. None of them keeps the
// metric from being believed, their last good values stand for longer than a day, d has the middle of the others', and each has its own
// again with the first look at a mended Argo CD.
func TestWhatArgoCDDoesNotShowIsHeldWithoutAnEnd(t *testing.T) {
	o := usual
	at := func(lost string, last LastGood, after time.Duration) Table {
		fetched := without(lost)
		for i := range fetched[0].Samples {
			fetched[0].Samples[i].Value = float64(11 + i)
		}
		table, err := Join([]poll.Metric{apps()}, ten, fetched, last, o, noon.Add(after))
		if err != nil {
			t.Fatal(err)
		}
		return table
	}
	last := NewLastGood(at("d", LastGood{}, -time.Minute), LastGood{})
	before := []float64{11, 12, 13, 0, 14, 15, 16, 17, 18, 19}
	if diff := cmp.Diff(before, last.Columns[0].Values); diff != "" {
		t.Fatalf("before (-want +got):\n%s", diff)
	}
	o.Standings = unshown("abcd")
	want := []float64{11, 12, 13, 13, 11, 12, 13, 14, 15, 16}
	flags := append(slices.Repeat([]Flag{Unshown}, 4), slices.Repeat([]Flag{Fresh}, 6)...)
	for after := time.Duration(0); after < 3*day; after += 10 * time.Minute {
		table := at("abcd", last, after)
		if table.Frozen || len(table.Problems) > 0 {
			t.Fatalf("%v after noon: frozen %t, %v", after, table.Frozen, table.Problems)
		}
		if diff := cmp.Diff(want, table.Columns[0].Values); diff != "" {
			t.Fatalf("%v after noon (-want +got):\n%s", after, diff)
		}
		if diff := cmp.Diff(flags, table.Columns[0].Flags); diff != "" {
			t.Fatalf("%v after noon (-want +got):\n%s", after, diff)
		}
		last = throughTheHistory(t, NewLastGood(table, last))
	}
	o.Standings = onTwo()
	table := at("", last, 3*day)
	if diff := cmp.Diff([]float64{11, 12, 13, 14, 15, 16, 17, 18, 19, 20}, table.Columns[0].Values); diff != "" {
		t.Errorf("once they are shown (-want +got):\n%s", diff)
	}
	if table.Frozen {
		t.Errorf("once they are shown: %v", table.Problems)
	}
}

// TestWhatArgoCDDoesNotShowIsOfApplicationsAlone: the same clusters without a series of another metric are lost as ever, and what a metric
// by destination says of them all the same is a rest of before.
func TestWhatArgoCDDoesNotShowIsOfApplicationsAlone(t *testing.T) {
	for name, test := range map[string]struct {
		match poll.Match
		query string
		lost  string
		now   bool // none had a value before
		want  Flag // of a
		froze bool
	}{
		"by destination":                    {match: poll.Match{Label: "dest_server"}, query: "q", lost: "abc", want: Unshown},
		"by destination, and a rest":        {match: poll.Match{Label: "dest_server"}, query: "q", lost: "bc", want: Unshown},
		"by the query":                      {match: poll.Match{Label: "server"}, query: "sum by (server) (rate(argocd_app_reconcile_count[10m]))", lost: "abc", want: Unshown},
		"of the cluster":                    {match: poll.Match{Label: "server"}, query: "argocd_cluster_api_resource_objects", lost: "abc", want: Held, froze: true},
		"one that is shown beside them":     {match: poll.Match{Label: "dest_server"}, query: "q", lost: "abcd", want: Unshown, froze: true},
		"none is shown, nor ever was":       {match: poll.Match{Label: "dest_server"}, query: "q", lost: "abcdefghij", now: true, want: Unshown},
		"none is shown any more":            {match: poll.Match{Label: "dest_server"}, query: "q", lost: "abcdefghij", want: Unshown},
		"none has one, and it is its fault": {match: poll.Match{Label: "server"}, query: "q", lost: "abcdefghij", now: true, want: Missing, froze: true},
	} {
		t.Run(name, func(t *testing.T) {
			o, m := usual, poll.Metric{ID: "apps", Query: test.query, Match: test.match}
			beside := poll.Metric{ID: "other", Query: "other", Match: poll.Match{Label: "server"}}
			join := func(lost string, last LastGood, now time.Time) Table {
				other := without("")
				other[0].Metric = "other"
				table, err := Join([]poll.Metric{m, beside}, ten, append(without(lost), other...), last, o, now)
				if err != nil {
					t.Fatal(err)
				}
				return table
			}
			var last LastGood
			if !test.now {
				last = NewLastGood(join("", last, noon.Add(-time.Minute)), last)
			}
			o.Standings = unshown("abc")
			if len(test.lost) == 10 && test.want == Unshown {
				o.Standings = unshown(test.lost)
			}
			table := join(test.lost, last, noon)
			if got := table.Columns[0].Flags[0]; got != test.want || table.Frozen != test.froze {
				t.Errorf("a is %s, frozen %t, want %s and %t: %v", got, table.Frozen, test.want, test.froze, table.Problems)
			}
		})
	}
}

// TestNobodyElseIsJudgedOtherwiseForWhatIsNotShown: whichever clusters are not shown, and whatever series they have, the metric is believed
// or refused, and all others have their values, as if those were not there.
func TestNobodyElseIsJudgedOtherwiseForWhatIsNotShown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		letters := "abcdefghij"
		draw := func(label string) (drawn string) {
			for _, l := range letters {
				if rapid.Bool().Draw(t, label) {
					drawn += string(l)
				}
			}
			return drawn
		}
		hidden, lost := draw("hidden"), draw("lost")
		answerOf := func(lost string, value float64) []poll.Fetched {
			fetched := without(lost)
			for i := range fetched[0].Samples {
				fetched[0].Samples[i].Value = value
			}
			return fetched
		}
		verdict := func(lost string, standings Standings) (bool, map[string]float64) {
			o := usual
			table, err := Join([]poll.Metric{apps()}, ten, answerOf("", 10), LastGood{}, o, noon.Add(-time.Minute))
			if err != nil {
				t.Fatal(err)
			}
			o.Standings = standings
			last := NewLastGood(table, LastGood{})
			if table, err = Join([]poll.Metric{apps()}, ten, answerOf(lost, 9), last, o, noon); err != nil {
				t.Fatal(err)
			}
			others := map[string]float64{}
			for i, c := range ten.Clusters {
				if !strings.Contains(hidden, c.Shard.ID) {
					others[c.Shard.ID] = table.Columns[0].Values[i]
				}
			}
			return table.Columns[0].Refused, others
		}
		refused, values := verdict(lost, unshown(hidden))
		idle := onTwo() // the others of the fleet alone
		for i, c := range ten.Clusters {
			gone := strings.Contains(hidden, c.Shard.ID)
			idle[i].Uncounted, idle[i].Idle = gone, gone
		}
		wantRefused, want := verdict(lost+hidden, idle)
		if refused != wantRefused {
			t.Fatalf("refused %t, without them %t", refused, wantRefused)
		}
		if diff := cmp.Diff(want, values); diff != "" {
			t.Fatalf("(-without them +with them):\n%s", diff)
		}
	})
}
