package evaluate_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"ballast/planner/evaluate"
)

var noon = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

func at(minute int) time.Time { return noon.Add(time.Duration(minute) * time.Minute) }

// A, B and C are three ways to put two clusters.
var (
	planA = evaluate.Candidate{Replicas: 2, Of: map[string]int{"eu": 0, "us": 1}}
	planB = evaluate.Candidate{Replicas: 2, Of: map[string]int{"eu": 1, "us": 0}}

	withUK    = evaluate.Candidate{Replicas: 2, Of: map[string]int{"eu": 1, "us": 0, "uk": 1}}
	elsewhere = evaluate.Candidate{Replicas: 2, Of: map[string]int{"au": 1, "us": 0}}
	planC     = evaluate.Candidate{Replicas: 1, Of: map[string]int{"eu": 0, "us": 0}}
)

func TestKeyIsTheContent(t *testing.T) {
	if got, want := evaluate.Key(planA), "56b675747826cfb3"; got != want {
		t.Errorf("key %s, want %s: a leader of another version would start a new vote", got, want)
	}
	distinct := []evaluate.Candidate{planA, planB, planC, {},
		{Replicas: 3, Of: planA.Of},
		{Replicas: 2, Of: map[string]int{"eu": 0}},
		{Replicas: 2, Of: map[string]int{"e": 0, "u": 1}},
		{Replicas: 2, Of: map[string]int{"eu\x00us": 1}},
		{Replicas: 2, Of: map[string]int{"eu": 0, "us": 1, "ap": 0}},
	}
	seen := map[string]int{}
	for i, c := range distinct {
		if j, twice := seen[evaluate.Key(c)]; twice {
			t.Errorf("candidates %v and %v have one key", distinct[j], c)
		}
		seen[evaluate.Key(c)] = i
		if same := (evaluate.Candidate{Replicas: c.Replicas, Of: maps.Clone(c.Of)}); evaluate.Key(same) != evaluate.Key(c) {
			t.Errorf("%v has two keys", c)
		}
	}
}

func TestNoneTakesEveryCandidate(t *testing.T) {
	want := evaluate.Election{Elected: true, Key: evaluate.Key(planA), Candidate: planA, Votes: 1, Samples: 1, Needed: 1, Reason: evaluate.AsIs}
	got := evaluate.None(planA)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if s := got.String(); s != "taken as it is, without a vote" {
		t.Errorf("got %q", s)
	}
}

// vote is one cycle: a candidate proposed at a minute, on a basis ("" is "clusters v1").
type vote struct {
	minute int
	c      evaluate.Candidate
	basis  string
}

// with is a candidate with one cluster more.
func with(c evaluate.Candidate, name string, replica int) evaluate.Candidate {
	c.Of = maps.Clone(c.Of)
	c.Of[name] = replica
	return c
}

func TestMostWanted(t *testing.T) {
	hour := evaluate.MostWantedOptions{Window: time.Hour, MinSamples: 3}
	// A vote that began at noon ends at one.
	elected := func(c evaluate.Candidate, votes, samples int) evaluate.Election {
		return evaluate.Election{Elected: true, Key: evaluate.Key(c), Candidate: c, Votes: votes, Samples: samples, Needed: 3,
			Until: at(60), Reason: evaluate.MostVotes}
	}
	waiting := func(samples, since int, why evaluate.ElectionReason) evaluate.Election {
		return evaluate.Election{Samples: samples, Needed: 3, Until: at(since + 60), Reason: why}
	}
	for name, tc := range map[string]struct {
		votes    []vote
		options  evaluate.MostWantedOptions
		want     evaluate.Election
		sentence string
	}{
		"the first sample of a vote": {[]vote{{0, planA, ""}}, hour, waiting(1, 0, evaluate.NewVote),
			"the bounds or many clusters changed: a new vote has 1 of 3 samples"},
		"too few samples": {[]vote{{0, planA, ""}, {60, planA, ""}}, hour, waiting(2, 0, evaluate.TooFewSamples),
			"the vote has 2 of 3 samples"},
		"enough samples before the window ends": {[]vote{{0, planA, ""}, {1, planA, ""}, {2, planA, ""}, {59, planA, ""}}, hour, waiting(4, 0, evaluate.WindowOpen),
			"the vote has 4 samples, and goes on until 2026-07-01T13:00:00Z"},
		"the most votes win, not the latest": {[]vote{{0, planA, ""}, {30, planA, ""}, {60, planB, ""}}, hour, elected(planA, 2, 3),
			"wanted by 2 of 3 samples, more than any other"},
		"ties go to the newest ballot": {[]vote{{0, planB, ""}, {30, planC, ""}, {60, planA, ""}}, hour, elected(planA, 1, 3), ""},
		"one sample is enough if asked so": {[]vote{{0, planA, ""}}, evaluate.MostWantedOptions{},
			evaluate.Election{Elected: true, Key: evaluate.Key(planA), Candidate: planA, Votes: 1, Samples: 1, Needed: 1, Until: at(0), Reason: evaluate.MostVotes}, ""},
		"an election resets the history": {[]vote{{0, planA, ""}, {30, planA, ""}, {60, planA, ""}, {61, planB, ""}}, hour,
			waiting(1, 61, evaluate.TooFewSamples), ""},
		"a late sample ends the vote; older ones than the window do not count": {[]vote{{0, planA, ""}, {1, planA, ""}, {2, planB, ""}, {3, planB, ""}, {62, planB, ""}}, hour,
			elected(planB, 3, 3), ""},
		"too old samples are too few":                   {[]vote{{0, planA, ""}, {1, planA, ""}, {61, planB, ""}}, hour, waiting(2, 0, evaluate.TooFewSamples), ""},
		"a clock set back leaves ballots of the future": {[]vote{{30, planA, ""}, {31, planA, ""}, {5, planB, ""}}, hour, waiting(1, 5, evaluate.TooFewSamples), ""},
		"a clock that was ahead makes no vote longer": {[]vote{{300, planA, ""}, {0, planA, ""}, {30, planA, ""}, {60, planA, ""}}, hour,
			elected(planA, 3, 3), ""},
		"another basis starts a new vote":  {[]vote{{0, planA, ""}, {30, planA, ""}, {60, planB, "clusters v2"}}, hour, waiting(1, 60, evaluate.NewVote), ""},
		"one cluster more or less goes on": {[]vote{{0, planA, ""}, {30, withUK, ""}, {60, planA, ""}}, hour, elected(planA, 2, 3), ""},
		"a cluster that came makes no other candidate of the rest": {
			[]vote{{0, planA, ""}, {20, planB, ""}, {40, planB, ""}, {60, with(planA, "new", 0), ""}}, hour,
			elected(with(planA, "new", 0), 2, 4), ""},
		"two of three other clusters start a new vote": {[]vote{{0, planA, ""}, {30, planA, ""}, {60, elsewhere, ""}}, hour, waiting(1, 60, evaluate.NewVote), ""},
		"what was dropped for its size cannot win": { // room for one candidate: the present one
			[]vote{{0, planA, ""}, {30, planA, ""}, {60, planB, ""}}, evaluate.MostWantedOptions{Window: time.Hour, MinSamples: 3, MaxAssignments: 3},
			elected(planB, 1, 3), ""},
		"the most wanted are kept": { // room for two candidates: A with two votes rather than the newer C
			[]vote{{0, planA, ""}, {20, planA, ""}, {40, planC, ""}, {60, planB, ""}}, evaluate.MostWantedOptions{Window: time.Hour, MinSamples: 4, MaxAssignments: 4},
			evaluate.Election{Elected: true, Key: evaluate.Key(planA), Candidate: planA, Votes: 2, Samples: 4, Needed: 4, Until: at(60), Reason: evaluate.MostVotes}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var h evaluate.Vote
			var got evaluate.Election
			for _, v := range tc.votes {
				basis := v.basis
				if basis == "" {
					basis = "clusters v1"
				}
				got, h = evaluate.MostWanted(h, v.c, basis, at(v.minute), tc.options)
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
			if tc.sentence != "" && got.String() != tc.sentence {
				t.Errorf("got %q, want %q", got, tc.sentence)
			}
		})
	}
}

func TestHistoryHoldsWhatTheVoteHas(t *testing.T) {
	o := evaluate.MostWantedOptions{Window: time.Hour, MinSamples: 3}
	_, h := evaluate.MostWanted(evaluate.Vote{}, planA, "v1", at(0), o)
	_, h = evaluate.MostWanted(h, planB, "v1", at(1), o)
	a, b := evaluate.Key(planA), evaluate.Key(planB)
	want := evaluate.Vote{Basis: "v1", Since: at(0),
		Ballots:    []evaluate.Ballot{{At: at(0), Key: a}, {At: at(1), Key: b}},
		Candidates: map[string]evaluate.Candidate{a: planA, b: planB}}
	if d := cmp.Diff(want, h); d != "" {
		t.Errorf("two ballots (-want +got)\n%s", d)
	}
	_, reset := evaluate.MostWanted(h, planB, "v1", at(60), o)
	if d := cmp.Diff(evaluate.Vote{Basis: "v1"}, reset); d != "" {
		t.Errorf("after the election (-want +got)\n%s", d)
	}
	if d := cmp.Diff(want, h); d != "" {
		t.Errorf("the election changed its input (-want +got)\n%s", d)
	}
	_, aged := evaluate.MostWanted(h, planB, "v1", at(61), o)
	want = evaluate.Vote{Basis: "v1", Since: at(0),
		Ballots:    []evaluate.Ballot{{At: at(1), Key: b}, {At: at(61), Key: b}},
		Candidates: map[string]evaluate.Candidate{b: planB}}
	if d := cmp.Diff(want, aged); d != "" {
		t.Errorf("A's only ballot is too old (-want +got)\n%s", d)
	}
}

func TestBallotsAreBounded(t *testing.T) {
	o := evaluate.MostWantedOptions{Window: 100 * time.Hour, MinSamples: 1 << 30}
	h := evaluate.Vote{Basis: "v1"}
	for i := range 12_000 {
		i = i * 7 % 12_000 // in no order, as no writer leaves them
		h.Ballots = append(h.Ballots, evaluate.Ballot{At: noon.Add(time.Duration(i) * time.Second), Key: "k"})
	}
	_, h = evaluate.MostWanted(h, planA, "v1", at(60*24), o)
	oldest := noon.Add(2001 * time.Second)
	if len(h.Ballots) != 10_000 || !h.Ballots[0].At.Equal(oldest) {
		t.Errorf("%d ballots since %v, want 10000 since %v", len(h.Ballots), h.Ballots[0].At, oldest)
	}
}

// A vote that an older version wrote has no time at which it began: that of its oldest ballot counts.
func TestAVoteOfAnOlderVersionGoesOn(t *testing.T) {
	o := evaluate.MostWantedOptions{Window: time.Hour, MinSamples: 2}
	_, h := evaluate.MostWanted(evaluate.Vote{}, planA, "v1", at(0), o)
	h.Since = time.Time{}
	e, next := evaluate.MostWanted(h, planA, "v1", at(30), o)
	if e.Reason != evaluate.WindowOpen || !next.Since.Equal(at(0)) {
		t.Errorf("%v, since %v; want the vote to go on since %v", e, next.Since, at(0))
	}
	if e, _ = evaluate.MostWanted(next, planA, "v1", at(60), o); !e.Elected {
		t.Errorf("%v, want an election", e)
	}
}

// However short the interval, a vote of a day holds at most one election, and as many as its samples allow.
func TestOneElectionAWindow(t *testing.T) {
	for _, window := range []time.Duration{time.Hour, 24 * time.Hour, 168 * time.Hour} {
		o := evaluate.MostWantedOptions{Window: window, MinSamples: 5}
		var h evaluate.Vote
		elections := 0
		for i := range 14 * 24 * 6 {
			var e evaluate.Election
			if e, h = evaluate.MostWanted(h, planA, "v1", at(10*i), o); e.Elected {
				elections++
			}
		}
		// the window is closed by the sample at its end, and the next vote begins with the one after it
		if want := int(14 * 24 * time.Hour / (window + 10*time.Minute)); elections != want {
			t.Errorf("window %v: %d elections in two weeks, want %d", window, elections, want)
		}
	}
}

// Over any course of proposals: nothing wins that was not proposed in the window, none with more votes is passed over,
// and memory is bounded; the same course gives the same outcome.
func TestEveryElectionIsJust(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := evaluate.MostWantedOptions{Window: 10 * time.Minute, MinSamples: rapid.IntRange(1, 8).Draw(t, "minSamples"), MaxAssignments: rapid.IntRange(0, 12).Draw(t, "maxAssignments")}
		var h evaluate.Vote
		now := noon
		for range rapid.IntRange(1, 40).Draw(t, "cycles") {
			now = now.Add(time.Duration(rapid.IntRange(-2, 6).Draw(t, "minutes")) * time.Minute)
			c := rapid.SampledFrom([]evaluate.Candidate{planA, planB, planC}).Draw(t, "candidate")
			basis := fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "basis") / 9)
			e, next := evaluate.MostWanted(h, c, basis, now, o)
			again, nextAgain := evaluate.MostWanted(h, c, basis, now, o)
			if d := cmp.Diff(e, again) + cmp.Diff(next, nextAgain); d != "" {
				t.Fatalf("a second count differs\n%s", d)
			}
			checkElection(t, h, c, basis, now, o, e)
			checkHistory(t, next, e, now, o)
			h = next
		}
		checkRoundTrip(t, h)
	})
}

func checkElection(t *rapid.T, h evaluate.Vote, c evaluate.Candidate, basis string, now time.Time, o evaluate.MostWantedOptions, e evaluate.Election) {
	votes, newest := map[string]int{}, map[string]time.Time{}
	samples := 1
	for _, b := range h.Ballots {
		if h.Basis == basis && !b.At.After(now) && !b.At.Before(now.Add(-o.Window)) {
			votes[b.Key]++
			samples++
			if b.At.After(newest[b.Key]) {
				newest[b.Key] = b.At
			}
		}
	}
	votes[evaluate.Key(c)]++
	newest[evaluate.Key(c)] = now
	if ends := !now.Before(e.Until); e.Samples != samples || e.Elected != (samples >= o.MinSamples && ends) {
		t.Fatalf("%+v at %v, and there are %d samples", e, now, samples)
	}
	if samples == 1 && !e.Until.Equal(now.Add(o.Window)) {
		t.Fatalf("%+v at %v, and it began now", e, now)
	}
	if !e.Elected {
		return
	}
	if e.Votes != votes[e.Key] || evaluate.Key(e.Candidate) != e.Key {
		t.Fatalf("%+v, and its votes are %v", e, votes)
	}
	if o.MaxAssignments == 0 || o.MaxAssignments >= 6 {
		for k, v := range votes {
			if v > e.Votes || v == e.Votes && newest[k].After(newest[e.Key]) {
				t.Fatalf("%s is elected with %d votes, the newest of %v, and %s has %d and %v", e.Key, e.Votes, newest[e.Key], k, v, newest[k])
			}
		}
	}
}

func checkHistory(t *rapid.T, h evaluate.Vote, e evaluate.Election, now time.Time, o evaluate.MostWantedOptions) {
	if e.Elected && len(h.Ballots)+len(h.Candidates) > 0 {
		t.Fatalf("the election left %+v", h)
	}
	assignments, keys := 0, map[string]bool{}
	for _, b := range h.Ballots {
		keys[b.Key] = true
		if b.At.After(now) {
			t.Fatalf("a ballot of %v at %v", b.At, now)
		}
	}
	for k, c := range h.Candidates {
		assignments += len(c.Of)
		if !keys[k] {
			t.Fatalf("candidate %s has no ballot", k)
		}
	}
	if o.MaxAssignments > 0 && assignments > max(o.MaxAssignments, 2) {
		t.Fatalf("%d assignments are kept of %d", assignments, o.MaxAssignments)
	}
}

func checkRoundTrip(t rapid.TB, h evaluate.Vote) {
	data, err := h.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	var got evaluate.Vote
	if err := got.UnmarshalBinary(data); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(h, got, cmpopts.EquateEmpty()); d != "" {
		t.Fatalf("packed and unpacked (-want +got)\n%s", d)
	}
}
