package cycle

import (
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ballast/planner/change/harm"
	"ballast/planner/config"
	"ballast/planner/cycle/memory"
	"ballast/planner/cycle/outcome"
	"ballast/planner/cycle/safety"
	"ballast/planner/discover"
	"ballast/planner/discover/labeltext"
	"ballast/planner/observed"
	"ballast/planner/plan"
)

// killedBehindADrain is a fleet of three whose replica 2 was drained for a while; then a replica that received was killed for its memory.
func killedBehindADrain(t *testing.T) (w *liveWorld, killed, other int) {
	t.Helper()
	return killedBehindAWave(t, 0)
}

// killedBehindAWave is that with a clock that was ahead for one cycle, between the wave and the kill.
func killedBehindAWave(t *testing.T, ahead time.Duration) (w *liveWorld, killed, other int) {
	t.Helper()
	w = undecided(t, skewed(24)...)
	for range 30 {
		w.step(time.Minute)
	}
	moves := w.on(2)[0]
	w.in.Cordon = "2=" + w.in.Now.Add(2*time.Minute).UTC().Format(time.RFC3339)
	w.until(t, "a cluster moved", 10*time.Minute, func(outcome.Outcome) bool { return w.row(t, moves) != 2 && w.in.InForce.Rollout == nil })
	killed = w.row(t, moves)
	if ahead > 0 {
		w.step(ahead)
		w.in.Now = w.in.Now.Add(-ahead)
		w.step(time.Minute)
	}
	at := w.in.Now
	w.shape = func(p *observed.Pod) { p.OOMKilled, p.KilledAt = p.Replica == killed, at }
	w.until(t, "it trips", 6*time.Minute, func(out outcome.Outcome) bool { return out.Memory.Changes.Trip != nil })
	w.in.Memory.Changes.TripTold, w.in.Tripped = true, w.in.Memory.Changes.Trip.Why
	return w, killed, 1 - killed
}

// TestAClockThatWasAheadBlindsNoTrip: for one cycle behind the wave it was six hours ahead, as if the 15 minutes of its watch were over.
func TestAClockThatWasAheadBlindsNoTrip(t *testing.T) {
	_, without, _ := killedBehindADrain(t)
	w, killed, _ := killedBehindAWave(t, 6*time.Hour)
	if trip := w.in.Memory.Changes.Trip; killed != without || trip.Reason != harm.OOMKilled || !slices.Equal(trip.Replicas, []int{killed}) || trip.At.After(w.in.Now) {
		t.Errorf("at %s replica %d was killed behind the wave: %+v", w.in.Now, killed, trip)
	}
}

// TestAClockThatWasAheadExcusesNoOrphan: in the cycle after it nothing stood in a watch, so that the orphans of a receiver that died were taken
// for those of one that had received nothing.
func TestAClockThatWasAheadExcusesNoOrphan(t *testing.T) {
	trips := func(ahead int) (tripped int) { // before that minute
		w := undecided(t, skewed(24)...)
		w.minutes(30)
		moves := w.on(2)[0]
		w.in.Cordon = "2=" + w.in.Now.Add(2*time.Minute).UTC().Format(time.RFC3339)
		w.until(t, "it moved", 10*time.Minute, func(outcome.Outcome) bool { return w.row(t, moves) != 2 && w.in.InForce.Rollout == nil })
		w.down = map[int]bool{w.row(t, moves): true}
		for minute := range 16 {
			if minute == ahead {
				w.step(6 * time.Hour)
				w.in.Now = w.in.Now.Add(-6 * time.Hour)
			}
			w.step(time.Minute)
			if trip := w.in.Memory.Changes.Trip; trip != nil && trip.Reason == harm.Orphaned {
				return minute
			}
		}
		return -1
	}
	want := trips(-1)
	if want < 0 {
		t.Fatal("nothing trips at all")
	}
	for ahead := range want + 1 {
		if got := trips(ahead); got < 0 || got > want {
			t.Errorf("with a clock that was ahead before minute %d it trips at %d, want %d", ahead, got, want)
		}
	}
}

func (w *liveWorld) dies(replica, minutes int) (left []string) {
	w.down = map[int]bool{replica: true}
	for range minutes {
		w.step(time.Minute)
	}
	return w.on(replica)
}

// TestAMemoryTripKeepsNobodyElseOnADeadReplica: who has one cluster's API server answer with gigabytes had a replica killed behind a wave,
// and nobody's clusters left any dead replica then. What was killed, and what the waves moved, is handed to nobody, though.
func TestAMemoryTripKeepsNobodyElseOnADeadReplica(t *testing.T) {
	w, killed, other := killedBehindADrain(t)
	changes := w.in.Memory.Changes
	moved, had := changes.TripMoved, w.on(other)
	stay := slices.DeleteFunc(slices.Clone(had), func(name string) bool { return !slices.Contains(moved, name) })
	if len(stay) == 0 || len(stay) == len(had) || !slices.Equal(changes.Trip.Replicas, []int{killed}) {
		t.Fatalf("%v of %v on replica %d moved; the trip is %+v", stay, had, other, changes.Trip)
	}
	if told := strings.Join(messages(w.last), "; "); !strings.Contains(told, "but off replicas that are unwell, and of those neither off replica ") {
		t.Errorf("told %q", told)
	}
	before := w.on(killed)
	if left := w.dies(other, 40); !slices.Equal(left, stay) || !slices.Equal(w.on(killed), before) {
		t.Errorf("on the dead replica are %v, want %v; on the one that was killed %v, want %v; %v", left, stay, w.on(killed), before, messages(w.last))
	}
	parts, _ := w.in.Memory.Parts(nil) // another leader
	w.in.Memory.Changes, _ = func() (memory.Changes, []error) { m, dropped := memory.Of(parts); return m.Changes, dropped }()
	w.in.Cordon = fmt.Sprintf("%d=%s", other, w.in.Now.Add(time.Hour).UTC().Format(time.RFC3339))
	if left := w.dies(other, 40); len(left) > 0 || !slices.Equal(w.on(killed), before) {
		t.Errorf("on the dead replica that a person wants empty are %v; on the one that was killed %v, want %v; %v",
			left, w.on(killed), before, messages(w.last))
	}
	if left := w.dies(killed, 40); !slices.Equal(left, before) {
		t.Errorf("%v are on the replica that was killed, want %v; %v", left, before, messages(w.last))
	}
	w.in.Tripped = "" // a person's word
	if left := w.dies(killed, 40); len(left) > 0 || w.in.Memory.Changes.Trip != nil {
		t.Errorf("%v are on the dead replica after ballast resume, trip %+v; %v", left, w.in.Memory.Changes.Trip, messages(w.last))
	}
}

// TestATripForMemoryHoldsAsMuchAfterAFullHistory: whoever makes clusters with long names by the thousand has no room left for the names of
// what moved, and the next leader stopped every failover.
func TestATripForMemoryHoldsAsMuchAfterAFullHistory(t *testing.T) {
	w, killed, other := killedBehindADrain(t)
	moved, had, before := w.in.Memory.Changes.TripMoved, w.on(other), w.on(killed)
	stay := slices.DeleteFunc(slices.Clone(had), func(name string) bool { return !slices.Contains(moved, name) })
	full := w.in.Memory
	full.Changes.Pinned = map[string]time.Time{}
	for i := range 7000 {
		a, b := sha512.Sum512(fmt.Append(nil, i)), sha512.Sum512(fmt.Append(nil, -1-i))
		full.Changes.Pinned[hex.EncodeToString(a[:])+hex.EncodeToString(b[:61])] = w.in.Now
	}
	parts, _ := full.Parts(nil)
	if size := len(parts["changes.json.gz"]); size < 900_000 {
		t.Fatalf("the part of the names has %d bytes only", size)
	}
	delete(parts, "changes.json.gz") // the largest goes first: planner/store/history
	next, problems := memory.Of(parts)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	w.in.Memory = next
	if left := w.dies(other, 60); !slices.Equal(left, stay) || !slices.Equal(w.on(killed), before) {
		t.Errorf("on the dead replica are %v, want %v; on the one that was killed %v, want %v; %v",
			left, stay, w.on(killed), before, messages(w.last))
	}
	if got := w.in.Memory.Changes.TripMoved; !slices.Equal(got, moved) {
		t.Errorf("it holds %v, want %v", got, moved)
	}
}

// TestAMemoryTripHoldsNoGroup: of clusters that stay together, those that the waves did not move leave without the one that they did, and
// what was proposed does not end since it would take that one along.
func TestAMemoryTripHoldsNoGroup(t *testing.T) {
	w, _, other := killedBehindADrain(t)
	changes, had := w.in.Memory.Changes, w.on(other)
	held := func(name string) bool { return slices.Contains(changes.TripMoved, name) }
	stay := slices.DeleteFunc(slices.Clone(had), func(name string) bool { return !held(name) })
	free := slices.DeleteFunc(slices.Clone(had), held)
	w.in.Config.Partition.Groups = []config.Group{together("pay")}
	for _, name := range []string{stay[0], free[0]} {
		w.secret(name).Labels = labeltext.Of(map[string]string{"pay": "yes"}, []string{"pay"})
	}
	if left := w.dies(other, 40); !slices.Equal(left, stay) {
		t.Errorf("on the dead replica are %v, want %v, which the trip holds; %v", left, stay, messages(w.last))
	}
	if w.in.InForce.Rollout != nil {
		t.Errorf("%+v never ends", w.in.InForce.Rollout)
	}
}

// TestAPinKeepsNobodyOfItsGroupOnADeadReplica: in mode live the waves of a failover moved what its proposal had parted from a pinned one to
// where that is, so that the failover ended with it on the dead replica, and began again. A second Secret of either server did the same,
// since any Secret binds its server to the group; so did a cordon on the replica that died, while another one's failover kept its own waiting.
func TestAPinKeepsNobodyOfItsGroupOnADeadReplica(t *testing.T) {
	second := func(of int) func(*liveWorld, []string) {
		return func(w *liveWorld, had []string) {
			w.add("zz", 1)
			s := w.secret("zz")
			s.Server, s.Labels = server(had[of]), w.secret(had[of]).Labels
			s.Shard = discover.ShardValue{State: discover.ShardValid, N: 1}
		}
	}
	for name, test := range map[string]struct {
		given  func(w *liveWorld, had []string) // the group's two clusters
		pin    int                              // which of them is pinned; -1: zz
		stays  []int
		zz     bool // zz stays, too
		cordon bool // the replica that dies is to be emptied besides
	}{
		"the first is pinned":                  {pin: 0, stays: []int{0}},
		"the second is pinned":                 {pin: 1, stays: []int{1}},
		"the other has two Secrets":            {given: second(1), pin: 0, stays: []int{0}},
		"the other, first, has two Secrets":    {given: second(0), pin: 1, stays: []int{1}},
		"the pinned one has two Secrets":       {given: second(0), pin: 0, stays: []int{0}, zz: true},
		"the pinned one, last, has two":        {given: second(1), pin: 1, stays: []int{1}, zz: true},
		"the second Secret is pinned":          {given: second(0), pin: -1, stays: []int{0}, zz: true},
		"the replica is cordoned when it dies": {pin: 0, stays: []int{0}, cordon: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := undecided(t, skewed(24)...)
			had := w.on(1)
			w.in.Config.Partition.Groups = []config.Group{together("pay")}
			for _, name := range had[:2] {
				w.secret(name).Labels = labeltext.Of(map[string]string{"pay": "yes"}, []string{"pay"})
			}
			if test.given != nil {
				test.given(w, had)
			}
			w.minutes(65) // the new one is known by then
			pinned := "zz"
			if test.pin >= 0 {
				pinned = had[test.pin]
			}
			w.in.Pins = plan.Pins{pinned: 1}
			w.step(time.Minute)
			if test.cordon { // replica 2 failed over within the hour, so that the failover of replica 1 waits
				w.dies(2, 12)
				w.down = nil
				w.minutes(8)
				w.in.Cordon = "1=" + w.in.Now.Add(6*time.Hour).UTC().Format(time.RFC3339)
			}
			var want []string
			for _, i := range test.stays {
				want = append(want, had[i])
			}
			if test.zz {
				want = append(want, "zz")
			}
			w.down = map[int]bool{1: true}
			begun := w.begins(45, func() {})
			if left := w.on(1); !slices.Equal(left, want) || w.in.InForce.Rollout != nil || begun > 2 {
				t.Errorf("on the dead replica are %v, want %v, whose server is pinned there, after %d rollouts; %+v; %v", left, want, begun,
					w.in.InForce.Rollout, messages(w.last))
			}
		})
	}
}

// TestAKillBehindAFailoverDuringAMemoryTripIsHeldToo: what killed the next replica goes no further.
func TestAKillBehindAFailoverDuringAMemoryTripIsHeldToo(t *testing.T) {
	w, killed, other := killedBehindADrain(t)
	w.down[other] = true
	had := w.on(2)
	w.until(t, "clusters failed over", 40*time.Minute, func(outcome.Outcome) bool { return len(w.on(2)) > len(had) && w.in.InForce.Rollout == nil })
	came := slices.DeleteFunc(w.on(2), func(name string) bool { return slices.Contains(had, name) })
	at := w.in.Now
	w.shape = func(p *observed.Pod) { p.OOMKilled, p.KilledAt = p.Replica == 2, at }
	clear(w.down)
	out := w.until(t, "the next one is held", 5*time.Minute, func(out outcome.Outcome) bool { return len(out.Memory.Changes.Trip.Replicas) > 1 })
	c := out.Memory.Changes
	if !slices.Equal(c.Trip.Replicas, slices.Sorted(slices.Values([]int{killed, 2}))) || c.TripTold {
		t.Errorf("the trip is %+v, told: %t", c.Trip, c.TripTold)
	}
	for _, name := range came {
		if !slices.Contains(c.TripMoved, name) {
			t.Errorf("cluster %q may be handed on again", name)
		}
	}
	w.in.Memory.Changes.TripTold, w.in.Tripped = true, c.Trip.Why
	all := w.on(2)
	if left := w.dies(2, 40); !slices.Equal(left, all) {
		t.Errorf("%v are on the replica that was killed last, want %v", left, all)
	}
}

// TestATripThatDoesNotSayWhatItHoldsStopsEveryFailover: one of an older version, one whose clusters' names were lost, and one that somebody
// made up.
func TestATripThatDoesNotSayWhatItHoldsStopsEveryFailover(t *testing.T) {
	for name, test := range map[string]struct {
		trip  harm.Trip
		moved []string
		want  bool // every failover stops
	}{
		"what this version writes":       {harm.Trip{Replicas: []int{1}, Moved: 2}, []string{"a", "b"}, false},
		"an older version's":             {harm.Trip{}, nil, true},
		"names that were lost":           {harm.Trip{Replicas: []int{1}, Moved: 2}, nil, true},
		"other names":                    {harm.Trip{Replicas: []int{1}, Moved: 2}, []string{"a"}, true},
		"no replica":                     {harm.Trip{Moved: 2}, []string{"a", "b"}, true},
		"a replica that cannot be":       {harm.Trip{Replicas: []int{-1, 1}, Moved: 2}, []string{"a", "b"}, true},
		"replicas out of order":          {harm.Trip{Replicas: []int{2, 1}, Moved: 2}, []string{"a", "b"}, true},
		"names out of order":             {harm.Trip{Replicas: []int{1}, Moved: 2}, []string{"b", "a"}, true},
		"replicas without end":           {harm.Trip{Replicas: make([]int, 1001), Moved: 2}, []string{"a", "b"}, true},
		"nothing moved, which cannot be": {harm.Trip{Replicas: []int{1}}, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			test.trip.Reason, test.trip.Why = harm.OOMKilled, "it was"
			c := memory.Changes{Trip: &test.trip, TripMoved: test.moved}
			w := newLiveWorld(1)
			if got := safety.StopsFor("Failover", w.in, c); got != test.want {
				t.Errorf("every failover stops: %t, want %t", got, test.want)
			}
			stay := c.Stay()
			got := map[string]bool{"a on 0": stay.Holds("a", 0), "c on 1": stay.Holds("c", 1), "c on 0": stay.Holds("c", 0)}
			want := map[string]bool{"a on 0": !test.want, "c on 1": !test.want, "c on 0": false}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("held (-want +got):\n%s", diff)
			}
		})
	}
}
