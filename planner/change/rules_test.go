package change

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ballast/planner/change/maintenance"
)

func ptr[T any](v T) *T { return &v }

func TestWhatIsInTheWay(t *testing.T) {
	night := evening(t)
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	tonight := time.Date(2026, 3, 1, 22, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) int64 { return now.Add(-d).Unix() }
	for name, test := range map[string]struct {
		out, in Policy
		ask     Ask
		history Past
		want    Verdict
	}{
		"nothing to do":      {Policy{}, Policy{}, Ask{Current: 3, Wanted: 3}, Past{}, Verdict{Value: 3}},
		"nothing in the way": {Policy{}, Policy{}, Ask{Current: 3, Wanted: 5}, Past{}, Verdict{Direction: Out, Value: 5}},
		"off, for this direction alone": {Policy{Mode: Off}, Policy{}, Ask{Current: 3, Wanted: 2}, Past{},
			Verdict{Direction: In, Value: 2}},
		"off": {Policy{Mode: Off}, Policy{}, Ask{Current: 3, Wanted: 4}, Past{},
			Verdict{Out, 3, []Block{{Reason: UpdatePolicy, Why: "the mode is Off"}}, time.Time{}}},
		"an OOM kill does not beat Off": {Policy{Mode: Off}, Policy{}, Ask{Current: 3, Wanted: 4, OOMKilled: true}, Past{},
			Verdict{Out, 3, []Block{{Reason: UpdatePolicy, Why: "the mode is Off"}}, time.Time{}}},
		"outside the window": {Policy{Mode: Maintenance, Windows: []maintenance.Window{night}}, Policy{}, Ask{Current: 3, Wanted: 4, OOMKilled: true}, Past{},
			Verdict{Out, 3, []Block{{OutsideMaintenance, tonight, "the next maintenance window begins then"}}, tonight}},
		"a window that nobody configured": {Policy{Mode: Maintenance}, Policy{}, Ask{Current: 3, Wanted: 4}, Past{},
			Verdict{Out, 3, []Block{{Reason: OutsideMaintenance, Why: "no maintenance window is configured"}}, time.Time{}}},
		"too soon": {Policy{}, Policy{Cooldown: time.Hour}, Ask{Current: 3, Wanted: 2}, Past{Last: ago(time.Minute)},
			Verdict{In, 3, []Block{{StabilizationWindow, now.Add(59 * time.Minute), "the last change was less than 1h ago"}}, now.Add(59 * time.Minute)}},
		"an OOM kill does not wait": {Policy{Cooldown: time.Hour, Stabilization: time.Hour, MinChange: MinChange{Value: ptr(int64(5))}}, Policy{},
			Ask{Current: 3, Wanted: 4, OOMKilled: true}, Past{Last: ago(time.Minute), Wishes: []Wish{{ago(time.Minute), 1, 1}}}, Verdict{Direction: Out, Value: 4}},
		"an OOM kill hurries nothing in": {Policy{}, Policy{Cooldown: time.Hour}, Ask{Current: 3, Wanted: 2, OOMKilled: true}, Past{Last: ago(30 * time.Minute)},
			Verdict{In, 3, []Block{{StabilizationWindow, now.Add(30 * time.Minute), "the last change was less than 1h ago"}}, now.Add(30 * time.Minute)}},
		"other wishes": {Policy{}, Policy{Stabilization: 5 * time.Minute}, Ask{Current: 5, Wanted: 3}, Past{Wishes: []Wish{{ago(200 * time.Second), 4, 4}, {ago(10 * time.Second), 5, 5}}},
			Verdict{In, 5, []Block{{StabilizationWindow, now.Add(290 * time.Second), "something else was asked for within 5m"}}, now.Add(290 * time.Second)}},
		"other wishes, a part of the way": {Policy{}, Policy{Stabilization: 5 * time.Minute}, Ask{Current: 5, Wanted: 3}, Past{Wishes: []Wish{{ago(200 * time.Second), 4, 4}}},
			Verdict{In, 4, []Block{{StabilizationWindow, now.Add(100 * time.Second), "less was asked for within 5m"}}, now.Add(100 * time.Second)}},
		"too little": {Policy{MinChange: MinChange{Value: ptr(int64(3)), Percent: ptr(50)}}, Policy{}, Ask{Current: 4, Wanted: 5}, Past{},
			Verdict{Out, 4, []Block{{Reason: TooSmall, Why: "a change of 1 is less than 2"}}, time.Time{}}},
		"enough for the smaller of the two": {Policy{MinChange: MinChange{Value: ptr(int64(3)), Percent: ptr(50)}}, Policy{}, Ask{Current: 4, Wanted: 6}, Past{}, Verdict{Direction: Out, Value: 6}},
		"a replica over capacity does not starve": {Policy{MinChange: MinChange{Value: ptr(int64(3))}}, Policy{}, Ask{Current: 4, Wanted: 5, OverCapacity: true}, Past{},
			Verdict{Direction: Out, Value: 5}},
		"a rate": {Policy{Rate: []Pace{{Count: 2, Period: time.Hour}}}, Policy{}, Ask{Current: 4, Wanted: 9}, Past{Events: []Event{{ago(50 * time.Minute), 1}}},
			Verdict{Out, 5, []Block{{RateLimit, now.Add(10 * time.Minute), "the rate allows no more now"}}, now.Add(10 * time.Minute)}},
		"what the caller knows": {Policy{}, Policy{}, Ask{Current: 4, Wanted: 9, Known: []BlockReason{RolloutInProgress, StaleInput}}, Past{},
			Verdict{Out, 4, []Block{{Reason: StaleInput}, {Reason: RolloutInProgress}}, time.Time{}}},
		"the window closes before the wait is over": {Policy{}, Policy{Mode: Maintenance, Cooldown: 11 * time.Hour, Windows: []maintenance.Window{night}}, Ask{Current: 4, Wanted: 3}, Past{Last: now.Unix()},
			Verdict{In, 4, []Block{{OutsideMaintenance, tonight, "the next maintenance window begins then"},
				{StabilizationWindow, now.Add(11 * time.Hour), "the last change was less than 11h ago"}}, tonight.Add(time.Hour)}},
		"the window closes before it, by a second": {Policy{}, Policy{Mode: Maintenance, Cooldown: 11*time.Hour + time.Second, Windows: []maintenance.Window{night}}, Ask{Current: 4, Wanted: 3}, Past{Last: now.Unix()},
			Verdict{In, 4, []Block{{OutsideMaintenance, tonight, "the next maintenance window begins then"},
				{StabilizationWindow, now.Add(11*time.Hour + time.Second), "the last change was less than 11h0m1s ago"}}, tonight.Add(24 * time.Hour)}},
	} {
		t.Run(name, func(t *testing.T) {
			test.ask.Now = now
			got := Rules{Out: test.out, In: test.in}.Replicas(test.ask, test.history)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestResizesHaveARateForTheWholeFleet(t *testing.T) {
	rules := Rules{Down: Policy{Rate: []Pace{{Count: 2, Period: time.Hour}, {Percent: 10, Period: 10 * time.Minute}}}}
	fleet := Past{Events: []Event{{at(-3000).Unix(), -1}, {at(-700).Unix(), 9}, {at(-500).Unix(), -1}}}
	got := rules.Resources(Ask{Now: at(0), Current: 500, Wanted: 300, Of: 12}, Past{}, fleet)
	want := Verdict{Down, 500, []Block{{RateLimit, at(600).UTC(), "the rate allows no more now"}}, at(600).UTC()}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := rules.Resources(Ask{Now: at(600), Current: 500, Wanted: 300, Of: 12}, Past{}, fleet); got.Value != 300 {
		t.Errorf("after an hour: %+v", got)
	}
}

func TestMovesHaveAModeAndAWindow(t *testing.T) {
	rules := Rules{Moves: Policy{Mode: Maintenance, Windows: []maintenance.Window{evening(t)}}}
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	want := []Block{{OutsideMaintenance, now.Add(10 * time.Hour), "the next maintenance window begins then"}}
	if diff := cmp.Diff(want, rules.MayMove(now, Past{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if blocks := rules.MayMove(now.Add(10*time.Hour), Past{}); blocks != nil {
		t.Errorf("in the window: %v", blocks)
	}
}

func TestThresholds(t *testing.T) {
	for name, test := range map[string]struct {
		min           MinChange
		current, want int64
	}{
		"nothing":                  {MinChange{}, 1000, 0},
		"the value":                {MinChange{Value: ptr(int64(500))}, 1000, 500},
		"the percentage":           {MinChange{Percent: ptr(20)}, 1000, 200},
		"the smaller value":        {MinChange{Value: ptr(int64(3000)), Percent: ptr(80)}, 10_000, 3000},
		"the smaller percentage":   {MinChange{Value: ptr(int64(3000)), Percent: ptr(80)}, 1000, 800},
		"a percentage of 0":        {MinChange{Value: ptr(int64(3000)), Percent: ptr(0)}, 1000, 0},
		"less than one":            {MinChange{Percent: ptr(33)}, 1, 0},
		"of as much as there is":   {MinChange{Percent: ptr(100)}, 1 << 62, 1 << 62},
		"a percentage of nothing":  {MinChange{Percent: ptr(100)}, 0, 0},
		"not only whole hundredth": {MinChange{Percent: ptr(50)}, 199, 99},
	} {
		if got := test.min.Threshold(test.current); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
}

func anyPolicy(t *rapid.T, name string) Policy {
	seconds := func(what string) time.Duration {
		return time.Duration(rapid.SampledFrom([]int{0, 60, 600, 7200}).Draw(t, name+what)) * time.Second
	}
	p := Policy{Mode: rapid.SampledFrom([]Mode{Auto, "", Maintenance}).Draw(t, name+"mode"), Cooldown: seconds("cooldown"), Stabilization: seconds("window")}
	if p.Mode == Maintenance {
		begin := rapid.IntRange(0, 23).Draw(t, name+"begin")
		w, err := maintenance.Parse(fmt.Sprintf("%02d:00", begin), fmt.Sprintf("%02d:30", (begin+rapid.IntRange(0, 3).Draw(t, name+"hours"))%24), "America/New_York", nil)
		if err != nil {
			t.Fatal(err)
		}
		p.Windows = []maintenance.Window{w}
	}
	if rapid.Bool().Draw(t, name+"rated") {
		p.Rate = []Pace{{Count: rapid.IntRange(1, 3).Draw(t, name+"count"), Period: seconds("period") + time.Minute}}
	}
	return p
}

// TestABlockedChangeIsAppliedAsSoonAsItsBlockEnds: at Until it goes further, and a second before it does not. Of
// the number of replicas (out, in) and of sizes (up, down), whose rates count replicas.
func TestABlockedChangeIsAppliedAsSoonAsItsBlockEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		more, less := anyPolicy(t, "more"), anyPolicy(t, "less")
		rules := Rules{Out: more, In: less, Up: more, Down: less}
		decide := rules.Replicas
		if rapid.Bool().Draw(t, "of sizes") {
			decide = func(a Ask, h Past) Verdict { return rules.Resources(a, h, h) }
		}
		now := time.Date(2026, 3, 7, rapid.IntRange(0, 47).Draw(t, "hour"), 0, 0, 0, time.UTC)
		var h Past
		for range rapid.IntRange(0, 8).Draw(t, "wishes") {
			now = now.Add(time.Duration(rapid.IntRange(1, 900).Draw(t, "seconds")) * time.Second)
			h = h.Wish(now, rapid.Int64Range(1, 9).Draw(t, "wish"), more, less)
			if rapid.Bool().Draw(t, "changed") {
				h = h.Changed(now, rapid.IntRange(-3, 3).Draw(t, "by"), more, less)
			}
		}
		h = reread(t, h)
		a := Ask{Now: now, Current: rapid.Int64Range(1, 9).Draw(t, "current"), Wanted: rapid.Int64Range(1, 9).Draw(t, "wanted"),
			Of: rapid.IntRange(1, 16).Draw(t, "of")}
		v := decide(a, h)
		low, high := min(a.Current, a.Wanted), max(a.Current, a.Wanted)
		if v.Value < low || v.Value > high {
			t.Fatalf("from %d to %d: %+v", a.Current, a.Wanted, v)
		}
		if (v.Value == a.Wanted) != (len(v.Blocks) == 0) {
			t.Fatalf("from %d to %d, and what is in the way: %+v", a.Current, a.Wanted, v)
		}
		if v.Until.IsZero() || v.Value != a.Current {
			return
		}
		a.Now = v.Until.Add(-time.Second)
		if early := decide(a, h); early.Value != a.Current {
			t.Fatalf("blocked until %s, and not at %s: %+v", v.Until, a.Now, early)
		}
		a.Now = v.Until
		if late := decide(a, h); late.Value == a.Current && late.Until.Equal(v.Until) {
			t.Fatalf("blocked until %s, and at that time by %+v", v.Until, late)
		}
		for range 20 { // and in the end it is made
			if v = decide(a, h); v.Value == a.Wanted {
				return
			}
			if v.Until.IsZero() || !v.Until.After(a.Now) {
				t.Fatalf("at %s blocked for good: %+v", a.Now, v)
			}
			if v.Value != a.Current {
				h = h.Changed(a.Now, int(v.Value-a.Current), more, less)
				a.Current = v.Value
			}
			a.Now = v.Until
		}
		t.Fatalf("after twenty waits still at %d of %d: %+v", a.Current, a.Wanted, v)
	})
}

// reread takes a history through its JSON, which bounds it.
func reread(t interface{ Fatal(...any) }, h Past) (back Past) {
	data, err := json.Marshal(h)
	if err == nil {
		err = json.Unmarshal(data, &back)
	}
	if err != nil || len(data) > 10_000 {
		t.Fatal(len(data), err)
	}
	return back
}

func TestAHistoryIsBounded(t *testing.T) {
	rules := Policy{Stabilization: 24 * time.Hour, Rate: []Pace{{Count: 1, Period: 24 * time.Hour}}}
	var h Past
	for i := range 3000 {
		h = h.Wish(at(i*60), int64(i%7), rules, rules).Changed(at(i*60), 1, rules, rules)
	}
	reread(t, h)
	if added, _ := by(h.Events, 24*time.Hour, at(2999*60)); added < 1440 || added > 1440*61/60 {
		t.Errorf("%d changes within a day, want 1440", added)
	}
	if len(h.Wishes) > wishes+1 || len(h.Events) > wishes+1 {
		t.Errorf("%d wishes, %d events", len(h.Wishes), len(h.Events))
	}
}

func FuzzHistory(f *testing.F) {
	f.Add([]byte(`{"last":5,"wishes":[[1,2,3]],"events":[[4,-5]]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var h Past
		if json.Unmarshal(data, &h) != nil {
			return
		}
		p := Policy{Cooldown: time.Hour, Stabilization: time.Hour, Rate: []Pace{{Count: 2, Period: time.Hour}}}
		v := Rules{Out: p, In: p}.Replicas(Ask{Now: at(0), Current: 3, Wanted: 7}, h)
		if v.Value < 3 || v.Value > 7 {
			t.Errorf("%+v", v)
		}
	})
}

func evening(t testing.TB) maintenance.Window {
	t.Helper()
	w, err := maintenance.Parse("22:00", "23:00", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	return w
}
