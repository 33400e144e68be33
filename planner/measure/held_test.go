package measure

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/poll"
)

const day = 24 * time.Hour

// What one cluster said once ends a day after its series did. That counts while others of its replica are measured, or no pod shows
// it: a Prometheus that is away, or that does not scrape a replica, ends nothing.
func TestAValueIsHeldForADay(t *testing.T) {
	type step struct {
		until time.Duration // since noon, an answer a minute
		lost  string
		away  bool // Prometheus is
	}
	for name, test := range map[string]struct {
		alone Standing // of a, where it is the only one
		own   bool     // a has replica 2 to itself, where alone holds
		steps []step
		want  time.Duration // how long a's value stood after noon; 0: to the end
		low   float64       // minCoverage
		ahead time.Duration // by how much the clock was, where the last leader ran
	}{
		"of a leader of tomorrow":             {ahead: 6 * time.Hour, steps: []step{{2 * day, "a", false}}, want: day},
		"its series end":                      {steps: []step{{2 * day, "a", false}}, want: day},
		"Prometheus is away":                  {steps: []step{{5 * day, "a", true}}},
		"it is away, and back":                {steps: []step{{time.Hour, "a", false}, {4 * day, "a", true}, {6 * day, "a", false}}, want: 4*day + 22*time.Hour},
		"all are away, and back":              {steps: []step{{4 * day, "", true}, {4*day + time.Hour, "", false}}},
		"they come back for a minute":         {steps: []step{{20 * time.Hour, "a", false}, {20*time.Hour + time.Minute, "", false}, {3 * day, "a", false}}, want: 44*time.Hour + time.Minute},
		"its replica has no other":            {own: true, alone: Standing{Replica: 2}, steps: []step{{3 * day, "a", false}}},
		"no replica is known":                 {own: true, alone: Standing{Replica: -1}, steps: []step{{3 * day, "a", false}}},
		"no pod shows it":                     {own: true, alone: Standing{Replica: 2, Gone: true}, steps: []step{{3 * day, "a", false}}, want: day},
		"it has no Applications":              {own: true, alone: Standing{Replica: 2, Idle: true, Uncounted: true}, steps: []step{{3 * day, "a", false}}, want: day},
		"a whole replica is lost":             {steps: []step{{3 * day, "acegi", false}}},
		"and where that is no low coverage":   {low: 0.1, steps: []step{{3 * day, "acegi", false}}},
		"too many, until that is believed":    {steps: []step{{3 * day, "abc", false}}, want: day},
		"all that it measured before is lost": {steps: []step{{3 * day, "abcdefghij", false}}},
	} {
		t.Run(name, func(t *testing.T) {
			o := usual
			if test.low > 0 {
				o.MinCoverage = test.low
			}
			if o.Standings = onTwo(); test.own {
				o.Standings[0] = test.alone
			}
			last := NewLastGood(joined(t, "", LastGood{}, o, noon.Add(test.ahead-time.Minute)), LastGood{})
			at, stood := time.Duration(0), time.Duration(0)
			for _, s := range test.steps {
				for ; at < s.until; at += time.Minute {
					now := noon.Add(at)
					table := joined(t, s.lost, last, o, now)
					if s.away {
						table, _ = Join([]poll.Metric{apps()}, ten, []poll.Fetched{{Metric: "apps", Err: "away"}}, last, o, now)
					}
					if last = NewLastGood(table, last); at%day == 0 {
						last = throughTheHistory(t, last)
					}
					if c := table.Columns[0]; c.Flags[0] == NoData && c.Values[0] == 0 && stood == 0 {
						stood = at
					} else if c.Values[0] != 10 && stood == 0 {
						t.Fatalf("%v after noon it is %v, %s", at, c.Values[0], c.Flags[0])
					}
				}
			}
			if test.want == 0 && stood != 0 || stood > test.want || test.want-stood > time.Minute {
				t.Errorf("the value stood for %v, want %v", stood, test.want)
			}
		})
	}
}

func TestWhatIsHeldForLongIsNamed(t *testing.T) {
	o := lenient(usual)
	o.Standings = onTwo()
	last := NewLastGood(joined(t, "", LastGood{}, o, noon), LastGood{})
	told := func(lost string, after time.Duration) []MetricProblem {
		return joined(t, lost, last, o, noon.Add(after)).Problems
	}
	if diff := cmp.Diff([]MetricProblem(nil), told("abcd", 10*time.Minute)); diff != "" {
		t.Errorf("after 10 min (-want +got):\n%s", diff)
	}
	want := []MetricProblem{{"apps", HeldLong, `metric "apps": "a" "b" "c" and 1 more: no value for longer than maxAge, so the last good one stands, ` +
		"until the replica's other clusters had values for 24h0m0s without; a cluster without Applications has none"}}
	if diff := cmp.Diff(want, told("abcd", 11*time.Minute)); diff != "" {
		t.Errorf("after 11 min (-want +got):\n%s", diff)
	}
}

// Whatever values clusters have by turns, their falls refuse a metric for an hour a day, and those of one alone never.
func TestFallsRefuseAMetricForAnHourADay(t *testing.T) {
	for name, test := range map[string]struct {
		high func(minute int) bool
		of   int // clusters
		want int
	}{
		"one by turns":  {func(m int) bool { return m%35 < 2 }, 1, 0},
		"two by turns":  {func(m int) bool { return m%35 < 2 }, 2, 55},
		"all by turns":  {func(m int) bool { return m%35 < 2 }, 10, 55},
		"all, and soon": {func(m int) bool { return m%7 < 2 }, 10, 44},
		"for good":      {func(m int) bool { return m < 5 }, 10, 30},
		"now and then":  {func(m int) bool { return m%120 != 0 }, 10, 1},
		"twice at once": {func(m int) bool { return m < 5 || m > 25 && m < 30 }, 10, 51},
	} {
		t.Run(name, func(t *testing.T) {
			var last LastGood
			refused := 0
			for m := range 24 * 60 {
				fetched := without("")
				for i := range test.of {
					if test.high(m) {
						fetched[0].Samples[i].Value = 5000
					}
				}
				table, err := Join([]poll.Metric{apps()}, ten, fetched, last, usual, noon.Add(time.Duration(m)*time.Minute))
				if err != nil {
					t.Fatal(err)
				}
				if last = throughTheHistory(t, NewLastGood(table, last)); table.Frozen {
					refused++
				}
			}
			if refused != test.want {
				t.Errorf("it was refused for %d min, want %d", refused, test.want)
			}
		})
	}
}
