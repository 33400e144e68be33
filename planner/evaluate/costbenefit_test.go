package evaluate_test

import (
	"maps"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ballast/planner/evaluate"
	"ballast/planner/plan"
)

const load = plan.LoadUnit

var day = evaluate.Terms{Horizon: 24 * time.Hour, Longest: 2 * time.Minute}

// How many minutes an overload must have lasted until it pays for a move, by what the move saves of what it costs.
func TestHowLongAnOverloadLastsUntilAMovePays(t *testing.T) {
	for name, test := range map[string]struct {
		saves, costs plan.Load
		horizon      time.Duration
		want         int // minutes; 0: never
	}{
		"all of it":               {saves: load, costs: load, horizon: 24 * time.Hour, want: 16},
		"half of it":              {saves: load / 2, costs: load, horizon: 24 * time.Hour, want: 31},
		"a tenth":                 {saves: load / 10, costs: load, horizon: 24 * time.Hour, want: 159},
		"a hundredth":             {saves: load / 100, costs: load, horizon: 24 * time.Hour},
		"a hundredth, for a week": {saves: load / 100, costs: load, horizon: 7 * 24 * time.Hour, want: 1624},
		"a tenth, for an hour":    {saves: load / 10, costs: load, horizon: time.Hour},
		"nothing":                 {saves: 0, costs: load, horizon: 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			var s evaluate.Savings
			offer := evaluate.Offer{Saves: test.saves, Costs: test.costs}
			got := 0
			for minute := 0; minute <= 10*24*60 && got == 0; minute++ {
				s = s.Next(map[int]evaluate.Offer{3: offer}, noon.Add(time.Duration(minute)*time.Minute), evaluate.Terms{Horizon: test.horizon, Longest: 2 * time.Minute})
				if s.Pays(3, offer) {
					got = minute
				}
			}
			if got != test.want {
				t.Errorf("it pays after %d min, want %d; %s", got, test.want, s.Weigh(map[int]evaluate.Offer{3: offer}))
			}
		})
	}
}

// A spike of any height pays for no move before a quarter of an hour, for nothing saves more than what moves for it.
func TestASpikePaysForNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s evaluate.Savings
		for minute := range 15 {
			costs := plan.Load(rapid.Int64Range(1, 1<<40).Draw(t, "costs"))
			o := evaluate.Offer{Saves: costs, Costs: costs}
			s = s.Next(map[int]evaluate.Offer{0: o}, noon.Add(time.Duration(minute)*time.Minute), day)
			dear := evaluate.Offer{Saves: 1, Costs: plan.Load(1 << 40)}
			if s.Pays(0, dear) {
				t.Errorf("after %d min %s pays", minute, s.Weigh(map[int]evaluate.Offer{0: dear}))
			}
		}
	})
}

// What lasts counts, not how often anybody looks; a leader that was away for long saves nothing meanwhile, nor does a clock
// that goes back; what was spent is gone, and nothing is ever below nothing.
func TestSavings(t *testing.T) {
	offers := map[int]evaluate.Offer{0: {Saves: load, Costs: load}}
	after := func(steps ...time.Duration) float64 {
		s, now := evaluate.Savings{}, noon
		s = s.Next(nil, now, day)
		for _, step := range steps {
			now = now.Add(step)
			s = s.Next(offers, now, day)
		}
		return math.Round(s.Of[0])
	}
	for name, test := range map[string]struct {
		steps []time.Duration
		want  float64
	}{
		"a minute":             {[]time.Duration{time.Minute}, 60},
		"in four quarters":     {[]time.Duration{15 * time.Second, 15 * time.Second, 15 * time.Second, 15 * time.Second}, 60},
		"away for a day":       {[]time.Duration{24 * time.Hour}, 120},
		"a clock that returns": {[]time.Duration{time.Minute, -time.Hour}, 60},
	} {
		if got := after(test.steps...); got != test.want {
			t.Errorf("%s: %v load seconds, want %v", name, got, test.want)
		}
	}
	s := evaluate.Savings{At: noon, Of: map[int]float64{0: 1000, 1: 100}}
	before := maps.Clone(s.Of)
	if diff := cmp.Diff(map[int]float64{0: 100}, s.Spend(map[int]evaluate.Offer{0: offers[0], 1: offers[0], 2: offers[0]}).Of); diff != "" {
		t.Errorf("spent (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, s.Of); diff != "" {
		t.Errorf("what was given changed:\n%s", diff)
	}
	if got := s.Next(nil, noon.Add(time.Hour), day).Of; got[0] != 500 || got[1] != 50 {
		t.Errorf("an hour without an offer later %v, want half", got)
	}
	if got := s.Next(offers, noon.Add(24*time.Hour), day).Of; got[0] != 620 {
		t.Errorf("a horizon with one later %v, want half and two minutes", got)
	}
	back := s.After(noon)
	if got := back.Next(offers, noon.Add(23*time.Hour), day).Next(offers, noon.Add(24*time.Hour), day); got.Of[0] != 120 {
		t.Errorf("a horizon after a rollback %v, want what is saved from then on", got)
	}
}

func TestACandidateIsTakenWholeWhereItPaysTogether(t *testing.T) {
	s := evaluate.Savings{At: noon, Of: map[int]float64{0: 1700, 1: 50}}
	one := map[int]evaluate.Offer{0: {Saves: load, Costs: load}}
	both := map[int]evaluate.Offer{0: {Saves: load, Costs: load}, 1: {Costs: load}}
	if !s.PayTogether(one) || s.PayTogether(both) || s.PayTogether(nil) {
		t.Errorf("%v, %v", s.Weigh(one), s.Weigh(both))
	}
	if got, want := s.Weigh(both).String(), "would have saved 0.486 load hours of overload so far, and costs 0.5"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Nobody saves up for another day: an account holds twice of what is offered now, or of what a restart of all costs.
func TestSavingsHaveACeiling(t *testing.T) {
	for name, test := range map[string]struct {
		price plan.Load
		want  float64
	}{"moves alone": {0, 1800}, "moves that restart all": {3 * load, 5400}} {
		var s evaluate.Savings
		terms := day
		terms.Price = test.price
		for minute := range 24 * 60 {
			s = s.Next(map[int]evaluate.Offer{0: {Saves: load, Costs: load}}, noon.Add(time.Duration(minute)*time.Minute), terms)
		}
		if got := math.Round(s.Of[0]); got != test.want {
			t.Errorf("%s: %v load seconds after a day, want %v", name, got, test.want)
		}
		for minute := range 48 * 60 {
			s = s.Next(nil, noon.Add(24*time.Hour+time.Duration(minute)*time.Minute), terms)
		}
		if s.Of[0] > 1 {
			t.Errorf("%s: %v load seconds two days after it ended, want none", name, s.Of[0])
		}
	}
}

// What an overload costs over a horizon stands against the quarter of an hour that each move costs.
func TestWhatPaysWithinAHorizon(t *testing.T) {
	for name, test := range map[string]struct {
		offer   evaluate.Offer
		horizon time.Duration
		want    bool
	}{
		"nothing saved":                   {evaluate.Offer{Costs: 0}, 24 * time.Hour, false},
		"a ninety-sixth of it, for a day": {evaluate.Offer{Saves: load, Costs: 96 * load}, 24 * time.Hour, true},
		"a little less, for a day":        {evaluate.Offer{Saves: load, Costs: 96*load + 1e6}, 24 * time.Hour, false},
		"a quarter, for an hour":          {evaluate.Offer{Saves: load, Costs: 4 * load}, time.Hour, true},
	} {
		if got := test.offer.PaysWithin(test.horizon); got != test.want {
			t.Errorf("%s: pays %t, want %t", name, got, test.want)
		}
	}
}

// A look after a gap is the first one, and so is one after a look below the capacity.
func TestForHowLongAReplicaIsFull(t *testing.T) {
	var s evaluate.Savings
	for k, look := range []struct {
		minute int
		full   []int
		want   map[int]time.Duration
	}{
		{0, []int{3}, map[int]time.Duration{3: 0}},
		{1, []int{1, 3}, map[int]time.Duration{1: 0, 3: time.Minute}},
		{2, []int{3}, map[int]time.Duration{3: 2 * time.Minute}},
		{60, []int{1, 3}, map[int]time.Duration{1: 0, 3: 0}}, // nobody looked for an hour
		{59, []int{3}, map[int]time.Duration{3: 0}},          // a clock that went back
		{60, nil, nil},
	} {
		s = s.Next(nil, noon.Add(time.Duration(look.minute)*time.Minute), evaluate.Terms{Horizon: day.Horizon, Longest: day.Longest, Full: look.full})
		if diff := cmp.Diff(look.want, s.Spend(nil).Full); diff != "" {
			t.Errorf("look %d (-want +got):\n%s", k, diff)
		}
		for replica, lasted := range look.want {
			if !s.FullFor(replica, lasted) || s.FullFor(replica, lasted+1) {
				t.Errorf("look %d: replica %d is not full for %s", k, replica, lasted)
			}
		}
	}
	if s.FullFor(3, 0) {
		t.Error("a replica is full that nobody saw above the capacity")
	}
}
