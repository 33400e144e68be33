package history

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"ballast/planner/plan/configmap"
)

// decided is a plan of that time, at rest, for the clusters named.
func decided(t testing.TB, revision int64, when time.Time, clusters ...string) Record {
	t.Helper()
	r := record(t, revision, clusters...)
	r.Meta.DecidedAt = when
	return r
}

// TestTenQuickChangesLeaveAPlanToGoBackTo, whoever makes them: that of an hour ago stays, and that of a day ago.
func TestTenQuickChangesLeaveAPlanToGoBackTo(t *testing.T) {
	type change struct {
		times int
		every time.Duration
	}
	for name, test := range map[string]struct {
		changes []change
		want    []int64
	}{
		"one own pin, turned all day":             {[]change{{3, 48 * time.Hour}, {2, 3 * time.Hour}, {5000, 15 * time.Second}}, []int64{5005, 5004, 5003, 5002, 5001, 5000, 4999, 4998, 5, 3}},
		"ten within a minute":                     {[]change{{2, 30 * time.Hour}, {1, 2 * time.Hour}, {12, 5 * time.Second}}, []int64{15, 14, 13, 12, 11, 10, 9, 8, 3, 2}},
		"none was there for an hour":              {[]change{{3, 20 * time.Minute}, {1, 50 * time.Minute}, {20, time.Second}}, []int64{24, 23, 22, 21, 20, 19, 18, 17, 16, 4}},
		"no plan is a day old":                    {[]change{{4, 2 * time.Hour}, {20, time.Second}}, []int64{24, 23, 22, 21, 20, 19, 18, 17, 4, 1}},
		"a quiet fleet":                           {[]change{{20, 72 * time.Hour}}, []int64{20, 19, 18, 17, 16, 15, 14, 13, 12, 11}},
		"one an hour, for a day":                  {[]change{{1, 100 * time.Hour}, {24, 61 * time.Minute}}, []int64{25, 24, 23, 22, 21, 20, 19, 18, 17, 1}},
		"one every 59 minutes, for days":          {[]change{{1, 100 * time.Hour}, {100, 59 * time.Minute}}, []int64{101, 100, 99, 98, 97, 96, 95, 94, 93, 1}},
		"quick ones a day ago, a pause, and more": {[]change{{2, 3 * time.Hour}, {6, time.Second}, {1, 25 * time.Hour}, {9, time.Second}}, []int64{18, 17, 16, 15, 14, 13, 12, 11, 10, 9}},
	} {
		t.Run(name, func(t *testing.T) {
			h, now, revision := Content{}, at, int64(0)
			for _, c := range test.changes {
				for range c.times {
					revision++
					h = h.With(decided(t, revision, now, fmt.Sprint("c", revision%2), fmt.Sprint("d", revision)))
					now = now.Add(c.every)
				}
			}
			if diff := cmp.Diff(test.want, revisions(h.Plans)); diff != "" {
				t.Errorf("kept (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAPlanThatLastedIsKept whatever follows it: changes quick or slow, there and back, rollouts, a leader that ends and another
// that writes over it, a way back that is asked for.
func TestAPlanThatLastedIsKept(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		type state struct {
			cluster string
			since   time.Time
		}
		h, now, last, rest := Content{}, at, state{}, state{}
		var lasted []state // at rest, for an hour or longer, oldest first
		for revision := int64(1); revision <= 25; revision++ {
			cluster := fmt.Sprint("c", rapid.IntRange(0, 30).Draw(rt, "cluster"))
			r := decided(t, revision, now, cluster)
			midst := rapid.IntRange(0, 3).Draw(rt, "midst") == 0
			if midst {
				r = underWay(t, revision)
				r.Meta.DecidedAt = now
			}
			if last.cluster != "" && now.Sub(last.since) >= lasts {
				lasted = append(lasted, last)
			}
			if !midst && cluster != rest.cluster { // one that a rollout left for a while and came back to is one
				rest = state{cluster, now}
			}
			if last = (state{}); !midst {
				last = rest
			}
			h.Asked = 0
			if n := len(h.Plans); n > 3 && rapid.Bool().Draw(rt, "asks") {
				h.Asked = h.Plans[rapid.IntRange(3, n-1).Draw(rt, "asked")].Revision
			}
			before := h
			h = h.With(r)
			switch rapid.IntRange(0, 5).Draw(rt, "leader") {
			case 0: // another one reads it
				h, _ = Decode(first(h.Encode()))
			case 1: // the other wrote meanwhile, without the newest
				h = h.Over(before)
			}
			if n := len(h.Plans); n > keptPlans || !slices.IsSortedFunc(h.Plans, func(a, b Record) int { return int(b.Revision - a.Revision) }) {
				rt.Fatalf("%d plans: %v", n, revisions(h.Plans))
			}
			holds(rt, h, now, lasted, func(s state) (string, time.Time) { return s.cluster, s.since })
			now = now.Add(rapid.SampledFrom([]time.Duration{time.Second, time.Minute, 59 * time.Minute, time.Hour, 5 * time.Hour, 30 * time.Hour}).Draw(rt, "later"))
		}
	})
}

// holds compares with those that lasted: the last one is kept, and one that is a day old where there is one.
func holds[S any](t *rapid.T, h Content, now time.Time, lasted []S, of func(S) (string, time.Time)) {
	t.Helper()
	if len(lasted) == 0 {
		return
	}
	kept := func(of string) bool {
		return slices.ContainsFunc(h.Plans, func(r Record) bool { return strings.Contains(r.Text, "\n  "+of+":") })
	}
	cluster, _ := of(lasted[len(lasted)-1])
	if !kept(cluster) {
		t.Fatalf("the plan of %q stood for an hour, and is not kept: %v", cluster, revisions(h.Plans))
	}
	if _, since := of(lasted[0]); now.Sub(since) < longAgo {
		return
	}
	if !slices.ContainsFunc(h.Plans, func(r Record) bool { return now.Sub(r.Meta.DecidedAt) >= longAgo }) {
		t.Fatalf("no plan of a day ago is kept: %v", revisions(h.Plans))
	}
}

func first[A, B any](a A, _ B, err error) A {
	if err != nil {
		panic(err)
	}
	return a
}

// TestAFullHistoryKeepsThePlanOfAnHourAgo, as long as anything is in it that the planner works out again by itself, or that takes
// its room for nothing.
func TestAFullHistoryKeepsThePlanOfAnHourAgo(t *testing.T) {
	h := Content{Anew: []string{"votes", "lastgood"}}
	large := func(revision int64, when time.Time, kib int) {
		r := decided(t, revision, when, fmt.Sprint("c", revision))
		r.Text += "# " + fmt.Sprintf("%x", noise(kib<<10))
		h.Plans = h.kept(append(slices.Clone(h.Plans), r))
	}
	large(1, at, 4)
	large(2, at.Add(30*time.Hour), 4)
	for revision := int64(3); revision <= 10; revision++ {
		large(revision, at.Add(33*time.Hour+time.Duration(revision)*time.Second), 60)
	}
	pushed := []int64{3, 4, 5, 6, 7, 8, 9}
	for name, test := range map[string]struct {
		parts map[string][]byte
		asked int64
		want  Dropped
	}{
		"everything fits":             {map[string][]byte{"votes": noise(100 << 10)}, 0, Dropped{}},
		"newer plans go":              {map[string][]byte{"votes": noise(600 << 10)}, 0, Dropped{Plans: pushed[:4]}},
		"what is made anew":           {map[string][]byte{"votes": noise(300 << 10), "lastgood": noise(220 << 10), "fleet": noise(500 << 10)}, 0, Dropped{Plans: pushed[:6], Parts: []string{"votes"}}},
		"and what is not stays":       {map[string][]byte{"votes": noise(300 << 10), "lastgood": noise(300 << 10), "fleet": noise(820 << 10)}, 0, Dropped{Plans: pushed, Parts: []string{"lastgood", "votes"}}},
		"then those that are to stay": {map[string][]byte{"votes": noise(9), "fleet": noise(831<<10 - 500)}, 0, Dropped{Plans: append(pushed[:7:7], 1)}},
		"a part that fits with none":  {map[string][]byte{"votes": noise(9), "fleet": noise(890 << 10)}, 0, Dropped{Parts: []string{"fleet"}}},
		"the one that is asked for":   {map[string][]byte{"votes": noise(700 << 10)}, 3, Dropped{Plans: pushed[1:6]}},
	} {
		t.Run(name, func(t *testing.T) {
			h.Parts, h.Asked = test.parts, test.asked
			_, dropped := encoded(t, h)
			if diff := cmp.Diff(test.want, dropped, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("dropped (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAHistoryHoldsItsBound and gives up a plan of an hour ago for nothing that is made anew, however large its parts.
func TestAHistoryHoldsItsBound(t *testing.T) {
	zeros := strings.Repeat("0", 1<<20)
	rapid.Check(t, func(rt *rapid.T) {
		h, data := Content{Anew: []string{"votes", "lastgood"}, Parts: map[string][]byte{}}, map[string][]byte{}
		now := at
		for revision := range rapid.Int64Range(1, 14).Draw(rt, "plans") {
			r := Record{Revision: revision + 1, Text: zeros[:rapid.IntRange(0, 240<<10).Draw(rt, "plan")], Meta: configmap.Meta{DecidedAt: now}}
			h.Plans = h.kept(append(slices.Clone(h.Plans), r))
			now = now.Add(rapid.SampledFrom([]time.Duration{time.Second, 2 * time.Hour, 30 * time.Hour}).Draw(rt, "later"))
		}
		for _, r := range h.Plans { // as they are packed
			data[planKey(r.Revision)] = []byte(r.Text)
		}
		for _, name := range []string{"votes", "lastgood", "fleet", "limits"} {
			h.Parts[name] = []byte(zeros[:rapid.IntRange(0, 500<<10).Draw(rt, name)])
			data[name] = h.Parts[name]
		}
		dropped := fit(h, data)
		total := 0
		for key, content := range data {
			total += len(key) + len(content)
		}
		if total > maxHistory || data[planKey(h.Plans[0].Revision)] == nil {
			rt.Fatalf("%d bytes, and the newest plan has %d", total, len(data[planKey(h.Plans[0].Revision)]))
		}
		for _, revision := range h.staying(h.Plans) {
			went := slices.IndexFunc(h.Plans, func(r Record) bool { return r.Revision == revision && slices.Contains(dropped.Plans, revision) })
			for _, name := range h.Anew {
				if part, stayed := data[name]; went >= 0 && stayed && len(part) >= len(h.Plans[went].Text)+20 {
					rt.Fatalf("plan %d of %d bytes went, and part %q of %d stayed", revision, len(h.Plans[went].Text), name, len(part))
				}
			}
		}
	})
}
