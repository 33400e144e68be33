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

// TestClustersThatEndedAreBelievedInAnyNumber: eight of 24 are all of their replica. Where its pod answers and has none of them
// connected, or another metric has values of its clusters, the others' loads count after six hours, and the eight keep their own for a
// day, or for as long as nothing of their replica is measured. Where nobody hears of that pod, be it dead or not scraped, none counts: its
// clusters may be nobody's.
func TestClustersThatEndedAreBelievedInAnyNumber(t *testing.T) {
	const mend = "delete the Secrets, and lower poll.minCoverage"
	for name, test := range map[string]struct {
		standing  func(s *Standing) // of the eight
		replicas  int               // that those are on
		elsewhere string            // of the eight clusters, those of which another metric has a value
		believed  time.Duration     // 0: never
		ends      time.Duration     // when their own values end; 0: never
	}{
		"its pod has none of them":         {standing: func(s *Standing) { s.Ended = true }, replicas: 1, believed: 6 * time.Hour, ends: 29 * time.Hour},
		"two pods have none of them":       {standing: func(s *Standing) { s.Ended = true }, replicas: 2, believed: 6 * time.Hour, ends: 29 * time.Hour},
		"no pod has any of them":           {standing: func(s *Standing) { s.Gone = true }, replicas: 1, believed: 30 * time.Minute, ends: 24 * time.Hour},
		"nobody hears of it":               {standing: func(*Standing) {}, replicas: 1},
		"nobody has them":                  {standing: func(s *Standing) { s.Unserved = true }, replicas: 1},
		"another metric has one":           {standing: func(*Standing) {}, replicas: 1, elsewhere: "c00", believed: 6 * time.Hour},
		"another has one of two replicas'": {standing: func(*Standing) {}, replicas: 2, elsewhere: "c00 c01", believed: 6 * time.Hour},
		"another has one, that is new":     {standing: func(s *Standing) { s.Uncounted = s.Replica == 9 }, replicas: 1, elsewhere: "c08"},
	} {
		t.Run(name, func(t *testing.T) {
			servers, o := make([]string, 24), usual
			o.Standings = make(Standings, 24)
			for i := range servers {
				if servers[i] = fmt.Sprintf("https://c%02d", i); i < 8 {
					o.Standings[i].Replica = 1 + i%test.replicas
					test.standing(&o.Standings[i])
				}
			}
			o.Standings[8].Uncounted, o.Standings[8].Replica = true, 1 // a new one of somebody's
			fleet := fleetOf(servers...)
			at := func(silent int, value float64, last LastGood, now time.Time) Table {
				metrics := []poll.Metric{{ID: "apps", Query: "q", Match: poll.Match{Label: "dest_server"}, NoData: number(0)}}
				var samples, others []poll.Sample
				for i, server := range servers {
					if i >= silent && i != 8 {
						samples = append(samples, poll.Sample{Key: server, Value: value})
					}
					if i > 8 || silent == 0 || strings.Contains(test.elsewhere, server[len("https://"):]) {
						others = append(others, poll.Sample{Key: server, Value: 1})
					}
				}
				answers := answer(samples...)
				if test.elsewhere != "" {
					metrics = append(metrics, poll.Metric{ID: "own", Query: "own", Match: poll.Match{Label: "server"}, NoData: number(0)})
					answers = append(answers, poll.Fetched{Metric: "own", Samples: others})
				}
				table, err := Join(metrics, fleet, answers, last, o, now)
				if err != nil {
					t.Fatal(err)
				}
				return table
			}
			last := NewLastGood(at(0, 10, LastGood{}, noon.Add(-time.Minute)), LastGood{})
			for after := time.Duration(0); after <= 50*time.Hour; after += 10 * time.Minute {
				table := at(8, 9, last, noon.Add(after))
				last = throughTheHistory(t, NewLastGood(table, last))
				theirs, others := 10.0, 10.0
				if believed := test.believed > 0 && after >= test.believed; believed {
					others = 9
				}
				if test.ends > 0 && after >= test.ends {
					theirs = 0
				}
				got := table.Columns[0].Values
				if diff := cmp.Diff(slices.Repeat([]float64{theirs}, 8), got[:8]); diff != "" {
					t.Fatalf("%v after noon, theirs (-want +got):\n%s", after, diff)
				}
				if diff := cmp.Diff(slices.Repeat([]float64{others}, 15), got[9:]); diff != "" {
					t.Fatalf("%v after noon, the others' (-want +got):\n%s", after, diff)
				}
				told := slices.ContainsFunc(table.Problems, func(p MetricProblem) bool { return p.Kind == LowCoverage && strings.Contains(p.Message, mend) })
				if want := others == 10 && test.believed != 30*time.Minute; told != want {
					t.Fatalf("%v after noon people are told of the mend: %t, want %t: %v", after, told, want, table.Problems)
				}
			}
		})
	}
}
